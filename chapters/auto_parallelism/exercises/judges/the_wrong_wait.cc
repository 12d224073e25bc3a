// Judges the_wrong_wait: which work is in the time, and which is waited for?

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"

namespace d2l {
namespace {

using SecondsOn = double(Device device, const std::function<void()>& work);

// Keeps the device busy for this time.
void EnqueueSleep(Device device, std::chrono::milliseconds time) {
  DefaultStream(device).HostCallback(
      [time] { std::this_thread::sleep_for(time); });
}

// Returns the measured time. before: the measured time of other work.
double JudgeOn(Judging& judging, SecondsOn* answer, Device device, Device other,
               std::chrono::milliseconds work, double before) {
  const double least = std::chrono::duration<double>(work).count();
  const std::string input =
      Say("%s works for %d ms; %s is busy all the time", device.ToString(),
          work.count(), other.ToString());
  Gate gate(DefaultStream(other));
  int calls = 0, waits_before_work = 0;
  bool recorded_before_work = false;
  const auto done = std::make_shared<std::atomic<bool>>(false);
  // When the earlier work was done, in seconds from the call.
  const auto earlier = std::make_shared<std::atomic<double>>(0);
  EnqueueSleep(device, std::chrono::milliseconds(200));
  const Timer timer;
  DefaultStream(device).HostCallback(
      [timer, earlier] { *earlier = timer.Seconds(); });
  const Requests requests;
  const double got = answer(device, [&] {
    ++calls;
    waits_before_work = requests.waits;
    recorded_before_work = requests.before_record >= 0;
    EnqueueSleep(device, work);
    DefaultStream(device).HostCallback([done] { *done = true; });
  });
  const bool was_done = *done;
  const double all = timer.Seconds();
  if (calls != 1) {
    judging.Wrong({input, Say("%d calls of work()", calls), "one call",
                   "Call work() once: each call enqueues all of its work."});
  }
  if (gate.TimedOut()) {
    judging.Wrong(
        {input, Say("it waited for %s", other.ToString()),
         Say("a wait for %s", device.ToString()),
         "Name the device that you time: Synchronize of another device, or "
         "always of the same device, waits for the wrong work."});
  }
  if (!was_done) {
    judging.Wrong({input, Say("%.3g seconds, and the work was not done", got),
                   Say("%g seconds", least),
                   "work() only enqueues. Wait for the device before you read "
                   "the clock."});
  }
  if (requests.waits == waits_before_work) {
    judging.Wrong(
        {input, "no wait for the device after work()", "a wait",
         "The work only happened to be done: a pause is too long or too short. "
         "Synchronize waits exactly until the device is done."});
  }
  if (got == before) {
    judging.Wrong({input, Say("%.3g seconds, the same as for other work", got),
                   Say("%g seconds", least),
                   "Not all work takes the same time: return what the clock "
                   "has measured."});
  }
  const double after_earlier = all - *earlier;
  if (!(got >= least && got <= all)) {
    judging.Wrong({input, Say("%.3g seconds", got),
                   Say("%g to %.3f seconds", least, after_earlier),
                   "Start the clock right before work(), and read it after the "
                   "wait, in seconds."});
  }
  // A nanosecond is 1e-9; sums of doubles need a little more.
  if (got > after_earlier + 1e-8) {
    judging.Wrong({Say("%s; 200 ms of earlier work are queued", input),
                   Say("%.3g seconds, which includes the earlier work", got),
                   Say("%g to %.3f seconds", least, after_earlier),
                   "Start the clock when the device is idle."});
  }
  // A time between two events of the device needs no wait before the work.
  if (waits_before_work == 0 && !recorded_before_work) {
    judging.Wrong({input, "no wait for the device before work()", "a wait",
                   "The earlier work happened to be done: how long it takes, "
                   "nobody knows. Wait for it before you start the clock."});
  }
  judging.Note(Say("%d ms of work on %s: you measured %s", work.count(),
                   device.ToString(), FormatDuration(got)));
  return got;
}

void JudgeSecondsOn(Judging& judging, SecondsOn* answer) {
  const Device a = Devices()[0].device, b = Devices()[1].device;
  using std::chrono::milliseconds;
  const auto drawn = [](double low, double high) {
    return milliseconds(static_cast<int>(Drawn(low, high)));
  };
  const double first = JudgeOn(judging, answer, b, a, drawn(90, 130), -1);
  JudgeOn(judging, answer, a, b, drawn(20, 50), first);
}

D2L_JUDGE("the_wrong_wait", JudgeSecondsOn);

}  // namespace
}  // namespace d2l
