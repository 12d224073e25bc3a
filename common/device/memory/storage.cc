#include "common/device/memory/storage.h"

#include <atomic>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "common/device/listener.h"
#include "common/device/memory/memory.h"

namespace d2l {

void Storage::AddUser(Stream& stream) noexcept {
  try {
    std::lock_guard<SpinLock> lock(users_lock_);
    for (const User& user : users_) {
      if (user.stream == &stream) return;
    }
    users_.push_back({&stream, Event()});
  } catch (const std::bad_alloc&) {
    // A stream that has done all its work uses no memory.
    while (stream.QueuedOperations() > 0) std::this_thread::yield();
  }
}

bool Storage::RecordUsers() noexcept {
  try {
    const internal::PartOfRequest part;
    for (User& user : users_) user.passed = user.stream->Record();
    return true;
  } catch (...) {  // no memory for an event, or no GPU any more
    return false;
  }
}

void StorageRef::reset() noexcept {
  Storage* storage = std::exchange(storage_, nullptr);
  if (storage == nullptr) return;
  // No other thread can copy the only handle meanwhile, so it needs no atomic
  // subtraction.
  if (storage->references_.load(std::memory_order_acquire) == 1 ||
      storage->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    MemoryBlock* const block = static_cast<MemoryBlock*>(storage);
    block->memory->Return(block);
  }
}

}  // namespace d2l
