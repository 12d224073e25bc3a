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

constexpr DeviceType kTypes[] = {DeviceType::kCpu, DeviceType::kCuda};

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
  for (const DeviceType type : kTypes) {
    const Device one(type, 0);
    Benchmark benchmark = {Labelled(name, {one}),
                           {one},
                           items,
                           Untimed([=] { return make(one); }),
                           false,
                           0,
                           WithFlop({}, flop)};
    if (counters) benchmark.counters = [=] { return counters(one); };
    Register(std::move(benchmark));
  }
  return true;
}

bool BenchmarkPairWork(const std::string& name, std::int64_t items,
                       const MakePairWork& make, double flop,
                       const Rates& rates) {
  for (const DeviceType type : kTypes) {
    const Device first(type, 0), second(type, 1);
    Register({Labelled(name, {first, second}),
              {first, second},
              items,
              Untimed([=] { return make(first, second); }),
              false,
              0,
              WithFlop(rates, flop)});
  }
  return true;
}

bool BenchmarkSeconds(
    const std::string& name, std::int64_t items,
    const std::function<std::function<double()>(Device device)>& make) {
  for (const DeviceType type : kTypes) {
    const Device one(type, 0);
    Register({Labelled(name, {one}),
              {one},
              items,
              [=] { return make(one); },
              /*reports_seconds=*/true});
  }
  return true;
}

bool BenchmarkCalls(const std::string& name, std::int64_t items,
                    const MakeWork& make, int iterations) {
  for (const DeviceType type : kTypes) {
    const Device one(type, 0);
    const auto timed = [=] {
      return [work = make(one)] {
        const Timer timer;
        work();
        return timer.Seconds();
      };
    };
    Register({Labelled(name, {one}),
              {one},
              items,
              timed,
              /*reports_seconds=*/true,
              iterations});
  }
  return true;
}

const std::vector<Benchmark>& Benchmarks() { return Registered(); }

}  // namespace d2l
