#include "chapters/profiling/latencies_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "chapters/profiling/machine_files.h"
#include "common/base/format.h"
#include "common/base/timer.h"

namespace d2l {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
// Walked before the clock starts, so that what fits in a cache is there.
constexpr std::int64_t kWarmUpSteps = std::int64_t{1} << 20;
constexpr std::uint64_t kSeed = 1;

std::uintptr_t Address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// "48K", "2M" or "32768".
std::optional<std::int64_t> ParseBytes(absl::string_view text) {
  std::int64_t unit = 1;
  if (absl::EndsWith(text, "K")) unit = 1024;
  if (absl::EndsWith(text, "M")) unit = kMiB;
  if (unit != 1) text.remove_suffix(1);
  std::int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value <= 0) return std::nullopt;
  return value * unit;
}

std::vector<double> SampleWalk(PointerChase& chase, const Budget& budget) {
  KeepValue(chase.Walk(std::min(chase.nodes(), kWarmUpSteps)));
  return SampleNanos(budget, [&](std::int64_t n) {
    const Timer timer;
    KeepValue(chase.Walk(n));
    return timer.Nanos();
  });
}

// Half of what is free: the machine has others to serve.
std::int64_t MemoryLimit(std::int64_t max_bytes) {
  const std::optional<std::int64_t> available = AvailableMemoryBytes("/");
  return available ? std::min(max_bytes, *available / 2) : max_bytes;
}

Measurement MeasureLoads(std::int64_t bytes, const std::string& which,
                         const Budget& budget) {
  const std::unique_ptr<PointerChase> chase = PointerChase::Allocate(bytes);
  if (chase == nullptr) {
    return NotMeasured(
        absl::StrCat("there is no memory for ", FormatBytes(bytes), "."));
  }
  chase->Build(bytes, kSeed);
  Measurement result;
  result.nanos = SampleWalk(*chase, budget);
  result.how = absl::StrFormat(
      "a load whose address the load before it gave, in random order through "
      "%s%s, %s.",
      FormatBytes(bytes), which, chase->Pages());
  return result;
}

std::string TooMuch(std::int64_t bytes, std::int64_t limit) {
  return absl::StrFormat(
      "it needs %s; here at most %s are used (the size of the run, or half of "
      "what is free).",
      FormatBytes(bytes), FormatBytes(limit));
}

std::string UnknownCache(int level) {
  return absl::StrFormat(
      "the size of the L%d cache is not known: neither "
      "/sys/devices/system/cpu nor the processor says it. Virtual machines "
      "may hide it.",
      level);
}

}  // namespace

std::vector<std::uint32_t> RandomCycle(std::int64_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> next(static_cast<std::size_t>(count));
  std::iota(next.begin(), next.end(), 0u);
  std::mt19937 generator(static_cast<std::mt19937::result_type>(seed));
  for (std::size_t i = next.size() - 1; i > 0; --i) {
    // From 0 to i - 1; without i itself, which is what makes it one cycle.
    const std::uint64_t random = generator();
    std::swap(next[i], next[static_cast<std::size_t>((random * i) >> 32)]);
  }
  return next;
}

std::unique_ptr<PointerChase> PointerChase::Allocate(std::int64_t bytes) {
  // One huge page more than it holds: mmap aligns to small ones.
  const std::size_t mapped =
      (static_cast<std::size_t>(bytes) / kHugePage + 2) * kHugePage;
  void* const mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  // A kernel without huge pages refuses; Pages() says what came of it.
  static_cast<void>(madvise(mapping, mapped, MADV_HUGEPAGE));
  return std::unique_ptr<PointerChase>(new PointerChase(mapping, mapped));
}

PointerChase::PointerChase(void* mapping, std::size_t mapped_bytes)
    : mapping_(mapping),
      mapped_bytes_(mapped_bytes),
      first_(reinterpret_cast<Node*>((Address(mapping) + kHugePage - 1) /
                                     kHugePage * kHugePage)) {}

PointerChase::~PointerChase() { munmap(mapping_, mapped_bytes_); }

void PointerChase::Build(std::int64_t bytes, std::uint64_t seed) {
  nodes_ = bytes / kCacheLineBytes;
  const std::vector<std::uint32_t> next = RandomCycle(nodes_, seed);
  for (std::size_t i = 0; i < next.size(); ++i) {
    first_[i].next = first_ + next[i];
  }
  at_ = first_;
}

const PointerChase::Node* PointerChase::Walk(std::int64_t steps) {
  Node* at = at_;
  for (std::int64_t i = 0; i < steps; ++i) at = at->next;
  at_ = at;
  return at;
}

std::string PointerChase::Pages() const {
  const std::int64_t bytes = nodes_ * kCacheLineBytes;
  const std::int64_t huge = HugePageBytes(
      ReadTextFile("/proc/self/smaps").value_or(""), Address(first_));
  const std::string small_pages = absl::StrCat(
      "in ", FormatBytes(sysconf(_SC_PAGESIZE)),
      " pages, so that beyond the TLB's reach its misses are included");
  if (huge == 0) return small_pages;
  if (huge >= bytes) {
    return absl::StrCat("in ", FormatBytes(kHugePage), " pages");
  }
  return absl::StrFormat(
      "%.0f %% of it in %s pages, the rest %s",
      100 * static_cast<double>(huge) / static_cast<double>(bytes),
      FormatBytes(kHugePage), small_pages);
}

std::int64_t HugePageBytes(const std::string& smaps, std::uintptr_t address) {
  bool inside = false;
  for (const absl::string_view line : absl::StrSplit(smaps, '\n')) {
    // A mapping begins with "7f1200000000-7f1200400000 rw-p …".
    const std::vector<absl::string_view> range =
        absl::StrSplit(line.substr(0, line.find(' ')), '-');
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    if (range.size() == 2 && absl::SimpleHexAtoi(range[0], &begin) &&
        absl::SimpleHexAtoi(range[1], &end)) {
      inside = begin <= address && address < end;
    } else if (inside && absl::StartsWith(line, "AnonHugePages:")) {
      return FieldOf(std::string(line), "AnonHugePages").value_or(0) * 1024;
    }
  }
  return 0;
}

std::optional<std::int64_t> CacheBytes(int level, const std::string& root) {
  for (int index = 0;; ++index) {
    const std::string cache = absl::StrCat(
        root, "/sys/devices/system/cpu/cpu0/cache/index", index, "/");
    const std::optional<std::int64_t> its_level = ReadInt(cache + "level");
    if (!its_level) break;
    const std::string type = ReadWord(cache + "type").value_or("");
    if (*its_level == level && type != "Instruction") {
      const std::optional<std::string> size = ReadWord(cache + "size");
      return size ? ParseBytes(*size) : std::nullopt;
    }
  }
  if (root != "/") return std::nullopt;
  static constexpr int kNames[] = {
      _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
  const long bytes = sysconf(kNames[level - 1]);
  if (bytes <= 0) return std::nullopt;
  return bytes;
}

Measurement MeasureCache(int level, std::int64_t max_bytes,
                         const Budget& budget) {
  const std::optional<std::int64_t> cache = CacheBytes(level);
  if (!cache) return NotMeasured(UnknownCache(level));
  const std::int64_t bytes = *cache / 2;
  const std::int64_t limit = MemoryLimit(max_bytes);
  if (bytes > limit) return NotMeasured(TooMuch(bytes, limit));
  const char* const shared =
      level == 3 ? ", which cores and virtual machines share" : "";
  return MeasureLoads(bytes,
                      absl::StrFormat(", half of the L%d cache of %s%s", level,
                                      FormatBytes(*cache), shared),
                      budget);
}

Measurement MeasureMemory(std::int64_t bytes, std::int64_t max_bytes,
                          const Budget& budget) {
  const std::int64_t limit = MemoryLimit(max_bytes);
  if (bytes > limit) return NotMeasured(TooMuch(bytes, limit));
  const std::optional<std::int64_t> l3 = CacheBytes(3);
  std::string which;
  if (l3 && *l3 >= bytes) {
    which = absl::StrFormat(", which fit in the L3 cache of %s here",
                            FormatBytes(*l3));
  }
  return MeasureLoads(bytes, which, budget);
}

Measurement MeasureBeyondCaches(std::int64_t max_bytes, const Budget& budget) {
  const std::int64_t limit = MemoryLimit(max_bytes);
  const std::optional<std::int64_t> l3 = CacheBytes(3);
  const std::int64_t least = std::max(256 * kMiB, 2 * l3.value_or(0));
  const std::int64_t best = std::max(256 * kMiB, 4 * l3.value_or(0));
  if (limit < least) return NotMeasured(TooMuch(least, limit));
  const std::int64_t bytes = std::min(best, limit);
  const std::string which =
      l3 ? absl::StrFormat(
               ", of which the L3 cache holds %.0f %% at most",
               100 * static_cast<double>(*l3) / static_cast<double>(bytes))
         : " (the size of the L3 cache is not known)";
  return MeasureLoads(bytes, which, budget);
}

std::vector<SizeLatency> LatencyBySize(std::int64_t max_bytes, int points,
                                       double seconds) {
  const double smallest = 4096;
  const double largest =
      std::max(smallest, static_cast<double>(MemoryLimit(max_bytes)));
  const std::unique_ptr<PointerChase> chase =
      PointerChase::Allocate(static_cast<std::int64_t>(largest));
  std::vector<SizeLatency> result;
  if (chase == nullptr) return result;
  Budget budget;
  budget.seconds = seconds / points;
  for (int i = 0; i < points; ++i) {
    const double exponent =
        points == 1 ? 1 : static_cast<double>(i) / (points - 1);
    const double bytes = smallest * std::pow(largest / smallest, exponent);
    SizeLatency point;
    // pow may end a little above the largest.
    point.bytes = static_cast<std::int64_t>(std::min(bytes, largest)) /
                  kCacheLineBytes * kCacheLineBytes;
    chase->Build(point.bytes, kSeed);
    point.nanos = SampleWalk(*chase, budget);
    result.push_back(std::move(point));
  }
  return result;
}

}  // namespace d2l
