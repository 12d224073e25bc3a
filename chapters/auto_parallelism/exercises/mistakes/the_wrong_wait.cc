#include <functional>

#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"

namespace d2l {
namespace {

// torch.cuda.synchronize() without an argument: the current device.
namespace current_device {
double SecondsOn(Device device, const std::function<void()>& work) {
  Synchronize(device);
  const Timer timer;
  work();
  Synchronize(TryGpu());
  return timer.Seconds();
}
}  // namespace current_device

namespace no_wait {
double SecondsOn(Device device, const std::function<void()>& work) {
  Synchronize(device);
  const Timer timer;
  work();
  return timer.Seconds();
}
}  // namespace no_wait

namespace earlier_work {
double SecondsOn(Device device, const std::function<void()>& work) {
  const Timer timer;
  Synchronize(device);
  work();
  Synchronize(device);
  return timer.Seconds();
}
}  // namespace earlier_work

D2L_MISTAKE("the_wrong_wait", current_device, SecondsOn, "it waited for cpu:0");
D2L_MISTAKE("the_wrong_wait", no_wait, SecondsOn, "the work was not done");
D2L_MISTAKE("the_wrong_wait", earlier_work, SecondsOn,
            "with the earlier work in it");

}  // namespace
}  // namespace d2l
