#include <chrono>
#include <functional>
#include <thread>

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

namespace warms_up {
double SecondsOn(Device device, const std::function<void()>& work) {
  work();
  Synchronize(device);
  const Timer timer;
  work();
  Synchronize(device);
  return timer.Seconds();
}
}  // namespace warms_up

namespace in_milliseconds {
double SecondsOn(Device device, const std::function<void()>& work) {
  Synchronize(device);
  const Timer timer;
  work();
  Synchronize(device);
  return 1e3 * timer.Seconds();
}
}  // namespace in_milliseconds

namespace always_the_same {
double SecondsOn(Device device, const std::function<void()>& work) {
  Synchronize(device);
  const Timer timer;
  work();
  Synchronize(device);
  static const double seconds = timer.Seconds();
  return seconds;
}
}  // namespace always_the_same

namespace sleeps_long_enough {
double SecondsOn(Device device, const std::function<void()>& work) {
  Synchronize(device);
  const Timer timer;
  work();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return timer.Seconds();
}
}  // namespace sleeps_long_enough

namespace sleeps_before {
double SecondsOn(Device device, const std::function<void()>& work) {
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const Timer timer;
  work();
  Synchronize(device);
  return timer.Seconds();
}
}  // namespace sleeps_before

D2L_MISTAKE("the_wrong_wait", current_device, SecondsOn, "it waited for cpu:0");
D2L_MISTAKE("the_wrong_wait", no_wait, SecondsOn, "the work was not done");
D2L_MISTAKE("the_wrong_wait", earlier_work, SecondsOn,
            "which includes the earlier work");
D2L_MISTAKE("the_wrong_wait", warms_up, SecondsOn,
            "each call enqueues all of its work");
D2L_MISTAKE("the_wrong_wait", in_milliseconds, SecondsOn, "in seconds.");
D2L_MISTAKE("the_wrong_wait", always_the_same, SecondsOn,
            "return what the clock has measured");
D2L_MISTAKE("the_wrong_wait", sleeps_long_enough, SecondsOn,
            "a pause is too long or too short");
D2L_MISTAKE("the_wrong_wait", sleeps_before, SecondsOn,
            "The earlier work happened to be done");

}  // namespace
}  // namespace d2l
