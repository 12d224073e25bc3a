// Benchmarks that mirror a lesson's cells, one for each kind of device.
//
//   [[maybe_unused]] const bool registered =
//       BenchmarkWork("BM_d2l_barriers_MatMul", 1, [](Device device) {
//         return [a = Rand({1000, 1000}, device)] { MatMul(a, a); };
//       });
//
// registers BM_d2l_barriers_MatMul/device:cpu:0, and the same on cuda:0. What
// is not timed so is a function of its own, for BenchmarkOnDevices; and
// BenchmarkOnDevicePairs registers it for two devices of a kind, as
// NAME/devices:cpu:0,cpu:1. A benchmark whose device is absent is listed and
// says so when it is run. `//common/lesson:benchmark_main` is the main() to
// link with.
//
// For static initialisers; not thread-safe.

#ifndef D2L_COMMON_LESSON_BENCHMARK_DEVICES_H_
#define D2L_COMMON_LESSON_BENCHMARK_DEVICES_H_

#include <benchmark/benchmark.h>

#include <functional>
#include <string>

#include "common/device/device.h"

namespace d2l {

using DeviceBenchmark =
    std::function<void(benchmark::State& state, Device device)>;
using DevicePairBenchmark = void (*)(benchmark::State& state, Device first,
                                     Device second);

// The source of a benchmark's times.
enum class BenchmarkTime {
  kReal,    // from the beginning of an iteration to its end
  kManual,  // what the benchmark gives to SetIterationTime
};

// Returns true. The device is idle when the benchmark begins. iterations: how
// many, for a benchmark that takes much longer than the time it reports; 0
// lets Google Benchmark choose.
bool BenchmarkOnDevices(const std::string& name, DeviceBenchmark function,
                        BenchmarkTime time = BenchmarkTime::kReal,
                        int iterations = 0);

// Times the work until the device has done it. items: how many an iteration
// processes.
void TimeWork(benchmark::State& state, Device device, int items,
              const std::function<void()>& work);

// Makes the work of a benchmark, on a device and from what it needs there.
using MakeWork = std::function<std::function<void()>(Device device)>;

// A benchmark that does TimeWork.
bool BenchmarkWork(const std::string& name, int items, const MakeWork& make);
// Times the calls until they return; the rest is waited for outside the clock.
bool BenchmarkCalls(const std::string& name, int items, const MakeWork& make,
                    int iterations = 0);

// The same as BenchmarkOnDevices with two devices, both idle when it begins.
bool BenchmarkOnDevicePairs(const std::string& name,
                            DevicePairBenchmark function,
                            BenchmarkTime time = BenchmarkTime::kReal,
                            int iterations = 0);

// Counts work done per iteration as a rate, "FLOP" in FLOP/s.
void SetRate(benchmark::State& state, const std::string& name,
             double per_iteration);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_BENCHMARK_DEVICES_H_
