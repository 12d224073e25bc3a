// How a cell times: repeats and which of them count, the pace of virtual
// devices and the links between them.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/machine.h"
#include "common/base/statistics.h"
#include "common/base/timer.h"
#include "common/base/undisturbed_timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/memory/memory.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/cell/judge.h"
#include "common/lesson/cell/other_load.h"
#include "common/profiler/profiler.h"

namespace d2l {
namespace {

// Nine is the fewest whose interval leaves out an outlier (statistics.h).
constexpr int kMinRepeats = 9;
constexpr int kMaxRepeats = 99;
// The smallest number with an interval. Memory has next to no noise, and
// undisturbed repeats have little.
constexpr int kFewestRepeats = 6;
// Beside other programs a few of the repeats that seem undisturbed are not: the
// interval of 21 leaves out five on either side, that of 9 only one.
constexpr int kEnoughUndisturbed = 21;
// For how long more repeats are taken, in CellTiming::min_seconds: beside other
// programs, as long as they disturb all repeats, and where nothing runs beside.
constexpr double kMostTimes = 5;
constexpr double kHopelessTimes = 2;
constexpr double kQuietTimes = 3;
// A thread that has slept gets a core at once, and keeps it for a time slice:
// beside other programs this rest makes most short repeats undisturbed.
constexpr std::chrono::milliseconds kRest(3);
// After the rest the caches hold other programs' data: if computing takes no
// longer than this for one of the alternatives, each runs once before each
// repeat that is timed.
constexpr double kShortRepeat = 1e-3;
// The shortest time that shows the load of other programs.
constexpr double kShortestWatch = 0.15;
// A device at a pace may end so much later than on its own clock.
constexpr double kLatePart = 0.03;
constexpr double kLateSeconds = 150e-6;
// For how long a rough figure is looked for.
constexpr double kRoughly = 0.05;
// The resolution of the clock.
constexpr double kTick = 1e-9;

// The repeats that count.
struct Kept {
  std::vector<std::size_t> repeats;
  bool disturbed;  // too few are undisturbed: see Figure
};

std::vector<std::size_t> Undisturbed(const std::vector<Elapsed>& repeats) {
  std::vector<std::size_t> undisturbed;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i].undisturbed) undisturbed.push_back(i);
  }
  return undisturbed;
}

// Whether more repeats may help. Of all alternatives: the seconds `spent` on
// such so far, and those `enough` on a quiet machine.
bool NeedsMore(const std::vector<Elapsed>& repeats, bool beside_others,
               double spent, double enough) {
  const std::size_t undisturbed = Undisturbed(repeats).size();
  const double times = !beside_others     ? kQuietTimes
                       : undisturbed == 0 ? kHopelessTimes
                                          : kMostTimes;
  return undisturbed < kEnoughUndisturbed && spent < enough * times;
}

// Of each, the repeats that other programs did not disturb, and as many of
// each; all of them if there is nothing to `choose` by.
std::vector<Kept> KeepUndisturbed(
    const std::vector<const std::vector<Elapsed>*>& timed, bool choose,
    bool beside_others) {
  std::vector<Kept> all;
  std::size_t fewest = timed[0]->size();
  for (const std::vector<Elapsed>* repeats : timed) {
    Kept kept{Undisturbed(*repeats), false};
    if (!choose || kept.repeats.size() < kFewestRepeats) {
      kept.disturbed = beside_others && kept.repeats.size() < repeats->size();
      kept.repeats.resize(repeats->size());
      std::iota(kept.repeats.begin(), kept.repeats.end(), 0);
    }
    fewest = std::min(fewest, kept.repeats.size());
    all.push_back(std::move(kept));
  }
  for (Kept& kept : all) kept.repeats.resize(fewest);
  return all;
}

// The times of the repeats that count.
Figure TimeOf(const Phrase& label, const std::string& column,
              const Phrase& measured_on, const std::vector<Elapsed>& repeats,
              const Kept& kept) {
  std::vector<double> samples;
  for (const std::size_t i : kept.repeats) {
    samples.push_back(repeats[i].seconds);
  }
  Figure figure = Sampled(label, measured_on, "s", std::move(samples));
  figure.column = column;
  figure.disturbed = kept.disturbed;
  return figure;
}

void WaitFor(const Alternative& alternative) {
  if (alternative.wait != nullptr) {
    alternative.wait();
  } else {
    for (const Device device : alternative.devices) Synchronize(device);
  }
}

// "4", "2.5".
std::string PaceText(double pace) { return absl::StrFormat("%g", pace); }

}  // namespace

int CoresNeeded() {
  int needed = 1;
  for (const DeviceInfo& info : Devices()) {
    if (info.kind == DeviceKind::kVirtual) needed += info.cores;
  }
  return needed;
}

std::string WhyNoOverlap(Device device) {
  const DeviceInfo& info = GetDeviceInfo(device);
  if (info.kind != DeviceKind::kVirtual || info.cores > 1) return "";
  std::string why =
      Say("%s has 1 core, on which streams take turns.", device.ToString());
  if (UsableCores() > 1) {
    why += Say(" With --devices=%s it has all %d.", device.ToString(),
               UsableCores());
  }
  return why;
}

double PaceForThisMachine() {
  const int for_devices = CoresNeeded() - 1;
  return 2 + std::ceil(2.0 * for_devices / UsableCores());
}

Phrase MeasuredOn(Device device) {
  return MeasuredOn(std::vector<Device>{device});
}

Phrase MeasuredOn(const std::vector<Device>& devices) {
  if (devices.empty()) return "host";
  std::vector<Phrase> names;
  std::vector<Phrase> kinds;
  for (const Device device : devices) {
    const Phrase kind = DeviceKindName(GetDeviceInfo(device).kind);
    const std::string name = device.ToString();
    names.push_back({name, name});
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
      kinds.push_back(kind);
    }
  }
  const auto both = [](const Phrase& a, const Phrase& b) {
    return Worded("%s and %s", a, b);
  };
  const auto all = [&](const std::vector<Phrase>& them) {
    return std::accumulate(them.begin() + 1, them.end(), them[0], both);
  };
  const Phrase on = Worded("%s, %s", all(names), all(kinds));
  const double pace = VirtualPace();
  return pace == 0 ? on : Worded("%s, at a pace of %s", on, PaceText(pace));
}

Timing Cell::Time(const Phrase& label, Device device,
                  const std::function<void()>& work,
                  const std::function<void()>& wait) {
  return TimeInterleaved({{label, {device}, work, wait}})[0];
}

Timings Cell::TimeInterleaved(const std::vector<Alternative>& alternatives) {
  Timings timings = Measure(alternatives);
  // A single alternative is no group: it is drawn beside others of its kind.
  if (alternatives.size() > 1) ++last_group_;
  for (Timing& timing : timings) {
    for (Figure* figure : {&timing.enqueue, &timing.completion}) {
      if (alternatives.size() > 1) figure->group = last_group_;
      *figure = Report(*figure);
    }
  }
  return timings;
}

Timings Cell::Measure(const std::vector<Alternative>& alternatives) const {
  const auto idle = [&] {
    for (const Alternative& alternative : alternatives) {
      for (const Device device : alternative.devices) Synchronize(device);
    }
  };
  // The first run includes initialisation: memory, threads, libraries.
  for (const Alternative& alternative : alternatives) {
    const RecordFunction range(alternative.label.english + ", warm-up");
    alternative.work();
    WaitFor(alternative);
  }
  struct Samples {
    std::vector<Elapsed> enqueue;
    std::vector<Elapsed> completion;
    std::vector<Elapsed> waiting;
  };
  std::vector<Samples> all(alternatives.size());
  const bool beside_others = BesideOthers();
  // On a quiet machine a thread waits for others of this program, and that is a
  // part of what is measured. A device at a pace must not be late there either.
  const bool choose = beside_others || timing_.has_value();
  bool any_short = false;
  const auto measure = [&](std::size_t i) {
    Samples& samples = all[i];
    idle();
    if (beside_others) {
      std::this_thread::sleep_for(kRest);
      if (any_short) {
        alternatives[i].work();
        WaitFor(alternatives[i]);
      }
    }
    // The range distinguishes the alternatives in a profile.
    const RecordFunction range(absl::StrCat(alternatives[i].label.english, " #",
                                            samples.enqueue.size() + 1));
    double enqueue = 0;
    const Elapsed done = TimeOnce(alternatives[i], beside_others, &enqueue);
    const auto add = [&](double seconds, std::vector<Elapsed>* to) {
      to->push_back({std::max(seconds, kTick), done.undisturbed});
    };
    add(enqueue, &samples.enqueue);
    add(done.seconds, &samples.completion);
    add(done.seconds - enqueue, &samples.waiting);
  };
  const Timer timer;
  const double enough =
      asked_timing_.min_seconds * static_cast<double>(alternatives.size());
  for (int i = 0; i < kMaxRepeats; ++i) {
    if (i >= kMinRepeats && timer.Seconds() >= enough) break;
    for (std::size_t a = 0; a < alternatives.size(); ++a) measure(a);
    if (i == 0) {
      // At a pace only a part of the time is spent computing.
      const double brief = kShortRepeat * std::max(1.0, VirtualPace());
      any_short = std::any_of(all.begin(), all.end(), [&](const Samples& s) {
        return s.completion[0].seconds < brief;
      });
    }
  }
  // All alternatives run equally often: what they compute may be compared.
  const Timer more;
  const auto needs_more = [&](const Samples& samples) {
    return NeedsMore(samples.completion, beside_others, more.Seconds(), enough);
  };
  while (choose && std::any_of(all.begin(), all.end(), needs_more)) {
    for (std::size_t a = 0; a < alternatives.size(); ++a) measure(a);
  }
  idle();
  std::vector<const std::vector<Elapsed>*> completions;
  for (const Samples& samples : all) completions.push_back(&samples.completion);
  const std::vector<Kept> kept =
      KeepUndisturbed(completions, choose, beside_others);
  Timings timings;
  for (std::size_t i = 0; i < alternatives.size(); ++i) {
    const Phrase on = MeasuredOn(alternatives[i].devices);
    const auto figure = [&](const char* column,
                            const std::vector<Elapsed>& repeats) {
      return TimeOf(alternatives[i].label, column, on, repeats, kept[i]);
    };
    timings.push_back({figure("enqueue", all[i].enqueue),
                       figure("completion", all[i].completion),
                       figure("wait", all[i].waiting), kept[i].repeats});
  }
  return timings;
}

Elapsed Cell::TimeOnce(const Alternative& alternative, bool beside_others,
                       double* enqueue) const {
  const UndisturbedTimer timer = timing_.has_value()
                                     ? UndisturbedTimer::OfThisThread()
                                     : UndisturbedTimer();
  alternative.work();
  *enqueue = timer.Seconds();
  WaitFor(alternative);
  Elapsed done = timer.Read();
  if (timing_.has_value()) {
    done.undisturbed =
        (done.undisturbed || !beside_others) &&
        timing_->LateSeconds() < kLatePart * done.seconds + kLateSeconds;
  }
  return done;
}

void Cell::PaceDevices(const std::optional<Topology>& links) {
  std::vector<std::string> names;
  for (const DeviceInfo& info : Devices()) {
    if (info.kind != DeviceKind::kVirtual) return;
    names.push_back(info.device.ToString());
  }
  VirtualTiming timing;
  timing.pace = asked_timing_.pace.value_or(PaceForThisMachine());
  timing.links = links.has_value() ? links : asked_timing_.links;
  const bool told = timing_.has_value();
  timing_.reset();
  if (timing.pace == 0 && !timing.links.has_value()) return;
  timing_.emplace(timing);
  if (told || timing.pace == 0) return;
  std::cout << Wrap(Say("Pace %s: operations last %s times as long; %d cores "
                        "stand for %d GPUs.",
                        PaceText(timing.pace), PaceText(timing.pace),
                        UsableCores(), names.size()),
                    "  ");
}

double Cell::RoughSeconds(Device device, const std::function<void()>& work) {
  double shortest = std::numeric_limits<double>::infinity();
  const Timer all;
  for (int run = 0; run < 2 || all.Seconds() < kRoughly; ++run) {
    Synchronize(device);
    Rest();
    const Timer timer;
    work();
    Synchronize(device);
    shortest = std::min(shortest, timer.Seconds());
  }
  return shortest;
}

void Cell::LinkDevices(std::int64_t bytes, double seconds) {
  if (bytes == 0 || Devices()[0].kind != DeviceKind::kVirtual) return;
  const double bytes_per_second = static_cast<double>(bytes) / seconds;
  std::cout << "  " << Say("A link of %s/s:", FormatBytes(bytes_per_second))
            << "\n";
  PaceDevices(Topology::PcieSwitch(RanksOfDevices(), bytes_per_second));
}

Figure Cell::TimeHost(const Phrase& label, const std::function<void()>& work) {
  return Report(Measure({{label, {}, work}})[0].completion);
}

Figure Cell::PeakMemory(const Phrase& label, Device device,
                        DeviceMemory& memory,
                        const std::function<void()>& work) {
  std::vector<double> peaks;
  for (int run = 0; run < kFewestRepeats; ++run) {
    Synchronize(device);
    memory.EmptyCache();
    memory.ResetPeak();
    const std::int64_t before = memory.Stats().allocated;
    work();
    peaks.push_back(static_cast<double>(memory.Stats().peak - before));
  }
  return Report(Sampled(label, MeasuredOn(device), "B", std::move(peaks)));
}

void Cell::Rest() const {
  if (BesideOthers()) std::this_thread::sleep_for(kRest);
}

bool Cell::BesideOthers() const {
  // Makes the watch long enough: the kernel counts hundredths of a second.
  std::this_thread::sleep_for(
      std::chrono::duration<double>(kShortestWatch - since_.Seconds()));
  const std::optional<OtherLoad> load = watch_.Seen();
  return load && load->Disturbs(CoresNeeded());
}

Figure Cell::ReportTimes(const Phrase& label, const Phrase& measured_on,
                         const std::vector<Elapsed>& repeats) {
  return ReportTimes(measured_on, {{label, repeats}})[0];
}

std::vector<Figure> Cell::ReportTimes(const Phrase& measured_on,
                                      const std::vector<TimedRepeats>& timed) {
  std::vector<const std::vector<Elapsed>*> repeats;
  for (const TimedRepeats& one : timed) repeats.push_back(&one.repeats);
  const bool beside_others = BesideOthers();
  const std::vector<Kept> kept =
      KeepUndisturbed(repeats, beside_others, beside_others);
  std::vector<Figure> figures;
  for (std::size_t i = 0; i < timed.size(); ++i) {
    figures.push_back(Report(
        TimeOf(timed[i].label, "", measured_on, timed[i].repeats, kept[i])));
  }
  return figures;
}

}  // namespace d2l
