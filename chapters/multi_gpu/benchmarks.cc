// The cells' programs as benchmarks, at the course's size.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chapters/multi_gpu/cells.h"
#include "chapters/multi_gpu/from_scratch/data_parallel.h"
#include "chapters/multi_gpu/from_scratch/three_splits.h"
#include "common/d2l.h"
#include "common/lesson/benchmark_devices.h"

namespace d2l::multi_gpu {
namespace {

constexpr std::int64_t kWidth = 256;
constexpr std::int64_t kBatch = 256;

using State = benchmark::State;
using DeviceList = std::vector<Device>;

// A benchmark on several devices as one of a device, and of two.
template <auto benchmark>
void OnOne(State& state, Device device) {
  benchmark(state, {device});
}
template <auto benchmark>
void OnTwo(State& state, Device first, Device second) {
  benchmark(state, {first, second});
}

// A step on all the devices, until all of it is done.
template <typename Work>
void Steps(State& state, const DeviceList& devices, std::int64_t samples,
           Work step) {
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

Batch FirstBatch(std::int64_t size, Device device) {
  const Dataset data = GenerateImages(size);
  return *DataLoader(data, {size}, device).Next();
}

Step FourParts(const SplitNet& net, const DeviceList& devices) {
  return Pipeline(net, devices, /*micro_batches=*/4);
}
Step Alone(const SplitNet& net, const DeviceList&) { return OneDevice(net); }

template <Step (*split)(const SplitNet&, const DeviceList&)>
void SplitStep(State& state, const DeviceList& devices) {
  const SplitNet net = MakeSplitNet(2, kWidth, 2 * kWidth, devices[0]);
  const Step step = split(net, devices);
  const Tensor x = Randn({kBatch, kWidth}, devices[0]);
  const Tensor target = Randn({kBatch, kWidth}, devices[0]);
  Steps(state, devices, kBatch, [&] { step(x, target); });
}

void LeNetStep(State& state, const DeviceList& devices) {
  const Batch batch = FirstBatch(kBatch, devices[0]);
  ReplicaSet replicas = Replicate(LeNet().init(devices[0]), devices);
  Steps(state, devices, kBatch, [&] {
    TrainBatch(LeNet(), batch.images, batch.labels, replicas, 0.01);
  });
}

// each: samples a device.
void ParallelStep(State& state, nn::Sequential net, const DeviceList& devices,
                  std::int64_t each) {
  const auto parallel =
      std::make_shared<DataParallel>(std::move(net), NumbersOf(devices));
  Steps(state, devices, each * static_cast<std::int64_t>(devices.size()),
        Stepper(parallel, each));
}
void ConciseStep(State& state, const DeviceList& devices) {
  ParallelStep(state, nn::LeNet(devices[0]), devices, kBatch / 2);
}
void ResNetStep(State& state, const DeviceList& devices) {
  ParallelStep(state, nn::ResNet18(kClasses, 1, devices[0]), devices, 16);
}

// The second device is three times as slow; of four rows the first one gets so
// many.
template <int share>
void SlowSecond(State& state, const DeviceList& devices) {
  const Batch batch = FirstBatch(4096, devices[0]);
  const ScratchNet net = SmallMlp();
  const ReplicaSet replicas = Replicate(net.init(devices[0]), devices);
  Steps(state, devices, 4096, [&] {
    SlowStep(net, batch, replicas, {share, 4 - share}, /*slow=*/3);
  });
}

template <bool overlap>
void Linked(State& state, const DeviceList& devices) {
  const auto net = LinkedMlp(devices, overlap, /*link=*/true);
  const Tensor x = Rand({1024, 784}, devices[0]);
  const Tensor y = RandInt(0, kClasses, {1024}, devices[0]);
  Steps(state, devices, 1024, [&] { net->Step(x, y, {/*lr=*/0.01}); });
}

template <AllReduceAlgorithm algorithm>
void Sum64MB(State& state, const DeviceList& devices) {
  std::vector<Tensor> data;
  for (const Device device : devices) data.push_back(Zeros({1 << 24}, device));
  if (algorithm == AllReduceAlgorithm::kNccl) {
    const absl::Status status = CheckNccl(devices);
    if (!status.ok()) {
      state.SkipWithError(absl::StrCat("skipped: ", status.message()).c_str());
      return;
    }
  }
  Steps(state, devices, 1 << 24, [&] { AllReduce(data, algorithm); });
}

using Algorithm = AllReduceAlgorithm;

[[maybe_unused]] const bool registered[] = {
    BenchmarkOnDevices("BM_d2l_three_splits_OneDevice",
                       OnOne<SplitStep<Alone>>),
    BenchmarkOnDevicePairs("BM_d2l_three_splits_Layers",
                           OnTwo<SplitStep<FourParts>>),
    BenchmarkOnDevicePairs("BM_d2l_three_splits_WithinLayers",
                           OnTwo<SplitStep<WithinLayers>>),
    BenchmarkOnDevicePairs("BM_d2l_three_splits_Data",
                           OnTwo<SplitStep<DataShards>>),
    BenchmarkOnDevices("BM_d2l_lenet_scratch_OneDevice", OnOne<LeNetStep>),
    BenchmarkOnDevicePairs("BM_d2l_lenet_scratch_TwoDevices", OnTwo<LeNetStep>),
    BenchmarkOnDevicePairs("BM_002_c2_Step", OnTwo<ConciseStep>),
    BenchmarkOnDevices("BM_d2l_resnet18_OneDevice", OnOne<ResNetStep>),
    BenchmarkOnDevicePairs("BM_d2l_resnet18_TwoDevices", OnTwo<ResNetStep>),
    BenchmarkOnDevicePairs("BM_d2l_straggler_Even", OnTwo<SlowSecond<2>>),
    BenchmarkOnDevicePairs("BM_d2l_straggler_ThreeToOne", OnTwo<SlowSecond<3>>),
    BenchmarkOnDevicePairs("BM_d2l_overlap_link_AtTheEnd",
                           OnTwo<Linked<false>>),
    BenchmarkOnDevicePairs("BM_d2l_overlap_link_Overlapped",
                           OnTwo<Linked<true>>),
    BenchmarkOnDevicePairs("BM_d2l_parameter_server_Split",
                           OnTwo<Sum64MB<Algorithm::kSplit>>),
    BenchmarkOnDevicePairs("BM_d2l_parameter_server_Star",
                           OnTwo<Sum64MB<Algorithm::kStar>>),
    BenchmarkOnDevicePairs("BM_d2l_parameter_server_Ring",
                           OnTwo<Sum64MB<Algorithm::kRing>>),
    BenchmarkOnDevicePairs("BM_d2l_parameter_server_Nccl",
                           OnTwo<Sum64MB<Algorithm::kNccl>>),
};

}  // namespace
}  // namespace d2l::multi_gpu
