// What the first products of a process cost, and the next ones.
//
//   const ColdStart cold = MeasureColdStart(cell, "host", 10000);
//   cell.Claim("The first run is slower.", Less(cold.next_run,
//   cold.first_run));
//
// A process is cold only once, so each sample is taken in a process of its own,
// which does nothing else.

#ifndef D2L_CHAPTERS_PROFILING_COLD_START_H_
#define D2L_CHAPTERS_PROFILING_COLD_START_H_

#include <string>

#include "common/lesson/cell.h"

namespace d2l {

// In seconds; all are reported as figures of the cell.
struct ColdStart {
  Figure first_call;  // the first product of 3x3 matrices, until it is done
  Figure next_call;   // the median of the hundred after it
  Figure first_run;   // all products of the first run; the first one is in it
  Figure next_run;    // of the second run
};

// where: "host", for the host library, or a device such as "cpu:0" or "cuda:1"
// of this program's table. Making that device is a part of the first product.
// Throws std::runtime_error if a process fails.
ColdStart MeasureColdStart(Cell& cell, const std::string& where, int products);

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_COLD_START_H_
