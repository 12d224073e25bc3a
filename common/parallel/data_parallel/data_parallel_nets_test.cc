// DataParallel with the layers and networks of the chapter: they have the bits
// of one device that computes the shards in order.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/nn/checkpoint.h"
#include "common/nn/hybrid.h"
#include "common/nn/layers.h"
#include "common/nn/models.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/nn/state_dict.h"
#include "common/ops/ops.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/parallel/data_parallel/data_parallel_testing.h"
#include "common/parallel/data_parallel/split_batch.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

TestBatch Images(std::int64_t samples, std::int64_t size, unsigned seed) {
  return {Randn({samples, 1, size, size}, First()) * 2.0 + 0.5,
          MakeBatch(samples, seed).labels};
}

// Trains both with batches of these sizes, and compares all bits.
void ExpectSameTraining(OneDevice one, DataParallel& many, std::int64_t size,
                        const std::vector<std::int64_t>& batches) {
  const nn::SGDOptions sgd = {0.05, 0.9};
  for (std::size_t step = 0; step < batches.size(); ++step) {
    const TestBatch batch = Images(batches[step], size, step);
    const Tensor expected =
        one.Step(batch, ShardSizes(batches[step], many.options().split));
    const Tensor loss = many.Step(batch.x, batch.labels, sgd).loss;
    EXPECT_EQ(BitsOf(loss), BitsOf(expected)) << "step " << step;
  }
  for (std::size_t i = 0; i < many.devices().size(); ++i) {
    EXPECT_EQ(BitsOf(many.replica(i)), BitsOf(one.net())) << "device " << i;
  }
}

nn::Sequential ConvNet() {
  return nn::Sequential(nn::Conv2d(1, 6, 3, {}, true, First()),
                        nn::BatchNorm2d(6, 1e-5, 0.1, First()), nn::ReLU(),
                        nn::Flatten(),
                        nn::Linear(6 * 4 * 4, kClasses, true, First()));
}

// One parameter, under two names on every device. A single device's training of
// tied weights is compared with PyTorch's in nn/tied_weights_test.cc.
TEST(DataParallelTest, TiedWeightsAreOneParameter) {
  for (const Shard shard :
       {Shard::kNone, Shard::kOptimizer, Shard::kGradients}) {
    for (int count = 1; count <= static_cast<int>(Ids(4).size()); ++count) {
      ManualSeed(count);
      nn::Sequential net(
          nn::Flatten(), nn::Linear(9, 9, true, First()), nn::ReLU(),
          nn::Checkpoint(nn::Sequential(nn::Linear(9, 9, true, First()))),
          nn::Linear(9, kClasses, true, First()));
      auto& first = static_cast<nn::Linear&>(net[1]);
      first.weight() = nn::NamedParameters(net)[2].second;
      ASSERT_EQ(nn::Parameters(net).size(), 5u);
      OneDevice one(net, {0.05, 0.9});
      DataParallelOptions options = WithBuckets(300, count % 2 == 0);
      options.shard = shard;
      DataParallel many(std::move(net), Ids(count), options);
      ExpectSameTraining(
          std::move(one), many, 3,
          {5, 1, 9, 2, 8, 3, 4, 4, 1, 7, 5, 5, 2, 6, 3, 8, 9, 1, 4, 6});
      for (int i = 0; i < count; ++i) {
        const auto state = nn::StateDict(many.replica(i));
        EXPECT_EQ(state.size(), 6u);
        EXPECT_EQ(state.at("1.weight").id(), state.at("3.0.weight").id());
      }
    }
  }
}

// Statistics are those of the shards. Running statistics are the weighted mean
// on all devices, also on those without samples.
TEST(DataParallelTest, BatchNormHasTheStatisticsOfTheShards) {
  for (int count = 1; count <= static_cast<int>(Ids(4).size()); ++count) {
    for (const bool overlap : {true, false}) {
      ManualSeed(count);
      nn::Sequential net = ConvNet();
      OneDevice one(net, {0.05, 0.9});
      DataParallel many(std::move(net), Ids(count), WithBuckets(300, overlap));
      ExpectSameTraining(std::move(one), many, 6, {5, 1, 9, 2, 8, 3});
      const auto counted = nn::NamedBuffers(many.replica(count - 1))[2];
      EXPECT_EQ(counted.first, "1.num_batches_tracked");
      EXPECT_EQ(Item(counted.second), 6);
    }
  }
}

// Also of a part that is computed again: what no device has written must not
// become a mean, whose last bits may be others.
TEST(DataParallelTest, UnderEvalRunningStatisticsStay) {
  ManualSeed(1);
  nn::Sequential net = ConvNet();
  const TestBatch batch = Images(7, 6, 1);
  net(batch.x);
  const auto statistics = [](const nn::Module& of) {
    std::vector<std::vector<std::uint32_t>> bits;
    for (const auto& [name, x] : nn::NamedBuffers(of)) {
      if (x.dtype() == DType::kFloat32) bits.push_back(BitsOf(x));
    }
    return bits;
  };
  const auto expected = statistics(net);
  DataParallel many(nn::Checkpoint(std::move(net)), Ids(3));
  many.Eval();
  many.Step(batch.x, batch.labels, {0.05});
  EXPECT_EQ(statistics(many.replica(2)), expected);
}

// All steps but the last matter only through the running statistics: a device
// with other statistics would answer differently.
TEST(DataParallelTest, BatchNormAnswersTheSameOnAllDevices) {
  ManualSeed(1);
  DataParallel net(ConvNet(), Ids(2));
  for (int step = 0; step < 3; ++step) {
    const TestBatch batch = Images(7, 6, step);
    net.Step(batch.x, batch.labels, {0.05});
  }
  net.Eval();
  const Tensor image = Randn({1, 1, 6, 6}, First());
  const Tensor two = net(Cat({image, image}));  // one on each device
  EXPECT_EQ(BitsOf(two[0]), BitsOf(two[1]));
}

// Of the module, or of a part of it; with and without shards.
TEST(DataParallelTest, ModesOfTheModuleReachAllDevices) {
  for (const Shard shard :
       {Shard::kNone, Shard::kOptimizer, Shard::kGradients}) {
    ManualSeed(1);
    DataParallelOptions options = WithBuckets(300, true);
    options.shard = shard;
    DataParallel net(ConvNet(), Ids(4), options);
    const TestBatch batch = Images(7, 6, 1);
    net.Step(batch.x, batch.labels, {0.05});
    const auto statistics = BitsOf(nn::NamedBuffers(net.module())[0].second);
    const auto expect_kept_everywhere = [&] {
      for (std::size_t i = 0; i < net.devices().size(); ++i) {
        const nn::Module& replica = net.replica(static_cast<int>(i));
        EXPECT_EQ(BitsOf(nn::NamedBuffers(replica)[0].second), statistics);
        EXPECT_EQ(BitsOf(replica), BitsOf(net.module()));
      }
    };
    net.module().Eval();
    const Tensor image = Randn({1, 1, 6, 6}, First());
    const Tensor y = net(Cat(std::vector<Tensor>(8, image)));
    for (int i = 1; i < 8; ++i) EXPECT_EQ(BitsOf(y[i]), BitsOf(y[0]));
    net.Step(batch.x, batch.labels, {0.05});
    expect_kept_everywhere();
    // Frozen statistics in a module that trains.
    net.module().Train();
    nn::Apply(net.module(), [](nn::Module& module) {
      if (module.Name() == "BatchNorm2d") module.Eval();
    });
    net.Step(batch.x, batch.labels, {0.05});
    expect_kept_everywhere();
    EXPECT_TRUE(net.replica(1).training());
    net.module().Train();
    net.Step(batch.x, batch.labels, {0.05});
    EXPECT_NE(BitsOf(nn::NamedBuffers(net.replica(1))[0].second), statistics);
  }
}

// It has 11 million parameters, so the buckets have the default sizes.
TEST(DataParallelTest, ResNet18HasTheBitsOfOneDevice) {
  ManualSeed(18);
  nn::Sequential net = nn::ResNet18(kClasses, 1, First());
  OneDevice one(net, {0.05, 0.9});
  DataParallel many(std::move(net), Ids(2));
  EXPECT_GT(nn::NumParameters(many.module()) * 4,
            many.options().first_bucket_bytes + many.options().bucket_bytes);
  ExpectSameTraining(std::move(one), many, 8, {5, 4, 6});
}

// Each replica compiles programs of its own. Steps are recorded for gradients,
// so they do not use a program, even if there is one for their shape.
TEST(DataParallelTest, AHybridizedNetHasTheBitsOfOneDevice) {
  ManualSeed(4);
  DataParallel many(nn::Hybridize(ConvNet()), Ids(2));
  many(Images(4, 6, 9).x);
  const auto hybrid = [&](int i) -> nn::Hybrid& {
    return dynamic_cast<nn::Hybrid&>(many.replica(i));
  };
  EXPECT_EQ(hybrid(1).Report().programs.size(), 1u);
  OneDevice one(hybrid(0).module(), {0.05, 0.9});
  ExpectSameTraining(std::move(one), many, 6, {4, 4, 5, 4});
  many.Eval();
  const TestBatch batch = Images(4, 6, 9);
  const Tensor first = many(batch.x);
  EXPECT_EQ(BitsOf(many(batch.x)), BitsOf(first));
  EXPECT_EQ(hybrid(1).Report().programs.size(), 2u);
  EXPECT_EQ(hybrid(1).Report().calls(), 7);
}

}  // namespace
}  // namespace d2l
