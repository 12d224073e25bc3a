// The cells of the lesson as benchmarks, at the course's size.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/lesson/benchmark_devices.h"
#include "common/lesson/host_library.h"
#include "common/ops/ops.h"
#include "common/profiler/profiler.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

constexpr int kSmallProducts = 10000;
constexpr int kLarge = 1000;
constexpr int kRows = 1000;
constexpr int kTimes = 20;

// Products of x with its transpose, waited for.
void Products(const Tensor& x, int products) {
  Tensor y;
  for (int i = 0; i < products; ++i) y = MatMul(x, T(x));
  Synchronize(x.device());
}

void OnTheDevice(benchmark::State& state, Device device, int n, int products) {
  const Tensor x = Rand({n, n}, device);
  for (auto _ : state) Products(x, products);
  SetRate(state, "FLOP", 2.0 * n * n * n * products);
  state.SetItemsProcessed(state.iterations() * products);
}

void OnTheHost(benchmark::State& state, int n, int products) {
  const std::vector<float> x = HostRandn(std::int64_t{n} * n);
  for (auto _ : state) {
    for (int i = 0; i < products; ++i) {
      benchmark::DoNotOptimize(HostMatMul(x, x, n));
    }
  }
  SetRate(state, "FLOP", 2.0 * n * n * n * products);
  state.SetItemsProcessed(state.iterations() * products);
}

void Quiet(benchmark::State& state, Device device) {
  OnTheDevice(state, device, 300, 10);
}
[[maybe_unused]] const bool c1 =
    BenchmarkOnDevices("BM_003_c1_Products_Alone", Quiet);

void HundredTimes(const Tensor& x) {
  Tensor y, z, w;
  for (int i = 0; i < 100; ++i) {
    y = MatMul(x, T(x));
    z = y * y;
    w = z + x;
  }
  Synchronize(x.device());
}

void Unprofiled(benchmark::State& state, Device device) {
  const Tensor x = Rand({3, 3}, device);
  for (auto _ : state) HundredTimes(x);
  state.SetItemsProcessed(state.iterations() * 300);
}
[[maybe_unused]] const bool c2_unprofiled =
    BenchmarkOnDevices("BM_003_c2_Operations_Unprofiled", Unprofiled);

void Profiled(benchmark::State& state, Device device) {
  const Tensor x = Rand({3, 3}, device);
  for (auto _ : state) {
    Profiler profiler;
    ProfileScope scope(profiler);
    HundredTimes(x);
  }
  state.SetItemsProcessed(state.iterations() * 300);
}
[[maybe_unused]] const bool c2_profiled =
    BenchmarkOnDevices("BM_003_c2_Operations_Profiled", Profiled);

void BM_003_c5_SmallProducts_Host(benchmark::State& state) {
  OnTheHost(state, 3, kSmallProducts);
}
BENCHMARK(BM_003_c5_SmallProducts_Host)->UseRealTime();

void SmallProducts(benchmark::State& state, Device device) {
  OnTheDevice(state, device, 3, kSmallProducts);
}
[[maybe_unused]] const bool c9 =
    BenchmarkOnDevices("BM_003_c9_SmallProducts", SmallProducts);

void SmallProductsProfiled(benchmark::State& state, Device device) {
  const Tensor x = Rand({3, 3}, device);
  for (auto _ : state) {
    Profiler profiler;
    ProfileScope scope(profiler);
    Products(x, kSmallProducts);
  }
  state.SetItemsProcessed(state.iterations() * kSmallProducts);
}
[[maybe_unused]] const bool c9_profiled = BenchmarkOnDevices(
    "BM_003_c9_SmallProducts_Profiled", SmallProductsProfiled);

void BM_003_c12_LargeProducts_Host(benchmark::State& state) {
  OnTheHost(state, kLarge, 10);
}
BENCHMARK(BM_003_c12_LargeProducts_Host)->UseRealTime();

void LargeProducts(benchmark::State& state, Device device) {
  OnTheDevice(state, device, kLarge, 10);
}
[[maybe_unused]] const bool c16 =
    BenchmarkOnDevices("BM_003_c16_LargeProducts", LargeProducts);

void OneByOne(benchmark::State& state, Device device) {
  Tensor x, y;
  for (auto _ : state) {
    for (int i = 0; i < kTimes * kRows; ++i) {
      x = Rand({10, 10}, device);
      y = x * x;
    }
    Synchronize(device);
  }
  state.SetItemsProcessed(state.iterations() * kTimes * kRows);
}
[[maybe_unused]] const bool c18 =
    BenchmarkOnDevices("BM_003_c18_RandMultiply", OneByOne);

void FilledRowByRow(benchmark::State& state, Device device) {
  Tensor y, vec = Zeros({kRows, 10, 10}, device);
  for (auto _ : state) {
    for (int i = 0; i < kTimes; ++i) {
      for (int j = 0; j < kRows; ++j) vec[j] = Rand({10, 10}, device);
      y = vec * vec;
    }
    Synchronize(device);
  }
  state.SetItemsProcessed(state.iterations() * kTimes * kRows);
}
[[maybe_unused]] const bool c20 =
    BenchmarkOnDevices("BM_003_c20_FilledRowByRow", FilledRowByRow);

// a[j] * b[j], in one operation or in a hundred; 200 times.
void Hundreds(benchmark::State& state, Device device, bool stacked) {
  std::vector<Tensor> a, b;
  for (int j = 0; j < 100; ++j) {
    a.push_back(Rand({10, 10}, device));
    b.push_back(Rand({10, 10}, device));
  }
  const Tensor a_tensor = DStack(a);
  Tensor res = Zeros({200, 10, 10, 100}, device);
  for (auto _ : state) {
    for (int i = 0; i < 200; ++i) {
      if (stacked) {
        res[i] = a_tensor * DStack(b);
        continue;
      }
      for (int j = 0; j < 100; ++j) res[{i, kAll, kAll, j}] = a[j] * b[j];
    }
    Synchronize(device);
  }
  state.SetItemsProcessed(state.iterations() * 20000);
}

void Stacked(benchmark::State& state, Device device) {
  Hundreds(state, device, /*stacked=*/true);
}
[[maybe_unused]] const bool c21_stacked =
    BenchmarkOnDevices("BM_003_c21_Hundreds_Stacked", Stacked);

void DoubleLoop(benchmark::State& state, Device device) {
  Hundreds(state, device, /*stacked=*/false);
}
[[maybe_unused]] const bool c21_loop =
    BenchmarkOnDevices("BM_003_c21_Hundreds_Loop", DoubleLoop);

// The request of an operation that has next to nothing to do, and its end.
void Enqueue(benchmark::State& state, Device device) {
  const Tensor x = Ones({1}, device);
  for (auto _ : state) {
    const Tensor y = x + 1;
    Synchronize(device);
  }
  state.SetItemsProcessed(state.iterations());
}
[[maybe_unused]] const bool latencies =
    BenchmarkOnDevices("BM_d2l_latencies_OneElement", Enqueue);

void SumOfATensor(benchmark::State& state, Device device) {
  const Tensor all = Rand({kRows, 100}, device);
  for (auto _ : state) {
    Sum(all, {0});
    Synchronize(device);
  }
  state.SetItemsProcessed(state.iterations() * kRows);
}
[[maybe_unused]] const bool summary_tensor =
    BenchmarkOnDevices("BM_003_summary_Sum_Tensor", SumOfATensor);

void SumOfAList(benchmark::State& state, Device device) {
  const Tensor all = Rand({kRows, 100}, device);
  std::vector<Tensor> list;
  for (int i = 0; i < kRows; ++i) list.push_back(Clone(all[i]));
  for (auto _ : state) {
    Tensor sum = list[0];
    for (int i = 1; i < kRows; ++i) sum = sum + list[i];
    Synchronize(device);
  }
  state.SetItemsProcessed(state.iterations() * kRows);
}
[[maybe_unused]] const bool summary_list =
    BenchmarkOnDevices("BM_003_summary_Sum_List", SumOfAList);

}  // namespace
}  // namespace d2l
