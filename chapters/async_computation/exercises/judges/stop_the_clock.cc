// Judges stop_the_clock: was the work done when the function returned, and was
// the clock read after the wait? Sleeps take 100 ms at least, however busy the
// machine is.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
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

using SecondsOf = double(Device device, const std::function<void()>& work);

void JudgeSecondsOf(Judging& judging, SecondsOf* answer) {
  // Not the device that TryGpu gives.
  const Device device = Devices().back().device;
  static Stream& second = NewStream(device);
  for (Stream* other : {&CurrentStream(device), &second}) {
    const int tasks = other == &second ? 2 : 1;
    const std::string input = Say("%d streams with 100 ms of work each", tasks);
    const auto done = std::make_shared<std::atomic<int>>(0);
    const auto enqueue = [&](Stream& stream) {
      stream.HostCallback([done] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
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
      if (other == &second) enqueue(second);
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
      judging.Wrong({input, Say("a return when %d were done", finished),
                     absl::StrFormat("%d", tasks), look});
    }
    if (got < 0.1) {
      judging.Wrong({input, Say("%.4g seconds", got), "0.1 seconds or more",
                     "The clock was read, and then the work was waited for. "
                     "Wait first."});
    }
    if (got > passed) {
      judging.Wrong({input, Say("%.4g seconds", got),
                     Say("%.4g seconds at most: no more have passed", passed),
                     "Return what the timer shows, in seconds."});
    }
  }
}

D2L_JUDGE("stop_the_clock", JudgeSecondsOf);

}  // namespace
}  // namespace d2l
