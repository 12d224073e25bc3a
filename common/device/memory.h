// Memory of a device: blocks that are handed out, returned, and reused in the
// order of the stream that allocated them.
//
//   StorageRef block = Memory(device).Allocate(1 << 20, stream);
//   stream.Enqueue(...);  // uses block->data(), a raw pointer
//   block.reset();        // at once: no need to wait for the stream
//
// When the last handle goes, the block returns *at once* to the free list of
// its stream, although queued work may still use it: whatever gets the block
// next on that stream runs after that work. So a loop of temporaries reuses
// one or two blocks however far the program runs ahead, and nobody waits for
// the work. A block that other streams used as well (MarkUsedBy) is parked,
// with an event of each (recording it may wait for room in a full queue), and
// taken back by later allocations, oldest first, once they have completed.
// The idea, and its limits, are those of PyTorch's caching allocator.
//
// An allocation and a return cost tens of nanoseconds; they touch the device
// only when the free list is empty.
//
// Thread-safety: DeviceMemory, the counting of handles and MarkUsedBy are
// thread-safe; MarkWritten is for the one thread that writes. Ownership:
// streams, and the DeviceMemory, outlive every Storage.

#ifndef D2L_COMMON_DEVICE_MEMORY_H_
#define D2L_COMMON_DEVICE_MEMORY_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/base/spin_lock.h"
#include "common/device/backend.h"
#include "common/device/device.h"
#include "common/device/event.h"
#include "common/device/listener.h"
#include "common/device/stream.h"

namespace d2l {

class DeviceMemory;

// A block of memory and what is known about it. Use it through StorageRef.
class Storage {
 public:
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // An address on the device; aligned to 64 bytes.
  void* data() const { return data_; }
  // As asked for; the block may be larger.
  std::size_t bytes() const { return bytes_; }
  // Unique in the process; never used again.
  std::uint64_t id() const { return id_; }

  // The stream that last wrote to this memory, and the number of the
  // operation that did; null before the first write.
  Stream* writer() const { return writer_; }
  std::uint64_t written_by() const { return written_by_; }
  // How often it was written.
  std::uint64_t version() const { return version_; }

  // Operation `number` of `stream`, just enqueued, writes to this memory.
  void MarkWritten(Stream& stream, std::uint64_t number) {
    writer_ = &stream;
    written_by_ = number;
    ++version_;
    MarkUsedBy(stream);
  }

  // Work just enqueued on `stream` reads or writes this memory.
  void MarkUsedBy(Stream& stream) {
    if (&stream != home_) AddUser(stream);
  }

 private:
  friend class DeviceMemory;
  friend class StorageRef;

  Storage() = default;
  void AddUser(Stream& stream);

  std::atomic<int> references_{0};
  int size_class_ = 0;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t id_ = 0;
  Stream* home_ = nullptr;  // whose free list it belongs to; null if pinned
  Stream* writer_ = nullptr;
  std::uint64_t written_by_ = 0;
  std::uint64_t version_ = 0;
  DeviceMemory* memory_ = nullptr;
  Storage* next_ = nullptr;  // in a free list
  SpinLock users_lock_;      // several threads may read one tensor
  absl::InlinedVector<Stream*, 2> users_;  // streams other than home_
};

// A counted handle; the last one to go returns the block.
class StorageRef {
 public:
  StorageRef() = default;
  StorageRef(const StorageRef& other) : storage_(other.storage_) {
    if (storage_ != nullptr) {
      storage_->references_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  StorageRef(StorageRef&& other) noexcept
      : storage_(std::exchange(other.storage_, nullptr)) {}
  StorageRef& operator=(StorageRef other) noexcept {
    std::swap(storage_, other.storage_);
    return *this;
  }
  ~StorageRef() { reset(); }

  void reset();

  Storage* get() const { return storage_; }
  Storage* operator->() const { return storage_; }
  Storage& operator*() const { return *storage_; }
  explicit operator bool() const { return storage_ != nullptr; }

 private:
  friend class DeviceMemory;
  explicit StorageRef(Storage* storage) : storage_(storage) {}

  Storage* storage_ = nullptr;
};

// Bytes, at one moment.
struct MemoryStats {
  std::int64_t in_use = 0;       // in blocks that somebody holds
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

  // backend must outlive this. max_bytes_in_flight: an allocation waits while
  // more than that is parked (back-pressure); at least 1.
  DeviceMemory(Backend& backend, Device device, int physical_index, Kind kind,
               std::int64_t max_bytes_in_flight);
  // Every block must have been returned, every stream waited for.
  ~DeviceMemory();

  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // A block of at least `bytes` bytes (0 is fine), uninitialised. For kPinned
  // no stream is given. Throws OutOfMemoryError; before that, it waits for
  // the device and gives back what is cached.
  StorageRef Allocate(std::size_t bytes, Stream& stream);
  StorageRef AllocatePinned(std::size_t bytes);

  MemoryStats Stats();
  // From now on, peak counts from what is in use now.
  void ResetPeak();
  // Changes the bound on what is parked; at least 1. Returns the one before.
  std::int64_t SetMaxBytesInFlight(std::int64_t bytes);
  // Waits for the streams that used them and gives all free blocks back to
  // the device. Throws std::logic_error in work that runs on a stream.
  void EmptyCache();

 private:
  friend class StorageRef;

  // From 64 bytes on there are eight sizes to each doubling, evenly spaced: at
  // most an eighth of a block is wasted.
  static constexpr int kStepsPerDoubling = 8;
  static constexpr int kSizeClasses = 40 * kStepsPerDoubling;

  struct FreeLists {
    Stream* stream = nullptr;
    std::array<Storage*, kSizeClasses> heads{};
  };
  struct ParkedBlock {
    Storage* storage;
    // One for each stream that used it. Empty: the handle went on a worker
    // thread, which may not enqueue, so they are still to be recorded; a later
    // point is as safe.
    std::vector<Event> events;
  };

  static int SizeClass(std::size_t bytes);
  static std::size_t ClassBytes(int size_class);

  StorageRef AllocateFor(std::size_t bytes, Stream* home);
  FreeLists& ListsOf(Stream* home);
  void Return(Storage* storage);
  void PutBack(Storage* storage);
  void Report(std::uint64_t storage, std::int64_t change,
              const MemoryStats& stats) const;
  // These six are called with the lock, and may let go of it meanwhile.
  Storage* RawAllocate(int size_class, std::unique_lock<SpinLock>& lock);
  void RecordParked(std::unique_lock<SpinLock>& lock);
  void Reclaim(std::unique_lock<SpinLock>& lock);
  void TakeBackParked(std::unique_lock<SpinLock>& lock);
  bool WaitForOldest(std::unique_lock<SpinLock>& lock);
  void FreeCached(std::unique_lock<SpinLock>& lock);
  void TakeBackWhatIsDone();
  void RawFree(Storage* storage);
  [[noreturn]] void ThrowOutOfMemory(std::size_t bytes);

  Backend& backend_;
  const Device device_;
  const int physical_index_;
  const Kind kind_;

  SpinLock lock_;  // guards all below
  std::int64_t max_bytes_in_flight_;
  std::vector<std::unique_ptr<FreeLists>> lists_;  // by stream index
  std::deque<ParkedBlock> parked_;                 // oldest first
  int unrecorded_ = 0;                             // of these, without events
  MemoryStats stats_;
  std::uint64_t next_id_ = 0;
};

// True if [data, data + bytes) lies in pinned memory of any back end.
bool IsPinned(const void* data, std::size_t bytes);

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_MEMORY_H_
