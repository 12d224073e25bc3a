// The cells of the lesson as benchmarks, at the course's size.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <vector>

#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/memory/memory.h"
#include "common/device/stream.h"
#include "common/device/stream_stall.h"
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

// Additions of 100 x 100 numbers.
void Additions(benchmark::State& state, Device device, bool launch_blocking) {
  constexpr int kAdditions = 1000;
  const Tensor a = Zeros({100, 100}, device);
  const bool before = LaunchBlocking();
  SetLaunchBlocking(launch_blocking);
  for (auto _ : state) {
    for (int i = 0; i < kAdditions; ++i) const Tensor b = a + i;
    Synchronize(device);
  }
  SetLaunchBlocking(before);
  state.SetItemsProcessed(state.iterations() * kAdditions);
}

void AdditionsWithout(benchmark::State& state, Device device) {
  Additions(state, device, /*launch_blocking=*/false);
}

void AdditionsWith(benchmark::State& state, Device device) {
  Additions(state, device, /*launch_blocking=*/true);
}

enum class Epoch { kEnqueueing, kSynchronizing, kReading };

// Minibatches whose inputs come from the host and whose outputs are kept until
// the end, unless they are read. Counts the memory of the device and of staging
// buffers at its peak.
void RunEpoch(benchmark::State& state, Device device, Epoch epoch) {
  constexpr int kSize = 512;
  constexpr int kBatches = 32;
  const std::vector<float> host(kSize * kSize, 1);
  const Tensor ones = FromVector(host, {kSize, kSize}, device);
  Synchronize(device);
  DeviceMemory& memory = Memory(device);
  DeviceMemory& staging = PinnedMemory(device);
  for (DeviceMemory* m : {&memory, &staging}) {
    m->EmptyCache();
    m->ResetPeak();
  }
  for (auto _ : state) {
    std::vector<Tensor> outputs;
    for (int i = 0; i < kBatches; ++i) {
      const Tensor in = FromVector(host, {kSize, kSize}, device);
      outputs.push_back(Relu(MatMul(in, ones)) + i);
      if (epoch == Epoch::kSynchronizing) Synchronize(device);
      if (epoch == Epoch::kReading) {
        benchmark::DoNotOptimize(Item(Mean(outputs[0])));
        outputs.clear();
      }
    }
    Synchronize(device);
  }
  state.counters["device_bytes"] = static_cast<double>(memory.Stats().peak);
  state.counters["staging_bytes"] = static_cast<double>(staging.Stats().peak);
  state.SetItemsProcessed(state.iterations() * kBatches);
}

void EpochEnqueueing(benchmark::State& state, Device device) {
  RunEpoch(state, device, Epoch::kEnqueueing);
}

void EpochSynchronizing(benchmark::State& state, Device device) {
  RunEpoch(state, device, Epoch::kSynchronizing);
}

void EpochReading(benchmark::State& state, Device device) {
  RunEpoch(state, device, Epoch::kReading);
}

// A product, three more behind it, and a barrier. Until the barrier lets go;
// what is left is waited for outside the clock.
void Barrier(benchmark::State& state, Device device, bool wait_for_all) {
  const Tensor a = Rand({kN, kN}, device);
  Synchronize(device);
  for (auto _ : state) {
    const Timer timer;
    const Tensor b = MatMul(a, a);
    for (int i = 0; i < 3; ++i) MatMul(a, a);
    if (wait_for_all) {
      Synchronize(device);
    } else {
      WaitToRead(b);
    }
    state.SetIterationTime(timer.Seconds());
    Synchronize(device);
  }
  state.SetItemsProcessed(state.iterations());
}

void WaitAll(benchmark::State& state, Device device) {
  Barrier(state, device, /*wait_for_all=*/true);
}

void WaitToReadOne(benchmark::State& state, Device device) {
  Barrier(state, device, /*wait_for_all=*/false);
}

constexpr int kReads = 10000;

void ReadEach(benchmark::State& state, Device device) {
  const Tensor x = Ones({}, device);
  for (auto _ : state) {
    double sum = 0;
    for (int i = 0; i < kReads; ++i) sum += Item(x * (i % 10));
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(state.iterations() * kReads);
}

void ReadAtTheEnd(benchmark::State& state, Device device) {
  const Tensor x = Ones({}, device);
  for (auto _ : state) {
    Tensor y;
    for (int i = 0; i < kReads; ++i) y = x * (i % 10);
    benchmark::DoNotOptimize(Item(y));
  }
  state.SetItemsProcessed(state.iterations() * kReads);
}

void SumOnTheDevice(benchmark::State& state, Device device) {
  const Tensor x = Ones({}, device);
  for (auto _ : state) {
    Tensor sum = Zeros({}, device);
    for (int i = 0; i < kReads; ++i) sum += x * (i % 10);
    benchmark::DoNotOptimize(Item(sum));
  }
  state.SetItemsProcessed(state.iterations() * kReads);
}

constexpr int kAddOnes = 10000;

void AddOneEach(benchmark::State& state, Device device) {
  const Tensor x = Ones({1, 2}, device);
  for (auto _ : state) {
    for (int i = 0; i < kAddOnes; ++i) {
      const Tensor y = x + 1;
      Synchronize(device);
    }
  }
  state.SetItemsProcessed(state.iterations() * kAddOnes);
}

void AddOneOnce(benchmark::State& state, Device device) {
  const Tensor x = Ones({1, 2}, device);
  for (auto _ : state) {
    for (int i = 0; i < kAddOnes; ++i) const Tensor y = x + 1;
    Synchronize(device);
  }
  state.SetItemsProcessed(state.iterations() * kAddOnes);
}

// t1 and t2: a thousand additions are enqueued while the device is held up,
// and then worked off; on a GPU, as many as fit.
void HeldUp(benchmark::State& state, Device device, bool enqueueing) {
  const int held = std::min(1000, StreamStall::Room(device));
  const Tensor x = Ones({1, 2}, device);
  { const Tensor y = x + 1; }
  Synchronize(device);
  for (auto _ : state) {
    StreamStall stall(DefaultStream(device));
    Timer timer;
    for (int i = 0; i < held; ++i) const Tensor y = x + 1;
    const double enqueued = timer.Seconds();
    timer.Restart();
    stall.Release();
    Synchronize(device);
    state.SetIterationTime(enqueueing ? enqueued : timer.Seconds());
  }
  state.SetItemsProcessed(state.iterations() * held);
}

void EnqueueWhileHeldUp(benchmark::State& state, Device device) {
  HeldUp(state, device, /*enqueueing=*/true);
}

void ComputeWhatWasHeldUp(benchmark::State& state, Device device) {
  HeldUp(state, device, /*enqueueing=*/false);
}

[[maybe_unused]] const bool registered[] = {
    BenchmarkOnDevices("BM_004_In2_RandnMatMul_Enqueue", Enqueue,
                       BenchmarkTime::kManual, /*iterations=*/20),
    BenchmarkOnDevices("BM_004_In4_RandnMatMul_Synchronized", Synchronized),
    BenchmarkOnDevices("BM_004_In5_OnesMulAdd_Enqueue", ThreeStatementsEnqueue,
                       BenchmarkTime::kManual),
    BenchmarkOnDevices("BM_004_In5_OnesMulAdd_Print", ThreeStatementsPrint),
    BenchmarkOnDevices("BM_000_launch_blocking_Add_Without", AdditionsWithout),
    BenchmarkOnDevices("BM_000_launch_blocking_Add_With", AdditionsWith),
    BenchmarkOnDevices("BM_004_queue_memory_Epoch_Enqueueing", EpochEnqueueing),
    BenchmarkOnDevices("BM_004_queue_memory_Epoch_Synchronizing",
                       EpochSynchronizing),
    BenchmarkOnDevices("BM_004_queue_memory_Epoch_Reading", EpochReading),
    BenchmarkOnDevices("BM_d2l_barriers_MatMul_WaitAll", WaitAll,
                       BenchmarkTime::kManual, /*iterations=*/20),
    BenchmarkOnDevices("BM_d2l_barriers_MatMul_WaitToRead", WaitToReadOne,
                       BenchmarkTime::kManual, /*iterations=*/20),
    BenchmarkOnDevices("BM_d2l_blockers_Mul_ReadEach", ReadEach),
    BenchmarkOnDevices("BM_d2l_blockers_Mul_ReadAtTheEnd", ReadAtTheEnd),
    BenchmarkOnDevices("BM_d2l_blockers_Mul_SumOnTheDevice", SumOnTheDevice),
    BenchmarkOnDevices("BM_d2l_t1_t2_t3_AddOne_Each", AddOneEach),
    BenchmarkOnDevices("BM_d2l_t1_t2_t3_AddOne_Once", AddOneOnce),
    BenchmarkOnDevices("BM_d2l_t1_t2_t3_AddOne_Enqueue", EnqueueWhileHeldUp,
                       BenchmarkTime::kManual),
    BenchmarkOnDevices("BM_d2l_t1_t2_t3_AddOne_Compute", ComputeWhatWasHeldUp,
                       BenchmarkTime::kManual),
};

}  // namespace
}  // namespace d2l
