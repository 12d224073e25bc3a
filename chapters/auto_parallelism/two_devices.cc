#include "chapters/auto_parallelism/two_devices.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/statistics.h"
#include "common/d2l.h"
#include "common/lesson/cell/host_library.h"

namespace d2l {
namespace {

std::string Blocking() {
  return Say("With launch blocking every call waits for its own operation.");
}

double PercentOf(double part, const Timing& whole) {
  return 100 * part / whole.completion.value.median;
}

// Says whether the calls take most of the time. gains: of what runs at the same
// time.
std::string CallsFact(double calls, const Timing& timing,
                      const Judgement& gains) {
  if (LaunchBlocking()) return Blocking();
  const double percent = PercentOf(calls, timing);
  if (percent > 50) {
    return Say(
        "The calls take %.0f %% of the time: one front end makes them, one by "
        "one.",
        percent);
  }
  if (gains.verdict != Verdict::kFails) {
    return Say("The calls take %.0f %% of the time.", percent);
  }
  return Say(
      "The calls take %.0f %% of the time, so the front end is not the "
      "bottleneck: operations that run at the same time take longer than "
      "alone.",
      percent);
}

// How long the calls waited for room in the queue, by repeat.
Figure HeldUp(Cell& cell, const std::vector<double>& calls, double requests) {
  std::vector<double> held_up;
  for (const double seconds : calls) {
    held_up.push_back(std::max(seconds - requests, 1e-9));
  }
  return cell.Report(Sampled("the notebook's order, waited for room",
                             MeasuredOn(First()), "s", std::move(held_up)));
}

// How many percent of the gain from enqueueing in turn the notebook's order
// lost while it waited for room. 0 if there is no gain.
Figure LostShare(Cell& cell, const Timing& one_by_one, const Timing& notebook,
                 const Timing& in_turn, const Figure& held_up) {
  const std::minus<double> minus;
  const Figure lost =
      PerRepeat("", "s", notebook.completion, in_turn.completion, minus);
  const Figure due = PerRepeat("", "s", lost, held_up, [](double x, double y) {
    return std::min(x, y);
  });
  const Figure possible =
      PerRepeat("", "s", one_by_one.completion, in_turn.completion, minus);
  Figure share =
      PerRepeat("part of the possible gain that the notebook's order lost", "%",
                due, possible, [](double x, double y) {
                  if (y <= 0) return 0.0;
                  return std::clamp(std::round(100 * x / y), 0.0, 100.0);
                });
  share.measured_on = in_turn.completion.measured_on;
  return cell.Report(share);
}

}  // namespace

Device First() { return Devices()[0].device; }
Device Second() { return Devices()[Devices().size() > 1 ? 1 : 0].device; }

std::vector<Device> Both() { return Distinct({First(), Second()}); }

std::vector<Device> Distinct(std::vector<Device> devices) {
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

void CheckSquare(Cell& cell, const std::string& what, const Tensor& x,
                 const Tensor& got) {
  const std::vector<float> values = ToVector<float>(x);
  cell.CheckClose(what, ToVector<float>(got),
                  HostMatMul(values, values, static_cast<int>(x.size(0))),
                  1e-4);
}

Figure Speedup(Cell& cell, const Timing& a, const Timing& b) {
  Figure speedup =
      RatioPerRepeat(Worded("%s / %s", b.completion.label, a.completion.label),
                     b.completion, a.completion);
  speedup.measured_on = a.completion.measured_on;
  return cell.Report(speedup);
}

void ClaimHeldUp(Cell& cell, const Timings& t, const Judgement& gain,
                 const std::vector<double>& calls, double requests) {
  std::vector<double> repeats;
  for (const std::size_t i : t[1].repeats) repeats.push_back(calls[i + 1]);
  const Figure held_up = HeldUp(cell, repeats, requests);
  const Figure lost = LostShare(cell, t[0], t[1], t[2], held_up);
  const std::string fact =
      LaunchBlocking()
          ? Blocking()
          : Say("The front end's calls for %s took %s; for %s of that time it "
                "waited for room in the queue.",
                First().ToString(), FormatDuration(Summarize(repeats).median),
                FormatDuration(held_up.value.median));
  cell.Claim(Worded("The notebook's order loses a part of the possible "
                    "speed-up, because it waits for room in %s's queue: {}.",
                    First().ToString()),
             Given(gain, Above(lost, 10), "enqueued in turn"),
             OneDeviceOr(fact));
}

void PrintPrediction(const Timings& t, int products, std::int64_t queued) {
  if (First() == Second()) return;
  const double all = 2.0 * products;
  const double gain =
      t[0].completion.value.median / t[1].completion.value.median;
  std::cout << Wrap(Say("%d products are still queued at the last call for %s: "
                        "the notebook's order can be %s as fast as one device "
                        "after the other; it is %s.",
                        queued, First().ToString(),
                        FormatFactor(all / (all - static_cast<double>(queued))),
                        FormatFactor(gain)),
                    "  ");
}

std::string OneDeviceOr(const std::string& fact) {
  if (First() != Second()) return fact;
  return Say(
      "There is only one device, %s: it does one operation after the other.",
      First().ToString());
}

std::string WhyNoGain(double calls, const Timing& both, const Judgement& gain) {
  return OneDeviceOr(CallsFact(calls, both, gain));
}

std::string WhyNoStreamGains(const Timing& four, const Judgement& gain) {
  return CallsFact(four.enqueue.value.median, four, gain);
}

std::string WhyNotFull(const Timing& one, const Timing& four, int products) {
  return Say("A product takes %s on one stream, and %s on four.",
             FormatDuration(one.completion.value.median / products),
             FormatDuration(four.completion.value.median / products));
}

std::string WhyNoCopyBeside(const Timing& products, const Timing& copies) {
  if (LaunchBlocking()) return Blocking();
  return Say("The copies take %.0f %% as long as the products.",
             PercentOf(copies.completion.value.median, products));
}

std::string CallsTake(const Timing& pageable, const Timing& pinned) {
  return Say(
      "The calls take %.0f %% of the time with pageable memory, %.0f %% with "
      "pinned memory.",
      PercentOf(pageable.enqueue.value.median, pageable),
      PercentOf(pinned.enqueue.value.median, pinned));
}

std::string AtWork(const Timeline& timeline) {
  double busy = 0;
  for (const TimelineRow& row : timeline.rows()) {
    if (row.is_stream) busy += row.busy_seconds;
  }
  return Say("On average %.2f streams worked at the same time.",
             busy / (1e-9 * static_cast<double>(timeline.nanos())));
}

}  // namespace d2l
