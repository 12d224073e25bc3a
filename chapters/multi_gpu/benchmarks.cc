// The cells' programs as benchmarks, at the course's size.

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "chapters/multi_gpu/cells.h"
#include "chapters/multi_gpu/from_scratch/data_parallel.h"
#include "chapters/multi_gpu/from_scratch/three_splits.h"
#include "common/d2l.h"
#include "common/lesson/cell/benchmark.h"
#include "common/parallel/nccl/nccl.h"

namespace d2l::multi_gpu {
namespace {

constexpr std::int64_t kWidth = 256;
constexpr std::int64_t kBatch = 256;

using DeviceList = std::vector<Device>;
using Work = std::function<void()>;
using MakeStep = std::function<Work(const DeviceList& devices)>;

// A step with this number of samples, on one device and on two.
bool OnOne(const std::string& name, std::int64_t samples,
           const MakeStep& make) {
  return BenchmarkWork(name, samples,
                       [make](Device device) { return make({device}); });
}
bool OnTwo(const std::string& name, std::int64_t samples, const MakeStep& make,
           const Rates& rates = {}) {
  return BenchmarkPairWork(
      name, samples,
      [make](Device first, Device second) {
        return make({first, second});
      },
      /*flop=*/0, rates);
}

Batch FirstBatch(std::int64_t size, Device device) {
  const Dataset data = GenerateImages(size);
  return *DataLoader(data, {size}, device).Next();
}

template <typename Split>
MakeStep SplitStep(Split split) {
  return [split](const DeviceList& devices) -> Work {
    const SplitNet net = MakeSplitNet(2, kWidth, 2 * kWidth, devices[0]);
    const Tensor x = Randn({kBatch, kWidth}, devices[0]);
    const Tensor target = Randn({kBatch, kWidth}, devices[0]);
    return [step = split(net, devices), x, target] { step(x, target); };
  };
}

Work LeNetStep(const DeviceList& devices) {
  const Batch batch = FirstBatch(kBatch, devices[0]);
  return [batch,
          replicas = Replicate(LeNet().init(devices[0]), devices)]() mutable {
    TrainBatch(LeNet(), batch.images, batch.labels, replicas, 0.01);
  };
}

Work ConciseStep(const DeviceList& devices) {
  return Stepper(
      std::make_shared<DataParallel>(nn::LeNet(devices[0]), NumbersOf(devices)),
      kBatch / 2);
}

constexpr std::int64_t kEach = 16;  // samples per device
Work ResNetStep(const DeviceList& devices) {
  return Stepper(std::make_shared<DataParallel>(
                     nn::ResNet18(kClasses, 1, devices[0]), NumbersOf(devices)),
                 kEach);
}

// The second device is three times as slow; the first one gets `share` of four
// rows.
bool SlowSecond(const std::string& name, int share) {
  return OnTwo(name, 4096, [share](const DeviceList& devices) -> Work {
    const Batch batch = FirstBatch(4096, devices[0]);
    const ScratchNet net = SmallMlp();
    const ReplicaSet replicas = Replicate(net.init(devices[0]), devices);
    return [=] {
      SlowStep(net, batch, replicas, {share, 4 - share}, /*slow=*/3);
    };
  });
}

bool Linked(const std::string& name, bool overlap) {
  return OnTwo(name, 1024, [overlap](const DeviceList& devices) -> Work {
    const Tensor x = Rand({1024, 784}, devices[0]);
    const Tensor y = RandInt(0, kClasses, {1024}, devices[0]);
    return [=, net = LinkedMlp(devices, overlap, /*link=*/true)] {
      net->Step(x, y, {/*lr=*/0.01});
    };
  });
}

// again: the values between layers are computed again.
bool Deep(const std::string& name, bool again) {
  return OnOne(name, 2048, [again](const DeviceList& devices) -> Work {
    const Tensor x = Randn({2048, kWidth}, devices[0]);
    const Tensor y = RandInt(0, kClasses, {2048}, devices[0]);
    return [=, net = DeepNet(devices[0], kWidth, again)] {
      net->Step(x, y, {/*lr=*/0.01});
    };
  });
}

bool Sum64MB(const std::string& name, AllReduceAlgorithm algorithm) {
  constexpr double kBytes = 1 << 26;
  const Rates rates = {{"algbw", kBytes},
                       {"busbw", BusBandwidth(2, kBytes, /*seconds=*/1)}};
  const auto make = [algorithm](const DeviceList& devices) -> Work {
    if (algorithm == AllReduceAlgorithm::kNccl) {
      const absl::Status status = CheckNccl(devices);
      if (!status.ok()) {
        throw std::runtime_error(std::string(status.message()));
      }
    }
    std::vector<Tensor> data;
    for (const Device device : devices) {
      data.push_back(Zeros({1 << 24}, device));
    }
    return [=] { AllReduce(data, algorithm); };
  };
  return OnTwo(name, 1 << 24, make, rates);
}

[[maybe_unused]] const bool registered[] = {
    OnOne("BM_d2l_three_splits_OneDevice", kBatch,
          SplitStep([](const SplitNet& net, const DeviceList&) {
            return OneDevice(net);
          })),
    OnTwo("BM_d2l_three_splits_Layers", kBatch,
          SplitStep([](const SplitNet& net, const DeviceList& devices) {
            return Pipeline(net, devices, /*micro_batches=*/4);
          })),
    OnTwo("BM_d2l_three_splits_WithinLayers", kBatch, SplitStep(WithinLayers)),
    OnTwo("BM_d2l_three_splits_Data", kBatch, SplitStep(DataShards)),
    OnOne("BM_d2l_lenet_scratch_OneDevice", kBatch, LeNetStep),
    OnTwo("BM_d2l_lenet_scratch_TwoDevices", kBatch, LeNetStep),
    OnTwo("BM_002_c2_Step", kBatch, ConciseStep),
    OnOne("BM_d2l_resnet18_OneDevice", kEach, ResNetStep),
    OnTwo("BM_d2l_resnet18_TwoDevices", 2 * kEach, ResNetStep),
    SlowSecond("BM_d2l_straggler_Even", 2),
    SlowSecond("BM_d2l_straggler_ThreeToOne", 3),
    Linked("BM_d2l_overlap_link_AtTheEnd", /*overlap=*/false),
    Linked("BM_d2l_overlap_link_Overlapped", /*overlap=*/true),
    Deep("BM_d2l_recompute_Kept", /*again=*/false),
    Deep("BM_d2l_recompute_Again", /*again=*/true),
    Sum64MB("BM_d2l_parameter_server_Split", AllReduceAlgorithm::kSplit),
    Sum64MB("BM_d2l_parameter_server_Star", AllReduceAlgorithm::kStar),
    Sum64MB("BM_d2l_parameter_server_Ring", AllReduceAlgorithm::kRing),
    Sum64MB("BM_d2l_parameter_server_Nccl", AllReduceAlgorithm::kNccl),
};

}  // namespace
}  // namespace d2l::multi_gpu
