// Judges missing_event: with the first stream held up, does the second one
// wait, and only the second one?

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/memory/storage.h"
#include "common/device/stream.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/ops/ops.h"
#include "common/profiler/race_checker.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using OnTwoStreams = Tensor(const Tensor& x, Stream& first, Stream& second);

void JudgeOne(const Judging& judging, OnTwoStreams* answer, Stream& first,
              Stream& second, std::int64_t n) {
  const std::vector<float> numbers = RandomNumbers(n, 6);
  std::vector<float> expected = numbers;
  for (float& number : expected) number = 3 * number + 1;
  const Tensor x = FromVector(numbers, {n}, first.device());
  Synchronize(first.device());
  const std::string input =
      Say("%d numbers, and the first stream is busy for a while", n);

  Gate gate(first);
  Requests asked(&first);
  const RaceChecker checker;
  const Tensor z = answer(x, first, second);
  const bool waited = gate.TimedOut();
  if (waited) {
    judging.Wrong(
        {input, "the call returned when the first stream was done", "at once",
         "The caller need not wait: a stream can wait for an event of "
         "another one."});
  }
  const int on_first = asked.on_stream[&first];
  const int on_second = asked.on_stream[&second];
  if (on_first == 0 || on_second == 0) {
    judging.Wrong({input,
                   Say("%d operations on the first stream, %d on the second",
                       on_first, on_second),
                   "one on each stream",
                   "Operations go to the current stream. `const StreamGuard "
                   "guard(first);` makes it the first one, to the end of its "
                   "block."});
  }
  gate.Open();
  if (asked.before_record == 0) {
    judging.Wrong(
        {input,
         "the event of the first stream was recorded before y was enqueued",
         "after y was enqueued",
         "The event was recorded too early: it stands for what had "
         "been enqueued on the stream by then."});
  }
  if (asked.before_wait > on_first) {
    judging.Wrong({input, "the second stream waits after y + 1", "before y + 1",
                   "y + 1 was enqueued before the Wait. Only operations that "
                   "are enqueued after the Wait wait for the event."});
  }
  if (n > 0 && z.defined() && z.storage()->writer() != &second) {
    judging.Wrong({input, "y + 1 on the first stream", "on the second stream",
                   "The result has to come from the second stream: where y is "
                   "made, the second one has no work of its own."});
  }
  const std::vector<Race> races = checker.races();
  if (!races.empty()) {
    // What is missing is the first hint's to say.
    judging.Wrong({input, "the second stream may be done before the first one",
                   "after it",
                   asked.stream_waits > 0
                       ? "The wrong stream waits: the second stream has to "
                         "wait for an event of the first. second.Wait(event) "
                         "makes the second stream wait."
                       : "Nothing orders the two streams. The result may be "
                         "right a thousand times, as long as the first stream "
                         "happens to be faster.",
                   Wrap(races.front().Conflict(), "RACE  ")});
  }
  Synchronize(first.device());
  judging.ExpectClose(input, ToVector<float>(z), expected, 1e-6,
                      "The result is 3 x + 1.");
}

void JudgeOnTwoStreams(Judging& judging, OnTwoStreams* answer) {
  Stream& first = NewStream(TryGpu());
  Stream& second = NewStream(TryGpu());
  for (const std::int64_t n : {5, 1001, 1, 0}) {
    JudgeOne(judging, answer, first, second, n);
  }
}

D2L_JUDGE("missing_event", JudgeOnTwoStreams);

}  // namespace
}  // namespace d2l
