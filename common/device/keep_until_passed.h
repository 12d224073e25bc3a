// KeepUntilPassed: memory that a device may still write to, and whose owner is
// going.
//
//   KeepUntilPassed(std::move(stamps), {&stream});
//
// An operation writes its OpStamps when it is run, perhaps long after whoever
// asked for them is gone, who should not have to wait.

#ifndef D2L_COMMON_DEVICE_KEEP_UNTIL_PASSED_H_
#define D2L_COMMON_DEVICE_KEEP_UNTIL_PASSED_H_

#include <memory>

#include "absl/types/span.h"
#include "common/device/stream.h"

namespace d2l {

// Holds `memory` until each of `streams`, which may be named repeatedly, has
// done all that is enqueued on it now, and lets go of it in a later call; or at
// the process's end. May wait for room in a queue, not for work. Any thread may
// call it, except one that runs a stream's work.
void KeepUntilPassed(std::shared_ptr<void> memory,
                     absl::Span<Stream* const> streams);

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_KEEP_UNTIL_PASSED_H_
