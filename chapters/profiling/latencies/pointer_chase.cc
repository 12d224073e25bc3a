#include "chapters/profiling/latencies/pointer_chase.h"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace d2l {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

void* AllocateHugePages(std::int64_t bytes) {
  const std::size_t rounded =
      (static_cast<std::size_t>(bytes) / kHugePage + 1) * kHugePage;
  void* const memory = std::aligned_alloc(kHugePage, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  // A kernel without huge pages refuses, and the memory is in small ones.
  static_cast<void>(madvise(memory, rounded, MADV_HUGEPAGE));
  return memory;
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

PointerChase::PointerChase(std::int64_t bytes, std::uint64_t seed)
    : nodes_(bytes / kCacheLineBytes),
      first_(static_cast<Node*>(AllocateHugePages(bytes)), &std::free),
      at_(first_.get()) {
  const std::vector<std::uint32_t> next = RandomCycle(nodes_, seed);
  for (std::size_t i = 0; i < next.size(); ++i) at_[i].next = at_ + next[i];
}

const PointerChase::Node* PointerChase::Walk(std::int64_t steps) {
  Node* at = at_;
  for (std::int64_t i = 0; i < steps; ++i) at = at->next;
  at_ = at;
  return at;
}

}  // namespace d2l
