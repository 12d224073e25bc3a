#include "common/lesson/cell/benchmark.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"

namespace d2l {
namespace {

using DeviceList = std::vector<Device>;

// Never destroyed; made by the first registration.
std::vector<Benchmark>& Registered() {
  static auto& benchmarks = *new std::vector<Benchmark>;
  return benchmarks;
}

bool Register(Benchmark benchmark) {
  Registered().push_back(std::move(benchmark));
  return true;
}

std::string Labelled(const std::string& name, const DeviceList& devices) {
  const auto add = [](std::string* text, Device device) {
    *text += device.ToString();
  };
  return absl::StrCat(name, devices.size() > 1 ? "/devices:" : "/device:",
                      absl::StrJoin(devices, ",", add));
}

// Registers what `describe` says for the first `count` devices of each kind.
template <typename Describe>
bool RegisterPerKind(const std::string& name, int count,
                     const Describe& describe) {
  for (const DeviceType type : {DeviceType::kCpu, DeviceType::kCuda}) {
    DeviceList devices;
    for (int i = 0; i < count; ++i) devices.emplace_back(type, i);
    Benchmark benchmark = describe(devices);
    benchmark.name = Labelled(name, devices);
    benchmark.devices = devices;
    Register(std::move(benchmark));
  }
  return true;
}

// Work whose iterations are timed from outside.
std::function<std::function<double()>()> Untimed(const MakeHostWork& make) {
  return [make] {
    return [work = make()] {
      work();
      return 0.0;
    };
  };
}

Rates WithFlop(Rates rates, double flop) {
  if (flop > 0) rates["FLOP"] = flop;
  return rates;
}

}  // namespace

bool BenchmarkHost(const std::string& name, std::int64_t items,
                   const MakeHostWork& make, double flop) {
  return Register(
      {name, {}, items, Untimed(make), false, 0, WithFlop({}, flop)});
}

bool BenchmarkWork(const std::string& name, std::int64_t items,
                   const MakeWork& make, double flop,
                   const std::function<Rates(Device device)>& counters) {
  return RegisterPerKind(name, 1, [&](const DeviceList& devices) {
    const Device one = devices[0];
    Benchmark benchmark;
    benchmark.items = items;
    benchmark.make = Untimed([=] { return make(one); });
    benchmark.rates = WithFlop({}, flop);
    if (counters) benchmark.counters = [=] { return counters(one); };
    return benchmark;
  });
}

bool BenchmarkPairWork(const std::string& name, std::int64_t items,
                       const MakePairWork& make, double flop,
                       const Rates& rates) {
  return RegisterPerKind(name, 2, [&](const DeviceList& devices) {
    Benchmark benchmark;
    benchmark.items = items;
    benchmark.make = Untimed([=] { return make(devices[0], devices[1]); });
    benchmark.rates = WithFlop(rates, flop);
    return benchmark;
  });
}

bool BenchmarkSeconds(
    const std::string& name, std::int64_t items,
    const std::function<std::function<double()>(Device device)>& make,
    int iterations) {
  return RegisterPerKind(name, 1, [&](const DeviceList& devices) {
    Benchmark benchmark;
    benchmark.items = items;
    benchmark.make = [make, one = devices[0]] { return make(one); };
    benchmark.reports_seconds = true;
    benchmark.iterations = iterations;
    return benchmark;
  });
}

bool BenchmarkCalls(const std::string& name, std::int64_t items,
                    const MakeWork& make, int iterations) {
  const auto timed = [make](Device device) {
    return [work = make(device)] {
      const Timer timer;
      work();
      return timer.Seconds();
    };
  };
  return BenchmarkSeconds(name, items, timed, iterations);
}

const std::vector<Benchmark>& Benchmarks() { return Registered(); }

}  // namespace d2l
