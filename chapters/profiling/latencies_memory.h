// How long a load takes, by where the data lie: a chase of pointers.
//
//   std::unique_ptr<PointerChase> chase = PointerChase::Allocate(1 << 20);
//   chase->Build(48 * 1024, /*seed=*/1);
//   chase->Walk(1000);  // 1000 loads, each of an address the last one gave
//
// The pointers form one cycle in random order, one to a cache line: the next
// address is not known before the last load is done, and no prefetcher can
// guess it. So the time of a step is the latency of a load from whatever holds
// that many bytes.
//
// A PointerChase is used by one thread. The functions are thread-safe.

#ifndef D2L_CHAPTERS_PROFILING_LATENCIES_MEMORY_H_
#define D2L_CHAPTERS_PROFILING_LATENCIES_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chapters/profiling/latencies_sampling.h"

namespace d2l {

inline constexpr std::int64_t kCacheLineBytes = 64;

// Of element i, the one after it, in a random order that visits all `count`
// elements before it comes back (Sattolo's algorithm). count is at least 1 and
// below 2^32.
std::vector<std::uint32_t> RandomCycle(std::int64_t count, std::uint64_t seed);

class PointerChase {
 public:
  struct alignas(kCacheLineBytes) Node {
    Node* next;
  };

  // Room for this many bytes, in huge pages if the system gives any. Null if
  // there is no memory.
  static std::unique_ptr<PointerChase> Allocate(std::int64_t bytes);
  ~PointerChase();
  PointerChase(const PointerChase&) = delete;
  PointerChase& operator=(const PointerChase&) = delete;

  // A new cycle through the first `bytes` bytes, at least one line and no more
  // than were allocated.
  void Build(std::int64_t bytes, std::uint64_t seed);
  std::int64_t nodes() const { return nodes_; }

  // Takes that many steps from where the last walk ended; returns where this
  // one did.
  const Node* Walk(std::int64_t steps);

  // "in 2.0 MiB pages", "in 4.0 KiB pages, so …": of what has been built.
  std::string Pages() const;

 private:
  PointerChase(void* mapping, std::size_t mapped_bytes);

  void* const mapping_;
  const std::size_t mapped_bytes_;
  Node* const first_;  // aligned to a huge page
  std::int64_t nodes_ = 0;
  Node* at_ = nullptr;
};

// How many bytes of the mapping that holds `address` are in huge pages, by
// what /proc/self/smaps says. 0 if it is not there.
std::int64_t HugePageBytes(const std::string& smaps, std::uintptr_t address);

// The size in bytes of the data cache of level 1, 2 or 3, of the first CPU;
// nothing if neither /sys nor the processor says it.
std::optional<std::int64_t> CacheBytes(int level,
                                       const std::string& root = "/");

// The latency of a load from half of that cache. max_bytes bounds the memory.
Measurement MeasureCache(int level, std::int64_t max_bytes,
                         const Budget& budget);
// Of a load from so many bytes, wherever they lie.
Measurement MeasureMemory(std::int64_t bytes, std::int64_t max_bytes,
                          const Budget& budget);
// Of a load from memory: from four times the L3 cache and at least 256 MiB. If
// max_bytes or what is free does not allow it, from twice the L3 cache at
// least.
Measurement MeasureBeyondCaches(std::int64_t max_bytes, const Budget& budget);

struct SizeLatency {
  std::int64_t bytes = 0;
  std::vector<double> nanos;  // samples, of one load
};

// The latency at `points` sizes, evenly spaced by ratio from 4 KiB to
// max_bytes, or to half of what is free. The measurements take no longer than
// about `seconds`; building the cycles comes on top, two or three seconds for
// 25 points up to 1 GiB. Empty if there is no memory.
std::vector<SizeLatency> LatencyBySize(std::int64_t max_bytes, int points,
                                       double seconds);

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_LATENCIES_MEMORY_H_
