// Benchmarks that mirror a lesson's cells, one for each kind of device.
//
//   [[maybe_unused]] const bool registered =
//       BenchmarkWork("BM_d2l_barriers_MatMul", 1, [](Device device) {
//         return [a = Rand({1000, 1000}, device)] { MatMul(a, a); };
//       });
//
// registers BM_d2l_barriers_MatMul/device:cpu:0, and the same on cuda:0.
// BenchmarkPairWork registers it for two devices of a kind, as
// NAME/devices:cpu:0,cpu:1; BenchmarkHost for the calling thread alone, as
// NAME. A benchmark whose device does not exist is listed, and says so when it
// is run. `//common/lesson:benchmark_main` is the main() to link with.
//
// The functions return true. For static initialisers; not thread-safe.

#ifndef D2L_COMMON_LESSON_TESTING_BENCHMARK_DEVICES_H_
#define D2L_COMMON_LESSON_TESTING_BENCHMARK_DEVICES_H_

#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "common/device/device.h"

namespace d2l {

// Each makes the work of a benchmark from its arguments. If it throws, this is
// the error of the benchmark, which then does not run.
using MakeHostWork = std::function<std::function<void()>()>;
using MakeWork = std::function<std::function<void()>(Device device)>;
using MakePairWork =
    std::function<std::function<void()>(Device first, Device second)>;

// Times the work until the devices have done it, after one call to warm up.
// items: how many an iteration processes; flop: its floating-point operations,
// shown as a rate if there are any.
bool BenchmarkHost(const std::string& name, std::int64_t items,
                   const MakeHostWork& make, double flop = 0);
bool BenchmarkWork(const std::string& name, std::int64_t items,
                   const MakeWork& make, double flop = 0);
// `rates` are further counters: what an iteration adds to each.
using Rates = std::map<std::string, double>;
bool BenchmarkPairWork(const std::string& name, std::int64_t items,
                       const MakePairWork& make, double flop = 0,
                       const Rates& rates = {});

// The source of a benchmark's times.
enum class BenchmarkTime {
  kReal,    // from the beginning of an iteration to its end
  kManual,  // the argument of SetIterationTime
};

// A benchmark of another form. The device is idle when it begins. `iterations`
// is for a benchmark that takes much longer than the time it reports; 0 lets
// Google Benchmark choose.
bool BenchmarkOnDevices(
    const std::string& name,
    const std::function<void(benchmark::State& state, Device device)>& function,
    BenchmarkTime time = BenchmarkTime::kReal, int iterations = 0);

// Times the calls until they return, without the wait for their work.
bool BenchmarkCalls(const std::string& name, std::int64_t items,
                    const MakeWork& make, int iterations = 0);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_TESTING_BENCHMARK_DEVICES_H_
