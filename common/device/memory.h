// A caching allocator of device memory. Blocks are reused in the order of the
// stream that allocated them.
//
//   StorageRef block = Memory(device).Allocate(1 << 20, stream);
//   stream.Enqueue(...);  // uses block->data(), a raw pointer
//   block.reset();        // at once: no need to wait for the stream
//
// When the last handle goes, the block returns *at once* to the free blocks of
// its stream, although queued work may still use it: the block's next user on
// that stream runs after that work. So a loop of temporaries reuses one or two
// blocks, without waits, however far the program runs ahead. A block that other
// streams used as well (MarkUsedBy) is parked with an event of each (recording
// it may wait for room in a full queue). Later allocations take it back, oldest
// first, once the events have completed. PyTorch's caching allocator works in
// the same way.
//
// An allocation and a return cost tens of nanoseconds; they touch the device
// only when no free block fits. Then free blocks go back to the device if
// they are more than half of what is in use and than kFreeLimit: at once, or
// when the work queued on their stream is done. An allocation waits for that
// work only if more than the bound on what is in flight is on its way.
//
// On a GPU, giving back waits for all of its work. So the limit there is a
// gibibyte, nothing is given back while a stream that uses this memory works,
// and pinned memory only by EmptyCache or when there is no more.
//
// Thread-safe. Ownership: the back end outlives the DeviceMemory, which, like
// its streams, outlives every Storage.

#ifndef D2L_COMMON_DEVICE_MEMORY_H_
#define D2L_COMMON_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "common/base/spin_lock.h"
#include "common/device/backend.h"
#include "common/device/device.h"
#include "common/device/free_blocks.h"
#include "common/device/parked_blocks.h"
#include "common/device/pinned_ranges.h"
#include "common/device/storage.h"
#include "common/device/stream.h"

namespace d2l {

// Bytes, at one moment.
struct MemoryStats {
  std::int64_t in_use = 0;       // in blocks with a handle
  std::int64_t in_flight = 0;    // parked: only queued work still needs them
  std::int64_t peak = 0;         // the most that in_use + in_flight ever was
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

  // max_bytes_in_flight: an allocation waits while
  // more than that is parked (back-pressure); at least 1.
  DeviceMemory(Backend& backend, Device device, int physical_index, Kind kind,
               std::int64_t max_bytes_in_flight);
  // Every block must have been returned. Waits for queued work that may use
  // them.
  ~DeviceMemory();

  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // A block of at least `bytes` bytes (0 is fine), uninitialised. For kPinned
  // no stream is given. Throws OutOfMemoryError; before that, it waits for
  // the device and gives back all free blocks, and those of the other devices
  // on the same hardware. Throws std::runtime_error if the device cannot be
  // used any more, an AsyncError if that has a known cause; and
  // std::logic_error in a host callback of a CUDA stream, if no free block
  // fits.
  StorageRef Allocate(std::size_t bytes, Stream& stream);
  StorageRef AllocatePinned(std::size_t bytes);

  MemoryStats Stats();
  // Restarts the peak from the bytes in use now.
  void ResetPeak();
  // Changes the bound on what is parked; at least 1. Returns the one before.
  std::int64_t SetMaxBytesInFlight(std::int64_t bytes);
  // Waits for the streams that used them and gives all free blocks back to
  // the device. Throws std::logic_error in work that runs on a stream.
  void EmptyCache();

 private:
  friend class StorageRef;

  // An allocation in progress.
  struct Request {
    std::size_t size;  // of the block
    Stream* home;
    bool reported;      // to listeners
    MemoryStats after;  // if it is reported
  };

  StorageRef AllocateFor(std::size_t bytes, Stream* home);
  // A free block; null if none fits. Called with the lock.
  Storage* TakeFree(Request& request);
  // The rest of an allocation that finds no free block, or blocks to be taken
  // back first. Null if there is no memory.
  Storage* AllocateSlowly(Request& request);
  Storage* AllocateFromDevice(Request& request);
  void Return(Storage* block) noexcept;
  void Report(std::uint64_t storage, std::int64_t change,
              const MemoryStats& stats) const;

  // Takes back the parked blocks that no queued work uses any more; waits only
  // while too much is in flight.
  void TakeBack();
  // Records the events that are missing.
  void RecordParked();
  void TakeBackPassed();
  Event NextParked();
  // Waits for all parked blocks and takes them back.
  void WaitForParked();
  // False if there is nothing to wait for.
  bool WaitForOldest();
  // The next two are called with the lock.
  void PutFree(Storage* block);
  Storage* TakePieces(std::size_t stream, std::int64_t bytes);

  // Gives back free blocks, so that the request stays within the limit: at
  // once, or once the work queued on their stream is done. If one of them, of
  // a stream that is idle, will do for the request, that is the result.
  Storage* MakeRoom(Request& request);
  bool MayGiveBack();
  Storage* TakeOrGiveBack(Request& request, Storage* pieces);
  void GiveBackLater(Stream& stream, Storage* pieces);
  // Gives back all free blocks. Waits for the work that may use them.
  void GiveBackAll();
  // What becomes of a list of pieces: free again, or the device's.
  void KeepPieces(Storage* pieces);
  void GiveBack(Storage* pieces);
  void* RawAllocate(std::size_t bytes);

  // Calls f for each block of a list; f may link it elsewhere.
  template <typename F>
  static void ForEach(Storage* blocks, F f) {
    while (blocks != nullptr) {
      Storage* const block = blocks;
      blocks = block->next_;
      f(block);
    }
  }

  [[noreturn]] void ThrowOutOfMemory(std::size_t bytes);

  Backend& backend_;
  const Device device_;
  const int physical_index_;
  const Kind kind_;
  const std::int64_t free_limit_;

  // Guards all below. No stream, event or listener is called with it: they may
  // wait, and let go of tensors of this memory.
  SpinLock lock_;
  std::int64_t max_bytes_in_flight_;
  FreeBlocks free_;
  ParkedBlocks parked_;
  // Pieces on their way to the device; part of stats_.reserved.
  std::int64_t leaving_ = 0;
  MemoryStats stats_;
  std::uint64_t next_id_ = 0;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_MEMORY_H_
