// The cells of the lesson as benchmarks, at the course's size.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chapters/multi_gpu/networks.h"
#include "chapters/multi_gpu/scratch.h"
#include "chapters/multi_gpu/three_splits.h"
#include "common/data/dataset.h"
#include "common/data/loader.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/lesson/benchmark_devices.h"
#include "common/nn/layers.h"
#include "common/nn/models.h"
#include "common/ops/ops.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/collective/schedule.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/tensor/tensor.h"

namespace d2l::multi_gpu {
namespace {

constexpr std::int64_t kWidth = 256;
constexpr std::int64_t kBatch = 256;

// A step on all the devices, until all of it is done.
template <typename Work>
void Steps(benchmark::State& state, const std::vector<Device>& devices,
           std::int64_t samples, Work step) {
  const auto done = [&] {
    for (const Device device : devices) Synchronize(device);
  };
  step();
  done();
  for (auto _ : state) {
    step();
    done();
  }
  state.SetItemsProcessed(state.iterations() * samples);
}

// --- d2l/three-splits ------------------------------------------------------

template <typename MakeStep>
void SplitStep(benchmark::State& state, const std::vector<Device>& devices,
               MakeStep make) {
  const SplitNet net = MakeSplitNet(2, kWidth, 2 * kWidth, devices[0]);
  const Step step = make(net);
  const Tensor x = Randn({kBatch, kWidth}, devices[0]);
  const Tensor target = Randn({kBatch, kWidth}, devices[0]);
  Steps(state, devices, kBatch, [&] { step(x, target); });
}

void WholeNet(benchmark::State& state, Device device) {
  SplitStep(state, {device}, OneDevice);
}

void Layers(benchmark::State& state, Device first, Device second) {
  const std::vector<Device> devices = {first, second};
  SplitStep(state, devices, [&](const SplitNet& net) {
    return Pipeline(net, devices, /*micro_batches=*/4);
  });
}

void LayersInside(benchmark::State& state, Device first, Device second) {
  const std::vector<Device> devices = {first, second};
  SplitStep(state, devices,
            [&](const SplitNet& net) { return WithinLayers(net, devices); });
}

void Data(benchmark::State& state, Device first, Device second) {
  const std::vector<Device> devices = {first, second};
  SplitStep(state, devices,
            [&](const SplitNet& net) { return DataShards(net, devices); });
}

[[maybe_unused]] const bool registered_splits =
    BenchmarkOnDevices("BM_d2l_three_splits_OneDevice", WholeNet) &&
    BenchmarkOnDevicePairs("BM_d2l_three_splits_Layers", Layers) &&
    BenchmarkOnDevicePairs("BM_d2l_three_splits_WithinLayers", LayersInside) &&
    BenchmarkOnDevicePairs("BM_d2l_three_splits_Data", Data);

// --- d2l/lenet-scratch -----------------------------------------------------

void LeNetStep(benchmark::State& state, const std::vector<Device>& devices) {
  const Dataset data = GenerateImages(kBatch);
  DataLoader loader(data, {kBatch}, devices[0]);
  const Batch batch = *loader.Next();
  ReplicaSet replicas = Replicate(LeNet().init(devices[0]), devices);
  Steps(state, devices, kBatch, [&] {
    TrainBatch(LeNet(), batch.images, batch.labels, replicas, 0.01);
  });
}

void LeNetOne(benchmark::State& state, Device device) {
  LeNetStep(state, {device});
}
void LeNetTwo(benchmark::State& state, Device first, Device second) {
  LeNetStep(state, {first, second});
}

[[maybe_unused]] const bool registered_lenet =
    BenchmarkOnDevices("BM_d2l_lenet_scratch_OneDevice", LeNetOne) &&
    BenchmarkOnDevicePairs("BM_d2l_lenet_scratch_TwoDevices", LeNetTwo);

// --- 002/c2: DataParallel ---------------------------------------------------

void ParallelStep(benchmark::State& state, nn::Sequential net,
                  const std::vector<Device>& devices, std::int64_t each) {
  const auto parallel =
      std::make_shared<DataParallel>(std::move(net), NumbersOf(devices));
  Steps(state, devices, each * static_cast<std::int64_t>(devices.size()),
        Stepper(parallel, each));
}

void Concise(benchmark::State& state, Device first, Device second) {
  ParallelStep(state, nn::LeNet(first), {first, second}, kBatch / 2);
}

[[maybe_unused]] const bool registered_concise =
    BenchmarkOnDevicePairs("BM_002_c2_Step", Concise);

// --- d2l/resnet18 -----------------------------------------------------------

void ResNetOne(benchmark::State& state, Device device) {
  ParallelStep(state, nn::ResNet18(kClasses, 1, device), {device}, 16);
}
void ResNetTwo(benchmark::State& state, Device first, Device second) {
  ParallelStep(state, nn::ResNet18(kClasses, 1, first), {first, second}, 16);
}

[[maybe_unused]] const bool registered_resnet =
    BenchmarkOnDevices("BM_d2l_resnet18_OneDevice", ResNetOne) &&
    BenchmarkOnDevicePairs("BM_d2l_resnet18_TwoDevices", ResNetTwo);

// --- d2l/straggler ---------------------------------------------------------

// The second device is three times as slow.
void SlowSecond(benchmark::State& state, const std::vector<Device>& devices,
                const std::vector<int>& plan) {
  const Dataset data = GenerateImages(4096);
  DataLoader loader(data, {data.size()}, devices[0]);
  const Batch batch = *loader.Next();
  const ScratchNet net = SmallMlp();
  const ReplicaSet replicas = Replicate(net.init(devices[0]), devices);
  Steps(state, devices, data.size(),
        [&] { SlowStep(net, batch, replicas, plan, /*slow=*/3); });
}

void Even(benchmark::State& state, Device first, Device second) {
  SlowSecond(state, {first, second}, {1, 1});
}

void ThreeToOne(benchmark::State& state, Device first, Device second) {
  SlowSecond(state, {first, second}, {3, 1});
}

[[maybe_unused]] const bool registered_straggler =
    BenchmarkOnDevicePairs("BM_d2l_straggler_Even", Even) &&
    BenchmarkOnDevicePairs("BM_d2l_straggler_ThreeToOne", ThreeToOne);

// --- d2l/overlap-link ------------------------------------------------------

template <bool overlap>
void Linked(benchmark::State& state, Device first, Device second) {
  const auto net = LinkedMlp({first, second}, overlap, /*link=*/true);
  const Tensor x = Rand({1024, 784}, net->devices()[0]);
  const Tensor y = RandInt(0, kClasses, {1024}, net->devices()[0]);
  Steps(state, net->devices(), 1024, [&] { net->Step(x, y, {/*lr=*/0.01}); });
}

[[maybe_unused]] const bool registered_link =
    BenchmarkOnDevicePairs("BM_d2l_overlap_link_AtTheEnd", Linked<false>) &&
    BenchmarkOnDevicePairs("BM_d2l_overlap_link_Overlapped", Linked<true>);

// --- d2l/parameter-server --------------------------------------------------

template <AllReduceAlgorithm algorithm>
void Sum64MB(benchmark::State& state, Device first, Device second) {
  const std::vector<Tensor> data = {Zeros({1 << 24}, first),
                                    Zeros({1 << 24}, second)};
  if (algorithm == AllReduceAlgorithm::kNccl) {
    const absl::Status status = CheckNccl({first, second});
    if (!status.ok()) {
      state.SkipWithError(absl::StrCat("skipped: ", status.message()).c_str());
      return;
    }
  }
  Steps(state, {first, second}, 1 << 24, [&] { AllReduce(data, algorithm); });
}

[[maybe_unused]] const bool registered_server =
    BenchmarkOnDevicePairs("BM_d2l_parameter_server_Split",
                           Sum64MB<AllReduceAlgorithm::kSplit>) &&
    BenchmarkOnDevicePairs("BM_d2l_parameter_server_Star",
                           Sum64MB<AllReduceAlgorithm::kStar>) &&
    BenchmarkOnDevicePairs("BM_d2l_parameter_server_Ring",
                           Sum64MB<AllReduceAlgorithm::kRing>) &&
    BenchmarkOnDevicePairs("BM_d2l_parameter_server_Nccl",
                           Sum64MB<AllReduceAlgorithm::kNccl>);

}  // namespace
}  // namespace d2l::multi_gpu
