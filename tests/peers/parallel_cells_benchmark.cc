// The cells of several devices: see cells_benchmark.cc. They run on the first
// two or four of --devices.

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/nn/models.h"
#include "common/ops/ops.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/tensor/dtype.h"
#include "common/tensor/tensor.h"
#include "tests/peers/measure.h"

namespace d2l {
namespace {

bool HasDevices(benchmark::State& state, std::size_t count) {
  if (Devices().size() >= count) return true;
  Skip(state, absl::StrFormat("%d devices wanted, there are %d; --devices= "
                              "makes more, such as --devices=cpu:0,cpu:1",
                              count, Devices().size()));
  return false;
}

void SynchronizeAll() {
  for (const DeviceInfo& info : Devices()) Synchronize(info.device);
}

// Training of LeNet with 256 images. A part is a net on the devices with these
// ids, and its images; the parts are independent.

constexpr std::int64_t kImages = 256;
constexpr int kSteps = 5;

class Part {
 public:
  Part(const std::vector<int>& ids, std::int64_t images)
      : device_(Devices()[ids[0]].device),
        net_(nn::LeNet(device_), ids),
        x_(Randn({images, 1, 28, 28}, device_)),
        labels_(Ones({images}, device_, DType::kInt64)) {}

  void Step() { net_.Step(x_, labels_, {/*lr=*/0.001}); }

 private:
  const Device device_;
  DataParallel net_;
  const Tensor x_, labels_;
};

void TrainLeNet(benchmark::State& state,
                const std::vector<std::vector<int>>& parts_ids) {
  if (!HasDevices(state, 2)) return;
  std::vector<std::unique_ptr<Part>> parts;
  const auto count = static_cast<std::int64_t>(parts_ids.size());
  for (const std::vector<int>& ids : parts_ids) {
    parts.push_back(std::make_unique<Part>(ids, kImages / count));
  }
  Measure(state, kSteps, [&] {
    for (int i = 0; i < kSteps; ++i) {
      for (const auto& part : parts) part->Step();
    }
    SynchronizeAll();
  });
}
BENCHMARK_CAPTURE(TrainLeNet, two_devices, {{0, 1}})
    ->Name("ddp_lenet")
    ->UseRealTime();
BENCHMARK_CAPTURE(TrainLeNet, one_device, {{0}})
    ->Name("ddp_lenet_in_turn")
    ->UseRealTime();
// Half of the images on each device, without exchange.
BENCHMARK_CAPTURE(TrainLeNet, apart, {{0}, {1}})
    ->Name("bound_ddp_lenet")
    ->UseRealTime();

// Sums of 64 MiB for each device.

constexpr std::int64_t kNumel = std::int64_t{16} << 20;

void AllReduce64MB(benchmark::State& state, int ranks) {
  if (!HasDevices(state, ranks)) return;
  std::vector<Tensor> x;
  for (int r = 0; r < ranks; ++r) {
    x.push_back(Rand({kNumel}, Devices()[r].device));
  }
  Measure(state, 1, [&] {
    AllReduce(x);
    SynchronizeAll();
  });
}
BENCHMARK_CAPTURE(AllReduce64MB, 2, 2)->Name("allreduce_64MB_2")->UseRealTime();
BENCHMARK_CAPTURE(AllReduce64MB, 4, 4)->Name("allreduce_64MB_4")->UseRealTime();

}  // namespace
}  // namespace d2l
