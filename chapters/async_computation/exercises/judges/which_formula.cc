// Judges which_formula: against a front end and a device that are simulated
// step by step, then, as figures, against this machine.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/machine.h"
#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/stream_stall.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/exercise/simulated_streams.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using Predict = double(double t1, double t2, double t3, int n, int k);

constexpr double kNearEnough = 1.5;

double Seconds(double t1, double t2, double t3, int n, int k) {
  std::vector<SimulatedRequest> requests;
  for (int i = 0; i < n; ++i) {
    requests.push_back({/*enqueue=*/t1, /*work=*/t2});
    if ((i + 1) % k > 0 && i + 1 < n) continue;
    requests.back().awaits = {i};
    requests.back().host_work = t3;
  }
  return SimulateStreams(requests).seconds;
}

struct Loop {
  double t1, t2, t3;
  int n, k;
};

std::string LookAt(const Loop& loop) {
  if (loop.n == 0) {
    return "Nothing is enqueued, so nothing takes time: return 0.";
  }
  if (loop.k == 1) {
    return "The front end waits after each operation: t1, t2 and t3 come one "
           "after the other, every time.";
  }
  if (loop.n < loop.k) {
    return "The last block may have fewer than k operations; here it is the "
           "only block. It takes time as well, and the front end waits for it.";
  }
  if (loop.k < loop.n) {
    return "The front end waits after every k operations: count the waits.";
  }
  if (loop.t1 > loop.t2) {
    return "Enqueueing takes longer than the work: the device waits for the "
           "front end.";
  }
  return "With one wait at the end, an operation is enqueued while the device "
         "still computes the operation before.";
}

// Shows this machine's times beside the predictions.
void CompareWithMachine(Judging& judging, Predict* answer) {
  const Device device = TryGpu();
  const Tensor x = Ones({64, 64}, device);
  const auto enqueue = [&](int count) {
    for (int i = 0; i < count; ++i) MatMul(x, x);
  };
  constexpr int kHeld = 200, kCount = 1000;
  Stream& stream = CurrentStream(device);
  enqueue(kHeld);
  Synchronize(device);
  Timer timer;
  enqueue(1);
  Synchronize(device);
  timer = Timer();
  for (int i = 0; i < kHeld; ++i) {
    enqueue(1);
    Synchronize(device);
  }
  const double alone = timer.Seconds() / kHeld;
  StreamStall stall(stream);
  timer = Timer();
  enqueue(kHeld);
  const double t1 = timer.Seconds() / kHeld;
  stall.Release();
  timer = Timer();
  Synchronize(device);
  const double t2 = timer.Seconds() / kHeld;
  const double t3 = std::max(0.0, alone - t1 - t2);
  judging.Note(Say("%d products of 64 x 64 on this machine", kCount));
  double off = 1;
  for (const int k : {1, 10, kCount}) {
    timer = Timer();
    for (int i = 0; i < kCount; i += k) {
      enqueue(k);
      Synchronize(device);
    }
    const double measured = timer.Seconds();
    const double predicted = answer(t1, t2, t3, kCount, k);
    off = std::max({off, predicted / measured, measured / predicted});
    judging.Note(Say("a wait after every %4d: predicted %8s, measured %8s", k,
                     FormatDuration(predicted), FormatDuration(measured)));
  }
  if (off < kNearEnough) return;
  judging.Explain(Say(
      "Your formula is judged, not these figures. It was called with the times "
      "just measured: t1 = %s, t2 = %s, t3 = %s. Other programs share the %d "
      "cores of this machine, so times change from run to run.",
      FormatDuration(t1), FormatDuration(t2), FormatDuration(t3),
      UsableCores()));
}

void JudgePredict(Judging& judging, Predict* answer) {
  std::vector<Loop> loops = {
      {3e-6, 7e-6, 40e-6, 10000, 1},   {90e-6, 90e-6, 1e-6, 1000, 1},
      {2e-6, 9e-6, 30e-6, 5, 100},     {6e-6, 7e-6, 30e-6, 10000, 10000},
      {13e-6, 4e-6, 50e-6, 999, 999},  {2e-6, 3e-6, 20e-6, 10000, 100},
      {3e-6, 5e-6, 400e-6, 1007, 100}, {2e-6, 9e-6, 1e-6, 1, 1},
      {2e-6, 9e-6, 1e-6, 0, 10},       {2e-6, 9e-6, 30e-6, 1, 10},
      {8e-6, 9e-6, 1e-6, 4, 100}};
  for (int i = 0; i < 20; ++i) {
    loops.push_back({Drawn(1e-6, 1e-4), Drawn(1e-6, 1e-4), Drawn(1e-6, 1e-3),
                     static_cast<int>(Drawn(1, 3000)),
                     static_cast<int>(Drawn(1, 100))});
  }
  for (const Loop& loop : loops) {
    const auto& [t1, t2, t3, n, k] = loop;
    const double simulated = Seconds(t1, t2, t3, n, k);
    const double got = answer(t1, t2, t3, n, k);
    if (got <= kNearEnough * simulated && simulated <= kNearEnough * got) {
      continue;
    }
    judging.Wrong({absl::StrFormat("t1 = %s, t2 = %s, t3 = %s, n = %d, k = %d",
                                   FormatDuration(t1), FormatDuration(t2),
                                   FormatDuration(t3), n, k),
                   Say("%.4g seconds", got),
                   Say("%.4g seconds, within 1.5x", simulated), LookAt(loop)});
  }
  if (judging.timed()) CompareWithMachine(judging, answer);
}

D2L_JUDGE("which_formula", JudgePredict);

}  // namespace
}  // namespace d2l
