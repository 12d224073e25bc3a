// small_on_streams: up to which size do several streams help?
//
//   bazel run //:exercises -- small_on_streams

#include <cmath>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

// A product of n x n matrices is cut into tiles of `tile` x `tile` numbers, at
// the edges of fewer. Each of the device's `units` does a tile at a time, and
// all tiles take as long. On one stream a product begins when the one before
// is done; products on several streams share the units. Returns the largest n
// at which `streams` products, each on its own stream, are at least 1.5 times
// as fast as on one stream; 0 if there is none.
int LargestSize(int units, int tile, int streams) {
  // SOLUTION
  // From 2 units tiles on, less than a third of the last wave can be gained.
  for (int side = static_cast<int>(std::sqrt(2.0 * units)) + 1; side > 0;
       --side) {
    const int tiles = side * side;
    const int one_by_one = streams * ((tiles + units - 1) / units);
    const int together = (streams * tiles + units - 1) / units;
    if (2 * one_by_one >= 3 * together) return side * tile;
  }
  return 0;
  // END
}

D2L_ANSWER("small_on_streams", LargestSize);

}  // namespace
}  // namespace d2l
