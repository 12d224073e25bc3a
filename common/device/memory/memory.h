// A caching allocator of device memory. Blocks are reused in the order of the
// stream that allocated them.
//
//   StorageRef block = Memory(device).Allocate(1 << 20, stream);
//   stream.Enqueue(...);  // uses block->data(), a raw pointer
//   block.reset();        // at once: no need to wait for the stream
//
// When the last handle is released, the block returns *at once* to the free
// blocks of its stream, although queued work may still use it: the block's next
// user on that stream runs after that work. So a loop of temporaries reuses one
// or two blocks, without waits, however far the program runs ahead. A block
// that other streams used as well (RecordStream) is in flight: an
// event is recorded on each of them (which may wait for room in a full queue).
// Later allocations take such blocks back, oldest first, once the events have
// completed. PyTorch's caching allocator works in the same way.
//
// An allocation reuses a free block, or else takes more from the device, or
// else reclaims free blocks and waits for them. A reuse and a return cost tens
// of nanoseconds. The limit of free blocks is half of the memory in use, or
// kFreeLimit if that is more. Beyond it, an allocation that takes more first
// gives back free segments of idle streams. It waits for a stream only if the
// memory in flight and the free memory beyond the limit exceed the bound.
//
// On a GPU, giving back waits for all of its work. So the limit there is a
// gibibyte, nothing is given back while a stream that uses this memory works,
// and pinned memory is given back only by EmptyCache or when memory runs out.
//
// Thread-safe. Ownership: the back end outlives the DeviceMemory, which, like
// its streams, outlives every Storage.

#ifndef D2L_COMMON_DEVICE_MEMORY_MEMORY_H_
#define D2L_COMMON_DEVICE_MEMORY_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "common/base/mutex.h"
#include "common/device/backend.h"
#include "common/device/device.h"
#include "common/device/memory/free_blocks.h"
#include "common/device/memory/storage.h"
#include "common/device/stream.h"

namespace d2l {

// Bytes, at one moment.
struct MemoryStats {
  std::int64_t allocated = 0;    // in blocks with a handle
  std::int64_t in_flight = 0;    // only queued work still needs them
  std::int64_t peak = 0;         // the most that allocated + in_flight was
  std::int64_t reserved = 0;     // taken from the device: these and free blocks
  std::int64_t allocations = 0;  // calls so far
  std::int64_t raw_allocations = 0;  // of these, the ones the device served
};

// The memory of one device, or the pinned host memory beside it.
class DeviceMemory {
 public:
  enum class Kind { kDevice, kPinned };

  // This many bytes may be free however little is in use.
  static constexpr std::int64_t kFreeLimit = std::int64_t{32} << 20;

  // max_bytes_in_flight: an allocation waits while more than this is in flight
  // (back-pressure); at least 1.
  DeviceMemory(Backend& backend, Device device, int physical_index, Kind kind,
               std::int64_t max_bytes_in_flight);
  // Every block must have been returned. Waits for queued work that may use
  // them.
  ~DeviceMemory();

  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // A block of at least `bytes` bytes (0 is fine), uninitialised.
  // AllocatePinned is for kPinned. Throws OutOfMemoryError; before that, it
  // waits for the device and gives back all free blocks, and those of the other
  // devices on the same hardware. Throws std::runtime_error if the device
  // cannot be used any more, an AsyncError if that has a known cause; and
  // std::logic_error in a host callback of a CUDA stream, if no free block
  // fits.
  StorageRef Allocate(std::size_t bytes, Stream& stream);
  StorageRef AllocatePinned(std::size_t bytes);

  MemoryStats Stats();
  // Restarts the peak from the bytes in use now.
  void ResetPeak();
  // Changes the bound on bytes in flight; at least 1. Returns the old bound.
  std::int64_t SetMaxBytesInFlight(std::int64_t bytes);
  // Limits the bytes taken from the device, as if it had no more. Returns the
  // old limit; at first there is none.
  std::int64_t SetMaxBytes(std::int64_t bytes);
  // Waits for the streams that used the free blocks and gives all of these back
  // to the device. Throws std::logic_error in work that runs on a stream.
  void EmptyCache();

 private:
  friend class StorageRef;

  StorageRef AllocateFor(std::size_t bytes, Stream* home);
  // The slow path: no block of `size` is free, or some are in flight. Returns
  // null if there is no memory.
  MemoryBlock* AllocateSlowly(std::size_t size, Stream* home);

  // A free block; null if none fits. Called with the lock.
  MemoryBlock* Reuse(std::size_t size, Stream* home);
  // A new segment; if the device has none, a free block, or null if none fits.
  MemoryBlock* Grow(std::size_t size, Stream* home);
  // Gives about `bytes` of free segments back to the device: of idle streams,
  // or, with `wait`, of all. The first that holds `size` goes to `home`.
  void Reclaim(std::int64_t bytes, bool wait, std::size_t size, Stream* home);
  // Gives back all free blocks, also those in flight, and waits for both.
  void ReclaimAll();
  // How many bytes would be free beyond the limit with `size` more in use.
  std::int64_t FreeBeyondLimit(std::size_t size);
  // False if Reclaim would block other work, or may not query streams.
  bool MayReclaim(bool wait);

  void Return(MemoryBlock* block) noexcept;
  // Records a returned block's events, if that is possible here.
  void SetInFlight(MemoryBlock* block) noexcept;
  // Takes back the blocks in flight that no queued work uses any more; waits
  // while more than `most` bytes are in flight.
  void TakeBack(std::int64_t most);

  // Null if the device has no memory.
  MemoryBlock* NewSegment(std::size_t size, Stream* home);
  void* RawAllocate(std::size_t bytes);
  void RawFree(void* data, std::size_t bytes);
  void EmptyCachesBeside();
  void Report(std::uint64_t storage, const void* data, std::int64_t change);
  // Calls f(index, stream) for each stream of this memory; null if it is
  // pinned.
  template <typename F>
  void ForEachStream(F f);
  [[noreturn]] void ThrowOutOfMemory(std::size_t bytes);

  Backend& backend_;
  const Device device_;
  const int physical_index_;
  const Kind kind_;
  const std::int64_t free_limit_;

  // Guards all below. No stream, event or listener is called while it is held:
  // they may wait, and release tensors of this memory.
  SpinLock lock_;
  std::int64_t max_bytes_in_flight_;
  std::int64_t max_bytes_ = std::numeric_limits<std::int64_t>::max();
  FreeBlocks free_;
  // The blocks in flight, linked by next: a queue of those whose events are
  // recorded, oldest first, and the others.
  MemoryBlock* oldest_ = nullptr;
  MemoryBlock* youngest_ = nullptr;  // if there is an oldest
  MemoryBlock* unrecorded_ = nullptr;
  MemoryStats stats_;
  std::uint64_t next_id_ = 0;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_MEMORY_MEMORY_H_
