// Registers the benchmarks of a cell, beside its code:
//
//   [[maybe_unused]] const bool benchmarks[] = {
//       BenchmarkWork("BM_000_In6_MatMul", 1000, [](Device device) {
//         return [x = Rand({100, 100}, device)] { Run(x, 1000); };
//       }),
//   };
//
// The name begins with BM_ and the cell's id, with "_" for "/" and "-", so that
// `:benchmarks -- --benchmark_filter=000/In6` finds it.
//
// BenchmarkWork and BenchmarkPairWork register one for each kind of device, as
// NAME/device:cpu:0 or NAME/devices:cpu:0,cpu:1; BenchmarkHost one for the
// calling thread alone, as NAME. The chapter's program `:benchmarks`
// (testing/benchmark_main.cc) runs them with Google Benchmark; a lesson carries
// the list, and leaves it alone. A benchmark whose device does not exist is
// listed, and says so when it is run.
//
// The functions return true. For static initialisers; not thread-safe.

#ifndef D2L_COMMON_LESSON_CELL_BENCHMARK_H_
#define D2L_COMMON_LESSON_CELL_BENCHMARK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/device/device.h"

namespace d2l {

// Each makes the work of a benchmark from its devices. If it throws, this is
// the error of the benchmark, which then does not run.
using MakeHostWork = std::function<std::function<void()>()>;
using MakeWork = std::function<std::function<void()>(Device device)>;
using MakePairWork =
    std::function<std::function<void()>(Device first, Device second)>;

// Further counters, by name.
using Rates = std::map<std::string, double>;

// Times the work until the devices have done it, after one call to warm up.
// items: how many an iteration processes; flop: its floating-point operations,
// shown as a rate if there are any.
bool BenchmarkHost(const std::string& name, std::int64_t items,
                   const MakeHostWork& make, double flop = 0);
// counters: read when the benchmark ends, if given.
bool BenchmarkWork(
    const std::string& name, std::int64_t items, const MakeWork& make,
    double flop = 0,
    const std::function<Rates(Device device)>& counters = nullptr);
// rates: what an iteration adds to each.
bool BenchmarkPairWork(const std::string& name, std::int64_t items,
                       const MakePairWork& make, double flop = 0,
                       const Rates& rates = {});

// Times the calls until they return, without the wait for their work.
// `iterations` is for a benchmark that takes much longer than the time it
// reports; 0 lets Google Benchmark choose.
bool BenchmarkCalls(const std::string& name, std::int64_t items,
                    const MakeWork& make, int iterations = 0);

// The work returns the seconds that `items` take.
bool BenchmarkSeconds(
    const std::string& name, std::int64_t items,
    const std::function<std::function<double()>(Device device)>& make,
    int iterations = 0);

// A registered benchmark.
struct Benchmark {
  std::string name;
  std::vector<Device> devices;  // none: the calling thread's
  std::int64_t items = 0;
  // Makes the work, which returns the seconds to report if `reports_seconds`.
  std::function<std::function<double()>()> make;
  bool reports_seconds = false;
  int iterations = 0;
  Rates rates = {};
  std::function<Rates()> counters = nullptr;
};

// Those linked into this program, those of a file in its order.
const std::vector<Benchmark>& Benchmarks();

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_CELL_BENCHMARK_H_
