// FreeBlocks: the free blocks of a DeviceMemory, by stream.
//
//   const std::size_t size = FreeBlocks::BlockSize(bytes);
//   Storage* block = free.Take(stream, size);  // null: none is free
//   free.Put(block);
//
// A segment is what the device allocated at once. Small blocks, up to a
// mebibyte, are whole segments, with eight sizes for each doubling, so Take and
// Put cost a few nanoseconds. A large block is cut from the smallest free one
// that holds it, and a free neighbour is merged with it when it comes back.
// left_ and right_ lead to its neighbours in the segment; a block without
// either is a whole segment, which can be freed.
//
// Not thread-safe. Only AddStream throws.

#ifndef D2L_COMMON_DEVICE_MEMORY_FREE_BLOCKS_H_
#define D2L_COMMON_DEVICE_MEMORY_FREE_BLOCKS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/device/memory/storage.h"

namespace d2l {

class FreeBlocks {
 public:
  static constexpr std::size_t kLargestRequest = std::size_t{1} << 45;

  // The size of a block for `bytes` bytes, which are at most kLargestRequest.
  static std::size_t BlockSize(std::size_t bytes);

  // True if Take could make a block of `size` from this one.
  static bool Holds(const Storage& block, std::size_t size);

  // Makes the lists of a stream that has none yet; null for pinned memory,
  // whose blocks have no stream. Throws std::bad_alloc.
  void AddStream(Stream* home);

  // A block of at least `size`, a BlockSize; null if there is none.
  Storage* Take(Stream* home, std::size_t size);
  // Adds a block whose stream has lists.
  void Put(Storage* block);

  // Takes out whole segments of a stream, until they have at least `bytes`
  // together or there are no more: large ones first, but none larger than what
  // is missing while smaller ones will do. Returns a list through next_.
  Storage* TakeSegments(std::size_t stream_index, std::int64_t bytes);

  // The number of indices; some may belong to no stream.
  std::size_t streams() const { return pools_.size(); }
  // Null for pinned memory and for a stream without lists.
  Stream* stream(std::size_t index) const {
    return pools_[index] == nullptr ? nullptr : pools_[index]->stream;
  }

 private:
  static constexpr int kStepsPerDoubling = 8;
  static constexpr int kSmallLists = 14 * kStepsPerDoubling + 1;
  static constexpr int kLists = kSmallLists + 26 * kStepsPerDoubling;

  struct Pool {
    Stream* stream;
    // First small blocks, a list for each size; then large ones, a list for
    // each range of sizes.
    std::array<Storage*, kLists> lists{};
  };

  static int SizeClass(std::size_t bytes);
  static int ListOf(std::size_t size);

  Pool* PoolOf(Stream* home);
  static void Cut(Pool& pool, Storage* block, std::size_t size);
  static void Absorb(Storage* block, Storage* right);
  static void Link(Pool& pool, Storage* block);
  static void Unlink(Storage* block);

  std::vector<std::unique_ptr<Pool>> pools_;  // by the stream's index
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_MEMORY_FREE_BLOCKS_H_
