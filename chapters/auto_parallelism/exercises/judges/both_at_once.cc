// Judges both_at_once: did the caller wait before both devices had work, and
// were both done when it returned? Each device once has the longer work.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/console/language.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/stream.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"

namespace d2l {
namespace {

using RunOnBoth = void(Device a, Device b,
                       const std::function<void(Device)>& work);

void JudgeWith(const Judging& judging, RunOnBoth* answer, Device a, Device b,
               Device longer) {
  struct Call {
    Device device;
    int waits_before;
    std::shared_ptr<std::atomic<bool>> done;
  };
  const std::string input = Say("%s and %s; the work of %s is longer",
                                a.ToString(), b.ToString(), longer.ToString());
  std::vector<Call> calls;
  const Requests requests;
  answer(a, b, [&](Device device) {
    const auto done = std::make_shared<std::atomic<bool>>(false);
    calls.push_back({device, requests.waits, done});
    const std::chrono::milliseconds time(device == longer ? 250 : 10);
    DefaultStream(device).HostCallback([done, time] {
      std::this_thread::sleep_for(time);
      *done = true;
    });
  });
  const Call* undone = nullptr;
  for (const Call& call : calls) {
    if (!*call.done) undone = &call;
  }
  const bool both =
      calls.size() == 2 &&
      (calls[0].device == a ? calls[1].device == b
                            : calls[0].device == b && calls[1].device == a);
  if (!both) {
    judging.Wrong({input, Say("%d calls of work()", calls.size()),
                   "work(a) and work(b)", "Call work() once for each device."});
  }
  if (calls[1].waits_before > calls[0].waits_before) {
    judging.Wrong({input,
                   Say("a wait before %s had work", calls[1].device.ToString()),
                   "no wait between work(a) and work(b)",
                   "The caller waits for one device, and the other one has "
                   "nothing to do meanwhile. Which line has to move?"});
  }
  // One wait is enough if a stream waits for the other device.
  const int waits = requests.waits - calls[1].waits_before;
  if (undone == nullptr && waits + requests.stream_waits < 2) {
    judging.Wrong(
        {input, Say("%d waits behind both calls", waits), "two",
         "The work only happened to be done: a pause is too long or too short. "
         "Synchronize waits exactly until a device is done."});
  }
  if (undone == nullptr) return;
  judging.Wrong(
      {input,
       Say("returned while %s was still at work", undone->device.ToString()),
       "a return when both are done",
       requests.waits == 0
           ? "work() returns at once: wait for the devices after both calls."
           : "Synchronize(device) waits for that device only: each of the two "
             "devices needs such a call."});
}

void JudgeRunOnBoth(Judging& judging, RunOnBoth* answer) {
  const Device a = Devices()[0].device, b = Devices()[1].device;
  JudgeWith(judging, answer, a, b, a);
  JudgeWith(judging, answer, b, Devices()[2].device, Devices()[2].device);
}

D2L_JUDGE("both_at_once", JudgeRunOnBoth);

}  // namespace
}  // namespace d2l
