// The cells of the lesson as benchmarks, at the course's size.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <sstream>
#include <vector>

#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/lesson/benchmark_devices.h"
#include "common/lesson/host_library.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

constexpr int kProducts = 10;
constexpr int kN = 1000;

void SetRates(benchmark::State& state) {
  const double n = kN;
  SetRate(state, "FLOP", kProducts * 2 * n * n * n);
  state.SetItemsProcessed(state.iterations() * kProducts);
}

void TenProducts(Device device) {
  for (int i = 0; i < kProducts; ++i) {
    const Tensor a = Randn({kN, kN}, device);
    const Tensor b = MatMul(a, a);
  }
}

void BM_004_In2_RandnMatMul_Host(benchmark::State& state) {
  for (auto _ : state) {
    for (int i = 0; i < kProducts; ++i) {
      const std::vector<float> a = HostRandn(std::int64_t{kN} * kN);
      benchmark::DoNotOptimize(HostMatMul(a, a, kN));
    }
  }
  SetRates(state);
}
BENCHMARK(BM_004_In2_RandnMatMul_Host)->UseRealTime();

// Until the calls have returned; the work is waited for outside the clock.
void Enqueue(benchmark::State& state, Device device) {
  TenProducts(device);
  Synchronize(device);
  for (auto _ : state) {
    const Timer timer;
    TenProducts(device);
    state.SetIterationTime(timer.Seconds());
    Synchronize(device);
  }
  state.SetItemsProcessed(state.iterations() * kProducts);
}

void Synchronized(benchmark::State& state, Device device) {
  TenProducts(device);
  Synchronize(device);
  for (auto _ : state) {
    TenProducts(device);
    Synchronize(device);
  }
  SetRates(state);
}

Tensor ThreeStatements(Device device) {
  const Tensor x = Ones({1, 2}, device);
  const Tensor y = Ones({1, 2}, device);
  return x * y + 2;
}

void ThreeStatementsEnqueue(benchmark::State& state, Device device) {
  for (auto _ : state) {
    const Timer timer;
    const Tensor z = ThreeStatements(device);
    state.SetIterationTime(timer.Seconds());
    Synchronize(device);
  }
  state.SetItemsProcessed(state.iterations());
}

void ThreeStatementsPrint(benchmark::State& state, Device device) {
  for (auto _ : state) {
    std::ostringstream() << ThreeStatements(device);
  }
  state.SetItemsProcessed(state.iterations());
}

[[maybe_unused]] const bool registered[] = {
    BenchmarkOnDevices("BM_004_In2_RandnMatMul_Enqueue", Enqueue,
                       BenchmarkTime::kManual, /*iterations=*/20),
    BenchmarkOnDevices("BM_004_In4_RandnMatMul_Synchronized", Synchronized),
    BenchmarkOnDevices("BM_004_In5_OnesMulAdd_Enqueue", ThreeStatementsEnqueue,
                       BenchmarkTime::kManual),
    BenchmarkOnDevices("BM_004_In5_OnesMulAdd_Print", ThreeStatementsPrint),
};

}  // namespace
}  // namespace d2l
