// Sharded optimizer state and gradients: the bits stay the same,
// and bytes and memory are those of a formula.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/memory/memory.h"
#include "common/device/testing/testing.h"
#include "common/nn/checkpoint.h"
#include "common/nn/layers.h"
#include "common/nn/models.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"
#include "common/ops/testing/testing.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/parallel/data_parallel/data_parallel_testing.h"
#include "common/profiler/race_checker.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::HasSubstr;

constexpr Shard kShards[] = {Shard::kOptimizer, Shard::kGradients};

DataParallelOptions WithShard(Shard shard, DataParallelOptions options) {
  options.shard = shard;
  return options;
}

std::vector<std::vector<std::uint32_t>> MomentumOf(DataParallel& net) {
  std::vector<std::vector<std::uint32_t>> bits;
  for (const Tensor& v : net.sgd().momentum_buffers()) {
    bits.push_back(v.defined() ? BitsOf(v) : std::vector<std::uint32_t>());
  }
  return bits;
}

// A saved state of a training, which can be loaded.
class Saved {
 public:
  explicit Saved(DataParallel& from) : net(nn::Clone(from.module(), First())) {
    for (const Tensor& v : from.sgd().momentum_buffers()) {
      momentum.push_back(Clone(v));
    }
  }
  void Load(DataParallel& to) const {
    const std::vector<Tensor> from = nn::Parameters(*net);
    const std::vector<Tensor> parameters = nn::Parameters(to.module());
    for (std::size_t i = 0; i < from.size(); ++i) {
      CopyTo(from[i], parameters[i]);
      to.sgd().momentum_buffers()[i] = Clone(momentum[i]);
    }
  }

  const std::unique_ptr<nn::Module> net;
  std::vector<Tensor> momentum;
};

// Trains both, and compares all bits.
void ExpectSameTraining(DataParallel& whole, DataParallel& sharded,
                        const std::vector<TestBatch>& batches,
                        const nn::SGDOptions& sgd) {
  std::vector<Tensor> expected, losses;
  for (const TestBatch& batch : batches) {
    ManualSeed(17);  // of dropout
    expected.push_back(whole.Step(batch.x, batch.labels, sgd).loss);
    ManualSeed(17);
    losses.push_back(sharded.Step(batch.x, batch.labels, sgd).loss);
  }
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_EQ(losses[i].device(), expected[i].device());
    EXPECT_EQ(BitsOf(losses[i]), BitsOf(expected[i])) << "step " << i;
  }
  for (std::size_t i = 0; i < whole.devices().size(); ++i) {
    const int device = static_cast<int>(i);
    EXPECT_EQ(BitsOf(sharded.replica(device)), BitsOf(whole.replica(device)))
        << "device " << i;
  }
  EXPECT_EQ(MomentumOf(sharded), MomentumOf(whole));
  // Forward gives the same, too.
  whole.Eval();
  sharded.Eval();
  EXPECT_EQ(BitsOf(sharded(batches.back().x)), BitsOf(whole(batches.back().x)));
}

class ShardsTest : public testing::TestWithParam<std::tuple<Shard, int, int>> {
};

TEST_P(ShardsTest, HaveTheBitsOfWholeReplicas) {
  const auto& [shard, count, which] = GetParam();
  const std::vector<int> ids = Ids(count);
  if (static_cast<int>(ids.size()) < count) {
    GTEST_SKIP() << "needs " << count << " devices";
  }
  // One bucket; one for each parameter; and some that cut layers in two.
  DataParallelOptions options = which == 0 ? WithBuckets(1 << 20, true)
                                : which == 1
                                    ? WithBuckets(1, true, {3, 1, 0, 2})
                                    : WithBuckets(300, false);
  if (!options.split.empty()) options.split.resize(count);
  ManualSeed(7);
  nn::Sequential net(nn::Linear(7, 13, First()), nn::ReLU(), nn::Dropout(0.3),
                     nn::Linear(13, 5, First()), nn::ReLU(),
                     nn::Linear(5, kClasses, First()));
  DataParallel whole(nn::Clone(net, First()), ids, options);
  DataParallel sharded(std::move(net), ids, WithShard(shard, options));
  std::vector<TestBatch> batches;
  for (int step = 0; step < 20; ++step) {
    batches.push_back(MakeBatch(1 + step * 5 % 9, step));
  }
  ExpectSameTraining(whole, sharded, batches, {0.1, 0.9, 0.01});
}

INSTANTIATE_TEST_SUITE_P(
    All, ShardsTest,
    testing::Combine(testing::ValuesIn(kShards), testing::Values(1, 2, 3, 4),
                     testing::Values(0, 1, 2)),
    [](const auto& info) {
      return "Stage" +
             std::to_string(static_cast<int>(std::get<0>(info.param))) + "On" +
             std::to_string(std::get<1>(info.param)) + "Buckets" +
             std::to_string(std::get<2>(info.param));
    });

TEST(ShardsTest, ImagesAndRunningStatisticsHaveTheSameBits) {
  const std::vector<int> ids = Ids(3);
  for (const Shard shard : kShards) {
    ManualSeed(5);
    nn::Sequential net = nn::ResNet18(kClasses, 1, First());
    const DataParallelOptions options = WithBuckets(2 << 20, true);
    DataParallel whole(nn::Clone(net, First()), ids, options);
    DataParallel sharded(std::move(net), ids, WithShard(shard, options));
    std::vector<TestBatch> batches;
    for (const std::int64_t samples : {4, 7}) {
      batches.push_back(
          {Randn({samples, 1, 16, 16}, First()), MakeBatch(samples, 3).labels});
    }
    ExpectSameTraining(whole, sharded, batches, {0.05, 0.9});
  }
}

TEST(ShardsTest, CheckpointsHaveTheSameBits) {
  const std::vector<int> ids = Ids(3);
  const auto net = [](bool checkpoints) {
    auto all = std::make_unique<nn::Sequential>();
    for (const std::int64_t in : {7, 9, 9}) {
      nn::Sequential part(nn::Linear(in, 9, First()), nn::ReLU(),
                          nn::Dropout(0.3), nn::Linear(9, 9, First()));
      if (checkpoints) {
        all->Append(nn::Checkpoint(std::move(part)));
      } else {
        all->Append(std::move(part));
      }
    }
    all->Append(nn::Linear(9, kClasses, First()));
    return all;
  };
  for (const Shard shard : kShards) {
    ManualSeed(6);
    DataParallel whole(net(false), ids, WithBuckets(200, true));
    ManualSeed(6);
    DataParallel sharded(net(true), ids,
                         WithShard(shard, WithBuckets(200, true)));
    ExpectSameTraining(whole, sharded,
                       {MakeBatch(8, 1), MakeBatch(2, 2), MakeBatch(7, 3)},
                       {0.1, 0.9});
  }
}

// ---- Bytes.

// The bytes that this thread's operations move to another device, by name.
class Moved final : public OpListener {
 public:
  void OnOp(const OpRecord& record) override {
    for (const Tensor* in : record.inputs) {
      if (in->device() == record.output.device()) continue;
      bytes[record.primitive->name()] += in->numel() * DTypeSize(in->dtype());
    }
  }
  std::map<std::string, std::int64_t> bytes;
};

// L layers of h x h, in a bucket each.
nn::Sequential Chain(int layers, std::int64_t h) {
  nn::Sequential net;
  for (int i = 0; i < layers; ++i) {
    net.Append(nn::Linear(h, h, First()));
    net.Append(nn::ReLU());
  }
  return net;
}

TestBatch ChainBatch(std::int64_t samples, std::int64_t h) {
  return {RandomTensor({samples, h}, First()), MakeBatch(samples, 1).labels};
}

TEST(ShardsTest, MoveTheBytesOfTheFormula) {
  constexpr int kLayers = 5;
  constexpr std::int64_t kWidth = 12;
  constexpr std::int64_t kLayer = 4 * (kWidth * kWidth + kWidth);
  for (int n = 2; n <= static_cast<int>(Ids(4).size()); ++n) {
    for (const Shard shard :
         {Shard::kNone, Shard::kOptimizer, Shard::kGradients}) {
      DataParallel net(Chain(kLayers, kWidth), Ids(n),
                       WithShard(shard, WithBuckets(kLayer, true)));
      const TestBatch batch = ChainBatch(2 * n, kWidth);
      Moved moved;
      for (int step = 0; step < 2; ++step) {
        moved.bytes.clear();
        const ScopedOpListener listen(&moved);
        net.Step(batch.x, batch.labels, {0.1, 0.9});
      }
      // Bytes to all devices: each bucket, with the loss, is sent to be added
      // up, and its sum, or the new parameters, are sent back.
      const std::int64_t once = (n - 1) * (kLayers * kLayer + 4);
      std::map<std::string, std::int64_t> expected;
      if (shard == Shard::kNone) {
        expected["allreduce"] = 2 * once;
      } else {
        expected["reduce_scatter"] = expected["all_gather"] = once;
      }
      for (const char* name : {"allreduce", "reduce_scatter", "all_gather"}) {
        EXPECT_EQ(moved.bytes[name], expected[name])
            << name << ", stage " << static_cast<int>(shard) << " on " << n;
      }
    }
  }
}

// ---- Memory.

TEST(ShardsTest, TakeTheMemoryOfTheFormula) {
  constexpr int kLayers = 6;
  constexpr std::int64_t kWidth = 768, kRows = 5;
  constexpr std::int64_t kWeight = 4 * kWidth * kWidth;
  constexpr std::int64_t kLayer = kWeight + 4 * kWidth;
  for (int n = 1; n <= static_cast<int>(Ids(4).size()); ++n) {
    std::int64_t before = 0;
    for (const Shard shard :
         {Shard::kNone, Shard::kOptimizer, Shard::kGradients}) {
      DataParallelOptions options = WithShard(shard, WithBuckets(kLayer, true));
      options.measure_memory = true;
      DataParallel net(Chain(kLayers, kWidth), Ids(n), options);
      const TestBatch batch = ChainBatch(kRows * n, kWidth);
      for (int step = 0; step < 3; ++step) {
        net.Step(batch.x, batch.labels, {0.1, 0.9});
      }
      const int stage = static_cast<int>(shard);
      const std::int64_t all = kLayers * kLayer, its = all / n;
      const std::int64_t kept = kLayers * 4 * kRows * kWidth;
      // When the gradient of the last layer's weight exists, the shards of two
      // layers' gradients do not exist yet.
      const std::int64_t besides =
          stage >= 2 ? std::max<std::int64_t>(0, kWeight - 2 * its / kLayers)
                     : kWeight;
      const std::int64_t expected = all +
                                    (stage >= 2 ? its + 2 * kLayer : all) +
                                    (stage >= 1 ? its : all) + kept + besides;
      for (int i = 0; i < n; ++i) {
        const MemoryUse use = net.memory(i);
        EXPECT_NEAR(use.peak(), expected, 0.05 * expected)
            << "stage " << stage << ", device " << i << " of " << n;
        EXPECT_NEAR(use.activations, kept, 0.1 * kept);
        const MemoryUse predicted =
            net.PredictMemory(i, kept, kWeight, /*momentum=*/true);
        EXPECT_NEAR(predicted.peak(), expected, 0.01 * expected);
        EXPECT_EQ(predicted.parameters, use.parameters);
        EXPECT_EQ(predicted.gradients, use.gradients);
        EXPECT_EQ(predicted.optimizer, use.optimizer);
        // The peak is the allocator's, not a sum of the known uses.
        EXPECT_GE(Memory(net.devices()[i]).Stats().peak, use.peak());
      }
      if (n > 1 && stage > 0) {
        EXPECT_LT(net.memory(0).peak(), before);
      }
      before = net.memory(0).peak();
      // A device without samples keeps nothing.
      net.Step(Slice(batch.x, 0, 0, 1), Slice(batch.labels, 0, 0, 1), {0.1});
      for (int i = 1; i < n; ++i) EXPECT_EQ(net.memory(i).activations, 0);
    }
  }
}

// ---- Uses of a sharded network.

TEST(ShardsTest, ValuesWrittenToTheModuleReachAllShards) {
  for (const Shard shard : kShards) {
    const DataParallelOptions options =
        WithShard(shard, WithBuckets(300, true));
    const nn::SGDOptions sgd = {0.1, 0.9};
    ManualSeed(3);
    DataParallel net(Mlp(), Ids(3), options);
    const TestBatch batch = MakeBatch(7, 1);
    net.Step(batch.x, batch.labels, sgd);
    const Saved saved(net);
    for (int step = 0; step < 2; ++step) {
      net.Step(batch.x, batch.labels, sgd);
    }
    const auto expected = BitsOf(net.module());
    // Back, and again; and with another number of devices.
    DataParallel other(Mlp(), Ids(2), options);
    saved.Load(net);
    saved.Load(other);
    for (int step = 0; step < 2; ++step) {
      net.Step(batch.x, batch.labels, sgd);
      other.Step(batch.x, batch.labels, sgd);
    }
    for (int i = 0; i < 3; ++i) EXPECT_EQ(BitsOf(net.replica(i)), expected);
    // Other shards of the batch: other sums.
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(BitsOf(other.replica(i)), BitsOf(other.module()));
    }
    DataParallel whole(nn::Clone(*saved.net, First()), Ids(2),
                       WithBuckets(300, true));
    whole.sgd().momentum_buffers() = saved.momentum;
    for (int step = 0; step < 2; ++step) {
      whole.Step(batch.x, batch.labels, sgd);
    }
    EXPECT_EQ(BitsOf(other.module()), BitsOf(whole.module()));
  }
}

// Of steps, Forward, and reads and writes of the module and the momentum; also
// on devices without samples.
TEST(ShardsTest, EventsOrderAllUsesOfMemory) {
  for (const Shard shard :
       {Shard::kNone, Shard::kOptimizer, Shard::kGradients}) {
    for (const bool overlap : {true, false}) {
      for (int n = 1; n <= static_cast<int>(Ids(4).size()); ++n) {
        const RaceChecker checker;
        DataParallel net(nn::Checkpoint(Mlp()), Ids(n),
                         WithShard(shard, WithBuckets(200, overlap)));
        for (const std::int64_t samples : {6, 2, 7}) {
          const TestBatch batch = MakeBatch(samples, 1);
          net.Step(batch.x, batch.labels, {0.1, 0.9});
          const Saved saved(net);
          net.Step(batch.x, batch.labels, {0.1, 0.9});
          saved.Load(net);
          net(batch.x);
        }
        EXPECT_EQ(checker.races().size(), 0u) << checker.Report();
      }
    }
  }
}

TEST(ShardsTest, RefuseOtherSums) {
  DataParallelOptions options;
  options.shard = Shard::kGradients;
  options.allreduce = AllReduceAlgorithm::kRing;
  EXPECT_THAT(ThrownText([&] { DataParallel(Mlp(), Ids(2), options); }),
              HasSubstr("shards are added up by split; got ring"));
}

// Bytes that cross links, at a pace, are the bytes.
TEST(ShardsTest, PaceAndLinksChangeNoResult) {
  VirtualTiming timing;
  timing.pace = 2;
  timing.links =
      Topology::PcieSwitch(static_cast<int>(Devices().size()), 1e9, 1e-5);
  for (const Shard shard : kShards) {
    const VirtualTimingScope scope(timing);
    ManualSeed(2);
    nn::Sequential net = Mlp();
    const DataParallelOptions options = WithBuckets(1, true);
    DataParallel whole(nn::Clone(net, First()), Ids(2), options);
    DataParallel sharded(std::move(net), Ids(2), WithShard(shard, options));
    ExpectSameTraining(whole, sharded, {MakeBatch(5, 1), MakeBatch(3, 2)},
                       {0.1});
  }
}

}  // namespace
}  // namespace d2l
