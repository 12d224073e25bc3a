// FreeBlocks: the free blocks of a DeviceMemory, by stream.
//
//   const std::size_t size = FreeBlocks::BlockSize(bytes);
//   MemoryBlock* block = free.Take(stream, size);  // null: none is free
//   free.Put(block);
//
// A segment is what the device allocated at once. Small blocks, up to a
// mebibyte, are whole segments, with eight sizes for each doubling, so Take and
// Put cost a few nanoseconds. A large block is cut from the smallest free one
// that holds it, and a free neighbour is merged with it when it comes back.
// left and right lead to its neighbours in the segment; a block without
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

// A block of an allocator: what tensors see of it, and its place among others.
struct MemoryBlock final : Storage {
  MemoryBlock(DeviceMemory* memory, void* data, std::size_t size, Stream* home)
      : Storage(data, home), memory(memory), size(size) {}

  // True if it is a part of a segment; the device knows whole segments only.
  bool IsPart() const { return left != nullptr || right != nullptr; }

  DeviceMemory* const memory;
  std::size_t size;              // at least bytes()
  bool free = false;             // among the FreeBlocks
  MemoryBlock* next = nullptr;   // in a list
  MemoryBlock** link = nullptr;  // to this block there; null if it is in none
  MemoryBlock* left = nullptr;   // in its segment
  MemoryBlock* right = nullptr;
};

class FreeBlocks {
 public:
  static constexpr std::size_t kLargestRequest = std::size_t{1} << 45;

  // The size of a block for `bytes` bytes, which are at most kLargestRequest.
  static std::size_t BlockSize(std::size_t bytes);

  // True if Take could make a block of `size` from this one.
  static bool Holds(const MemoryBlock& block, std::size_t size);

  // Makes the lists of a stream that has none yet; null for pinned memory,
  // whose blocks have no stream. Throws std::bad_alloc.
  void AddStream(Stream* home);

  // A block of at least `size`, a BlockSize; null if there is none.
  MemoryBlock* Take(Stream* home, std::size_t size);
  // Adds a block whose stream has lists. A block that other streams may still
  // use would only show in wrong results: it ends the program.
  void Put(MemoryBlock* block);

  // Takes out whole segments of a stream, until they have at least `bytes`
  // together or there are no more: large ones first, but none larger than what
  // is missing while smaller ones will do. Returns a list through next_.
  MemoryBlock* TakeSegments(std::size_t stream_index, std::int64_t bytes);

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
    std::array<MemoryBlock*, kLists> lists{};
  };

  static int SizeClass(std::size_t bytes);
  static int ListOf(std::size_t size);

  Pool* PoolOf(Stream* home);
  static void Cut(Pool& pool, MemoryBlock* block, std::size_t size);
  static void Absorb(MemoryBlock* block, MemoryBlock* right);
  static void Link(Pool& pool, MemoryBlock* block);
  static void Unlink(MemoryBlock* block);

  std::vector<std::unique_ptr<Pool>> pools_;  // by the stream's index
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_MEMORY_FREE_BLOCKS_H_
