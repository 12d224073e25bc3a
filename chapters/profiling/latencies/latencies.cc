#include "chapters/profiling/latencies/latencies.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/profiling/latencies/cores.h"
#include "chapters/profiling/latencies/pointer_chase.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/machine.h"
#include "common/base/statistics.h"
#include "common/base/timer.h"

namespace d2l {
namespace {

constexpr double kNano = 1e-9;
constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// Half of the free memory: other programs need some, too.
std::int64_t MemoryLimit(std::int64_t max_bytes) {
  return std::min(max_bytes, FreeHostMemory(/*promised=*/0) / 2);
}

// A load whose address the load before it gave, in random order.
std::vector<double> SampleLoads(std::int64_t bytes, const Budget& budget) {
  PointerChase chase(bytes, /*seed=*/1);
  // Before the clock starts, data that fit into a cache get there.
  KeepValue(chase.Walk(std::min(chase.nodes(), kMiB)));
  return SampleBatches(budget, [&](std::int64_t n) {
    const Timer timer;
    KeepValue(chase.Walk(n));
    return timer.Nanos();
  });
}

Measurement MeasureLoads(std::int64_t bytes, std::int64_t limit,
                         const Budget& budget) {
  if (bytes > limit) {
    return NotMeasured(Say(
        "it needs %s; here at most %s are used (the size of the run, or half "
        "of what is free).",
        FormatBytes(bytes), FormatBytes(limit)));
  }
  return {SampleLoads(bytes, budget)};
}

// Loads from half of a cache. Others use the L3 cache, too: of it only as much
// as the L2 cache cannot hold.
Measurement MeasureCache(int level, std::int64_t limit, const Budget& budget) {
  const std::optional<std::int64_t> cache = CacheBytes(level);
  if (!cache) {
    return NotMeasured(
        Say("/sys/devices/system/cpu does not say the size of the L%d cache; "
            "virtual machines may hide it.",
            level));
  }
  std::int64_t bytes = *cache / 2;
  if (level == 3) bytes = std::min(bytes, 4 * CacheBytes(2).value_or(bytes));
  return MeasureLoads(bytes, limit, budget);
}

// An L3 cache that is shared with other virtual machines may hold little of our
// data: then the time is that of misses, which is not what the row promises.
Measurement HitsOnly(const Measurement& l3, const Measurement& memory) {
  double slowest_hit = 80 * kNano;  // no L3 cache is so slow
  if (!memory.seconds.empty()) {
    slowest_hit = std::min(slowest_hit, Summarize(memory.seconds).median / 2);
  }
  if (l3.seconds.empty()) return l3;
  const double load = Summarize(l3.seconds).median;
  if (load < slowest_hit) return l3;
  return NotMeasured(
      Say("most loads were misses, as where other cores or virtual machines "
          "use the cache: they took %s.",
          FormatDuration(load)));
}

// Additions of doubles, each to the sum that the last one gave.
Measurement MeasureAddition(const Budget& budget) {
  // The compiler does not know the value, so it cannot fold the additions.
  volatile double one = 1;
  return {SampleBatches(budget, [&](std::int64_t n) {
    const double step = one;
    double sum = 0;
    const Timer timer;
    for (std::int64_t i = 0; i < n; ++i) sum += step;
    const std::int64_t nanos = timer.Nanos();
    KeepValue(sum);
    return nanos;
  })};
}

// Samples of one branch, taken where the byte is not 0, round and round.
std::vector<double> SampleBranches(const std::vector<std::uint8_t>& taken,
                                   const Budget& budget) {
  std::size_t at = 0;
  return SampleBatches(budget, [&](std::int64_t n) {
    // Locals stay in registers; captured variables may not.
    std::int64_t ones = 0, zeros = 0;
    const Timer timer;
    for (std::int64_t i = 0; i < n; ++i) {
      at = (at + 1) % taken.size();
      // Without the asm statements the compiler would add without a branch.
      if (taken[at] != 0) {
        asm volatile("" : "+r"(ones));
        ++ones;
      } else {
        asm volatile("" : "+r"(zeros));
        ++zeros;
      }
    }
    return timer.Nanos();
  });
}

// Branches in random order, less the time of the same ones sorted, for each of
// the half that no predictor guesses.
Measurement MeasureMispredict(Budget budget) {
  budget.seconds /= 2;
  // More than any predictor remembers, and few enough to stay in the L2 cache.
  std::vector<std::uint8_t> taken(std::size_t{1} << 18);
  std::mt19937 generator(1);
  for (std::uint8_t& byte : taken) byte = (generator() >> 16) & 1;
  std::vector<double> samples = SampleBranches(taken, budget);
  std::sort(taken.begin(), taken.end());
  const double predicted = Summarize(SampleBranches(taken, budget)).median;
  for (double& seconds : samples) {
    seconds = (seconds - predicted) / 0.5;
    if (seconds <= 0) {
      return NotMeasured(
          Say("random branches took no longer than sorted ones in a sample."));
    }
  }
  return {samples};
}

// A std::mutex that no other thread wants, locked and unlocked.
Measurement MeasureMutex(const Budget& budget) {
  // The C library may leave out the atomic instructions of a mutex in a program
  // that has no second thread.
  std::promise<void> measured;
  std::thread second([end = measured.get_future()] { end.wait(); });
  std::mutex mutex;
  std::vector<double> samples = SampleEach(budget, [&] {
    mutex.lock();
    mutex.unlock();
  });
  measured.set_value();
  second.join();
  return {samples};
}

// Half of a round trip between threads on two cores that watch and write a word
// in turn. They do not pause, as other spinning loops do: that would delay the
// answer.
Measurement MeasureCacheLine(const Budget& budget) {
  const std::vector<int> cores = AllowedCores();
  if (cores.size() < 2) {
    return NotMeasured(
        Say("it needs two cores, and this process may use only one."));
  }
  const OnCpu first(cores[0]);
  if (!first.pinned()) {
    return NotMeasured(Say("a thread may not be pinned to a core here."));
  }
  enum Turn { kFirst, kSecond, kEnd };
  alignas(kCacheLineBytes) std::atomic<Turn> turn{kFirst};
  std::thread other([&] {
    const OnCpu second(cores[1]);
    for (Turn now = turn; now != kEnd; now = turn) {
      if (now == kSecond) turn = kFirst;
    }
  });
  std::vector<double> samples = SampleEach(budget, [&] {
    turn = kSecond;
    while (turn == kSecond) {
    }
  });
  turn = kEnd;
  other.join();
  for (double& seconds : samples) seconds /= 2;
  return {samples};
}

std::string Line(const Phrase& what, const std::string& book,
                 const std::string& yours, const std::string& ratio) {
  std::string line = absl::StrFormat("%s%10s   %-27s%10s", Padded(what, 29),
                                     book, yours, ratio);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

// The book's figures are those of its section 13.4 (d2l.ai,
// chapter_computational-performance/hardware.html).
std::vector<LatencyRow> MeasureLatencies(const LatencyOptions& options) {
  const std::int64_t limit = MemoryLimit(options.max_buffer_bytes);
  const std::int64_t l3_bytes = CacheBytes(3).value_or(0);
  Budget budget;
  budget.seconds = options.seconds / 9;
  const auto measure = [&](auto function, auto... arguments) -> Measurement {
    try {
      return function(arguments..., budget);
    } catch (const std::exception& error) {
      return NotMeasured(absl::StrCat(error.what(), "."));
    }
  };
  const Measurement mib64 = measure(MeasureLoads, 64 * kMiB, limit);
  // Four times the L3 cache, or twice as much if there is no room for more.
  const std::int64_t beyond_bytes =
      std::max({256 * kMiB, 2 * l3_bytes, std::min(4 * l3_bytes, limit)});
  const Measurement beyond = measure(MeasureLoads, beyond_bytes, limit);
  const bool beyond_64_mib =
      beyond.seconds.empty() && 2 * l3_bytes <= 64 * kMiB;
  return {
      {"L1 cache hit", 1.5 * kNano, measure(MeasureCache, 1, limit)},
      {"Floating-point addition", 1.5 * kNano, measure(MeasureAddition)},
      {"L2 cache hit", 5 * kNano, measure(MeasureCache, 2, limit)},
      {"Branch mispredict", 6 * kNano, measure(MeasureMispredict)},
      {"L3 cache hit", 16 * kNano,
       HitsOnly(measure(MeasureCache, 3, limit),
                beyond_64_mib ? mib64 : beyond)},
      {"Mutex, lock and unlock", 25 * kNano, measure(MeasureMutex)},
      {"Line that another core wrote", 29 * kNano, measure(MeasureCacheLine)},
      {"64 MB of memory", 46 * kNano, mib64},
      {"Memory beyond the caches", 75 * kNano, beyond},
  };
}

std::string LatencyTable(const std::vector<LatencyRow>& rows) {
  std::string table = Line("", Padded("the book", -10), Padded("yours", 27),
                           Padded("ratio", -10));
  for (const auto& [what, book, yours] : rows) {
    const std::string figure = absl::StrFormat("%g ns", book / kNano);
    if (yours.seconds.empty()) {
      table += Line(Phrase(what), figure, "n/a", "");
      continue;
    }
    const Summary summary = Summarize(yours.seconds);
    table += Line(Phrase(what), figure, FormatSummary(summary, "s"),
                  FormatFactor(summary.median / book));
  }
  return table;
}

std::string WhyNotMeasured(const std::vector<LatencyRow>& rows) {
  std::string reasons;
  for (const auto& [what, book, yours] : rows) {
    if (!yours.seconds.empty()) continue;
    reasons += Wrap(Say("n/a: %s: %s", Translated(what), yours.why_not), "",
                    kTextWidth);
  }
  return reasons;
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
