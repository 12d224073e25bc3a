// both_at_once: two devices at work at the same time.
//
//   bazel run //:exercises -- both_at_once

#include <functional>

#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"

namespace d2l {
namespace {

// Has both devices do their work, at the same time, and returns when both are
// done. work(device) enqueues the work of that device and returns at once;
// Synchronize(device) waits until the device is done.
void RunOnBoth(Device a, Device b, const std::function<void(Device)>& work) {
  // SOLUTION
  work(a);
  work(b);
  Synchronize(a);
  Synchronize(b);
  // END
}

D2L_ANSWER("both_at_once", RunOnBoth);

}  // namespace
}  // namespace d2l
