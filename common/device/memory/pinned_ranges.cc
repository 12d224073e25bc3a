#include "common/device/memory/pinned_ranges.h"

#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace d2l {
namespace {

struct Ranges {
  Mutex mutex;
  // From start to end.
  std::map<std::uintptr_t, std::uintptr_t> end_of ABSL_GUARDED_BY(mutex);
};

Ranges& GetRanges() {
  static Ranges& ranges = *new Ranges;  // outlives every block
  return ranges;
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
