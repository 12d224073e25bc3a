// BusyCores: threads that compute nothing, on every core, while it lives: what
// another program's load does to a measurement.
//
//   {
//     const BusyCores others(4);
//     Measure();
//   }

#ifndef D2L_CHAPTERS_PROFILING_BUSY_CORES_H_
#define D2L_CHAPTERS_PROFILING_BUSY_CORES_H_

#include <atomic>
#include <thread>
#include <vector>

namespace d2l {

class BusyCores {
 public:
  // Returns when all threads are at it.
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

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_BUSY_CORES_H_
