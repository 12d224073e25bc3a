// The cost of the profiler: of starting and stopping, of a call, and of the
// course's loop of small products; and the cost of a RaceChecker.

#include <cstdint>

#include "benchmark/benchmark.h"
#include "common/device/device_table.h"
#include "common/ops/ops.h"
#include "common/profiler/profiler.h"
#include "common/profiler/race_checker.h"

namespace d2l {
namespace {

void BM_StartStop(benchmark::State& state) {
  for (auto _ : state) {
    Profiler profiler;
    profiler.Start();
    profiler.Stop();
  }
}
BENCHMARK(BM_StartStop)->UseRealTime();

void BM_Range(benchmark::State& state) {
  for (auto _ : state) {
    Profiler profiler;
    ProfileScope scope(profiler);
    for (int i = 0; i < 10'000; ++i) RecordFunction range("range");
  }
  state.SetItemsProcessed(state.iterations() * 10'000);
}
BENCHMARK(BM_Range)->UseRealTime();

void BM_RangeWithoutAProfiler(benchmark::State& state) {
  for (auto _ : state) RecordFunction range("range");
}
BENCHMARK(BM_RangeWithoutAProfiler)->UseRealTime();

// 003/c9: 10,000 products, 3x3, each of a matrix and a view of it.
void Products(const Tensor& x) {
  for (int i = 0; i < 10'000; ++i) Tensor y = MatMul(x, T(x));
  Synchronize(x.device());
}

// Calls are operations and views: 20,000.
void BM_Products(benchmark::State& state) {
  const Tensor x = Rand({3, 3}, Devices()[0].device);
  for (auto _ : state) Products(x);
  state.SetItemsProcessed(state.iterations() * 20'000);
}
BENCHMARK(BM_Products)->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_ProductsProfiled(benchmark::State& state) {
  const Tensor x = Rand({3, 3}, Devices()[0].device);
  ProfilerOptions options;
  options.profile_memory = state.range(0) != 0;
  for (auto _ : state) {
    Profiler profiler(options);
    ProfileScope scope(profiler);
    Products(x);
  }
  state.SetItemsProcessed(state.iterations() * 20'000);
}
BENCHMARK(BM_ProductsProfiled)
    ->ArgName("memory")
    ->Arg(0)
    ->Arg(1)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void BM_ProductsCheckedForRaces(benchmark::State& state) {
  const Tensor x = Rand({3, 3}, Devices()[0].device);
  for (auto _ : state) {
    const RaceChecker checker;
    Products(x);
  }
  state.SetItemsProcessed(state.iterations() * 10'000);
}
BENCHMARK(BM_ProductsCheckedForRaces)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// The table that is made of 20,000 calls afterwards.
void BM_KeyAverages(benchmark::State& state) {
  const Tensor x = Rand({3, 3}, Devices()[0].device);
  Profiler profiler;
  profiler.Start();
  Products(x);
  profiler.Stop();
  profiler.profile();
  for (auto _ : state) {
    benchmark::DoNotOptimize(profiler.KeyAverages().Table());
  }
}
BENCHMARK(BM_KeyAverages)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace d2l

BENCHMARK_MAIN();
