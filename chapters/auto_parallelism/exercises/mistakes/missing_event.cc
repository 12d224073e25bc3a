#include "common/device/device_table.h"
#include "common/device/stream.h"
#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

Tensor Triple(const Tensor& x, Stream& stream) {
  const StreamGuard guard(stream);
  return 3 * x;
}

Tensor PlusOne(const Tensor& y, Stream& stream) {
  const StreamGuard guard(stream);
  return y + 1;
}

namespace no_event {
Tensor OnTwoStreams(const Tensor& x, Stream& first, Stream& second) {
  return PlusOne(Triple(x, first), second);
}
}  // namespace no_event

namespace recorded_too_early {
Tensor OnTwoStreams(const Tensor& x, Stream& first, Stream& second) {
  second.Wait(first.Record());
  const Tensor y = Triple(x, first);
  return PlusOne(y, second);
}
}  // namespace recorded_too_early

namespace the_caller_waits {
Tensor OnTwoStreams(const Tensor& x, Stream& first, Stream& second) {
  const Tensor y = Triple(x, first);
  first.Synchronize();
  return PlusOne(y, second);
}
}  // namespace the_caller_waits

namespace no_guard {
Tensor OnTwoStreams(const Tensor& x, Stream& first, Stream& second) {
  const Tensor y = 3 * x;
  second.Wait(first.Record());
  return y + 1;
}
}  // namespace no_guard

namespace the_other_way_round {
Tensor OnTwoStreams(const Tensor& x, Stream& first, Stream& second) {
  const Tensor y = Triple(x, first);
  first.Wait(second.Record());
  return PlusOne(y, second);
}
}  // namespace the_other_way_round

namespace waits_too_late {
Tensor OnTwoStreams(const Tensor& x, Stream& first, Stream& second) {
  const Tensor y = Triple(x, first);
  const Tensor z = PlusOne(y, second);
  second.Wait(first.Record());
  return z;
}
}  // namespace waits_too_late

namespace adds_first {
Tensor OnTwoStreams(const Tensor& x, Stream& first, Stream& second) {
  const Tensor y = PlusOne(x, first);
  second.Wait(first.Record());
  return Triple(y, second);
}
}  // namespace adds_first

namespace both_on_the_first {
Tensor OnTwoStreams(const Tensor& x, Stream& first, Stream& second) {
  PlusOne(x, second);
  return PlusOne(Triple(x, first), first);
}
}  // namespace both_on_the_first

D2L_MISTAKE("missing_event", no_event, OnTwoStreams,
            "Nothing orders the two streams.");
D2L_MISTAKE("missing_event", recorded_too_early, OnTwoStreams,
            "recorded too early");
D2L_MISTAKE("missing_event", the_caller_waits, OnTwoStreams,
            "The caller need not wait");
D2L_MISTAKE("missing_event", no_guard, OnTwoStreams,
            "Operations go to the current stream");
D2L_MISTAKE("missing_event", the_other_way_round, OnTwoStreams,
            "The wrong stream waits");
D2L_MISTAKE("missing_event", waits_too_late, OnTwoStreams,
            "enqueued before the Wait");
D2L_MISTAKE("missing_event", adds_first, OnTwoStreams, "The result is 3 x + 1");
D2L_MISTAKE("missing_event", both_on_the_first, OnTwoStreams,
            "y + 1 on the first stream");

}  // namespace
}  // namespace d2l
