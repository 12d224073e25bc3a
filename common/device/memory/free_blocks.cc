#include "common/device/memory/free_blocks.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace d2l {
namespace {

constexpr std::size_t kSmallest = 64;
constexpr std::size_t kLargestSmall = std::size_t{1} << 20;
// The sizes of large blocks are multiples of this.
constexpr std::size_t kGranule = std::size_t{64} << 10;

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

bool FreeBlocks::Holds(const Storage& block, std::size_t size) {
  return size <= kLargestSmall ? block.size_ == size : block.size_ >= size;
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

Storage* FreeBlocks::Take(Stream* home, std::size_t size) {
  Pool* const pool = PoolOf(home);
  if (pool == nullptr) return nullptr;
  const int first = ListOf(size);
  const int last = size <= kLargestSmall ? first : kLists - 1;
  for (int i = first; i <= last; ++i) {
    Storage* best = nullptr;
    for (Storage* block = pool->lists[i]; block != nullptr;
         block = block->next_) {
      if (block->size_ < size) continue;
      if (best == nullptr || block->size_ < best->size_) best = block;
      if (best->size_ == size) break;
    }
    if (best == nullptr) continue;
    Unlink(best);
    if (best->size_ > size) Cut(*pool, best, size);
    return best;
  }
  return nullptr;
}

void FreeBlocks::Cut(Pool& pool, Storage* block, std::size_t size) {
  Storage* const rest = new (std::nothrow) Storage;
  if (rest == nullptr) return;  // then the block stays larger
  rest->memory_ = block->memory_;
  rest->home_ = block->home_;
  rest->data_ = static_cast<char*>(block->data_) + size;
  rest->size_ = block->size_ - size;
  rest->left_ = block;
  rest->right_ = block->right_;
  if (rest->right_ != nullptr) rest->right_->left_ = rest;
  block->right_ = rest;
  block->size_ = size;
  Link(pool, rest);
}

void FreeBlocks::Put(Storage* block) {
  Pool& pool = *PoolOf(block->home_);
  if (Storage* right = block->right_; right != nullptr && right->free_) {
    Unlink(right);
    Absorb(block, right);
  }
  if (Storage* left = block->left_; left != nullptr && left->free_) {
    Unlink(left);
    Absorb(left, block);
    block = left;
  }
  Link(pool, block);
}

void FreeBlocks::Absorb(Storage* block, Storage* right) {
  block->size_ += right->size_;
  block->right_ = right->right_;
  if (block->right_ != nullptr) block->right_->left_ = block;
  delete right;
}

void FreeBlocks::Link(Pool& pool, Storage* block) {
  block->free_ = true;
  if (block->size_ <= kLargestSmall && block->IsPart()) {
    // The block serves no request until it is merged with its neighbours.
    block->link_ = nullptr;
    return;
  }
  Storage*& head = pool.lists[ListOf(block->size_)];
  block->link_ = &head;
  block->next_ = head;
  if (head != nullptr) head->link_ = &block->next_;
  head = block;
}

void FreeBlocks::Unlink(Storage* block) {
  block->free_ = false;
  if (block->link_ == nullptr) return;
  *block->link_ = block->next_;
  if (block->next_ != nullptr) block->next_->link_ = block->link_;
}

Storage* FreeBlocks::TakeSegments(std::size_t stream_index,
                                  std::int64_t bytes) {
  if (pools_[stream_index] == nullptr) return nullptr;
  Pool& pool = *pools_[stream_index];
  Storage* taken = nullptr;
  const auto take = [&](int list, bool more_than_missing) {
    Storage* next = nullptr;
    for (Storage* block = pool.lists[list]; block != nullptr && bytes > 0;
         block = next) {
      next = block->next_;
      const auto size = static_cast<std::int64_t>(block->size_);
      if (block->IsPart() || (size > bytes && !more_than_missing)) continue;
      Unlink(block);
      bytes -= size;
      block->next_ = std::exchange(taken, block);
    }
  };
  for (int i = kLists - 1; i >= 0; --i) take(i, false);
  for (int i = 0; i < kLists; ++i) take(i, true);
  return taken;
}

}  // namespace d2l
