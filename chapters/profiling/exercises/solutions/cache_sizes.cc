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

// curve: by rising size, about two points for each doubling. It is flat, but
// for noise of some percent, while the memory fits into a cache, and then rises
// by at least a factor of 1.8 within two doublings. Returns the sizes of the
// caches in bytes, by rising size, each within a factor of two.
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
