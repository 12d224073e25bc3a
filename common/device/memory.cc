#include "common/device/memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_format.h"
#include "common/base/format.h"
#include "common/base/mutex.h"
#include "common/base/ticks.h"
#include "common/device/event.h"
#include "common/device/failure.h"
#include "common/device/listener.h"

namespace d2l {
namespace {

// Where the memory of each DeviceMemory lies.
struct Place {
  DeviceMemory* memory;
  const Backend* backend;
  int physical_index;
  DeviceMemory::Kind kind;
};

struct AllMemories {
  Mutex mutex;
  std::vector<Place> places ABSL_GUARDED_BY(mutex);
};

AllMemories& All() {
  static AllMemories& all = *new AllMemories;  // outlives every DeviceMemory
  return all;
}

// Empties the caches of other devices on the same hardware.
void EmptyCachesBeside(const Place& here) {
  AllMemories& all = All();
  MutexLock lock(all.mutex);
  for (const Place& other : all.places) {
    if (other.memory != here.memory && other.backend == here.backend &&
        other.physical_index == here.physical_index &&
        other.kind == here.kind) {
      other.memory->EmptyCache();
    }
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
  all.places.push_back({this, &backend_, physical_index_, kind_});
}

DeviceMemory::~DeviceMemory() {
  {
    AllMemories& all = All();
    MutexLock lock(all.mutex);
    all.places.erase(std::find_if(
        all.places.begin(), all.places.end(),
        [this](const Place& place) { return place.memory == this; }));
  }
  const internal::PartOfRequest part;
  WaitForParked();
  GiveBackAll();
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
  Request request{
      FreeBlocks::BlockSize(bytes), home, internal::MemoryHasListeners(), {}};
  Storage* block = nullptr;
  {
    std::lock_guard<SpinLock> lock(lock_);
    if (parked_.empty()) block = TakeFree(request);
  }
  if (block == nullptr) {
    try {
      block = AllocateSlowly(request);
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
  if (request.reported) {
    Report(block->id_, static_cast<std::int64_t>(block->size_), request.after);
  }
  return handle;
}

Storage* DeviceMemory::TakeFree(Request& request) {
  Storage* const block = free_.Take(request.home, request.size);
  if (block == nullptr) return nullptr;
  ++stats_.allocations;
  stats_.in_use += static_cast<std::int64_t>(block->size_);
  stats_.peak = std::max(stats_.peak, stats_.in_use + stats_.in_flight);
  block->id_ = (static_cast<std::uint64_t>(device_.type()) << 62) |
               (static_cast<std::uint64_t>(kind_) << 61) |
               (static_cast<std::uint64_t>(device_.index()) << 48) | ++next_id_;
  if (request.reported) request.after = stats_;
  return block;
}

Storage* DeviceMemory::AllocateSlowly(Request& request) {
  const internal::PartOfRequest part;
  TakeBack();
  {
    std::lock_guard<SpinLock> lock(lock_);
    free_.AddStream(request.home);
    if (Storage* block = TakeFree(request)) return block;
  }
  if (Storage* block = MakeRoom(request)) return block;
  if (Storage* block = AllocateFromDevice(request)) return block;
  // Work that runs on a stream cannot wait for streams.
  if (internal::enqueue_mode) return nullptr;
  WaitForParked();
  GiveBackAll();
  if (Storage* block = AllocateFromDevice(request)) return block;
  EmptyCachesBeside({this, &backend_, physical_index_, kind_});
  return AllocateFromDevice(request);
}

Storage* DeviceMemory::AllocateFromDevice(Request& request) {
  std::unique_ptr<Storage> block(new Storage);
  block->data_ = RawAllocate(request.size);
  if (block->data_ == nullptr) {
    // What was merged meanwhile may do.
    std::lock_guard<SpinLock> lock(lock_);
    return TakeFree(request);
  }
  block->memory_ = this;
  block->home_ = request.home;
  block->size_ = request.size;
  std::lock_guard<SpinLock> lock(lock_);
  stats_.reserved += static_cast<std::int64_t>(request.size);
  ++stats_.raw_allocations;
  free_.Put(block.release());
  return TakeFree(request);
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

void DeviceMemory::Report(std::uint64_t storage, std::int64_t change,
                          const MemoryStats& stats) const {
  internal::ReportMemory({device_, kind_ == Kind::kPinned, storage, change,
                          stats.in_use, stats.in_flight, stats.reserved,
                          NowTicks()});
}

// ---- Returned blocks.

void DeviceMemory::Return(Storage* block) noexcept {
  const auto size = static_cast<std::int64_t>(block->size_);
  const std::uint64_t id = block->id_;
  const bool reported = internal::MemoryHasListeners();
  MemoryStats after;
  if (block->users_.empty()) {
    std::lock_guard<SpinLock> lock(lock_);
    stats_.in_use -= size;
    free_.Put(block);
    if (!reported) return;
    after = stats_;
  } else {
    // If they cannot be recorded here, a later point is as safe.
    if (!internal::enqueue_mode) block->RecordUsers();
    std::lock_guard<SpinLock> lock(lock_);
    stats_.in_use -= size;
    stats_.in_flight += size;
    parked_.Push(block);
    after = stats_;
  }
  if (reported) Report(id, -size, after);
}

void DeviceMemory::TakeBack() {
  RecordParked();
  TakeBackPassed();
  if (internal::enqueue_mode) return;  // which cannot wait for streams
  const auto too_much = [this] {
    std::lock_guard<SpinLock> lock(lock_);
    return stats_.in_flight + leaving_ > max_bytes_in_flight_;
  };
  while (too_much() && WaitForOldest()) TakeBackPassed();
}

void DeviceMemory::RecordParked() {
  if (internal::enqueue_mode) return;  // which cannot enqueue
  Storage* blocks = nullptr;
  {
    std::lock_guard<SpinLock> lock(lock_);
    if (parked_.any_unrecorded()) blocks = parked_.TakeUnrecorded();
  }
  ForEach(blocks, [this](Storage* block) {
    block->RecordUsers();  // may wait for room in a queue
    std::lock_guard<SpinLock> lock(lock_);
    parked_.Push(block);
  });
}

void DeviceMemory::TakeBackPassed() {
  for (Event next = NextParked(); next.state() != nullptr && next.Query();
       next = NextParked()) {
    Storage* leaving = nullptr;
    {
      std::lock_guard<SpinLock> lock(lock_);
      Storage* const block = parked_.TakePassed(next);
      if (block == nullptr) continue;
      if (block->give_back_) {
        block->next_ = nullptr;
        leaving = block;
      } else {
        stats_.in_flight -= static_cast<std::int64_t>(block->size_);
        PutFree(block);
      }
    }
    GiveBack(leaving);
  }
}

Event DeviceMemory::NextParked() {
  std::lock_guard<SpinLock> lock(lock_);
  return parked_.NextEvent();
}

void DeviceMemory::WaitForParked() {
  RecordParked();
  TakeBackPassed();
  while (WaitForOldest()) TakeBackPassed();
}

bool DeviceMemory::WaitForOldest() {
  const Event next = NextParked();
  if (next.state() == nullptr) return false;
  next.state()->Block();
  return true;
}

void DeviceMemory::PutFree(Storage* block) {
  block->recorded_ = block->give_back_ = false;
  free_.Put(block);
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

void DeviceMemory::ThrowOutOfMemory(std::size_t bytes) {
  const MemoryStats stats = Stats();
  std::int64_t queued = 0;
  for (std::size_t i = 0;; ++i) {
    Stream* stream;
    {
      std::lock_guard<SpinLock> lock(lock_);
      if (i == free_.streams()) break;
      stream = free_.stream(i);
    }
    if (stream != nullptr) queued += stream->QueuedOperations();
  }
  // Saturated: an absurd request is printed as the largest number.
  const std::int64_t asked = static_cast<std::int64_t>(
      std::min<std::uint64_t>(bytes, std::uint64_t{1} << 62));
  throw OutOfMemoryError(absl::StrFormat(
      "[out of memory] %s asked for on %s%s, which has %s free; %s in use, %s "
      "in flight, %d operations queued. Use smaller tensors, or let go of "
      "some.",
      FormatBytes(asked), device_.ToString(),
      kind_ == Kind::kPinned ? " (pinned host memory)" : "",
      FormatBytes(backend_.FreeMemory(physical_index_)),
      FormatBytes(stats.in_use), FormatBytes(stats.in_flight), queued));
}

MemoryStats DeviceMemory::Stats() {
  std::lock_guard<SpinLock> lock(lock_);
  return stats_;
}

void DeviceMemory::ResetPeak() {
  std::lock_guard<SpinLock> lock(lock_);
  stats_.peak = stats_.in_use + stats_.in_flight;
}

}  // namespace d2l
