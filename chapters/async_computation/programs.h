// The programs that this chapter teaches: its lesson judges them, its
// benchmarks time them. programs.cc marks each with its cells' ids.
//
//   TenProducts(1000, TryGpu());
//   Synchronize(TryGpu());
//
// They work on the device's current stream, and wait only where they say so.
// Threads and errors: as the operations that they call.

#ifndef D2L_CHAPTERS_ASYNC_COMPUTATION_PROGRAMS_H_
#define D2L_CHAPTERS_ASYNC_COMPUTATION_PROGRAMS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/d2l.h"
#include "common/lesson/cell/cell.h"

namespace d2l::async_computation {

// 004/In2, 004/In4. The last two return the last a and b.
void TenProductsOnTheHost(int n);
std::pair<Tensor, Tensor> TenProducts(int n, Device device);
std::pair<Tensor, Tensor> TenProductsDone(int n, Device device);

// 004/In5
Tensor ThreeStatements(Device device);
void TwoBranches(const Tensor& a, const Tensor& w);
void BThenC(const Tensor& a, Stream& stream_of_c, bool depends);

// 000/launch-blocking. The first throws AsyncError.
void IndexOutOfRange(Device device);
Tensor Additions(const Tensor& a, int n, bool launch_blocking);

// 004/queue-memory. Returns the mean of the last output.
double Epoch(const std::string& kind, const std::string& way,
             const std::vector<float>& host, const Tensor& ones, int batches,
             const std::function<void()>& look);

// d2l/barriers. Returns b, and the last product behind it.
std::pair<Tensor, Tensor> Products(const Tensor& a, int behind);
void WaitForAll(const Tensor& b);
void WaitForOne(const Tensor& b);

// d2l/blockers. Readers by name; sums of `reads` values.
using Reader = std::pair<std::string, std::function<void(const Tensor& s)>>;
std::vector<Reader> Readers();
double ReadEach(const Tensor& x, int reads);
double SumOnTheDevice(const Tensor& x, int reads);

// d2l/t1-t2-t3. T1AndT2 returns seconds per addition.
Tensor AddOnes(const Tensor& x, int n, bool wait_each_time);
std::pair<double, double> T1AndT2(const Tensor& x, int held);

// Cells: costs.cc
void QueueMemory(Cell& cell);
void T1T2T3(Cell& cell);

}  // namespace d2l::async_computation

#endif  // D2L_CHAPTERS_ASYNC_COMPUTATION_PROGRAMS_H_
