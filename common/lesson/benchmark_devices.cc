#include "common/lesson/benchmark_devices.h"

#include <benchmark/benchmark.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/device/device.h"
#include "common/device/device_table.h"

namespace d2l {
namespace {

// SkipWithMessage came with Google Benchmark 1.8; before, there is only
// SkipWithError, which says "ERROR OCCURRED" of what is none.
template <typename State>
auto Skip(State& state, const std::string& why, int)
    -> decltype(state.SkipWithMessage(why)) {
  state.SkipWithMessage(why);
}
template <typename State>
void Skip(State& state, const std::string& why, long) {
  state.SkipWithError(why.c_str());
}

}  // namespace

bool BenchmarkOnDevices(const std::string& name, DeviceBenchmark function,
                        BenchmarkTime time, int iterations) {
  for (const DeviceType type : {DeviceType::kCpu, DeviceType::kCuda}) {
    const Device device(type, 0);
    auto* registered = benchmark::RegisterBenchmark(
        absl::StrCat(name, "/device:", device.ToString()).c_str(),
        [function, device](benchmark::State& state) {
          if (!HasDevice(device)) {
            Skip(state,
                 absl::StrCat("skipped: there is no ", device.ToString()), 0);
            return;
          }
          Synchronize(device);
          function(state, device);
        });
    // CPU time would be that of the thread which only enqueues.
    if (time == BenchmarkTime::kManual) {
      registered->UseManualTime();
    } else {
      registered->UseRealTime();
    }
    if (iterations > 0) registered->Iterations(iterations);
  }
  return true;
}

void SetRate(benchmark::State& state, const std::string& name,
             double per_iteration) {
  state.counters[name] = benchmark::Counter(
      per_iteration, benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace d2l
