#include <chrono>
#include <functional>
#include <thread>

#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace does_not_wait {
double SecondsOf(Device /*device*/, const std::function<void()>& work) {
  const Timer timer;
  work();
  return timer.Seconds();
}
}  // namespace does_not_wait

namespace waits_before_the_work {
double SecondsOf(Device device, const std::function<void()>& work) {
  const Timer timer;
  Synchronize(device);
  work();
  return timer.Seconds();
}
}  // namespace waits_before_the_work

namespace waits_for_another_device {
double SecondsOf(Device /*device*/, const std::function<void()>& work) {
  const Timer timer;
  work();
  Synchronize(TryGpu());
  return timer.Seconds();
}
}  // namespace waits_for_another_device

namespace reads_the_clock_first {
double SecondsOf(Device device, const std::function<void()>& work) {
  const Timer timer;
  work();
  const double seconds = timer.Seconds();
  Synchronize(device);
  return seconds;
}
}  // namespace reads_the_clock_first

namespace milliseconds {
double SecondsOf(Device device, const std::function<void()>& work) {
  const Timer timer;
  work();
  Synchronize(device);
  return timer.Seconds() * 1000;
}
}  // namespace milliseconds

namespace sleeps {
double SecondsOf(Device /*device*/, const std::function<void()>& work) {
  const Timer timer;
  work();
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  return timer.Seconds();
}
}  // namespace sleeps

namespace always_the_same {
double SecondsOf(Device device, const std::function<void()>& work) {
  work();
  Synchronize(device);
  return 0.1;
}
}  // namespace always_the_same

D2L_MISTAKE("stop_the_clock", does_not_wait, SecondsOf,
            "work() returns when its work is enqueued");
D2L_MISTAKE("stop_the_clock", waits_before_the_work, SecondsOf,
            "comes before the work is enqueued");
D2L_MISTAKE("stop_the_clock", waits_for_another_device, SecondsOf,
            "for another device, or for one stream");
D2L_MISTAKE("stop_the_clock", reads_the_clock_first, SecondsOf,
            "The clock was read, and then");
D2L_MISTAKE("stop_the_clock", milliseconds, SecondsOf,
            "no more time has passed");
D2L_MISTAKE("stop_the_clock", sleeps, SecondsOf,
            "a pause is too long or too short");
D2L_MISTAKE("stop_the_clock", always_the_same, SecondsOf,
            "return what the clock has measured");

}  // namespace
}  // namespace d2l
