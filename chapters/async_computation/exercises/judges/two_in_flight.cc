// Judges two_in_flight: how many steps were in flight, and did the front end
// run ahead at all?

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/str_format.h"
#include "common/base/console/language.h"
#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/stream.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"

namespace d2l {
namespace {

using RunSteps = void(int steps, Device device,
                      const std::function<void()>& enqueue);

void JudgeOne(const Judging& judging, RunSteps* answer, int steps,
              Device device) {
  Stream& stream = NewStream(device);  // not the default one
  const StreamGuard guard(stream);
  const std::string input = Say("%d steps of 5 ms each", steps);
  const auto done = std::make_shared<std::atomic<int>>(0);
  constexpr int kSlowStep = 10;
  int calls = 0, most = 0, most_before_slow = 0;
  int waited_for = -1;  // the first step awaited before the next was enqueued
  int waits = 0;        // before the last step
  const Requests requests;
  std::optional<Gate> gate;  // holds each step but the last until the next
  const auto look_at_gate = [&] {
    if (!gate) return;
    if (gate->TimedOut() && waited_for < 0) waited_for = calls - 1;
    gate.reset();
  };
  answer(steps, device, [&] {
    look_at_gate();
    waits = requests.waits;
    if (waited_for < 0 && calls < steps - 1) gate.emplace(stream);
    const bool slow = calls++ == kSlowStep;
    most = std::max(most, calls - *done);
    if (calls <= kSlowStep) most_before_slow = most;
    stream.HostCallback([done, slow] {
      std::this_thread::sleep_for(std::chrono::milliseconds(slow ? 200 : 5));
      ++*done;
    });
  });
  const int finished = *done;
  look_at_gate();
  if (calls != steps) {
    judging.Wrong({input, Say("%d calls of enqueue()", calls),
                   absl::StrFormat("%d", steps),
                   "Call it once for each step."});
  }
  if (waited_for == 0) {
    judging.Wrong(
        {input, "one step in flight: the program waited for each",
         "two in flight",
         "While the front end waits for a step and enqueues the next, the "
         "device is idle. Wait for the step before that."});
  }
  if (most > 2 && most_before_slow <= 2) {
    judging.Wrong({input, Say("%d steps in flight", most), "2 at most",
                   "One step took 200 ms, longer than the others. A sleep "
                   "cannot know when a step is done; wait for its event."});
  }
  if (most > 2) {
    judging.Wrong(
        {input, Say("%d steps in flight", most), "2 at most",
         most > 3
             ? "Nothing bounds how many steps are queued, nor the memory that "
               "they use. Record an event after each step, and wait for an "
               "older event."
             : "Wait before you enqueue, not after: with two in flight, the "
               "older one has to be done first."});
  }
  if (waited_for > 0) {
    judging.Wrong({input, "two steps in flight, then a wait for both",
                   "one of them still in flight when the next is enqueued",
                   "After a wait for both, the device is idle until the next "
                   "step is enqueued, which happens at every second step. Wait "
                   "for the older step only."});
  }
  if (finished != steps) {
    judging.Wrong({input, Say("%d steps were done at the return", finished),
                   absl::StrFormat("%d", steps),
                   "Wait for the steps that are still in flight at the end."});
  }
  if (steps > 0 && requests.waits == waits) {
    judging.Wrong(
        {input, "no wait after the last step", "a wait",
         "The last steps only happened to be done. A pause at the end is too "
         "long or too short; a wait is exactly long enough."});
  }
}

void Spin(std::chrono::microseconds time) {
  const Timer timer;
  while (timer.Seconds() < std::chrono::duration<double>(time).count()) {
  }
}

void JudgeRunSteps(Judging& judging, RunSteps* answer) {
  for (const int steps : {20, 3, 2, 1, 0}) {
    JudgeOne(judging, answer, steps, Devices().back().device);
  }
  JudgeOne(judging, answer, 3, Devices()[0].device);

  constexpr int kSteps = 20;
  constexpr std::chrono::microseconds kTime(300);
  const Device device = Devices().back().device;
  const auto enqueue = [&] {
    Spin(kTime);  // the front end prepares a minibatch
    CurrentStream(device).HostCallback([kTime] { Spin(kTime); });
  };
  judging.Race(
      {"yours", {device}, [&] { answer(kSteps, device, enqueue); }},
      {{"one wait, at the end",
        {device},
        [&] {
          for (int i = 0; i < kSteps; ++i) enqueue();
        }},
       1.4,
       "Each step takes 300 us on the front end and 300 us on the device. Your "
       "program waits longer than until the step before the last is done.",
       (kSteps + 1) * 300e-6,
       "bound: front end and device both at work"});
}

D2L_JUDGE("two_in_flight", JudgeRunSteps);

}  // namespace
}  // namespace d2l
