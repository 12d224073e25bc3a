#include "common/lesson/benchmark_devices.h"

#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/timer.h"
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

// label: "/device:cpu:0". function(state) is called if all devices are there.
template <typename F>
void Register(const std::string& name, const std::string& label,
              const std::vector<Device>& devices, BenchmarkTime time,
              int iterations, const F& function) {
  auto* registered = benchmark::RegisterBenchmark(
      absl::StrCat(name, label).c_str(),
      [function, devices](benchmark::State& state) {
        for (const Device device : devices) {
          if (!HasDevice(device)) {
            Skip(state,
                 absl::StrCat("skipped: there is no ", device.ToString()), 0);
            return;
          }
        }
        for (const Device device : devices) Synchronize(device);
        function(state);
      });
  // CPU time would be that of the thread which only enqueues.
  if (time == BenchmarkTime::kManual) {
    registered->UseManualTime();
  } else {
    registered->UseRealTime();
  }
  if (iterations > 0) registered->Iterations(iterations);
}

constexpr DeviceType kTypes[] = {DeviceType::kCpu, DeviceType::kCuda};

}  // namespace

bool BenchmarkOnDevices(const std::string& name, DeviceBenchmark function,
                        BenchmarkTime time, int iterations) {
  for (const DeviceType type : kTypes) {
    const Device device(type, 0);
    Register(name, absl::StrCat("/device:", device.ToString()), {device}, time,
             iterations,
             [function, device](benchmark::State& s) { function(s, device); });
  }
  return true;
}

void TimeWork(benchmark::State& state, Device device, int items,
              const std::function<void()>& work) {
  work();
  Synchronize(device);
  for (auto _ : state) {
    work();
    Synchronize(device);
  }
  state.SetItemsProcessed(state.iterations() * items);
}

bool BenchmarkWork(const std::string& name, int items, const MakeWork& make) {
  return BenchmarkOnDevices(
      name, [items, make](benchmark::State& state, Device device) {
        TimeWork(state, device, items, make(device));
      });
}

bool BenchmarkCalls(const std::string& name, int items, const MakeWork& make,
                    int iterations) {
  return BenchmarkOnDevices(
      name,
      [items, make](benchmark::State& state, Device device) {
        const std::function<void()> work = make(device);
        work();
        Synchronize(device);
        for (auto _ : state) {
          const Timer timer;
          work();
          state.SetIterationTime(timer.Seconds());
          Synchronize(device);
        }
        state.SetItemsProcessed(state.iterations() * items);
      },
      BenchmarkTime::kManual, iterations);
}

bool BenchmarkOnDevicePairs(const std::string& name,
                            DevicePairBenchmark function, BenchmarkTime time,
                            int iterations) {
  for (const DeviceType type : kTypes) {
    const Device first(type, 0);
    const Device second(type, 1);
    Register(
        name,
        absl::StrCat("/devices:", first.ToString(), ",", second.ToString()),
        {first, second}, time, iterations,
        [function, first, second](benchmark::State& s) {
          function(s, first, second);
        });
  }
  return true;
}

void SetRate(benchmark::State& state, const std::string& name,
             double per_iteration) {
  state.counters[name] = benchmark::Counter(
      per_iteration, benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace d2l
