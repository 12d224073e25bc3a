#include "common/device/free_blocks.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace d2l {
namespace {

constexpr std::size_t kSmallest = 64;
constexpr std::size_t kLargestSmall = std::size_t{1} << 20;
// Large blocks have a multiple of this.
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

std::size_t FreeBlocks::ClassBytes(int size_class) {
  const int doublings = size_class / kStepsPerDoubling;
  const std::size_t step = size_class % kStepsPerDoubling;
  return ((8 + step) * (kSmallest / 8)) << doublings;
}

int FreeBlocks::LargeClass(std::size_t size) {
  // The class below the one that holds a byte more.
  return SizeClass(size + 1) - kSmallClasses;
}

std::size_t FreeBlocks::BlockSize(std::size_t bytes) {
  if (bytes <= kLargestSmall) return ClassBytes(SizeClass(bytes));
  return (bytes + kGranule - 1) / kGranule * kGranule;
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
  Pool* pool = PoolOf(home);
  if (pool == nullptr) return nullptr;
  if (size > kLargestSmall) return TakeLarge(*pool, size);
  Storage*& head = pool->small[SizeClass(size)];
  Storage* const block = head;
  if (block != nullptr) head = block->next_;
  return block;
}

Storage* FreeBlocks::TakeLarge(Pool& pool, std::size_t size) {
  for (int i = LargeClass(size); i < kLargeClasses; ++i) {
    Storage* best = nullptr;
    for (Storage* block = pool.large[i]; block != nullptr;
         block = block->next_) {
      if (block->size_ < size) continue;
      if (best == nullptr || block->size_ < best->size_) best = block;
      if (best->size_ == size) break;
    }
    if (best == nullptr) continue;
    Unlink(pool, best);
    if (best->size_ > size) Cut(pool, best, size);
    return best;
  }
  return nullptr;
}

void FreeBlocks::Cut(Pool& pool, Storage* block, std::size_t size) {
  Storage* rest = spares_;
  if (rest != nullptr) {
    spares_ = rest->next_;
  } else {
    rest = new (std::nothrow) Storage;
    if (rest == nullptr) return;  // then it is a larger block
  }
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
  if (block->size_ <= kLargestSmall) {
    Storage*& head = pool.small[SizeClass(block->size_)];
    block->next_ = std::exchange(head, block);
    return;
  }
  if (Storage* right = block->right_; right != nullptr && right->free_) {
    Unlink(pool, right);
    Absorb(block, right);
  }
  if (Storage* left = block->left_; left != nullptr && left->free_) {
    Unlink(pool, left);
    Absorb(left, block);
    block = left;
  }
  Link(pool, block);
}

void FreeBlocks::Absorb(Storage* block, Storage* right) {
  block->size_ += right->size_;
  block->right_ = right->right_;
  if (block->right_ != nullptr) block->right_->left_ = block;
  right->left_ = right->right_ = nullptr;
  right->next_ = std::exchange(spares_, right);
}

void FreeBlocks::Link(Pool& pool, Storage* block) {
  block->free_ = true;
  // Too small for any request, until it is merged with its neighbours.
  if (block->size_ <= kLargestSmall) return;
  Storage*& head = pool.large[LargeClass(block->size_)];
  block->previous_ = nullptr;
  block->next_ = head;
  if (head != nullptr) head->previous_ = block;
  head = block;
}

void FreeBlocks::Unlink(Pool& pool, Storage* block) {
  block->free_ = false;
  if (block->size_ <= kLargestSmall) return;
  if (block->previous_ != nullptr) {
    block->previous_->next_ = block->next_;
  } else {
    pool.large[LargeClass(block->size_)] = block->next_;
  }
  if (block->next_ != nullptr) block->next_->previous_ = block->previous_;
}

Storage* FreeBlocks::TakePieces(std::size_t stream_index, std::int64_t bytes) {
  if (pools_[stream_index] == nullptr) return nullptr;
  Pool& pool = *pools_[stream_index];
  Storage* taken = nullptr;
  const auto take = [&taken, &bytes](Storage* block) {
    bytes -= static_cast<std::int64_t>(block->size_);
    block->next_ = std::exchange(taken, block);
  };
  const auto fits = [&bytes](const Storage* block) {
    return static_cast<std::int64_t>(block->size_) <= bytes;
  };
  Storage* smallest = nullptr;  // of the large pieces that do not fit
  for (int i = kLargeClasses - 1; i >= 0 && bytes > 0; --i) {
    for (Storage* block = pool.large[i]; block != nullptr;) {
      Storage* const next = block->next_;
      if (block->left_ != nullptr || block->right_ != nullptr) {
        // A part of a piece.
      } else if (fits(block)) {
        Unlink(pool, block);
        take(block);
      } else if (smallest == nullptr || block->size_ < smallest->size_) {
        smallest = block;
      }
      block = next;
    }
  }
  const auto take_small = [&](int i) {
    Storage* const block = pool.small[i];
    pool.small[i] = block->next_;
    take(block);
  };
  for (int i = kSmallClasses - 1; i >= 0; --i) {
    while (pool.small[i] != nullptr && fits(pool.small[i])) take_small(i);
  }
  for (int i = 0; i < kSmallClasses && bytes > 0; ++i) {
    if (pool.small[i] != nullptr) take_small(i);
  }
  if (bytes > 0 && smallest != nullptr) {
    Unlink(pool, smallest);
    take(smallest);
  }
  return taken;
}

void FreeBlocks::Delete(Storage* storages) {
  while (storages != nullptr) delete std::exchange(storages, storages->next_);
}

}  // namespace d2l
