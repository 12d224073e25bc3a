// The cores that this process may use, and threads that stay on one of them.
//
//   const std::vector<int> cores = AllowedCores();
//   const OnCpu first(cores[0]);  // until the end of the block
//
// Thread-safe; OnCpu is of the thread that makes and destroys it.

#ifndef D2L_CHAPTERS_PROFILING_LATENCIES_CORES_H_
#define D2L_CHAPTERS_PROFILING_LATENCIES_CORES_H_

#include <sched.h>

#include <vector>

namespace d2l {

// One of the CPUs of each core that this thread may use. The two hardware
// threads of one core share its caches.
std::vector<int> AllowedCores();

// Keeps this thread on one CPU while it lives, where the system allows it.
class OnCpu {
 public:
  explicit OnCpu(int cpu);
  ~OnCpu();
  OnCpu(const OnCpu&) = delete;
  OnCpu& operator=(const OnCpu&) = delete;

  bool pinned() const { return pinned_; }

 private:
  cpu_set_t before_;
  bool pinned_;
};

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_LATENCIES_CORES_H_
