// Judges stop_the_clock: was the work waited for when the function returned,
// and was the clock read after the wait? Sleeps take their time at least,
// however busy the machine is; how long is drawn, so that no constant is right.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

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

using SecondsOf = double(Device device, const std::function<void()>& work);

struct Measured {
  std::string input;
  double seconds;  // of work
  double got, passed;
};

void JudgeSecondsOf(Judging& judging, SecondsOf* answer) {
  struct Run {
    int tasks;
    double seconds;
  };
  std::vector<Measured> measured;
  for (const auto& [tasks, seconds] :
       {Run{1, Drawn(0.11, 0.14)}, Run{2, Drawn(0.02, 0.04)}}) {
    const std::string input =
        Say("%d streams with %.0f ms of work each", tasks, 1000 * seconds);
    // First not the device that TryGpu gives, then another one.
    const Device device =
        tasks == 1 ? Devices().back().device : Devices()[0].device;
    Stream& second = NewStream(device);
    const auto done = std::make_shared<std::atomic<int>>(0);
    const auto enqueue = [&](Stream& stream) {
      stream.HostCallback([done, seconds = seconds] {
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        ++*done;
      });
    };
    Requests asked;
    int calls = 0, waits_before = 0;
    const Timer timer;
    const double got = answer(device, [&] {
      if (++calls > 1) return;
      waits_before = asked.waits;
      enqueue(CurrentStream(device));
      if (tasks == 2) enqueue(second);
    });
    const double passed = timer.Seconds();
    const int finished = *done;
    if (calls != 1) {
      judging.Wrong({input, Say("%d calls of work()", calls), "one call",
                     "Call work() once: it enqueues the work."});
    }
    if (finished < tasks) {
      const std::string look =
          asked.waits > waits_before
              ? "The wait was for another device, or for one stream. "
                "Synchronize(device) waits for all streams of this one."
          : asked.waits > 0
              ? "That wait comes before the work is enqueued, when there is "
                "nothing to wait for. Wait behind work()."
              : "work() returns when its work is enqueued. Synchronize(device) "
                "waits until the device has done it.";
      judging.Wrong({input, Say("returned when %d were done", finished),
                     absl::StrFormat("%d", tasks), look});
    }
    if (asked.waits == waits_before) {
      judging.Wrong(
          {input, "no wait for the device after work()", "a wait",
           "The work only happened to be done: a pause is too long or too "
           "short. Synchronize waits exactly until the device is done."});
    }
    measured.push_back({input, seconds, got, passed});
  }
  if (measured[0].got == measured[1].got) {
    judging.Wrong(
        {measured[1].input,
         Say("%.3g seconds, the same as for other work", measured[1].got),
         Say("%.4g seconds or more", measured[1].seconds),
         "Not all work takes the same time: return what the clock has "
         "measured."});
  }
  for (const auto& [input, seconds, got, passed] : measured) {
    if (got < seconds) {
      judging.Wrong({input, Say("%.4g seconds", got),
                     Say("%.4g seconds or more", seconds),
                     "The clock was read, and then the work was waited for. "
                     "Wait first."});
    }
    if (got > passed) {
      judging.Wrong(
          {input, Say("%.4g seconds", got),
           Say("%.4g seconds at most: no more time has passed", passed),
           "Return what the timer shows, in seconds."});
    }
  }
}

D2L_JUDGE("stop_the_clock", JudgeSecondsOf);

}  // namespace
}  // namespace d2l
