// PointerChase: loads whose time is the latency of the memory that they touch.
//
//   PointerChase chase(48 * 1024, /*seed=*/1);
//   chase.Walk(1000);  // 1000 loads, each of an address the last one gave
//
// The pointers form one cycle in random order, one to a cache line. The next
// address is not known before the last load is done, and no prefetcher can
// guess it: so the time of a step is the latency of a load from the cache or
// memory that holds that many bytes.
//
// A PointerChase is used by one thread.

#ifndef D2L_CHAPTERS_PROFILING_LATENCIES_POINTER_CHASE_H_
#define D2L_CHAPTERS_PROFILING_LATENCIES_POINTER_CHASE_H_

#include <cstdint>
#include <memory>
#include <vector>

namespace d2l {

inline constexpr std::int64_t kCacheLineBytes = 64;

// Element i of the result is the one after i, in a random order that visits all
// `count` elements before it comes back (Sattolo's algorithm). count is at
// least 1 and below 2^32.
std::vector<std::uint32_t> RandomCycle(std::int64_t count, std::uint64_t seed);

class PointerChase {
 public:
  struct alignas(kCacheLineBytes) Node {
    Node* next;
  };

  // A cycle through `bytes` bytes, at least one line, in huge pages if the
  // system gives any. Throws std::bad_alloc if there is no memory.
  PointerChase(std::int64_t bytes, std::uint64_t seed);

  std::int64_t nodes() const { return nodes_; }

  // Takes that many steps from where the last walk ended; returns where this
  // one did.
  const Node* Walk(std::int64_t steps);

 private:
  const std::int64_t nodes_;
  const std::unique_ptr<Node, void (*)(void*)> first_;
  Node* at_;
};

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_LATENCIES_POINTER_CHASE_H_
