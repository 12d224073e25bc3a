// Several devices have the bits of one that adds the shards in order.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/autograd/tape.h"
#include "common/device/device.h"
#include "common/nn/layers.h"
#include "common/nn/models.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/ops/ops.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/parallel/data_parallel/data_parallel_testing.h"
#include "common/parallel/data_parallel/split_batch.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

// Steps with batches of many sizes, also smaller than the number of devices.
class SameBitsTest
    : public testing::TestWithParam<std::tuple<int, DataParallelOptions>> {};

TEST_P(SameBitsTest, AsOneDeviceThatAddsTheShardsInOrder) {
  const auto& [count, asked] = GetParam();
  const std::vector<int> ids = Ids(count);
  if (static_cast<int>(ids.size()) < count) {
    GTEST_SKIP() << "needs " << count << " devices";
  }
  DataParallelOptions options = asked;
  if (!options.split.empty()) options.split.resize(count);
  ManualSeed(7);
  nn::Sequential net = Mlp();
  const nn::SGDOptions sgd = {0.1, 0.9, 0.01};
  OneDevice one(net, sgd);
  DataParallel many(std::move(net), ids, options);
  std::vector<Tensor> expected, losses;
  for (int step = 0; step < 20; ++step) {
    const TestBatch batch = MakeBatch(1 + step * 5 % 9, step);
    expected.push_back(
        one.Step(batch, ShardSizes(batch.x.size(0), many.options().split)));
    losses.push_back(many.Step(batch.x, batch.labels, sgd).loss);
  }
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_EQ(BitsOf(losses[i]), BitsOf(expected[i])) << "step " << i;
  }
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(BitsOf(many.replica(i)), BitsOf(one.net())) << "device " << i;
  }
  // Forward gives the same, too.
  many.Eval();
  one.net().Eval();
  for (std::int64_t samples = 1; samples < 10; ++samples) {
    const TestBatch batch = MakeBatch(samples, 99);
    std::vector<Tensor> outputs;
    for (const Tensor& shard :
         SplitBatch(batch.x, std::vector<Device>(count, First()),
                    ShardSizes(samples, many.options().split))) {
      if (shard.size(0) > 0) outputs.push_back(one.net()(shard));
    }
    EXPECT_EQ(BitsOf(many(batch.x)), BitsOf(Cat(outputs)));
  }
}

// The book's network, with a bucket for each parameter.
TEST(DataParallelTest, LeNetHasTheBitsOfOneDevice) {
  for (int count = 1; count <= 4; ++count) {
    const std::vector<int> ids = Ids(count);
    if (static_cast<int>(ids.size()) < count) {
      GTEST_SKIP() << "needs " << count << " devices";
    }
    ManualSeed(count);
    nn::Sequential net = nn::LeNet(First());
    const nn::SGDOptions sgd = {0.05, 0.9};
    OneDevice one(net, sgd);
    DataParallel many(std::move(net), ids, WithBuckets(1, true));
    for (int step = 0; step < 20; ++step) {
      const Tensor labels = MakeBatch(1 + step * 5 % 9, step).labels;
      const Tensor images = Randn({labels.size(0), 1, 28, 28}, First());
      const Tensor expected = one.Step(
          {images, labels}, ShardSizes(images.size(0), many.options().split));
      const DataParallel::Result result = many.Step(images, labels, sgd);
      EXPECT_EQ(BitsOf(result.loss), BitsOf(expected)) << "step " << step;
      EXPECT_EQ(JoinShards(result.outputs, First()).shape(),
                (Shape{images.size(0), kClasses}));
    }
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(BitsOf(many.replica(i)), BitsOf(one.net())) << "device " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, SameBitsTest,
    testing::Combine(testing::Values(1, 2, 3, 4),
                     testing::Values(WithBuckets(1 << 20, true),
                                     WithBuckets(1, true),
                                     WithBuckets(300, false),
                                     WithBuckets(1, true, {3, 1, 0, 2}))),
    [](const auto& info) {
      return "On" + std::to_string(std::get<0>(info.param)) + "Options" +
             std::to_string(info.index % 4);
    });

// Like batch normalisation's statistics.
class RunningMean : public nn::Module {
 public:
  Tensor Forward(const Tensor& x) override {
    if (training()) {
      const NoGradGuard guard;
      mean_ *= 0.9;
      mean_ += Mean(x, {0}) * 0.1;
      batches_ += 1;
    }
    return x;
  }
  std::string Name() const override { return "RunningMean"; }
  void Members(nn::MemberVisitor& visitor) override {
    visitor.Buffer("mean", mean_);
    visitor.Buffer("batches", batches_);
  }
  std::unique_ptr<nn::Module> New() const override {
    return std::make_unique<RunningMean>();
  }

 private:
  Tensor mean_ = Zeros({7}, First());
  Tensor batches_ = Zeros({}, First(), DType::kInt64);
};

// Also on devices without samples.
TEST(DataParallelTest, BuffersAreTheWeightedMeanOfTheDevices) {
  const int count = static_cast<int>(Ids(4).size());
  DataParallel net(
      nn::Sequential(RunningMean(), nn::Linear(7, kClasses, true, First())),
      Ids(count));
  Tensor expected = Zeros({7}, First());
  for (int step = 0; step < 10; ++step) {
    const TestBatch batch = MakeBatch(1 + step * 5 % 9, step);
    net.Step(batch.x, batch.labels, {0.1});
    const double samples = static_cast<double>(batch.x.size(0));
    Tensor mean;
    for (const Tensor& shard :
         SplitBatch(batch.x, std::vector<Device>(count, First()))) {
      if (shard.size(0) == 0) continue;
      const Tensor part = (expected * 0.9 + Mean(shard, {0}) * 0.1) *
                          (static_cast<double>(shard.size(0)) / samples);
      mean = mean.defined() ? mean + part : part;
    }
    expected = mean;
    for (int i = 0; i < count; ++i) {
      const auto buffers = nn::NamedBuffers(net.replica(i));
      EXPECT_EQ(BitsOf(buffers[0].second), BitsOf(expected)) << step;
      EXPECT_EQ(Item(buffers[1].second), step + 1);
    }
  }
  net.Eval();
  const TestBatch batch = MakeBatch(5, 0);
  net.Step(batch.x, batch.labels, {0.1});
  net(batch.x);
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(BitsOf(nn::NamedBuffers(net.replica(i))[0].second),
              BitsOf(expected));
  }
}

}  // namespace
}  // namespace d2l
