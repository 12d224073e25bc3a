// cache_sizes: read the sizes of the caches off the latency curve.
//
//   bazel run //:exercises -- cache_sizes

#include "chapters/profiling/exercises/judges/cache_sizes.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

// curve: by rising size, two points for each doubling. It is flat, but for
// noise of 3 % up or down, while the memory fits into a cache. From the size of
// the cache on it rises for one doubling and a half, to 2.5 times as much or
// more, and is flat again. Returns the sizes of the caches in bytes, by rising
// size, each within a factor of two; none where the curve has no rise, or no
// points.
std::vector<std::int64_t> CacheSizes(const std::vector<Latency>& curve) {
  // SOLUTION
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 1; i < curve.size(); ++i) {
    if (curve[i].nanoseconds < 1.25 * curve[i - 1].nanoseconds) continue;
    sizes.push_back(curve[i - 1].bytes);  // the last that fits
    // The rest of the slope belongs to the same cache.
    while (i + 1 < curve.size() &&
           curve[i + 1].nanoseconds > 1.1 * curve[i].nanoseconds) {
      ++i;
    }
  }
  return sizes;
  // END
}

D2L_ANSWER("cache_sizes", CacheSizes);

}  // namespace
}  // namespace d2l
