// KeepUntilPassed: keeps memory alive that a device may still write to.
//
//   KeepUntilPassed(std::move(stamps), {&stream});
//
// An operation writes its OpStamps when it runs, perhaps long after their owner
// is gone, and the owner's destructor must not wait for it.

#ifndef D2L_COMMON_DEVICE_MEMORY_KEEP_UNTIL_PASSED_H_
#define D2L_COMMON_DEVICE_MEMORY_KEEP_UNTIL_PASSED_H_

#include <memory>

#include "absl/types/span.h"
#include "common/device/stream.h"

namespace d2l {

// Holds `memory` until each of `streams`, which may contain duplicates, has
// done all that is enqueued on it now. A later call releases it, or the end of
// the process, also if a stream cannot record an event. May wait for room in a
// queue, not for work. Any thread may call it, except one that runs a stream's
// work.
void KeepUntilPassed(std::shared_ptr<void> memory,
                     absl::Span<Stream* const> streams) noexcept;

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_MEMORY_KEEP_UNTIL_PASSED_H_
