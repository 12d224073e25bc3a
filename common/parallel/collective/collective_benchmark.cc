// Collectives of 64 MiB on virtual CPU devices, one core each, beside the
// memory's own speed: a copy on each device at the same time.
//
//   bazel run //common/parallel:benchmarks -- --benchmark_repetitions=5
//
// "bytes" are those that the algorithm reads and writes in one memory. "CPU" is
// the CPU time of all threads, which other programs disturb less than the time.

#include <cstdint>
#include <iostream>
#include <vector>

#include "absl/status/status.h"
#include "benchmark/benchmark.h"
#include "common/device/device_table.h"
#include "common/ops/ops.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/collective/schedule.h"

namespace d2l {
namespace {

constexpr std::int64_t kBytes = std::int64_t{64} << 20;
constexpr std::int64_t kNumel = kBytes / 4;

std::vector<Tensor> Replicas(int ranks, std::int64_t numel) {
  std::vector<Tensor> tensors;
  for (int r = 0; r < ranks; ++r) {
    tensors.push_back(Rand({numel}, Device(DeviceType::kCpu, r)));
  }
  return tensors;
}

void SynchronizeAll(int ranks) {
  for (int r = 0; r < ranks; ++r) Synchronize(Device(DeviceType::kCpu, r));
}

// How often each algorithm reads or writes an array of a device.
int Passes(AllReduceAlgorithm algorithm, int ranks) {
  switch (algorithm) {
    case AllReduceAlgorithm::kSplit:
    case AllReduceAlgorithm::kStar:
      return 3 * ranks - 1;
    case AllReduceAlgorithm::kHost:
      return 3 * ranks + 1;
    case AllReduceAlgorithm::kRing:
    case AllReduceAlgorithm::kBidirectionalRing:
      return 5 * (ranks - 1);
    case AllReduceAlgorithm::kNccl:  // not on CPU devices
      break;
  }
  return 0;
}

void BM_AllReduce(benchmark::State& state) {
  const auto algorithm = static_cast<AllReduceAlgorithm>(state.range(0));
  const int ranks = static_cast<int>(state.range(1));
  state.SetLabel(AllReduceAlgorithmName(algorithm));
  const std::vector<Tensor> x = Replicas(ranks, kNumel);
  SynchronizeAll(ranks);
  for (auto _ : state) {
    AllReduce(x, algorithm);
    SynchronizeAll(ranks);
  }
  state.SetBytesProcessed(state.iterations() * kBytes *
                          Passes(algorithm, ranks));
  const double busbw = BusBandwidth(ranks, kBytes, /*seconds=*/1);
  constexpr auto kRate = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["algbw"] = benchmark::Counter(kBytes, kRate);
  state.counters["busbw"] = benchmark::Counter(busbw, kRate);
}
BENCHMARK(BM_AllReduce)
    ->ArgNames({"algorithm", "devices"})
    ->ArgsProduct({{0, 1, 2, 3, 4}, {2, 4}})
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// Small arrays: the cost of a collective besides the bytes.
void BM_AllReduceSmall(benchmark::State& state) {
  const auto algorithm = static_cast<AllReduceAlgorithm>(state.range(0));
  const int ranks = static_cast<int>(state.range(1));
  state.SetLabel(AllReduceAlgorithmName(algorithm));
  const std::vector<Tensor> x = Replicas(ranks, 16);
  SynchronizeAll(ranks);
  for (auto _ : state) {
    AllReduce(x, algorithm);
    SynchronizeAll(ranks);
  }
}
BENCHMARK(BM_AllReduceSmall)
    ->ArgNames({"algorithm", "devices"})
    ->ArgsProduct({{0, 3}, {2, 4}})
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// The bound: the bytes per second of copies, each device its own.
void BM_Copies(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  const std::vector<Tensor> from = Replicas(ranks, kNumel);
  const std::vector<Tensor> to = Replicas(ranks, kNumel);
  SynchronizeAll(ranks);
  for (auto _ : state) {
    for (int r = 0; r < ranks; ++r) CopyTo(from[r], to[r]);
    SynchronizeAll(ranks);
  }
  state.SetBytesProcessed(state.iterations() * kBytes * 2 * ranks);
}
BENCHMARK(BM_Copies)
    ->ArgName("devices")
    ->Arg(1)
    ->Arg(2)
    ->Arg(4)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace d2l

int main(int argc, char** argv) {
  const absl::Status status = d2l::InitializeDevices("cpu:0,cpu:1,cpu:2,cpu:3");
  if (!status.ok()) {
    std::cerr << status.message() << "\n";
    return 2;
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
