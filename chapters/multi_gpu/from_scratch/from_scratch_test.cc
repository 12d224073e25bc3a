#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "chapters/multi_gpu/cells.h"
#include "chapters/multi_gpu/from_scratch/data_parallel.h"
#include "chapters/multi_gpu/from_scratch/three_splits.h"
#include "common/d2l.h"

namespace d2l::multi_gpu {
namespace {

using ::testing::ElementsAre;

// `count` devices, some of them more than once if the table has fewer.
std::vector<Device> DevicesFor(int count) {
  std::vector<Device> devices;
  const std::vector<Device> all = AllDevices();
  for (int i = 0; i < count; ++i) devices.push_back(all[i % all.size()]);
  return devices;
}

void ExpectClose(const std::vector<float>& got,
                 const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], 1e-4 * (1 + std::abs(expected[i]))) << i;
  }
}

TEST(BookAllReduce, LeavesTheSumEverywhere) {
  for (const int n : {1, 2, 3}) {
    std::vector<Tensor> data;
    for (int i = 0; i < n; ++i) {
      data.push_back(Full({1, 2}, 1 << i, DevicesFor(n)[i]));
    }
    const std::vector<Tensor> handles = data;
    BookAllReduce(data);
    const auto sum = static_cast<float>((1 << n) - 1);
    for (const Tensor& t : handles) {
      EXPECT_THAT(ToVector<float>(t), ElementsAre(sum, sum));
    }
  }
}

// Makes the moves in order, on a number for each chunk of each rank. Expects
// that the first `workers` ranks end with the sum of all.
void ExpectSums(const CollectiveSchedule& schedule, int workers) {
  const int ranks = schedule.ranks(), chunks = schedule.chunks();
  std::vector<std::vector<std::int64_t>> held(
      ranks, std::vector<std::int64_t>(chunks, 0));
  for (int rank = 0; rank < workers; ++rank) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      held[rank][chunk] = (std::int64_t{1} << rank) + 1'000'000 * chunk;
    }
  }
  schedule.ForEach([&](const Move& move) {
    std::int64_t& to = held.at(move.to).at(move.chunk);
    to = held.at(move.from)[move.chunk] + (move.op == MoveOp::kAdd ? to : 0);
  });
  for (int rank = 0; rank < workers; ++rank) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      EXPECT_EQ(held[rank][chunk],
                (std::int64_t{1} << workers) - 1 + 1'000'000 * chunk * workers)
          << schedule.name() << ", rank " << rank << ", chunk " << chunk;
    }
  }
}

TEST(Networks, SchedulesLeaveTheSumEverywhere) {
  ExpectSums(Rings({{0}}), 1);
  ExpectSums(Rings({{2, 0, 1}}), 3);
  ExpectSums(Rings({{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}, {3, 0, 2, 4, 1}}), 5);
  for (const int machines : {1, 2, 3}) {
    for (const int each : {1, 2, 5}) {
      ExpectSums(Hierarchy(machines, each), machines * each);
    }
  }
  for (const int workers : {1, 3, 8}) {
    for (int servers = 1; servers <= workers; ++servers) {
      ExpectSums(Servers(workers, servers), workers);
    }
  }
}

TEST(TrainBatch, IsThatOfOneDevice) {
  const Dataset data = GenerateImages(7);
  DataLoader loader(data, {7}, AllDevices()[0]);
  const std::optional<Batch> batch = loader.Next();
  for (const ScratchNet& net : {SmallMlp(), LeNet()}) {
    const Params params = net.init(AllDevices()[0]);
    ReplicaSet one = Replicate(params, DevicesFor(1));
    TrainBatch(net, batch->images, batch->labels, one, 0.1);
    for (const int n : {2, 3, 8}) {
      ReplicaSet several = Replicate(params, DevicesFor(n));
      TrainBatch(net, batch->images, batch->labels, several, 0.1);
      for (const Params& replica : several.params) {
        for (std::size_t p = 0; p < params.size(); ++p) {
          ExpectClose(ToVector<float>(replica[p]),
                      ToVector<float>(one.params[0][p]));
        }
      }
    }
  }
}

TEST(LeNet, IsTheBooks) {
  const Device device = AllDevices()[0];
  const Params params = LeNet().init(device);
  std::int64_t count = 0;
  for (const Tensor& p : params) count += p.numel();
  EXPECT_EQ(count, 129'068);
  const Tensor y = LeNet().forward(Ones({3, 1, 28, 28}, device), params);
  EXPECT_EQ(y.shape(), Shape({3, 10}));
}

TEST(ThreeSplits, AreOneDevice) {
  const Device first = AllDevices()[0];
  const SplitNet net = MakeSplitNet(3, 10, 14, first);
  const Tensor x = Randn({11, 10}, first);
  const Tensor target = Randn({11, 10}, first);
  const std::vector<float> expected = OnHost(OneDevice(net)(x, target));
  for (const int n : {1, 2, 3}) {
    const std::vector<Device> devices = DevicesFor(n);
    ExpectClose(OnHost(DataShards(net, devices)(x, target)), expected);
    ExpectClose(OnHost(WithinLayers(net, devices)(x, target)), expected);
    for (const int micro_batches : {1, 2, 4}) {
      ExpectClose(OnHost(Pipeline(net, devices, micro_batches)(x, target)),
                  expected);
    }
  }
}

// Computed by hand, for two devices and one block of 10 x 14 and 14 x 10.
TEST(BytesMoved, AreThoseOfTheSplit) {
  const std::vector<Device> devices = DevicesFor(2);
  if (devices[0] == devices[1]) GTEST_SKIP() << "there is one device";
  const SplitNet net = MakeSplitNet(2, 10, 14, devices[0]);
  const Tensor x = Randn({6, 10}, devices[0]);
  const std::int64_t batch = 6 * 10 * 4, weights = 2 * 2 * 140 * 4;
  EXPECT_EQ(BytesOf(OneDevice(net), x, x), 0);
  // Half of x and of the target; gradients there and back.
  EXPECT_EQ(BytesOf(DataShards(net, devices), x, x), batch + 2 * weights);
  // The target; activations forward, their gradients back.
  EXPECT_EQ(BytesOf(Pipeline(net, devices, 3), x, x), 3 * batch);
  // x; in each block a part of the sum, and of its gradient; between blocks
  // also the sum and the gradient of the input.
  EXPECT_EQ(BytesOf(WithinLayers(net, devices), x, x), (1 + 2 * 2 + 2) * batch);
}

}  // namespace
}  // namespace d2l::multi_gpu
