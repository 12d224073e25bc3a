#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "chapters/profiling/latencies/latencies.h"
#include "chapters/profiling/latencies/measure.h"
#include "chapters/profiling/latencies/pointer_chase.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/machine.h"
#include "common/base/statistics.h"

namespace d2l {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
// Steps before the clock starts, so that data that fit in a cache are there.
constexpr std::int64_t kWarmUpSteps = std::int64_t{1} << 20;
constexpr std::uint64_t kSeed = 1;
// A hit in the L3 cache takes less than this part of a load from memory.
constexpr double kHit = 0.5;
// And less than this: no L3 cache is so slow.
constexpr double kSlowestHit = 80e-9;

// Half of the free memory: other programs need some, too.
std::int64_t MemoryLimit(std::int64_t max_bytes) {
  return std::min(max_bytes, FreeHostMemory(/*promised=*/0) / 2);
}

std::vector<double> SampleLoads(std::int64_t bytes, const Budget& budget) {
  PointerChase chase(bytes, kSeed);
  KeepValue(chase.Walk(std::min(chase.nodes(), kWarmUpSteps)));
  return SampleBatches(budget, [&](std::int64_t n) {
    const Timer timer;
    KeepValue(chase.Walk(n));
    return timer.Nanos();
  });
}

Measurement MeasureLoads(std::int64_t bytes, std::int64_t limit,
                         const std::string& what, const Budget& budget) {
  if (bytes > limit) {
    return NotMeasured(Say(
        "it needs %s; here at most %s are used (the size of the run, or half "
        "of what is free).",
        FormatBytes(bytes), FormatBytes(limit)));
  }
  return {SampleLoads(bytes, budget),
          Say("a load whose address the load before it gave, in "
              "random order through %s.",
              what)};
}

Measurement MeasureCache(int level, std::int64_t limit, const Budget& budget) {
  const std::optional<std::int64_t> cache = CacheBytes(level);
  if (!cache) {
    return NotMeasured(
        Say("/sys/devices/system/cpu does not say the size of the L%d cache; "
            "virtual machines may hide it.",
            level));
  }
  std::int64_t bytes = *cache / 2;
  // Others use the L3 cache, too: take only as much as the L2 cannot hold.
  if (level == 3) bytes = std::min(bytes, 4 * CacheBytes(2).value_or(bytes));
  return MeasureLoads(bytes, limit,
                      Say("%s of the L%d cache's %s", FormatBytes(bytes), level,
                          FormatBytes(*cache)),
                      budget);
}

// An L3 cache shared with other virtual machines may hold little of our data:
// then the figure is that of misses, and not what the row promises.
void RefuseMisses(const Measurement& memory, Measurement* l3) {
  if (l3->seconds.empty()) return;
  const double load = Summarize(l3->seconds).median;
  const double from_memory = memory.seconds.empty()
                                 ? std::numeric_limits<double>::infinity()
                                 : Summarize(memory.seconds).median;
  if (load < std::min(kHit * from_memory, kSlowestHit)) return;
  *l3 = NotMeasured(
      memory.seconds.empty()
          ? Say("most loads were misses, as where other cores or virtual "
                "machines use the cache: they took %s. Measured: %s",
                FormatDuration(load), l3->how)
          : Say("most loads were misses, as where other cores or virtual "
                "machines use the cache: they took %s, and from memory %s. "
                "Measured: %s",
                FormatDuration(load), FormatDuration(from_memory), l3->how));
}

}  // namespace

MemoryLatencies MeasureMemory(std::int64_t max_bytes, const Budget& budget) {
  const std::int64_t limit = MemoryLimit(max_bytes);
  const std::int64_t l3 = CacheBytes(3).value_or(0);
  MemoryLatencies result;
  result.l1 = MeasureCache(1, limit, budget);
  result.l2 = MeasureCache(2, limit, budget);
  result.l3 = MeasureCache(3, limit, budget);
  result.mib64 = MeasureLoads(
      64 * kMiB, limit,
      64 * kMiB <= l3
          ? Say("%s, which fit in the L3 cache here", FormatBytes(64 * kMiB))
          : FormatBytes(64 * kMiB),
      budget);
  // Four times the L3 cache, or twice as much if there is no room for more.
  const std::int64_t least = std::max(256 * kMiB, 2 * l3);
  const std::int64_t bytes = std::max(least, std::min(4 * l3, limit));
  result.beyond = MeasureLoads(
      bytes, limit,
      l3 > 0 ? Say("%s, of which the L3 cache holds %.0f %% at most",
                   FormatBytes(bytes),
                   100.0 * static_cast<double>(l3) / static_cast<double>(bytes))
             : Say("%s (the size of the L3 cache is not known)",
                   FormatBytes(bytes)),
      budget);
  RefuseMisses(result.beyond.seconds.empty() && 2 * l3 <= 64 * kMiB
                   ? result.mib64
                   : result.beyond,
               &result.l3);
  return result;
}

std::vector<SizeLatency> LatencyBySize(std::int64_t max_bytes, int points,
                                       double seconds) {
  const double smallest = 4096;
  const double largest =
      std::max(smallest, static_cast<double>(MemoryLimit(max_bytes)));
  Budget budget;
  budget.seconds = seconds / points;
  std::vector<SizeLatency> result;
  for (int i = 0; i < points; ++i) {
    const double exponent = static_cast<double>(i) / std::max(points - 1, 1);
    const double bytes = smallest * std::pow(largest / smallest, exponent);
    // pow may end a little above the largest.
    const std::int64_t whole =
        static_cast<std::int64_t>(std::min(bytes, largest)) / kCacheLineBytes *
        kCacheLineBytes;
    result.push_back({whole, SampleLoads(whole, budget)});
  }
  return result;
}

}  // namespace d2l
