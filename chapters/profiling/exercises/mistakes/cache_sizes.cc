#include "chapters/profiling/exercises/judges/cache_sizes.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace every_rise {
std::vector<std::int64_t> CacheSizes(const std::vector<Latency>& curve) {
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 1; i < curve.size(); ++i) {
    if (curve[i].nanoseconds > 1.25 * curve[i - 1].nanoseconds) {
      sizes.push_back(curve[i - 1].bytes);
    }
  }
  return sizes;
}
}  // namespace every_rise

// step: from which ratio, or from how many nanoseconds, a rise counts.
std::vector<std::int64_t> Slopes(const std::vector<Latency>& curve,
                                 double ratio, double nanoseconds, bool end) {
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 1; i < curve.size(); ++i) {
    const double now = curve[i].nanoseconds, last = curve[i - 1].nanoseconds;
    if (now < ratio * last || now - last < nanoseconds) continue;
    const std::int64_t begin = curve[i - 1].bytes;
    while (i + 1 < curve.size() &&
           curve[i + 1].nanoseconds > 1.1 * curve[i].nanoseconds) {
      ++i;
    }
    sizes.push_back(end ? curve[i].bytes : begin);
  }
  return sizes;
}

namespace nanoseconds {
std::vector<std::int64_t> CacheSizes(const std::vector<Latency>& curve) {
  return Slopes(curve, 1, 3, false);
}
}  // namespace nanoseconds

namespace where_it_is_flat_again {
std::vector<std::int64_t> CacheSizes(const std::vector<Latency>& curve) {
  return Slopes(curve, 1.25, 0, true);
}
}  // namespace where_it_is_flat_again

namespace largest_first {
std::vector<std::int64_t> CacheSizes(const std::vector<Latency>& curve) {
  const std::vector<std::int64_t> sizes = Slopes(curve, 1.25, 0, false);
  return {sizes.rbegin(), sizes.rend()};
}
}  // namespace largest_first

namespace memory_too {
std::vector<std::int64_t> CacheSizes(const std::vector<Latency>& curve) {
  std::vector<std::int64_t> sizes = Slopes(curve, 1.25, 0, false);
  if (!curve.empty()) sizes.push_back(curve.back().bytes);
  return sizes;
}
}  // namespace memory_too

namespace in_kilobytes {
std::vector<std::int64_t> CacheSizes(const std::vector<Latency>& curve) {
  std::vector<std::int64_t> sizes = Slopes(curve, 1.25, 0, false);
  for (std::int64_t& size : sizes) size /= 1024;
  return sizes;
}
}  // namespace in_kilobytes

D2L_MISTAKE("cache_sizes", every_rise, CacheSizes, "is one cache");
D2L_MISTAKE("cache_sizes", nanoseconds, CacheSizes, "A step is a factor");
D2L_MISTAKE("cache_sizes", where_it_is_flat_again, CacheSizes,
            "The size of a cache is the last");
D2L_MISTAKE("cache_sizes", largest_first, CacheSizes, "by rising size");
D2L_MISTAKE("cache_sizes", memory_too, CacheSizes, "is memory, not a cache");
D2L_MISTAKE("cache_sizes", in_kilobytes, CacheSizes, "in bytes");

}  // namespace
}  // namespace d2l
