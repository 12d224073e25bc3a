// Benchmarks that mirror a lesson's cells, one for each kind of device.
//
//   void Synchronized(benchmark::State& state, Device device) { … }
//   [[maybe_unused]] const bool registered =
//       BenchmarkOnDevices("BM_004_In4_RandnMatMul_Synchronized",
//       Synchronized);
//
// registers BM_004_In4_RandnMatMul_Synchronized/device:cpu:0, and the same on
// cuda:0; BenchmarkOnDevicePairs does so for two devices of a kind, as
// NAME/devices:cpu:0,cpu:1. A benchmark whose device is absent is listed and
// says so when it is run. `//common/lesson:benchmark_main` is the main() to
// link with.
//
// For static initialisers; not thread-safe.

#ifndef D2L_COMMON_LESSON_BENCHMARK_DEVICES_H_
#define D2L_COMMON_LESSON_BENCHMARK_DEVICES_H_

#include <benchmark/benchmark.h>

#include <string>

#include "common/device/device.h"

namespace d2l {

using DeviceBenchmark = void (*)(benchmark::State& state, Device device);
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
// The same with two devices, both idle when it begins.
bool BenchmarkOnDevicePairs(const std::string& name,
                            DevicePairBenchmark function,
                            BenchmarkTime time = BenchmarkTime::kReal,
                            int iterations = 0);

// Counts work done per iteration as a rate, "FLOP" in FLOP/s.
void SetRate(benchmark::State& state, const std::string& name,
             double per_iteration);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_BENCHMARK_DEVICES_H_
