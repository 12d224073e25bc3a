#include <functional>
#include <queue>

#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/event.h"
#include "common/device/stream.h"
#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace waits_for_each {
void RunSteps(int steps, Device device, const std::function<void()>& ask) {
  for (int i = 0; i < steps; ++i) {
    ask();
    Synchronize(device);
  }
}
}  // namespace waits_for_each

namespace unbounded {
void RunSteps(int steps, Device device, const std::function<void()>& ask) {
  for (int i = 0; i < steps; ++i) ask();
  Synchronize(device);
}
}  // namespace unbounded

namespace waits_after_asking {
void RunSteps(int steps, Device device, const std::function<void()>& ask) {
  std::queue<Event> in_flight;
  for (int i = 0; i < steps; ++i) {
    ask();
    in_flight.push(CurrentStream(device).Record());
    if (in_flight.size() > 2) {
      in_flight.front().Synchronize();
      in_flight.pop();
    }
  }
  Synchronize(device);
}
}  // namespace waits_after_asking

D2L_MISTAKE("two_in_flight", waits_for_each, RunSteps,
            "one step in flight: each was waited for");
D2L_MISTAKE("two_in_flight", unbounded, RunSteps,
            "Nothing bounds the run-ahead");
D2L_MISTAKE("two_in_flight", waits_after_asking, RunSteps,
            "Wait before you ask, not after");

}  // namespace
}  // namespace d2l
