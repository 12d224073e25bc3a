#include "common/device/memory/free_blocks.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "common/base/console/language.h"

namespace d2l {
namespace {

constexpr std::size_t kSmallest = 64;
constexpr std::size_t kLargestSmall = std::size_t{1} << 20;
// The sizes of large blocks are multiples of this.
constexpr std::size_t kGranule = std::size_t{64} << 10;

[[noreturn]] void EndInUse(const Storage& block) {
  // The lower bits of an id count blocks (DeviceMemory::Reuse).
  const std::uint64_t number = block.id() & ((std::uint64_t{1} << 48) - 1);
  const std::string text =
      Say("[memory] block %d is still used by stream %s: it is not free.",
          number, block.user()->name());
  std::fprintf(stderr, "%s\n", text.c_str());
  std::abort();
}

}  // namespace

int FreeBlocks::SizeClass(std::size_t bytes) {
  if (bytes <= kSmallest) return 0;
  // (bytes - 1) = (8 + step) * 2^(log - 3) + rest: the class above `step`.
  const std::size_t n = bytes - 1;
  const int log = 63 - __builtin_clzll(n);
  const int step = static_cast<int>(n >> (log - 3)) & 7;
  return (log - 6) * kStepsPerDoubling + step + 1;
}

std::size_t FreeBlocks::BlockSize(std::size_t bytes) {
  if (bytes > kLargestSmall) {
    return (bytes + kGranule - 1) / kGranule * kGranule;
  }
  const unsigned size_class = SizeClass(bytes);
  const std::size_t step = size_class % kStepsPerDoubling;
  return ((8 + step) * (kSmallest / 8)) << (size_class / kStepsPerDoubling);
}

int FreeBlocks::ListOf(std::size_t size) {
  // A large block has the class below the one that holds a byte more. Its list
  // is one further: those of large blocks follow that of the largest small one.
  return SizeClass(size <= kLargestSmall ? size : size + 1);
}

bool FreeBlocks::Holds(const MemoryBlock& block, std::size_t size) {
  return size <= kLargestSmall ? block.size == size : block.size >= size;
}

FreeBlocks::Pool* FreeBlocks::PoolOf(Stream* home) {
  const std::size_t index = home == nullptr ? 0 : home->index();
  return index < pools_.size() ? pools_[index].get() : nullptr;
}

void FreeBlocks::AddStream(Stream* home) {
  if (PoolOf(home) != nullptr) return;
  const std::size_t index = home == nullptr ? 0 : home->index();
  auto pool = std::make_unique<Pool>();
  pool->stream = home;
  if (index >= pools_.size()) pools_.resize(index + 1);
  pools_[index] = std::move(pool);
}

MemoryBlock* FreeBlocks::Take(Stream* home, std::size_t size) {
  Pool* const pool = PoolOf(home);
  if (pool == nullptr) return nullptr;
  const int first = ListOf(size);
  const int last = size <= kLargestSmall ? first : kLists - 1;
  for (int i = first; i <= last; ++i) {
    MemoryBlock* best = nullptr;
    for (MemoryBlock* block = pool->lists[i]; block != nullptr;
         block = block->next) {
      if (!Holds(*block, size)) continue;
      if (best == nullptr || block->size < best->size) best = block;
      if (best->size == size) break;
    }
    if (best == nullptr) continue;
    Unlink(best);
    if (best->size > size) Cut(*pool, best, size);
    return best;
  }
  return nullptr;
}

void FreeBlocks::Cut(Pool& pool, MemoryBlock* block, std::size_t size) {
  MemoryBlock* const rest = new (std::nothrow)
      MemoryBlock(block->memory, static_cast<char*>(block->data()) + size,
                  block->size - size, block->home());
  if (rest == nullptr) return;  // then the block stays larger
  rest->left = block;
  rest->right = block->right;
  if (rest->right != nullptr) rest->right->left = rest;
  block->right = rest;
  block->size = size;
  Link(pool, rest);
}

void FreeBlocks::Put(MemoryBlock* block) {
  if (block->user() != nullptr) EndInUse(*block);
  Pool& pool = *PoolOf(block->home());
  if (MemoryBlock* right = block->right; right != nullptr && right->free) {
    Unlink(right);
    Absorb(block, right);
  }
  if (MemoryBlock* left = block->left; left != nullptr && left->free) {
    Unlink(left);
    Absorb(left, block);
    block = left;
  }
  Link(pool, block);
}

void FreeBlocks::Absorb(MemoryBlock* block, MemoryBlock* right) {
  block->size += right->size;
  block->right = right->right;
  if (block->right != nullptr) block->right->left = block;
  delete right;
}

void FreeBlocks::Link(Pool& pool, MemoryBlock* block) {
  block->free = true;
  if (block->size <= kLargestSmall && block->IsPart()) {
    // The block serves no request until it is merged with its neighbours.
    block->link = nullptr;
    return;
  }
  MemoryBlock*& head = pool.lists[ListOf(block->size)];
  block->link = &head;
  block->next = head;
  if (head != nullptr) head->link = &block->next;
  head = block;
}

void FreeBlocks::Unlink(MemoryBlock* block) {
  block->free = false;
  if (block->link == nullptr) return;
  *block->link = block->next;
  if (block->next != nullptr) block->next->link = block->link;
}

MemoryBlock* FreeBlocks::TakeSegments(std::size_t stream_index,
                                      std::int64_t bytes) {
  if (pools_[stream_index] == nullptr) return nullptr;
  Pool& pool = *pools_[stream_index];
  MemoryBlock* taken = nullptr;
  const auto take = [&](int list, bool more_than_missing) {
    MemoryBlock* next = nullptr;
    for (MemoryBlock* block = pool.lists[list]; block != nullptr && bytes > 0;
         block = next) {
      next = block->next;
      const auto size = static_cast<std::int64_t>(block->size);
      if (block->IsPart() || (size > bytes && !more_than_missing)) continue;
      Unlink(block);
      bytes -= size;
      block->next = std::exchange(taken, block);
    }
  };
  for (int i = kLists - 1; i >= 0; --i) take(i, false);
  for (int i = 0; i < kLists; ++i) take(i, true);
  return taken;
}

}  // namespace d2l
