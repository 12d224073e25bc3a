// Judges cache_sizes by curves of machines whose caches are known, then by this
// machine's.

#include "chapters/profiling/exercises/judges/cache_sizes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chapters/profiling/latencies/latencies.h"
#include "common/base/console/format.h"
#include "common/base/machine.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"

namespace d2l {
namespace {

using CacheSizes = std::vector<std::int64_t>(const std::vector<Latency>& curve);

struct Cache {
  std::int64_t bytes;
  double beyond;  // the time of a load that does not fit
};

std::string Show(const std::vector<std::int64_t>& sizes) {
  return sizes.empty()
             ? Say("no cache")
             : absl::StrJoin(sizes, ", ",
                             [](std::string* out, std::int64_t size) {
                               absl::StrAppend(out, FormatBytes(size));
                             });
}

// From 4 KB to 256 MB.
std::vector<Latency> Curve(double first, const std::vector<Cache>& caches,
                           unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> noise(0.97, 1.03);
  std::vector<Latency> curve;
  for (int i = 0; i <= 32; ++i) {
    const auto bytes = static_cast<std::int64_t>(4096 * std::exp2(i / 2.));
    double log_time = std::log(first), before = log_time;
    for (const Cache& cache : caches) {
      // The time rises over one and a half doublings of the size.
      const double out = std::clamp(
          std::log2(static_cast<double>(bytes) / cache.bytes) / 1.5, 0., 1.);
      log_time += out * (std::log(cache.beyond) - before);
      before = std::log(cache.beyond);
    }
    curve.push_back({bytes, std::exp(log_time) * noise(engine)});
  }
  // An answer that reads behind the end finds a rise there.
  curve.push_back({curve.back().bytes * 8, curve.back().nanoseconds * 8});
  curve.pop_back();
  return curve;
}

bool WithinTwo(double got, double expected) {
  return got <= 2 * expected && expected <= 2 * got;
}

void JudgeOne(const Judging& judging, CacheSizes* answer, double first,
              const std::vector<Cache>& caches, unsigned seed = 0) {
  std::vector<std::int64_t> expected;
  for (const Cache& cache : caches) expected.push_back(cache.bytes);
  const std::vector<Latency> curve =
      Curve(first, caches, static_cast<unsigned>(caches.size()) + seed);
  const std::vector<std::int64_t> got = answer(curve);
  const std::string input = Say(
      "a curve that begins at %.1f ns; its caches: %s", first, Show(expected));
  std::vector<std::int64_t> rising = got;
  std::sort(rising.begin(), rising.end());
  std::vector<double> from_kilobytes;
  for (const std::int64_t size : got) from_kilobytes.push_back(1024. * size);
  const auto are_right = [&](const auto& sizes) {
    return std::equal(sizes.begin(), sizes.end(), expected.begin(),
                      expected.end(), WithinTwo);
  };
  if (are_right(got)) return;
  const char* look =
      "The size of a cache is the last that fits, where the curve begins to "
      "rise, not where it is flat again.";
  if (are_right(rising)) {
    look = "The sizes are right; return them by rising size.";
  } else if (are_right(from_kilobytes)) {
    look = "These are kilobytes: return the sizes in bytes, as in the curve.";
  } else if (got.size() > expected.size()) {
    look = got.back() == curve.back().bytes
               ? "What fits into no cache is memory, not a cache: the curve's "
                 "last flat piece has no size."
               : "A slope takes several points, and is one cache. Noise of "
                 "some percent is none.";
  } else if (got.size() < expected.size()) {
    look =
        "A step is a factor, not a number of nanoseconds: from 1 to 3 ns is as "
        "large as from 30 to 90.";
  }
  judging.Wrong({input, Show(got), Show(expected), look});
}

void JudgeCacheSizes(Judging& judging, CacheSizes* answer) {
  constexpr std::int64_t kKb = 1024, kMb = 1024 * kKb;
  JudgeOne(judging, answer, 1.2, {{32 * kKb, 3.5}, {kMb, 14}, {32 * kMb, 90}});
  JudgeOne(judging, answer, 1.0,
           {{48 * kKb, 2.9}, {2 * kMb, 21}, {24 * kMb, 110}});
  JudgeOne(judging, answer, 0.9, {{128 * kKb, 4.6}, {12 * kMb, 95}});
  JudgeOne(judging, answer, 2, {{16 * kKb, 60}});
  JudgeOne(judging, answer, 5, {});
  for (int i = 0; i < 12; ++i) {
    const double first = Drawn(0.8, 6);
    std::vector<Cache> caches;
    double bytes = 1024 * Drawn(16, 64), nanoseconds = first;
    for (int level = 0; level < i % 4; ++level) {
      nanoseconds *= Drawn(2.6, 6);
      caches.push_back({static_cast<std::int64_t>(bytes), nanoseconds});
      bytes *= Drawn(12, 30);
    }
    JudgeOne(judging, answer, first, caches, std::random_device{}());
  }
  if (!answer({}).empty()) {
    judging.Wrong({"an empty curve", Show(answer({})), "no cache",
                   "There is nothing to read."});
  }
  if (!judging.timed()) return;

  std::vector<Latency> curve;
  for (const SizeLatency& point :
       LatencyBySize(std::int64_t{256} * kMb, 33, 1.5)) {
    if (point.seconds.empty()) continue;
    // The least disturbed sample: other programs use the caches, too.
    curve.push_back(
        {point.bytes,
         *std::min_element(point.seconds.begin(), point.seconds.end()) * 1e9});
  }
  judging.Note(
      Say("You read off this machine's curve: %s", Show(answer(curve))));
  std::vector<std::int64_t> system;
  for (const int level : {1, 2, 3}) {
    const auto bytes = CacheBytes(level);
    if (bytes.has_value()) system.push_back(*bytes);
  }
  judging.Note(Say("Its caches, says the system: %s", Show(system)));
}

D2L_JUDGE("cache_sizes", JudgeCacheSizes);

}  // namespace
}  // namespace d2l
