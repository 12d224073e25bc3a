// The programs of the lesson's cells as benchmarks, at the course's size.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "chapters/profiling/programs.h"
#include "common/d2l.h"
#include "common/lesson/benchmark_devices.h"
#include "common/lesson/host_library.h"

namespace d2l::profiling {
namespace {

constexpr int kSmallProducts = 10000;
constexpr int kLarge = 1000;
constexpr int kRows = 1000;
constexpr int kTimes = 20;

// Times `work`, which does so many operations, until the device is done.
template <typename Work>
void UntilDone(benchmark::State& state, Device device, int operations,
               const Work& work) {
  for (auto _ : state) {
    work();
    Synchronize(device);
  }
  state.SetItemsProcessed(state.iterations() * operations);
}

template <int n, int products>
void OnTheDevice(benchmark::State& state, Device device) {
  const Tensor x = Rand({n, n}, device);
  UntilDone(state, device, products, [&] { Products(x, products); });
  SetRate(state, "FLOP", 2.0 * n * n * n * products);
}

void OnTheHost(benchmark::State& state, int n, int products) {
  const std::vector<float> x = HostRandn(std::int64_t{n} * n);
  for (auto _ : state) {
    benchmark::DoNotOptimize(HostProducts(x, x, n, products));
  }
  SetRate(state, "FLOP", 2.0 * n * n * n * products);
  state.SetItemsProcessed(state.iterations() * products);
}

void BM_003_c5_SmallProducts_Host(benchmark::State& state) {
  OnTheHost(state, 3, kSmallProducts);
}
BENCHMARK(BM_003_c5_SmallProducts_Host)->UseRealTime();

void BM_003_c12_LargeProducts_Host(benchmark::State& state) {
  OnTheHost(state, kLarge, 10);
}
BENCHMARK(BM_003_c12_LargeProducts_Host)->UseRealTime();

void OneHundred(benchmark::State& state, Device device) {
  const Tensor x = Rand({3, 3}, device);
  UntilDone(state, device, 300, [&] { HundredTimes(x); });
}

void OneHundredProfiled(benchmark::State& state, Device device) {
  const Tensor x = Rand({3, 3}, device);
  UntilDone(state, device, 300, [&] {
    Profiler profiler;
    Profiled(profiler, [&] { HundredTimes(x); });
  });
}

void SmallProfiled(benchmark::State& state, Device device) {
  const Tensor x = Rand({3, 3}, device);
  UntilDone(state, device, kSmallProducts, [&] {
    Profiler profiler;
    Profiled(profiler, [&] {
      Products(x, kSmallProducts);
      Synchronize(device);
    });
  });
}

void OneByOne(benchmark::State& state, Device device) {
  UntilDone(state, device, kTimes * kRows,
            [&] { RandAndMultiply(kTimes * kRows, device); });
}

void FilledRowByRow(benchmark::State& state, Device device) {
  Tensor vec = Zeros({kRows, 10, 10}, device);
  UntilDone(state, device, kTimes * kRows,
            [&] { FillOnTheDevice(kTimes, vec); });
}

void StackedHundreds(benchmark::State& state, Device device) {
  Hundreds h(200, device);
  UntilDone(state, device, 20000, [&] { Stacked(h, /*to_host=*/false); });
}

void LoopOverHundreds(benchmark::State& state, Device device) {
  Hundreds h(200, device);
  UntilDone(state, device, 20000, [&] { DoubleLoop(h, /*to_host=*/false); });
}

// The request of an operation that has next to nothing to do, and its end.
void Enqueue(benchmark::State& state, Device device) {
  Tensor y;
  const Tensor x = Ones({1}, device);
  UntilDone(state, device, 1, [&] { y = x + 1; });
}

void SumOfATensor(benchmark::State& state, Device device) {
  const Tensor all = Rand({kRows, 100}, device);
  UntilDone(state, device, kRows, [&] { SumOfRows(all); });
}

void SumOfAList(benchmark::State& state, Device device) {
  const Tensor all = Rand({kRows, 100}, device);
  std::vector<Tensor> list;
  for (int i = 0; i < kRows; ++i) list.push_back(Clone(all[i]));
  UntilDone(state, device, kRows, [&] { SumOfRows(list); });
}

[[maybe_unused]] const bool registered[] = {
    BenchmarkOnDevices("BM_003_c1_Products_Alone", OnTheDevice<300, 10>),
    BenchmarkOnDevices("BM_003_c2_Operations_Unprofiled", OneHundred),
    BenchmarkOnDevices("BM_003_c2_Operations_Profiled", OneHundredProfiled),
    BenchmarkOnDevices("BM_003_c9_SmallProducts",
                       OnTheDevice<3, kSmallProducts>),
    BenchmarkOnDevices("BM_003_c9_SmallProducts_Profiled", SmallProfiled),
    BenchmarkOnDevices("BM_003_c16_LargeProducts", OnTheDevice<kLarge, 10>),
    BenchmarkOnDevices("BM_003_c18_RandMultiply", OneByOne),
    BenchmarkOnDevices("BM_003_c20_FilledRowByRow", FilledRowByRow),
    BenchmarkOnDevices("BM_003_c21_Hundreds_Stacked", StackedHundreds),
    BenchmarkOnDevices("BM_003_c21_Hundreds_Loop", LoopOverHundreds),
    BenchmarkOnDevices("BM_d2l_latencies_OneElement", Enqueue),
    BenchmarkOnDevices("BM_003_summary_Sum_Tensor", SumOfATensor),
    BenchmarkOnDevices("BM_003_summary_Sum_List", SumOfAList),
};

}  // namespace
}  // namespace d2l::profiling
