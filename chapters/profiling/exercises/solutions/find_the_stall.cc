// find_the_stall: which wait leaves the device idle?
//
//   bazel run //:exercises -- find_the_stall

#include "chapters/profiling/exercises/judges/find_the_stall.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

// The timeline of a program: what the front end enqueued (kEnqueue), its waits
// (kWait), what the device did (kDevice), in no order. Returns the line of the
// wait behind which the device is idle for longest; 0 if it never is.
int LineOfStall(const std::vector<Bar>& timeline) {
  // SOLUTION
  int line = 0;
  double longest = 0;
  for (const Bar& wait : timeline) {
    if (wait.row != Bar::kWait) continue;
    // When the device works again; at once, if it has not stopped.
    const double never = std::numeric_limits<double>::infinity();
    double next = never;
    for (const Bar& work : timeline) {
      if (work.row != Bar::kDevice || work.end <= wait.end) continue;
      next = std::min(next, std::max(work.begin, wait.end));
    }
    if (next == never || next - wait.end <= longest) continue;
    longest = next - wait.end;
    line = wait.line;
  }
  return line;
  // END
}

D2L_ANSWER("find_the_stall", LineOfStall);

}  // namespace
}  // namespace d2l
