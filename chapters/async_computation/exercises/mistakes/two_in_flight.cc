#include <chrono>
#include <functional>
#include <queue>
#include <thread>

#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/event.h"
#include "common/device/stream.h"
#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace waits_for_each {
void RunSteps(int steps, Device device, const std::function<void()>& enqueue) {
  for (int i = 0; i < steps; ++i) {
    enqueue();
    Synchronize(device);
  }
}
}  // namespace waits_for_each

namespace unbounded {
void RunSteps(int steps, Device device, const std::function<void()>& enqueue) {
  for (int i = 0; i < steps; ++i) enqueue();
  Synchronize(device);
}
}  // namespace unbounded

namespace waits_after_enqueueing {
void RunSteps(int steps, Device device, const std::function<void()>& enqueue) {
  std::queue<Event> in_flight;
  for (int i = 0; i < steps; ++i) {
    enqueue();
    in_flight.push(CurrentStream(device).Record());
    if (in_flight.size() > 2) {
      in_flight.front().Synchronize();
      in_flight.pop();
    }
  }
  Synchronize(device);
}
}  // namespace waits_after_enqueueing

namespace two_at_a_time {
void RunSteps(int steps, Device device, const std::function<void()>& enqueue) {
  for (int i = 0; i < steps; ++i) {
    enqueue();
    if (i % 2 == 1) Synchronize(device);
  }
  Synchronize(device);
}
}  // namespace two_at_a_time

namespace leaves_the_last {
void RunSteps(int steps, Device device, const std::function<void()>& enqueue) {
  Event last;
  for (int i = 0; i < steps; ++i) {
    enqueue();
    last.Synchronize();
    last = CurrentStream(device).Record();
  }
}
}  // namespace leaves_the_last

namespace sleeps {
void RunSteps(int steps, Device device, const std::function<void()>& enqueue) {
  for (int i = 0; i < steps; ++i) {
    enqueue();
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
  }
  Synchronize(device);
}
}  // namespace sleeps

namespace one_too_few {
void RunSteps(int steps, Device device, const std::function<void()>& enqueue) {
  Event last;
  for (int i = 1; i < steps; ++i) {
    const Event before = last;
    enqueue();
    last = CurrentStream(device).Record();
    before.Synchronize();
  }
  Synchronize(device);
}
}  // namespace one_too_few

namespace sleeps_at_the_end {
void RunSteps(int steps, Device device, const std::function<void()>& enqueue) {
  Event last;
  for (int i = 0; i < steps; ++i) {
    const Event before = last;
    if (i > 0) last = CurrentStream(device).Record();
    before.Synchronize();
    enqueue();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
}
}  // namespace sleeps_at_the_end

D2L_MISTAKE("two_in_flight", waits_for_each, RunSteps,
            "one step in flight: the program waited for each");
D2L_MISTAKE("two_in_flight", unbounded, RunSteps,
            "Nothing bounds how many steps are queued");
D2L_MISTAKE("two_in_flight", waits_after_enqueueing, RunSteps,
            "Wait before you enqueue, not after");
D2L_MISTAKE("two_in_flight", two_at_a_time, RunSteps, "then a wait for both");
D2L_MISTAKE("two_in_flight", leaves_the_last, RunSteps,
            "still in flight at the end");
D2L_MISTAKE("two_in_flight", sleeps, RunSteps, "A sleep cannot know");
D2L_MISTAKE("two_in_flight", one_too_few, RunSteps,
            "Call it once for each step");
D2L_MISTAKE("two_in_flight", sleeps_at_the_end, RunSteps,
            "A pause at the end is");

}  // namespace
}  // namespace d2l
