// the_wrong_wait: a timer that waits for the device that it times.
//
//   bazel run //:exercises -- the_wrong_wait

#include <functional>

#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"

namespace d2l {
namespace {

// How many seconds `device` takes for what work() enqueues on it: for nothing
// that was enqueued before, and however busy the other devices are. Timer is a
// stopwatch that runs from its construction; Synchronize(device) waits until
// the device is done.
double SecondsOn(Device device, const std::function<void()>& work) {
  // YOUR CODE
  throw NotDone();
}

D2L_ANSWER("the_wrong_wait", SecondsOn);

}  // namespace
}  // namespace d2l
