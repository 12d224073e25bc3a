// The host memory that devices use.
//
//   if (IsPinned(host, bytes)) return;  // the copy is asynchronous
//   KeepUntilPassed(std::move(stamps), {&stream});
//
// An operation writes its OpStamps when it runs, perhaps long after their owner
// is gone, and the owner's destructor must not wait for it.
//
// Thread-safe.

#ifndef D2L_COMMON_DEVICE_MEMORY_HOST_MEMORY_H_
#define D2L_COMMON_DEVICE_MEMORY_HOST_MEMORY_H_

#include <cstddef>
#include <memory>

#include "absl/types/span.h"
#include "common/device/stream.h"

namespace d2l {

// True if [data, data + bytes) lies in one pinned block of any back end.
bool IsPinned(const void* data, std::size_t bytes);

// Holds `memory` until each of `streams`, which may contain duplicates, has
// done all that is enqueued on it now. A later call releases it; if a stream
// cannot record an event, it is kept until the process ends. May wait for room
// in a queue, not for work. Any thread may call it, except one that runs a
// stream's work.
void KeepUntilPassed(std::shared_ptr<void> memory,
                     absl::Span<Stream* const> streams) noexcept;

namespace internal {

// Adds a range of pinned memory, at a new address. Throws std::bad_alloc.
void AddPinnedRange(const void* data, std::size_t bytes);
void RemovePinnedRange(const void* data) noexcept;

}  // namespace internal
}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_MEMORY_HOST_MEMORY_H_
