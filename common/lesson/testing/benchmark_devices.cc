#include "common/lesson/testing/benchmark_devices.h"

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/timer.h"
#include "common/device/device_table.h"

namespace d2l {
namespace {

using benchmark::State;
using DeviceList = std::vector<Device>;

// SkipWithMessage came with Google Benchmark 1.8. Older versions have only
// SkipWithError, which prints "ERROR OCCURRED" although there is no error.
template <typename S>
auto Skip(S& state, const std::string& why, int)
    -> decltype(state.SkipWithMessage(why)) {
  state.SkipWithMessage(why);
}
template <typename S>
void Skip(S& state, const std::string& why, long) {
  state.SkipWithError(why.c_str());
}

void Wait(const DeviceList& devices) {
  for (const Device device : devices) Synchronize(device);
}

// Registers function(state), which is called if all devices exist.
bool Register(const std::string& name, const DeviceList& devices,
              const std::function<void(State& state)>& function,
              BenchmarkTime time = BenchmarkTime::kReal, int iterations = 0) {
  auto* registered = benchmark::RegisterBenchmark(
      name.c_str(), [function, devices](State& state) {
        for (const Device device : devices) {
          if (HasDevice(device)) continue;
          return Skip(state,
                      absl::StrCat("skipped: there is no ", device.ToString()),
                      0);
        }
        Wait(devices);
        function(state);
      });
  // CPU time would be that of the enqueueing thread only.
  if (time == BenchmarkTime::kManual) {
    registered->UseManualTime();
  } else {
    registered->UseRealTime();
  }
  if (iterations > 0) registered->Iterations(iterations);
  return true;
}

std::string Labelled(const std::string& name, const DeviceList& devices) {
  const auto add = [](std::string* text, Device device) {
    *text += device.ToString();
  };
  return absl::StrCat(name, devices.size() > 1 ? "/devices:" : "/device:",
                      absl::StrJoin(devices, ",", add));
}

constexpr DeviceType kTypes[] = {DeviceType::kCpu, DeviceType::kCuda};

bool RegisterWork(const std::string& name, const DeviceList& devices,
                  std::int64_t items, double flop, const MakeHostWork& make,
                  Rates rates = {}) {
  if (flop > 0) rates["FLOP"] = flop;
  return Register(name, devices, [=](State& state) {
    std::function<void()> work;
    try {
      work = make();
    } catch (const std::exception& error) {
      return state.SkipWithError(
          absl::StrCat("skipped: ", error.what()).c_str());
    }
    work();
    Wait(devices);
    for (auto _ : state) {
      work();
      Wait(devices);
    }
    state.SetItemsProcessed(state.iterations() * items);
    for (const auto& [rate, of_each] : rates) {
      state.counters[rate] = benchmark::Counter(
          of_each, benchmark::Counter::kIsIterationInvariantRate);
    }
  });
}

}  // namespace

bool BenchmarkHost(const std::string& name, std::int64_t items,
                   const MakeHostWork& make, double flop) {
  return RegisterWork(name, {}, items, flop, make);
}

bool BenchmarkWork(const std::string& name, std::int64_t items,
                   const MakeWork& make, double flop) {
  for (const DeviceType type : kTypes) {
    const DeviceList one = {Device(type, 0)};
    RegisterWork(Labelled(name, one), one, items, flop,
                 [=] { return make(one[0]); });
  }
  return true;
}

bool BenchmarkPairWork(const std::string& name, std::int64_t items,
                       const MakePairWork& make, double flop,
                       const Rates& rates) {
  for (const DeviceType type : kTypes) {
    const DeviceList two = {Device(type, 0), Device(type, 1)};
    RegisterWork(
        Labelled(name, two), two, items, flop,
        [=] { return make(two[0], two[1]); }, rates);
  }
  return true;
}

bool BenchmarkOnDevices(
    const std::string& name,
    const std::function<void(State& state, Device device)>& function,
    BenchmarkTime time, int iterations) {
  for (const DeviceType type : kTypes) {
    const DeviceList one = {Device(type, 0)};
    Register(
        Labelled(name, one), one,
        [=](State& state) { function(state, one[0]); }, time, iterations);
  }
  return true;
}

bool BenchmarkCalls(const std::string& name, std::int64_t items,
                    const MakeWork& make, int iterations) {
  const auto time_calls = [=](State& state, Device device) {
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
  };
  return BenchmarkOnDevices(name, time_calls, BenchmarkTime::kManual,
                            iterations);
}

}  // namespace d2l
