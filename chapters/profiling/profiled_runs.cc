#include "chapters/profiling/profiled_runs.h"

#include <functional>
#include <string>
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
  std::vector<double> requests(kRuns), on_device(kRuns), total(kRuns);
  ProfiledRuns runs;
  for (int i = 0; i < kRuns; ++i) {
    Profiler profiler;
    profiler.Start();
    const Timer timer;
    work();
    Synchronize(device);
    total[i] = timer.Seconds();
    profiler.Stop();
    runs.last = profiler.profile();
    for (const ProfiledSpan& span : runs.last.spans) {
      on_device[i] += 1e-9 * static_cast<double>(span.device_nanos());
      if (span.kind == ProfiledKind::kOperation ||
          span.kind == ProfiledKind::kView) {
        requests[i] += 1e-9 * static_cast<double>(span.host_nanos());
      }
    }
  }
  const auto report = [&](const char* what, const std::vector<double>& times) {
    return cell.Report(Sampled(absl::StrCat(label, ": ", what),
                               MeasuredOn(device), "s", times));
  };
  runs.requests = report("requests", requests);
  runs.device = report("on the device", on_device);
  runs.total = report("in all", total);
  return runs;
}

}  // namespace d2l
