// The measurements behind the rows of latencies.h.
//
//   const Measurement mutex = MeasureMutex(Budget());
//
// Each runs on the calling thread and takes about the budget. If a measurement
// is not possible, its result has the reason, or a std::exception says it. The
// functions are thread-safe, but two at once spoil each other's figures.

#ifndef D2L_CHAPTERS_PROFILING_LATENCIES_MEASURE_H_
#define D2L_CHAPTERS_PROFILING_LATENCIES_MEASURE_H_

#include <sched.h>

#include <cstdint>
#include <vector>

#include "chapters/profiling/latencies/sampling.h"

namespace d2l {

// core.cc: one core.

// An addition of doubles that needs the result of the one before.
Measurement MeasureAddition(const Budget& budget);
// The extra cost of a mispredicted branch, beside a well predicted one.
Measurement MeasureMispredict(const Budget& budget);
// A std::mutex that no other thread wants, locked and unlocked. The program
// must have a second thread: the C library may leave out the atomic
// instructions of a program that has none.
Measurement MeasureMutex(const Budget& budget);
// memory.cc: a load, by where the data lie.

struct MemoryLatencies {
  Measurement l1, l2, l3;
  Measurement mib64;   // of 64 MiB, wherever they lie
  Measurement beyond;  // of memory larger than the caches
};
// max_bytes bounds the memory that is used.
MemoryLatencies MeasureMemory(std::int64_t max_bytes, const Budget& budget);

// threads.cc

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

 private:
  cpu_set_t before_;
};

// The time to reach a thread on another core that watches a flag: half of a
// round trip. Both threads are pinned.
Measurement MeasureCacheLine(const Budget& budget);

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_LATENCIES_MEASURE_H_
