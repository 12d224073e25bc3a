// FreeBlocks: the free blocks of a DeviceMemory, by stream.
//
//   const std::size_t size = FreeBlocks::BlockSize(bytes);
//   Storage* block = free.Take(stream, size);  // null: ask the device
//   free.Put(block);
//
// Small blocks, up to a mebibyte, have one of eight sizes to each doubling and
// keep it: a list for each size, so both ways cost a few nanoseconds. A large
// block is cut from the smallest free one that holds it, and a free neighbour
// is merged with it when it comes back. left_ and right_ lead to its neighbours
// in the piece that the device allocated; a block without either is a whole
// piece, which can be freed.
//
// Not thread-safe. Nothing but AddStream throws.

#ifndef D2L_COMMON_DEVICE_FREE_BLOCKS_H_
#define D2L_COMMON_DEVICE_FREE_BLOCKS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/device/storage.h"

namespace d2l {

class FreeBlocks {
 public:
  static constexpr std::size_t kLargestRequest = std::size_t{1} << 45;

  FreeBlocks() = default;
  ~FreeBlocks() { Delete(TakeSpares()); }
  FreeBlocks(const FreeBlocks&) = delete;
  FreeBlocks& operator=(const FreeBlocks&) = delete;

  // The size of a block for `bytes` bytes, which are at most kLargestRequest.
  static std::size_t BlockSize(std::size_t bytes);

  // True if Take could make a block of `size` of this one.
  static bool Holds(const Storage& block, std::size_t size);

  // Makes the lists of a stream that has none yet; null for pinned memory,
  // whose blocks have no stream. std::bad_alloc.
  void AddStream(Stream* home);

  // A block of at least `size`, a BlockSize; null if there is none.
  Storage* Take(Stream* home, std::size_t size);
  // `block`'s stream has lists.
  void Put(Storage* block);

  // Takes out whole pieces of a stream, until they have at least `bytes`
  // together or there are no more: large ones first, but none larger than what
  // is missing while smaller ones will do. A list through next_.
  Storage* TakePieces(std::size_t stream_index, std::int64_t bytes);

  // The streams that have lists are some of these.
  std::size_t streams() const { return pools_.size(); }
  // Null for pinned memory and for a stream without lists.
  Stream* stream(std::size_t index) const {
    return pools_[index] == nullptr ? nullptr : pools_[index]->stream;
  }

  // Takes out the Storages that are kept for the next cut, as a list.
  Storage* TakeSpares() { return std::exchange(spares_, nullptr); }
  static void Delete(Storage* storages);

 private:
  static constexpr int kStepsPerDoubling = 8;
  static constexpr int kSmallClasses = 14 * kStepsPerDoubling + 1;
  static constexpr int kLargeClasses = 26 * kStepsPerDoubling;

  struct Pool {
    Stream* stream;
    std::array<Storage*, kSmallClasses> small{};
    // Blocks of this size and more, up to the next; the first one of each
    // list has no previous_.
    std::array<Storage*, kLargeClasses> large{};
  };

  static int SizeClass(std::size_t bytes);
  static std::size_t ClassBytes(int size_class);
  static int LargeClass(std::size_t size);

  Pool* PoolOf(Stream* home);
  Storage* TakeLarge(Pool& pool, std::size_t size);
  void Cut(Pool& pool, Storage* block, std::size_t size);
  void Absorb(Storage* block, Storage* right);
  static void Link(Pool& pool, Storage* block);
  static void Unlink(Pool& pool, Storage* block);

  std::vector<std::unique_ptr<Pool>> pools_;  // by the stream's index
  Storage* spares_ = nullptr;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_FREE_BLOCKS_H_
