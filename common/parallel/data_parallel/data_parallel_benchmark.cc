// Steps of training by DataParallel, on virtual CPU devices of one core each.
//
//   bazel run //common/parallel:data_parallel_benchmarks

#include <cstdint>
#include <iostream>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "benchmark/benchmark.h"
#include "common/device/device_table.h"
#include "common/nn/models.h"
#include "common/ops/ops.h"
#include "common/parallel/data_parallel/data_parallel.h"

namespace d2l {
namespace {

std::vector<int> FirstIds(std::int64_t count) {
  std::vector<int> ids(count);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

void Run(benchmark::State& state, nn::Sequential net, std::int64_t samples,
         DataParallelOptions options) {
  DataParallel parallel(std::move(net), FirstIds(state.range(0)),
                        std::move(options));
  const Tensor x = Randn({samples, 1, 28, 28});
  const Tensor labels = RandInt(0, 10, {samples});
  const auto step = [&] { parallel.Step(x, labels, {/*lr=*/0.01}); };
  const auto wait = [&] {
    for (const Device device : parallel.devices()) Synchronize(device);
  };
  for (int i = 0; i < 3; ++i) step();
  wait();
  for ([[maybe_unused]] const auto iteration : state) step();
  wait();
  state.counters["samples/s"] =
      benchmark::Counter(static_cast<double>(state.iterations() * samples),
                         benchmark::Counter::kIsRate);
}

void BM_LeNet(benchmark::State& state) { Run(state, nn::LeNet(), 256, {}); }
BENCHMARK(BM_LeNet)->ArgName("devices")->Arg(1)->Arg(2)->UseRealTime();

// The time for which the host enqueues a step: the batches are so small that
// there is hardly more to do.
void BM_LeNetOfTwoSamples(benchmark::State& state) {
  Run(state, nn::LeNet(), 2, {});
}
BENCHMARK(BM_LeNetOfTwoSamples)
    ->ArgName("devices")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime();

// Over links of 50 MB/s and 2.5 ms, with a bucket for the linear layers and one
// for the convolutions: overlapped or not.
void BM_LeNetOverLinks(benchmark::State& state) {
  VirtualTiming timing;
  timing.links = Topology::NvSwitch(2, 5e7, 2.5e-3);
  const VirtualTimingScope scope(timing);
  DataParallelOptions options;
  options.first_bucket_bytes = options.bucket_bytes = 1 << 17;
  options.overlap = state.range(1) != 0;
  Run(state, nn::LeNet(), 256, options);
}
BENCHMARK(BM_LeNetOverLinks)
    ->ArgNames({"devices", "overlap"})
    ->Args({2, 0})
    ->Args({2, 1})
    ->UseRealTime();

}  // namespace
}  // namespace d2l

int main(int argc, char** argv) {
  const absl::Status status = d2l::InitializeDevices("cpu:0,cpu:1");
  if (!status.ok()) {
    std::cerr << status.message() << "\n";
    return 2;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
