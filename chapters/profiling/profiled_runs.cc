#include "chapters/profiling/profiled_runs.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/timer.h"
#include "common/device/device_table.h"
#include "common/profiler/profiler.h"

namespace d2l {
namespace {

constexpr int kRuns = 9;

}  // namespace

ProfiledRuns RunProfiled(Cell& cell, const std::string& label, Device device,
                         const std::function<void()>& work) {
  work();
  Synchronize(device);
  std::vector<double> requests, of_device, total;
  ProfiledRuns runs;
  for (int i = 0; i < kRuns; ++i) {
    Profiler profiler;
    profiler.Start();
    const Timer timer;
    work();
    Synchronize(device);
    total.push_back(timer.Seconds());
    profiler.Stop();
    runs.last = profiler.profile();
    double asked = 0;
    double worked = 0;
    for (const ProfiledSpan& span : runs.last.spans) {
      worked += 1e-9 * static_cast<double>(span.device_nanos());
      if (span.kind == ProfiledKind::kOperation ||
          span.kind == ProfiledKind::kView) {
        asked += 1e-9 * static_cast<double>(span.host_nanos());
      }
    }
    requests.push_back(asked);
    of_device.push_back(worked);
  }
  const auto report = [&](const std::string& what,
                          std::vector<double> samples) {
    return cell.Report(Sampled(absl::StrCat(label, ": ", what),
                               MeasuredOn(device), "s", std::move(samples)));
  };
  runs.requests = report("requests", std::move(requests));
  runs.device = report("on the device", std::move(of_device));
  runs.total = report("in all", std::move(total));
  return runs;
}

}  // namespace d2l
