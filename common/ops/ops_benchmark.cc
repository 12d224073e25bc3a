// What one operation costs from the caller's line to the kernel. The table
// that these figures stand in is in common/README.md.
//
//   bazel run //common/ops:benchmarks

#include <cstdint>

#include "benchmark/benchmark.h"
#include "common/base/timer.h"
#include "common/ops/ops.h"

namespace d2l {
namespace {

benchmark::Counter PerOperation(double operations) {
  return benchmark::Counter(operations,
                            benchmark::Counter::kIsIterationInvariantRate |
                                benchmark::Counter::kInvert);
}

// One-element x + y, as in PyTorch's smallest program. Fewer operations than
// the queue holds: the request alone.
void BM_AddEnqueue(benchmark::State& state) {
  const Device device = TryGpu();
  const Tensor x = Ones({1}, device);
  const Tensor y = Ones({1}, device);
  constexpr int kOperations = 2000;
  for (auto _ : state) {
    Tensor z = x + y;
    const Timer timer;
    for (int i = 0; i < kOperations; ++i) z = x + y;
    state.SetIterationTime(timer.Seconds());
    Synchronize(device);
  }
  state.counters["per_operation"] = PerOperation(kOperations);
}
BENCHMARK(BM_AddEnqueue)->UseManualTime();

// The loop until its last operation is done.
void BM_AddCompleted(benchmark::State& state) {
  const Device device = TryGpu();
  const Tensor x = Ones({1}, device);
  const Tensor y = Ones({1}, device);
  const std::int64_t operations = state.range(0);
  for (auto _ : state) {
    Tensor z;
    for (std::int64_t i = 0; i < operations; ++i) z = x + y;
    Synchronize(device);
  }
  state.counters["per_operation"] =
      PerOperation(static_cast<double>(operations));
}
BENCHMARK(BM_AddCompleted)
    ->RangeMultiplier(10)
    ->Range(1'000, 1'000'000)
    ->UseRealTime();

// An operation and a read of its result: what frequent small reads cost.
void BM_AddAndItem(benchmark::State& state) {
  const Device device = TryGpu();
  const Tensor x = Ones({1}, device);
  const Tensor y = Ones({1}, device);
  for (auto _ : state) benchmark::DoNotOptimize(Item(x + y));
}
BENCHMARK(BM_AddAndItem)->UseRealTime();

}  // namespace
}  // namespace d2l

BENCHMARK_MAIN();
