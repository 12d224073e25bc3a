// Storage: a block of device memory, and StorageRef, a counted handle to it.
//
//   StorageRef block = Memory(device).Allocate(1 << 20, stream);
//   stream.Enqueue(...);  // uses block->data(), a raw pointer
//   block.reset();        // at once: no need to wait for the stream
//
// Where blocks come from, and when they are used again: memory.h. What the
// allocator knows about a block besides: free_blocks.h.
//
// Thread-safety: the counting of handles and RecordStream are thread-safe;
// MarkWritten is for the one thread that writes. Ownership: streams, and the
// DeviceMemory, outlive every Storage.

#ifndef D2L_COMMON_DEVICE_MEMORY_STORAGE_H_
#define D2L_COMMON_DEVICE_MEMORY_STORAGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "common/base/mutex.h"
#include "common/device/event.h"
#include "common/device/stream.h"

namespace d2l {

class DeviceMemory;

// A block of memory and what is known about it. Use it through StorageRef.
class Storage {
 public:
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // An address on the device, aligned to 64 bytes.
  void* data() const { return data_; }
  // As requested; the block may be larger.
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
    RecordStream(stream);
  }

  // The stream behind whose work the block is used again; null if it is pinned.
  Stream* home() const { return home_; }
  // Work just enqueued on `stream` reads or writes this memory.
  void RecordStream(Stream& stream) {
    if (&stream != home_) AddUser(stream);
  }
  // A recorded stream that may still use it; null if none does. For the
  // allocator, when nobody has a handle any more.
  const Stream* user() const {
    return users_.empty() ? nullptr : users_.front().stream;
  }

 protected:
  Storage(void* data, Stream* home) : data_(data), home_(home) {}
  ~Storage() = default;

 private:
  friend class DeviceMemory;
  friend class StorageRef;

  // A stream other than home_, and the point up to which it needs the block.
  struct User {
    Stream* stream;
    Event passed;  // empty until the block is returned
  };

  void AddUser(Stream& stream) noexcept;
  // Records the users' events; returns false, and changes nothing, on failure.
  bool RecordUsers() noexcept;

  std::atomic<int> references_{0};
  SpinLock users_lock_;  // several threads may read one tensor
  void* const data_;
  std::size_t bytes_ = 0;
  std::uint64_t id_ = 0;
  Stream* home_;
  Stream* writer_ = nullptr;
  std::uint64_t written_by_ = 0;
  std::uint64_t version_ = 0;
  // With inline room for one user, which is enough for most blocks.
  absl::InlinedVector<User, 1> users_;
};

// A counted handle; the last one to be released returns the block.
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

  // Allocates nothing and throws nothing. It may wait for room in the queues
  // of the streams that used the block.
  void reset() noexcept;

  Storage* get() const { return storage_; }
  Storage* operator->() const { return storage_; }
  Storage& operator*() const { return *storage_; }
  explicit operator bool() const { return storage_ != nullptr; }

 private:
  friend class DeviceMemory;
  explicit StorageRef(Storage* storage) : storage_(storage) {}

  Storage* storage_ = nullptr;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_MEMORY_STORAGE_H_
