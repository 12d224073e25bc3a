// The cost of one operation from the caller's line to the kernel.
// docs/performance.md has the table of these figures.
//
//   bazel run //common/ops:benchmarks

#include <cstdint>

#include "benchmark/benchmark.h"
#include "common/base/source_location.h"
#include "common/base/timer.h"
#include "common/ops/nn/functional.h"
#include "common/ops/nn/primitives.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitives.h"

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

// ---- Operations of networks, at the sizes of LeNet (batch 256) and ResNet-18
// (batch 32). Bytes: those that each must read and write.

template <typename F>
void Measure(benchmark::State& state, double megabytes, F f) {
  const Device device = TryGpu();
  f();
  Synchronize(device);
  for (auto _ : state) {
    f();
    Synchronize(device);
  }
  state.SetBytesProcessed(
      static_cast<std::int64_t>(megabytes * 1e6 * state.iterations()));
}

// The line of requests that are primitives.
const SourceLocation kHere = SourceLocation::Current();

void BM_Copy(benchmark::State& state) {
  const Tensor x = Rand({256, 20, 24, 24}, TryGpu());
  Measure(state, 23.6, [&] { return Clone(x); });
}
BENCHMARK(BM_Copy)->UseRealTime();

void BM_Pool(benchmark::State& state, bool max) {
  const Tensor x = Rand({256, 20, 24, 24}, TryGpu());
  Measure(state, 14.7, [&] { return max ? MaxPool2d(x, 2) : AvgPool2d(x, 2); });
}
BENCHMARK_CAPTURE(BM_Pool, avg, false)->UseRealTime();
BENCHMARK_CAPTURE(BM_Pool, max, true)->UseRealTime();

void BM_PoolGradient(benchmark::State& state, bool max) {
  const Tensor x = Rand({256, 20, 24, 24}, TryGpu());
  const Tensor dy = Rand({256, 20, 12, 12}, TryGpu());
  const Pool2dBackwardPrimitive gradient({max, 2, 2, 0}, x.shape());
  Measure(state, max ? 26.5 : 14.7, [&] {
    return max ? Apply(gradient, {&dy, &x}, kHere)
               : Apply(gradient, {&dy}, kHere);
  });
}
BENCHMARK_CAPTURE(BM_PoolGradient, avg, false)->UseRealTime();
BENCHMARK_CAPTURE(BM_PoolGradient, max, true)->UseRealTime();

void BM_ReluGradient(benchmark::State& state) {
  const Tensor y = Rand({256, 20, 24, 24}, TryGpu());
  const BinaryPrimitive gradient(kernels::BinaryOp::kReluGradient,
                                 BinaryPrimitive::Which::kNone, 0);
  Measure(state, 35.4, [&] { return Apply(gradient, {&y, &y}, kHere); });
}
BENCHMARK(BM_ReluGradient)->UseRealTime();

// Images of `size` by `size`, 12.8 MB of them; all four steps.
void BM_BatchNorm(benchmark::State& state) {
  const std::int64_t size = state.range(0);
  const std::int64_t channels = 100'352 / (size * size);
  const Tensor x = Rand({32, channels, size, size}, TryGpu());
  const Tensor w = Ones({channels}, TryGpu());
  // x; x, y; y, x; y, x, dx.
  Measure(state, 8 * 12.85, [&] {
    const Tensor s = Apply(BatchNormStatisticsPrimitive(), {&x}, kHere);
    const Tensor y =
        Apply(BatchNormPrimitive(true, 1e-5), {&x, &s, &w, &w}, kHere);
    const Tensor sums = Apply(BatchNormBackwardReducePrimitive(true, 1e-5),
                              {&y, &x, &s}, kHere);
    return Apply(BatchNormBackwardPrimitive(1e-5), {&y, &x, &s, &w, &sums},
                 kHere);
  });
}
BENCHMARK(BM_BatchNorm)->Arg(28)->Arg(14)->Arg(7)->Arg(4)->UseRealTime();

void BM_CrossEntropy(benchmark::State& state) {
  const Tensor x = Randn({256, 10}, TryGpu());
  const Tensor labels = RandInt(0, 10, {256}, TryGpu());
  Measure(state, 0.01, [&] { return CrossEntropy(x, labels); });
}
BENCHMARK(BM_CrossEntropy)->UseRealTime();

void BM_Axpby(benchmark::State& state) {
  const Tensor y = Rand({2'949'120}, TryGpu()), x = Rand({2'949'120}, TryGpu());
  Measure(state, 35.4, [&] { AxpbyInPlace(y, -1e-6, x, 1); });
}
BENCHMARK(BM_Axpby)->UseRealTime();

}  // namespace
}  // namespace d2l

BENCHMARK_MAIN();
