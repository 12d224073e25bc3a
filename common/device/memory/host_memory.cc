#include "common/device/memory/host_memory.h"

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "common/base/mutex.h"
#include "common/device/event.h"
#include "common/device/listener.h"

namespace d2l {
namespace {

struct Ranges {
  Mutex mutex;
  // The end of each range, by its start.
  std::map<std::uintptr_t, std::uintptr_t> end_of ABSL_GUARDED_BY(mutex);
};

Ranges& GetRanges() {
  static Ranges& ranges = *new Ranges;  // outlives every block
  return ranges;
}

struct Kept {
  std::shared_ptr<void> memory;
  std::vector<Event> passed;
};

struct All {
  Mutex mutex;
  std::list<Kept> kept ABSL_GUARDED_BY(mutex);
};

// Never destroyed: a device may write until the process ends.
All& GetAll() {
  static All& all = *new All;
  return all;
}

bool Passed(const Kept& kept) {
  return std::all_of(kept.passed.begin(), kept.passed.end(),
                     [](const Event& event) { return event.state()->Query(); });
}

void Keep(std::shared_ptr<void>& memory, absl::Span<Stream* const> streams) {
  const internal::PartOfRequest part;
  Kept kept;
  const std::set<Stream*> distinct(streams.begin(), streams.end());
  for (Stream* stream : distinct) kept.passed.push_back(stream->Record());
  std::list<Kept> waiting;
  waiting.push_back(std::move(kept));
  waiting.back().memory = std::move(memory);
  All& all = GetAll();
  {
    MutexLock lock(all.mutex);
    waiting.splice(waiting.end(), all.kept);
  }
  // Without the lock: querying an event or freeing memory may release something
  // that calls KeepUntilPassed again.
  const absl::Cleanup keep = [&] {
    MutexLock lock(all.mutex);
    all.kept.splice(all.kept.end(), waiting);
  };
  waiting.remove_if(Passed);
}

}  // namespace

bool IsPinned(const void* data, std::size_t bytes) {
  const auto start = reinterpret_cast<std::uintptr_t>(data);
  Ranges& ranges = GetRanges();
  MutexLock lock(ranges.mutex);
  auto it = ranges.end_of.upper_bound(start);
  if (it == ranges.end_of.begin()) return false;
  --it;
  return start <= it->second && bytes <= it->second - start;
}

void KeepUntilPassed(std::shared_ptr<void> memory,
                     absl::Span<Stream* const> streams) noexcept {
  try {
    Keep(memory, streams);
  } catch (...) {
    // No event could be recorded or stored, so the memory is kept for ever.
    using Pointer = std::shared_ptr<void>;
    alignas(Pointer) unsigned char never_destroyed[sizeof(Pointer)];
    new (never_destroyed) Pointer(std::move(memory));
  }
}

namespace internal {

void AddPinnedRange(const void* data, std::size_t bytes) {
  const auto start = reinterpret_cast<std::uintptr_t>(data);
  Ranges& ranges = GetRanges();
  MutexLock lock(ranges.mutex);
  ranges.end_of[start] = start + bytes;
}

void RemovePinnedRange(const void* data) noexcept {
  Ranges& ranges = GetRanges();
  MutexLock lock(ranges.mutex);
  ranges.end_of.erase(reinterpret_cast<std::uintptr_t>(data));
}

}  // namespace internal
}  // namespace d2l
