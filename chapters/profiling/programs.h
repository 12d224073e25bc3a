// The programs of this chapter's cells, for its lesson and its benchmarks. They
// return when all is enqueued, unless they say that they wait. "Host" is the
// library call on this thread, which returns when it is done.
//
// Used by one thread, like the tensors that they get.

#ifndef D2L_CHAPTERS_PROFILING_PROGRAMS_H_
#define D2L_CHAPTERS_PROFILING_PROGRAMS_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "common/d2l.h"
#include "common/lesson/cell/cell.h"

namespace d2l::profiling {

// Keeps threads busy while it lives, to show what another program's load does
// to a measurement.
//
//   {
//     const BusyCores others(4);
//     Measure();
//   }
class BusyCores {
 public:
  // Returns when all threads are running.
  explicit BusyCores(int threads) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this] {
        at_work_.fetch_add(1);
        while (!stop_.load(std::memory_order_relaxed)) {
        }
      });
    }
    while (at_work_.load() < threads) std::this_thread::yield();
  }
  ~BusyCores() {
    stop_.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads_) thread.join();
  }
  BusyCores(const BusyCores&) = delete;
  BusyCores& operator=(const BusyCores&) = delete;

 private:
  std::atomic<int> at_work_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

// Runs `work`; the profiler keeps what it does.
void Profiled(Profiler& profiler, const std::function<void()>& work);

// Computes x @ x.T, `count` times.
Tensor Products(const Tensor& x, int count);
// On the host: the transpose of an n x n matrix, and x @ x.T.
std::vector<float> Transposed(const std::vector<float>& x, int n);
std::vector<float> HostSquare(const std::vector<float>& x, int n);
// x @ x_t of n x n matrices on the host; a profiler sees each as
// "HostMatMul".
std::vector<float> HostProducts(const std::vector<float>& x,
                                const std::vector<float>& x_t, int n,
                                int count);

// (x @ x.T) * (x @ x.T) + x a hundred times, in 300 operations; waits.
Tensor HundredTimes(const Tensor& x);

// Makes a random (10, 10) tensor and its product with itself, `count` times.
std::pair<Tensor, Tensor> RandAndMultiply(int count, Device device);
// Fills `vec`, which has (10, 10) rows, and multiplies it by itself.
Tensor FillOnTheDevice(int times, Tensor& vec);
// Fills `vec` on the host; waits.
void FillOnTheHost(int times, Device device, std::vector<float>* vec);

// The products b[i][j] * a[j] of 100 small tensors a[j] and `count` hundreds of
// others; on the device or, as in the course, each copied to the host when
// done.
struct Hundreds {
  Hundreds(int count, Device device);

  // on_host[i] = product, of all of b[i]; waits.
  void CopyToHost(int i, const Tensor& product);
  // on_host[i, :, :, j] = product, of b[i][j]; waits.
  void CopyToHost(int i, int j, const Tensor& product);

  std::vector<Tensor> a;
  std::vector<std::vector<Tensor>> b;
  Tensor on_device;            // (count, 10, 10, 100)
  std::vector<float> on_host;  // as on_device
};
// anew: stacks a[j] again for each hundred.
void Stacked(Hundreds& h, bool to_host, bool anew = false);
void DoubleLoop(Hundreds& h, bool to_host);

// Each row times 2, in one operation or in one operation per row.
Tensor Doubled(const Tensor& all);
Tensor DoubledByRow(const Tensor& all);
// The sum of all rows.
Tensor SumOfRows(const Tensor& all);
Tensor SumOfRows(const std::vector<Tensor>& list);

// Cells: small.cc
void SmallOnTheHost(Cell& cell);
void SmallOnTheDevice(Cell& cell);
// vectorising.cc
void OneByOne(Cell& cell);
void FalseVectorisation(Cell& cell);
void Reuse(Cell& cell);
void ThreeQuestions(Cell& cell);

}  // namespace d2l::profiling

#endif  // D2L_CHAPTERS_PROFILING_PROGRAMS_H_
