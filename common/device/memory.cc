#include "common/device/memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/format.h"
#include "common/base/ticks.h"

namespace d2l {
namespace {

// All pinned memory: start -> end.
struct PinnedRanges {
  std::mutex mutex;
  std::map<std::uintptr_t, std::uintptr_t> end_of;
};

PinnedRanges& Pinned() {
  static PinnedRanges& ranges = *new PinnedRanges;  // outlives every block
  return ranges;
}

constexpr std::size_t kSmallestBlock = 64;

}  // namespace

void Storage::AddUser(Stream& stream) {
  std::lock_guard<SpinLock> lock(users_lock_);
  if (std::find(users_.begin(), users_.end(), &stream) == users_.end()) {
    users_.push_back(&stream);
  }
}

void StorageRef::reset() {
  Storage* storage = std::exchange(storage_, nullptr);
  if (storage == nullptr) return;
  // The only handle cannot be copied by anyone else meanwhile, so it need not
  // pay for an atomic subtraction.
  if (storage->references_.load(std::memory_order_acquire) == 1 ||
      storage->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    storage->memory_->Return(storage);
  }
}

DeviceMemory::DeviceMemory(Backend& backend, Device device, int physical_index,
                           Kind kind, std::int64_t max_bytes_in_flight)
    : backend_(backend),
      device_(device),
      physical_index_(physical_index),
      kind_(kind),
      max_bytes_in_flight_(max_bytes_in_flight) {}

DeviceMemory::~DeviceMemory() {
  std::unique_lock<SpinLock> lock(lock_);
  TakeBackParked(lock);
  FreeCached(lock);
}

int DeviceMemory::SizeClass(std::size_t bytes) {
  if (bytes <= kSmallestBlock) return 0;
  // (bytes - 1) = (8 + step) * 2^(log - 3) + rest: the class above `step`.
  const std::size_t n = bytes - 1;
  const int log = 63 - __builtin_clzll(n);
  const int step = static_cast<int>(n >> (log - 3)) & 7;
  return (log - 6) * kStepsPerDoubling + step + 1;
}

std::size_t DeviceMemory::ClassBytes(int size_class) {
  const int doublings = size_class / kStepsPerDoubling;
  const std::size_t step = size_class % kStepsPerDoubling;
  return ((8 + step) * (kSmallestBlock / 8)) << doublings;
}

DeviceMemory::FreeLists& DeviceMemory::ListsOf(Stream* home) {
  const std::size_t index = home == nullptr ? 0 : home->index();
  if (index >= lists_.size()) lists_.resize(index + 1);
  if (lists_[index] == nullptr) {
    lists_[index] = std::make_unique<FreeLists>();
    lists_[index]->stream = home;
  }
  return *lists_[index];
}

StorageRef DeviceMemory::Allocate(std::size_t bytes, Stream& stream) {
  return AllocateFor(bytes, &stream);
}

StorageRef DeviceMemory::AllocatePinned(std::size_t bytes) {
  return AllocateFor(bytes, nullptr);
}

StorageRef DeviceMemory::AllocateFor(std::size_t bytes, Stream* home) {
  if (bytes > (std::size_t{1} << 45)) ThrowOutOfMemory(bytes);
  const int size_class = SizeClass(bytes);
  std::unique_lock<SpinLock> lock(lock_);
  if (!parked_.empty()) Reclaim(lock);
  Storage*& head = ListsOf(home).heads[size_class];
  Storage* storage = head;
  if (storage != nullptr) {
    head = storage->next_;
  } else {
    storage = RawAllocate(size_class, lock);
    if (storage == nullptr && !internal::on_worker_thread) {
      TakeBackParked(lock);
      FreeCached(lock);
      storage = RawAllocate(size_class, lock);
    }
    if (storage == nullptr) {
      lock.unlock();
      ThrowOutOfMemory(bytes);
    }
  }
  ++stats_.allocations;
  stats_.in_use += static_cast<std::int64_t>(ClassBytes(size_class));
  stats_.peak = std::max(stats_.peak, stats_.in_use + stats_.in_flight);
  storage->id_ = (static_cast<std::uint64_t>(device_.type()) << 62) |
                 (static_cast<std::uint64_t>(kind_) << 61) |
                 (static_cast<std::uint64_t>(device_.index()) << 48) |
                 ++next_id_;
  if (!internal::MemoryHasListeners()) {
    lock.unlock();
  } else {
    const MemoryStats stats = stats_;
    lock.unlock();
    Report(storage->id_, static_cast<std::int64_t>(ClassBytes(size_class)),
           stats);
  }

  storage->bytes_ = bytes;
  storage->home_ = home;
  storage->writer_ = nullptr;
  storage->version_ = 0;
  storage->references_.store(1, std::memory_order_relaxed);
  return StorageRef(storage);
}

Storage* DeviceMemory::RawAllocate(int size_class,
                                   std::unique_lock<SpinLock>& lock) {
  lock.unlock();
  const std::size_t bytes = ClassBytes(size_class);
  void* data = kind_ == Kind::kPinned
                   ? backend_.AllocatePinned(bytes)
                   : backend_.Allocate(physical_index_, bytes);
  Storage* storage = nullptr;
  if (data != nullptr) {
    if (kind_ == Kind::kPinned) {
      const auto start = reinterpret_cast<std::uintptr_t>(data);
      std::lock_guard<std::mutex> pinned_lock(Pinned().mutex);
      Pinned().end_of[start] = start + bytes;
    }
    storage = new Storage;
    storage->size_class_ = size_class;
    storage->data_ = data;
    storage->memory_ = this;
  }
  lock.lock();
  if (storage != nullptr) {
    stats_.reserved += static_cast<std::int64_t>(bytes);
    ++stats_.raw_allocations;
  }
  return storage;
}

void DeviceMemory::Report(std::uint64_t storage, std::int64_t change,
                          const MemoryStats& stats) const {
  internal::ReportMemory({device_, kind_ == Kind::kPinned, storage, change,
                          stats.in_use, stats.in_flight, stats.reserved,
                          NowTicks()});
}

void DeviceMemory::Return(Storage* storage) {
  const auto bytes =
      static_cast<std::int64_t>(ClassBytes(storage->size_class_));
  const std::uint64_t id = storage->id_;
  const bool listened = internal::MemoryHasListeners();
  if (storage->users_.empty()) {
    std::unique_lock<SpinLock> lock(lock_);
    stats_.in_use -= bytes;
    PutBack(storage);
    if (!listened) return;
    const MemoryStats stats = stats_;
    lock.unlock();
    Report(id, -bytes, stats);
    return;
  }
  ParkedBlock parked{storage, {}};
  // On a worker thread nothing may be enqueued. A later point than this one
  // is safe too, so the events can wait until somebody allocates.
  if (!internal::on_worker_thread) {
    const internal::PartOfRequest part;
    for (Stream* user : storage->users_) {
      parked.events.push_back(user->Record());
    }
  }
  std::unique_lock<SpinLock> lock(lock_);
  stats_.in_use -= bytes;
  stats_.in_flight += bytes;
  if (parked.events.empty()) ++unrecorded_;
  parked_.push_back(std::move(parked));
  if (!listened) return;
  const MemoryStats stats = stats_;
  lock.unlock();
  Report(id, -bytes, stats);
}

void DeviceMemory::PutBack(Storage* storage) {
  storage->users_.clear();
  Storage*& head = ListsOf(storage->home_).heads[storage->size_class_];
  storage->next_ = head;
  head = storage;
}

void DeviceMemory::RecordParked(std::unique_lock<SpinLock>& lock) {
  if (unrecorded_ == 0 || internal::on_worker_thread) return;
  std::vector<ParkedBlock> blocks;
  for (auto it = parked_.begin(); it != parked_.end();) {
    if (it->events.empty()) {
      blocks.push_back(std::move(*it));
      it = parked_.erase(it);
    } else {
      ++it;
    }
  }
  unrecorded_ = 0;
  // Recording may wait for room in a queue, so not under the lock.
  lock.unlock();
  const internal::PartOfRequest part;
  for (ParkedBlock& block : blocks) {
    for (Stream* user : block.storage->users_) {
      block.events.push_back(user->Record());
    }
  }
  lock.lock();
  for (ParkedBlock& block : blocks) parked_.push_back(std::move(block));
}

void DeviceMemory::Reclaim(std::unique_lock<SpinLock>& lock) {
  RecordParked(lock);
  TakeBackWhatIsDone();
  // Work that runs on a stream cannot wait for the device.
  while (!internal::on_worker_thread &&
         stats_.in_flight > max_bytes_in_flight_ && WaitForOldest(lock)) {
    TakeBackWhatIsDone();
  }
}

void DeviceMemory::TakeBackParked(std::unique_lock<SpinLock>& lock) {
  RecordParked(lock);
  TakeBackWhatIsDone();
  while (WaitForOldest(lock)) TakeBackWhatIsDone();
}

void DeviceMemory::TakeBackWhatIsDone() {
  // Oldest first, up to the first that is not done: with several streams a
  // later one may be done too, and is found when its turn comes.
  while (!parked_.empty()) {
    ParkedBlock& block = parked_.front();
    if (block.events.empty()) return;
    for (const Event& event : block.events) {
      if (!event.Query()) return;
    }
    stats_.in_flight -=
        static_cast<std::int64_t>(ClassBytes(block.storage->size_class_));
    PutBack(block.storage);
    parked_.pop_front();
  }
}

bool DeviceMemory::WaitForOldest(std::unique_lock<SpinLock>& lock) {
  if (parked_.empty() || parked_.front().events.empty()) return false;
  const std::vector<Event> events = parked_.front().events;
  lock.unlock();
  for (const Event& event : events) event.state()->Block();
  lock.lock();
  return true;
}

void DeviceMemory::FreeCached(std::unique_lock<SpinLock>& lock) {
  struct Chain {
    Stream* stream;
    Storage* first;
  };
  std::vector<Chain> chains;
  for (const auto& lists : lists_) {
    if (lists == nullptr) continue;
    for (Storage*& head : lists->heads) {
      if (head != nullptr) {
        chains.push_back({lists->stream, std::exchange(head, nullptr)});
      }
    }
  }
  lock.unlock();
  std::int64_t freed = 0;
  const internal::PartOfRequest part;
  Stream* waited_for = nullptr;
  for (const Chain& chain : chains) {
    // Work queued on its stream may still use a free block.
    if (chain.stream != nullptr && chain.stream != waited_for) {
      chain.stream->Record().state()->Block();
      waited_for = chain.stream;
    }
    for (Storage* storage = chain.first; storage != nullptr;) {
      Storage* next = storage->next_;
      freed += static_cast<std::int64_t>(ClassBytes(storage->size_class_));
      RawFree(storage);
      storage = next;
    }
  }
  lock.lock();
  stats_.reserved -= freed;
}

void DeviceMemory::RawFree(Storage* storage) {
  const std::size_t bytes = ClassBytes(storage->size_class_);
  if (kind_ == Kind::kPinned) {
    {
      std::lock_guard<std::mutex> lock(Pinned().mutex);
      Pinned().end_of.erase(reinterpret_cast<std::uintptr_t>(storage->data_));
    }
    backend_.FreePinned(storage->data_, bytes);
  } else {
    backend_.Free(physical_index_, storage->data_, bytes);
  }
  delete storage;
}

std::int64_t DeviceMemory::SetMaxBytesInFlight(std::int64_t bytes) {
  if (bytes < 1) {
    throw std::invalid_argument(absl::StrFormat(
        "A bound of %d bytes in flight was asked for; it must be at least 1.",
        bytes));
  }
  std::lock_guard<SpinLock> lock(lock_);
  return std::exchange(max_bytes_in_flight_, bytes);
}

void DeviceMemory::EmptyCache() {
  if (internal::on_worker_thread) {
    throw std::logic_error(
        "[empty_cache] called from work that runs on a stream, which cannot "
        "wait for streams");
  }
  std::unique_lock<SpinLock> lock(lock_);
  TakeBackParked(lock);
  FreeCached(lock);
}

void DeviceMemory::ThrowOutOfMemory(std::size_t bytes) {
  std::int64_t queued = 0;
  MemoryStats stats;
  {
    std::lock_guard<SpinLock> lock(lock_);
    stats = stats_;
    for (const auto& lists : lists_) {
      if (lists != nullptr && lists->stream != nullptr) {
        queued += lists->stream->QueuedOperations();
      }
    }
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

bool IsPinned(const void* data, std::size_t bytes) {
  const auto start = reinterpret_cast<std::uintptr_t>(data);
  std::lock_guard<std::mutex> lock(Pinned().mutex);
  auto it = Pinned().end_of.upper_bound(start);
  if (it == Pinned().end_of.begin()) return false;
  --it;
  return start + bytes <= it->second;
}

}  // namespace d2l
