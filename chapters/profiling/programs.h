// Programs that cells in several files of this chapter share. They return when
// all is enqueued, unless they say that they wait. "Host" is the library call
// on this thread, which returns when it is done.
//
// Used by one thread, like the tensors that they get.

#ifndef D2L_CHAPTERS_PROFILING_PROGRAMS_H_
#define D2L_CHAPTERS_PROFILING_PROGRAMS_H_

#include <atomic>
#include <functional>
#include <string>
#include <thread>
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

// Benchmarks of products of n x n matrices, on devices and on the host.
bool BenchmarkProducts(const std::string& name, int n, int products);
bool BenchmarkOnTheHost(const std::string& name, int n, int products);
// `work` on a random (3, 3) tensor, with a profiler if `profiled`.
bool BenchmarkProfiled(const std::string& name, int operations, bool profiled,
                       const std::function<void(const Tensor& x)>& work);

}  // namespace d2l::profiling

#endif  // D2L_CHAPTERS_PROFILING_PROGRAMS_H_
