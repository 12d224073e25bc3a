// Latencies between threads: over a cache line, through the kernel.
//
//   Measurement line = MeasureCacheLine(Budget());
//
// Two threads send a word back and forth; half of a round trip is one way.
// Both are pinned, to two cores or to one; the caller's thread is left as it
// is. Where a process may not do that, or has one CPU, the result says why.
// Thread-safe, but two at once spoil each other's figures.

#ifndef D2L_CHAPTERS_PROFILING_LATENCIES_THREADS_H_
#define D2L_CHAPTERS_PROFILING_LATENCIES_THREADS_H_

#include <vector>

#include "chapters/profiling/latencies_sampling.h"

namespace d2l {

// The CPUs that this process may run on.
std::vector<int> AllowedCpus();

// To a thread on another core that watches a flag.
Measurement MeasureCacheLine(const Budget& budget);
// To a thread on another core that sleeps on a condition variable.
Measurement MeasureWakeUp(const Budget& budget);
// To a thread on the same core that sleeps on a pipe.
Measurement MeasureContextSwitch(const Budget& budget);
// A thread that does nothing, created and joined.
Measurement MeasureThread(const Budget& budget);

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_LATENCIES_THREADS_H_
