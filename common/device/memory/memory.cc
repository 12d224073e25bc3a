#include "common/device/memory/memory.h"

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_format.h"
#include "common/base/console/format.h"
#include "common/base/mutex.h"
#include "common/base/ticks.h"
#include "common/device/event.h"
#include "common/device/failure.h"
#include "common/device/listener.h"
#include "common/device/memory/host_memory.h"

namespace d2l {
namespace {

constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

// For the checks of kernels (BUILD) a block of a GPU ends where its array ends,
// up to this size, so that the device finds an access behind it.
#ifdef D2L_EXACT_BLOCKS
constexpr std::size_t kLargestExact = std::size_t{1} << 20;
#else
constexpr std::size_t kLargestExact = 0;
#endif

struct AllMemories {
  Mutex mutex;
  std::vector<DeviceMemory*> memories ABSL_GUARDED_BY(mutex);
};

AllMemories& All() {
  static AllMemories& all = *new AllMemories;  // outlives every DeviceMemory
  return all;
}

// True if all queued work of the stream is done, or if it is null. With `wait`,
// first waits for the work, where that is possible.
bool IsIdle(Stream* stream, bool wait) {
  if (stream == nullptr || stream->QueuedOperations() == 0) return true;
  if (!wait) return false;
  try {
    stream->Record().state()->Block();
    return true;
  } catch (...) {  // no memory for an event, or no GPU any more
    return false;
  }
}

}  // namespace

DeviceMemory::DeviceMemory(Backend& backend, Device device, int physical_index,
                           Kind kind, std::int64_t max_bytes_in_flight)
    : backend_(backend),
      device_(device),
      physical_index_(physical_index),
      kind_(kind),
      free_limit_(backend.FreeWaits() ? 32 * kFreeLimit : kFreeLimit),
      max_bytes_in_flight_(max_bytes_in_flight) {
  AllMemories& all = All();
  MutexLock lock(all.mutex);
  all.memories.push_back(this);
}

DeviceMemory::~DeviceMemory() {
  {
    AllMemories& all = All();
    MutexLock lock(all.mutex);
    all.memories.erase(
        std::find(all.memories.begin(), all.memories.end(), this));
  }
  const internal::PartOfRequest part;
  ReclaimAll();
}

// ---- Allocating.

StorageRef DeviceMemory::Allocate(std::size_t bytes, Stream& stream) {
  return AllocateFor(bytes, &stream);
}

StorageRef DeviceMemory::AllocatePinned(std::size_t bytes) {
  return AllocateFor(bytes, nullptr);
}

StorageRef DeviceMemory::AllocateFor(std::size_t bytes, Stream* home) {
  if (bytes > FreeBlocks::kLargestRequest) ThrowOutOfMemory(bytes);
  std::size_t size = FreeBlocks::BlockSize(bytes);
  if (size <= kLargestExact && device_.type() == DeviceType::kCuda) {
    size = std::max<std::size_t>(bytes, 1);
  }
  MemoryBlock* block = nullptr;
  {
    std::lock_guard<SpinLock> lock(lock_);
    if (oldest_ == nullptr && unrecorded_ == nullptr) block = Reuse(size, home);
  }
  if (block == nullptr) {
    try {
      block = AllocateSlowly(size, home);
    } catch (const std::bad_alloc&) {  // of the host
    } catch (const std::runtime_error&) {
      // The stream may know what made the device unusable.
      if (home != nullptr && !internal::enqueue_mode) home->Synchronize();
      throw;
    }
    if (block == nullptr) ThrowOutOfMemory(bytes);
  }
  block->bytes_ = bytes;
  block->writer_ = nullptr;
  block->version_ = 0;
  block->references_.store(1, std::memory_order_relaxed);
  StorageRef handle(block);
  if (internal::MemoryHasListeners()) {
    Report(block->id_, block->data_, static_cast<std::int64_t>(block->size));
  }
  return handle;
}

MemoryBlock* DeviceMemory::AllocateSlowly(std::size_t size, Stream* home) {
  const internal::PartOfRequest part;
  std::int64_t most;
  {
    std::lock_guard<SpinLock> lock(lock_);
    free_.AddStream(home);
    most = max_bytes_in_flight_;
  }
  const auto reuse = [&] {
    std::lock_guard<SpinLock> lock(lock_);
    return Reuse(size, home);
  };
  TakeBack(most);
  if (MemoryBlock* block = reuse()) return block;
  for (const bool wait : {false, true}) {
    const std::int64_t beyond = FreeBeyondLimit(size);
    if (beyond <= 0 || !MayReclaim(wait)) break;
    if (wait && beyond + Stats().in_flight <= most) break;
    Reclaim(beyond, wait, size, home);
    if (MemoryBlock* block = reuse()) return block;
  }
  if (MemoryBlock* block = Grow(size, home)) return block;
  // Work that runs on a stream cannot wait for streams.
  if (internal::enqueue_mode) return nullptr;
  ReclaimAll();
  if (MemoryBlock* block = Grow(size, home)) return block;
  EmptyCachesBeside();
  return Grow(size, home);
}

MemoryBlock* DeviceMemory::Reuse(std::size_t size, Stream* home) {
  MemoryBlock* const block = free_.Take(home, size);
  if (block == nullptr) return nullptr;
  ++stats_.allocations;
  stats_.allocated += static_cast<std::int64_t>(block->size);
  stats_.peak = std::max(stats_.peak, stats_.allocated + stats_.in_flight);
  block->id_ = (static_cast<std::uint64_t>(device_.type()) << 62) |
               (static_cast<std::uint64_t>(kind_) << 61) |
               (static_cast<std::uint64_t>(device_.index()) << 48) | ++next_id_;
  return block;
}

MemoryBlock* DeviceMemory::Grow(std::size_t size, Stream* home) {
  {
    std::lock_guard<SpinLock> lock(lock_);
    if (stats_.reserved > max_bytes_ - static_cast<std::int64_t>(size)) {
      return Reuse(size, home);
    }
  }
  MemoryBlock* const segment = NewSegment(size, home);
  std::lock_guard<SpinLock> lock(lock_);
  if (segment != nullptr) {
    stats_.reserved += static_cast<std::int64_t>(size);
    ++stats_.raw_allocations;
    free_.Put(segment);
  }
  return Reuse(size, home);
}

MemoryBlock* DeviceMemory::NewSegment(std::size_t size, Stream* home) {
  void* const data = RawAllocate(size);
  if (data == nullptr) return nullptr;
  auto* const segment = new (std::nothrow) MemoryBlock(this, data, size, home);
  if (segment == nullptr) RawFree(data, size);
  return segment;
}

void* DeviceMemory::RawAllocate(std::size_t bytes) {
  if (kind_ == Kind::kDevice) return backend_.Allocate(physical_index_, bytes);
  void* const data = backend_.AllocatePinned(bytes);
  if (data == nullptr) return nullptr;
  try {
    internal::AddPinnedRange(data, bytes);
  } catch (const std::bad_alloc&) {
    backend_.FreePinned(data, bytes);
    return nullptr;
  }
  return data;
}

// ---- Giving back to the device.

template <typename F>
void DeviceMemory::ForEachStream(F f) {
  for (std::size_t i = 0;; ++i) {
    Stream* stream;
    {
      std::lock_guard<SpinLock> lock(lock_);
      if (i == free_.streams()) return;
      stream = free_.stream(i);
    }
    f(i, stream);
  }
}

void DeviceMemory::Reclaim(std::int64_t bytes, bool wait, std::size_t size,
                           Stream* home) {
  ForEachStream([&](std::size_t index, Stream* stream) {
    if (bytes <= 0 || (!wait && !IsIdle(stream, wait))) return;
    MemoryBlock* segments;
    {
      std::lock_guard<SpinLock> lock(lock_);
      segments = free_.TakeSegments(index, bytes);
      for (MemoryBlock* one = segments; one != nullptr; one = one->next) {
        stats_.reserved -= static_cast<std::int64_t>(one->size);
      }
    }
    // Queued work may still use a free block, and more may have been enqueued.
    const bool idle = segments != nullptr && IsIdle(stream, wait);
    while (segments != nullptr) {
      MemoryBlock* const segment = std::exchange(segments, segments->next);
      const auto freed = static_cast<std::int64_t>(segment->size);
      if (idle) {
        bytes -= freed;
        if (home == nullptr || !FreeBlocks::Holds(*segment, size)) {
          RawFree(segment->data(), segment->size);
          delete segment;
          continue;
        }
        segment->home_ = std::exchange(home, nullptr);
      }
      std::lock_guard<SpinLock> lock(lock_);
      stats_.reserved += freed;
      free_.Put(segment);
    }
  });
}

void DeviceMemory::RawFree(void* data, std::size_t bytes) {
  if (kind_ == Kind::kPinned) {
    internal::RemovePinnedRange(data);
    backend_.FreePinned(data, bytes);
  } else {
    backend_.Free(physical_index_, data, bytes);
  }
}

std::int64_t DeviceMemory::FreeBeyondLimit(std::size_t size) {
  std::lock_guard<SpinLock> lock(lock_);
  const std::int64_t used = stats_.allocated + stats_.in_flight;
  return stats_.reserved - used -
         std::max((used + static_cast<std::int64_t>(size)) / 2, free_limit_);
}

bool DeviceMemory::MayReclaim(bool wait) {
  if (internal::enqueue_mode) return false;  // it may not query streams
  if (!backend_.FreeWaits()) return true;
  // The streams that use pinned memory are unknown.
  if (wait || kind_ == Kind::kPinned) return false;
  bool idle = true;
  ForEachStream([&idle](std::size_t, Stream* stream) {
    idle = idle && IsIdle(stream, /*wait=*/false);
  });
  return idle;
}

void DeviceMemory::ReclaimAll() {
  TakeBack(0);
  Reclaim(kAll, /*wait=*/true, 0, nullptr);
  // The C library keeps the memory of small blocks and of Storages.
  malloc_trim(0);
}

void DeviceMemory::EmptyCache() {
  if (internal::enqueue_mode) {
    throw std::logic_error(
        "[empty_cache] called from work that runs on a stream, which cannot "
        "wait for streams");
  }
  const internal::PartOfRequest part;
  ReclaimAll();
}

// Empties the caches of other devices on the same hardware.
void DeviceMemory::EmptyCachesBeside() {
  AllMemories& all = All();
  MutexLock lock(all.mutex);
  for (DeviceMemory* other : all.memories) {
    if (other != this && &other->backend_ == &backend_ &&
        other->physical_index_ == physical_index_ && other->kind_ == kind_) {
      other->EmptyCache();
    }
  }
}

// ---- Returned blocks.

void DeviceMemory::Return(MemoryBlock* block) noexcept {
  const auto size = static_cast<std::int64_t>(block->size);
  const std::uint64_t id = block->id_;
  const void* const data = block->data_;
  const bool in_flight = !block->users_.empty();
  {
    std::lock_guard<SpinLock> lock(lock_);
    stats_.allocated -= size;
    if (in_flight) {
      stats_.in_flight += size;
    } else {
      free_.Put(block);
    }
  }
  if (in_flight) SetInFlight(block);
  if (internal::MemoryHasListeners()) Report(id, data, -size);
}

void DeviceMemory::SetInFlight(MemoryBlock* block) noexcept {
  // Work that runs on a stream cannot enqueue; recording later is as safe.
  const bool recorded = !internal::enqueue_mode && block->RecordUsers();
  std::lock_guard<SpinLock> lock(lock_);
  if (!recorded) {
    block->next = std::exchange(unrecorded_, block);
    return;
  }
  block->next = nullptr;
  if (oldest_ == nullptr) {
    oldest_ = block;
  } else {
    youngest_->next = block;
  }
  youngest_ = block;
}

void DeviceMemory::TakeBack(std::int64_t most) {
  MemoryBlock* unrecorded = nullptr;
  if (!internal::enqueue_mode) {
    std::lock_guard<SpinLock> lock(lock_);
    unrecorded = std::exchange(unrecorded_, nullptr);
  }
  while (unrecorded != nullptr) {
    SetInFlight(std::exchange(unrecorded, unrecorded->next));
  }
  for (;;) {
    Event next;
    bool wait;
    {
      std::lock_guard<SpinLock> lock(lock_);
      if (oldest_ == nullptr) return;
      next = oldest_->users_.back().passed;
      wait = stats_.in_flight > most && !internal::enqueue_mode;
    }
    // Called without the lock: it may release tensors of this memory.
    if (wait) {
      next.state()->Block();
    } else if (!next.state()->Query()) {
      return;
    }
    std::lock_guard<SpinLock> lock(lock_);
    MemoryBlock* const block = oldest_;
    // Another thread may have taken the block.
    if (block == nullptr ||
        block->users_.back().passed.state() != next.state()) {
      continue;
    }
    block->users_.pop_back();
    if (!block->users_.empty()) continue;
    oldest_ = block->next;
    stats_.in_flight -= static_cast<std::int64_t>(block->size);
    free_.Put(block);
  }
}

// ---- The account.

std::int64_t DeviceMemory::SetMaxBytesInFlight(std::int64_t bytes) {
  if (bytes < 1) {
    throw std::invalid_argument(absl::StrFormat(
        "A bound of %d bytes in flight was asked for; it must be at least 1.",
        bytes));
  }
  std::lock_guard<SpinLock> lock(lock_);
  return std::exchange(max_bytes_in_flight_, bytes);
}

std::int64_t DeviceMemory::SetMaxBytes(std::int64_t bytes) {
  std::lock_guard<SpinLock> lock(lock_);
  return std::exchange(max_bytes_, bytes);
}

void DeviceMemory::ThrowOutOfMemory(std::size_t bytes) {
  const MemoryStats stats = Stats();
  std::int64_t queued = 0;
  ForEachStream([&queued](std::size_t, Stream* stream) {
    if (stream != nullptr) queued += stream->QueuedOperations();
  });
  std::int64_t most;
  {
    std::lock_guard<SpinLock> lock(lock_);
    most = max_bytes_;
  }
  // Clamped: an absurd request is printed as the largest number.
  const std::int64_t asked = static_cast<std::int64_t>(
      std::min<std::uint64_t>(bytes, std::uint64_t{1} << 62));
  throw OutOfMemoryError(absl::StrFormat(
      "[out of memory] %s asked for on %s%s, which has %s free; %s in use, %s "
      "in flight, %d operations queued. Use smaller tensors, or release "
      "some.",
      FormatBytes(asked), device_.ToString(),
      kind_ == Kind::kPinned ? " (pinned host memory)" : "",
      FormatBytes(std::min(backend_.FreeMemory(physical_index_),
                           most - stats.reserved)),
      FormatBytes(stats.allocated), FormatBytes(stats.in_flight), queued));
}

void DeviceMemory::Report(std::uint64_t storage, const void* data,
                          std::int64_t change) {
  const MemoryStats stats = Stats();
  internal::ReportMemory({device_, kind_ == Kind::kPinned, storage, change,
                          stats.allocated, stats.in_flight, stats.reserved,
                          NowTicks(), data});
}

MemoryStats DeviceMemory::Stats() {
  std::lock_guard<SpinLock> lock(lock_);
  return stats_;
}

void DeviceMemory::ResetPeak() {
  TakeBack(kAll);
  std::lock_guard<SpinLock> lock(lock_);
  stats_.peak = stats_.allocated + stats_.in_flight;
}

}  // namespace d2l
