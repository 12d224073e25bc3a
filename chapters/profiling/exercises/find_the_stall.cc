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
  // YOUR CODE
  throw NotDone();
}

D2L_ANSWER("find_the_stall", LineOfStall);

}  // namespace
}  // namespace d2l
