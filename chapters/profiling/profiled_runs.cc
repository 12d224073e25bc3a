#include "chapters/profiling/profiled_runs.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "chapters/profiling/programs.h"
#include "common/base/undisturbed_timer.h"

namespace d2l::profiling {
namespace {

constexpr int kRuns = 9;

// "2.10 ms, 210 ns each"
std::string Times(std::int64_t nanos, std::int64_t calls) {
  const double seconds = 1e-9 * static_cast<double>(nanos);
  return Say("%s, %s each", FormatDuration(seconds),
             FormatDuration(seconds / static_cast<double>(calls)));
}

}  // namespace

ProfiledRuns RunProfiled(Cell& cell, const Phrase& label, Device device,
                         const std::function<void()>& work) {
  work();
  Synchronize(device);
  const int count = cell.BesideOthers() ? 3 * kRuns : kRuns;
  std::vector<Elapsed> enqueueing(count), total(count), on_device(count);
  ProfiledRuns runs;
  for (int i = 0; i < count; ++i) {
    cell.Rest();
    const UndisturbedTimer timer;
    work();
    const double returned = timer.Seconds();
    Synchronize(device);
    total[i] = timer.Read();

    Profiler profiler;
    cell.Rest();
    const UndisturbedTimer profiled;
    profiler.Start();
    work();
    Synchronize(device);
    profiler.Stop();
    const Elapsed with_profiler = profiled.Read();
    runs.last = profiler.profile();
    double requests = 0, device_time = 0;
    for (const ProfiledSpan& span : runs.last.spans) {
      device_time += 1e-9 * static_cast<double>(span.device_nanos());
      const double seconds = 1e-9 * static_cast<double>(span.host_nanos());
      if (span.kind == ProfiledKind::kOperation ||
          span.kind == ProfiledKind::kView) {
        requests += seconds;
      } else if (span.kind == ProfiledKind::kQueueFull) {
        requests -= seconds;  // within a request
      }
    }
    // The profiler makes requests longer, and a full queue makes calls longer.
    enqueueing[i] = {std::max(std::min(returned, requests), 1e-9),
                     total[i].undisturbed && with_profiler.undisturbed};
    on_device[i] = {std::max(device_time, 1e-9), with_profiler.undisturbed};
  }
  const auto report = [&](const Phrase& what,
                          const std::vector<Elapsed>& times) {
    return cell.ReportTimes(what, MeasuredOn(device), times);
  };
  runs.enqueueing = report(Worded("%s: enqueueing", label), enqueueing);
  runs.device = report(Worded("%s: on the device", label), on_device);
  runs.total = report(Worded("%s: in all", label), total);
  return runs;
}

void PrintAverages(const Cell& cell, const KeyAverages& averages) {
  if (cell.verbose()) {
    std::cout << averages.Table();
    return;
  }
  const bool any = averages.total().measured_calls > 0;
  std::cout << "  " << Padded("", 18) << Padded("calls", -8)
            << Padded("CPU, enqueueing", -24)
            << Padded(any ? "Device, working" : "", any ? -26 : 0) << "\n";
  for (const KeyAverage& row : averages.rows()) {
    const std::string working =
        row.measured_calls > 0 ? Times(row.self_device_nanos, row.known_calls)
                               : "-";
    std::cout << absl::StrFormat(
        "  %-18s%8d%s%s\n", row.name.substr(0, row.name.find(':')), row.calls,
        Padded(Times(row.self_host_nanos, row.calls), -24),
        any ? Padded(working, -26) : "");
  }
}

void PrintProfile(const Cell& cell, const std::function<void()>& work) {
  Profiler profiler;
  Profiled(profiler, work);
  PrintAverages(cell, profiler.KeyAverages());
}

std::string Took(const Figure& time) {
  return FormatDuration(time.value.median);
}

std::string Took(const Timing& timing) { return Took(timing.completion); }

std::string Took(const Figure& a, const Figure& b) {
  return Say("%s took %s, %s %s.", a.label.shown, Took(a), b.label.shown,
             Took(b));
}

}  // namespace d2l::profiling
