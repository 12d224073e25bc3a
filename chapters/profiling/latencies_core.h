// Latencies of one core: arithmetic, branches, locks, the kernel.
//
//   Measurement mutex = MeasureMutex(Budget());
//
// Each runs on the calling thread. Thread-safe.

#ifndef D2L_CHAPTERS_PROFILING_LATENCIES_CORE_H_
#define D2L_CHAPTERS_PROFILING_LATENCIES_CORE_H_

#include "chapters/profiling/latencies_sampling.h"

namespace d2l {

// An addition of doubles that needs the result of the one before.
Measurement MeasureAddition(const Budget& budget);
// What a wrongly predicted branch costs more than a rightly predicted one.
Measurement MeasureMispredict(const Budget& budget);
// A std::mutex that nobody else wants, locked and unlocked. The program must
// have a second thread: the C library may leave out the atomic instructions of
// a program that has none.
Measurement MeasureMutex(const Budget& budget);
// An addition to a std::atomic that no other thread uses.
Measurement MeasureAtomic(const Budget& budget);
// The cheapest call into the kernel, getppid.
Measurement MeasureSystemCall(const Budget& budget);

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_LATENCIES_CORE_H_
