#include <chrono>
#include <functional>
#include <thread>

#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace as_it_stands {
void RunOnBoth(Device a, Device b, const std::function<void(Device)>& work) {
  work(a);
  Synchronize(a);
  work(b);
  Synchronize(b);
}
}  // namespace as_it_stands

namespace waits_for_none {
void RunOnBoth(Device a, Device b, const std::function<void(Device)>& work) {
  work(a);
  work(b);
}
}  // namespace waits_for_none

namespace waits_for_the_last {
void RunOnBoth(Device a, Device b, const std::function<void(Device)>& work) {
  work(a);
  work(b);
  Synchronize(b);
}
}  // namespace waits_for_the_last

namespace one_device_twice {
void RunOnBoth(Device a, Device b, const std::function<void(Device)>& work) {
  work(a);
  work(a);
  Synchronize(a);
  Synchronize(b);
}
}  // namespace one_device_twice

namespace sleeps {
void RunOnBoth(Device a, Device b, const std::function<void(Device)>& work) {
  work(a);
  work(b);
  Synchronize(a);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
}
}  // namespace sleeps

D2L_MISTAKE("both_at_once", as_it_stands, RunOnBoth, "Which line has to move?");
D2L_MISTAKE("both_at_once", waits_for_none, RunOnBoth,
            "wait for the devices after both calls");
D2L_MISTAKE("both_at_once", waits_for_the_last, RunOnBoth,
            "waits for that device only");
D2L_MISTAKE("both_at_once", one_device_twice, RunOnBoth,
            "Call work() once for each device");
D2L_MISTAKE("both_at_once", sleeps, RunOnBoth,
            "a pause is too long or too short");

}  // namespace
}  // namespace d2l
