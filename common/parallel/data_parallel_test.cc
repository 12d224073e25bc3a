#include "common/parallel/data_parallel.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/autograd/tape.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/testing.h"
#include "common/nn/layers.h"
#include "common/nn/loss.h"
#include "common/nn/models.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/ops/ops.h"
#include "common/ops/testing.h"
#include "common/parallel/split_batch.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kClasses = 10;

// The numbers of the first `count` of the devices to test.
std::vector<int> Ids(int count) {
  std::vector<int> ids;
  for (const Device device : AllDevices()) {
    for (std::size_t i = 0; i < Devices().size(); ++i) {
      if (Devices()[i].device == device &&
          static_cast<int>(ids.size()) < count) {
        ids.push_back(static_cast<int>(i));
      }
    }
  }
  return ids;
}

Device First() { return AllDevices()[0]; }

nn::Sequential Mlp(Device device = First()) {
  return nn::Sequential(nn::Linear(7, 13, true, device), nn::ReLU(),
                        nn::Linear(13, kClasses, true, device));
}

struct Batch {
  Tensor x;
  Tensor labels;
};
Batch MakeBatch(std::int64_t samples, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < samples; ++i) {
    labels.push_back(random() % kClasses);
  }
  return {RandomTensor({samples, 7}, First()),
          FromVector<std::int64_t>(labels, {samples}, First())};
}

// All bits: 0 and -0 differ.
std::vector<std::uint32_t> BitsOf(const Tensor& x) {
  const std::vector<float> values = ToVector<float>(x);
  std::vector<std::uint32_t> bits(values.size());
  if (!bits.empty()) std::memcpy(bits.data(), values.data(), 4 * bits.size());
  return bits;
}

std::vector<std::vector<std::uint32_t>> BitsOf(const nn::Module& net) {
  std::vector<std::vector<std::uint32_t>> bits;
  for (const auto& [name, x] : nn::NamedState(net)) {
    if (x.dtype() == DType::kFloat32) bits.push_back(BitsOf(x));
  }
  return bits;
}

// One device that computes the shards, one after the other, and adds up their
// gradients.
class OneDevice {
 public:
  OneDevice(const nn::Module& net, const nn::SGDOptions& options)
      : net_(nn::Clone(net, First())), sgd_(nn::Parameters(*net_), options) {}

  Tensor Step(const Batch& batch, const std::vector<std::int64_t>& sizes) {
    const double scale = 1.0 / static_cast<double>(batch.x.size(0));
    std::vector<Tensor> sums;
    Tensor mean;
    std::int64_t begin = 0;
    for (const std::int64_t size : sizes) {
      if (size == 0) continue;
      const Tensor x = Slice(batch.x, 0, begin, begin + size);
      const Tensor labels = Slice(batch.labels, 0, begin, begin + size);
      begin += size;
      GradientTape tape(nn::Parameters(*net_));
      const Tensor loss =
          nn::CrossEntropyLoss((*net_)(x), labels, nn::Reduction::kSum);
      const std::vector<Tensor> gradients =
          tape.Backward(loss, FullLike(loss, scale));
      mean = mean.defined() ? mean + loss * scale : loss * scale;
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (i == sums.size()) {
          sums.push_back(gradients[i]);
        } else {
          sums[i] = sums[i] + gradients[i];
        }
      }
    }
    sgd_.Step(sums);
    return mean;
  }

  nn::Module& net() { return *net_; }

 private:
  std::unique_ptr<nn::Module> net_;
  nn::SGD sgd_;
};

TEST(DataParallelTest, PrintsAndNamesItsModuleAsPyTorch) {
  const DataParallel net(nn::Linear(10, 1, true, First()));
  EXPECT_EQ(nn::ToString(net),
            "DataParallel(\n"
            "  (module): Linear(in_features=10, out_features=1, bias=True)\n"
            ")");
  std::vector<std::string> names;
  for (const auto& [name, x] : nn::NamedParameters(net)) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("module.weight", "module.bias"));
}

TEST(DataParallelTest, TakesAllDevicesOrThoseOfTheIds) {
  const std::size_t count = Devices().size();
  EXPECT_EQ(DataParallel(nn::Linear(2, 1)).devices().size(), count);
  // Not the first two: a number is one of the table's.
  const int last = static_cast<int>(count) - 1;
  DataParallel net(nn::Linear(2, 1), {last, 0});
  EXPECT_THAT(net.devices(),
              ElementsAre(Devices()[last].device, Devices()[0].device));
  EXPECT_EQ(nn::Parameters(net.module())[0].device(), Devices()[last].device);
  EXPECT_EQ(nn::Parameters(net.replica(1))[0].device(), Devices()[0].device);
}

TEST(DataParallelTest, RefusesDevicesThatAreNotThereOrTwice) {
  const int count = static_cast<int>(Devices().size());
  for (const int id : {count, -1}) {
    EXPECT_THAT(ThrownText([&] {
                  DataParallel(nn::Linear(2, 1), {0, id});
                }),
                AllOf(HasSubstr("there is no device " + std::to_string(id)),
                      HasSubstr("0: " + Devices()[0].device.ToString())));
  }
  EXPECT_THAT(ThrownText([&] {
                DataParallel(nn::Linear(2, 1), {0, 1, 0});
              }),
              HasSubstr("device_ids 0, 1, 0: device 0, "));
  DataParallelOptions options;
  options.split = {1, 2, 3};
  EXPECT_THAT(ThrownText([&] { DataParallel(nn::Linear(2, 1), {0}, options); }),
              HasSubstr("the split 1:2:3 has 3 weights for 1 devices"));
  options.split = {};
  options.max_in_flight = 0;
  EXPECT_THAT(ThrownText([&] { DataParallel(nn::Linear(2, 1), {0}, options); }),
              HasSubstr("max_in_flight, the number of steps under way"));
}

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
    const Batch batch = MakeBatch(1 + step * 5 % 9, step);
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
  // And it computes with them.
  many.Eval();
  one.net().Eval();
  for (std::int64_t samples = 1; samples < 10; ++samples) {
    const Batch batch = MakeBatch(samples, 99);
    std::vector<Tensor> outputs;
    for (const Tensor& shard :
         SplitBatch(batch.x, std::vector<Device>(count, First()),
                    ShardSizes(samples, many.options().split))) {
      if (shard.size(0) > 0) outputs.push_back(one.net()(shard));
    }
    EXPECT_EQ(BitsOf(many(batch.x)), BitsOf(Cat(outputs)));
  }
}

DataParallelOptions WithBuckets(std::int64_t bytes, bool overlap,
                                std::vector<int> split = {}) {
  DataParallelOptions options;
  options.first_bucket_bytes = options.bucket_bytes = bytes;
  options.overlap = overlap;
  options.split = std::move(split);
  return options;
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

TEST(DataParallelTest, DropoutDiffersBetweenDevicesAndInitialValuesDoNot) {
  ManualSeed(3);
  const std::vector<int> ids = Ids(2);
  DataParallel net(nn::Sequential(nn::Linear(4, 64), nn::Dropout(0.5)), ids);
  EXPECT_EQ(BitsOf(net.module()), BitsOf(net.replica(1)));
  ManualSeed(3);
  std::vector<std::vector<double>> outputs;
  for (int i = 0; i < 2; ++i) {
    outputs.push_back(ValuesOf(net.replica(i)(Ones({4, 4}, net.devices()[i]))));
  }
  EXPECT_NE(outputs[0], outputs[1]);
  net.Eval();
  for (int i = 0; i < 2; ++i) {
    outputs[i] = ValuesOf(net.replica(i)(Ones({4, 4}, net.devices()[i])));
  }
  EXPECT_EQ(outputs[0], outputs[1]);
}

TEST(DataParallelTest, ValuesWrittenToTheModuleReachAllDevices) {
  DataParallel net(Mlp(), Ids(2));
  const Batch batch = MakeBatch(5, 1);
  net.Step(batch.x, batch.labels, {0.1, 0.9});
  for (const Tensor& x : nn::Parameters(net.module())) {
    CopyTo(Full({}, 0.25, First()), x);
  }
  for (Tensor& buffer : net.sgd().momentum_buffers()) buffer = Tensor();
  OneDevice one(net.module(), {0.1, 0.9});
  for (int step = 0; step < 2; ++step) {
    net.Step(batch.x, batch.labels, {0.1, 0.9});
    one.Step(batch, {3, 2});
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(BitsOf(net.replica(i)), BitsOf(one.net()));
  }
}

TEST(DataParallelTest, MomentumMayBeTakenAndGiven) {
  const nn::SGDOptions sgd = {0.1, 0.9};
  DataParallel net(Mlp(), Ids(2));
  const Batch batch = MakeBatch(5, 1);
  net.Step(batch.x, batch.labels, sgd);
  DataParallel other(nn::Clone(net.module(), First()), Ids(2));
  for (std::size_t i = 0; i < 4; ++i) {
    other.sgd().momentum_buffers()[i] = Clone(net.sgd().momentum_buffers()[i]);
  }
  for (int step = 0; step < 2; ++step) {
    net.Step(batch.x, batch.labels, sgd);
    other.Step(batch.x, batch.labels, sgd);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(BitsOf(other.replica(i)), BitsOf(net.replica(i)));
    }
    // In place, too.
    CopyTo(Zeros({}, First()), net.sgd().momentum_buffers()[1]);
    CopyTo(Zeros({}, First()), other.sgd().momentum_buffers()[1]);
  }
}

TEST(DataParallelTest, RefusesAModuleThatWasMovedOrReplaced) {
  const Batch batch = MakeBatch(5, 1);
  const auto step_after = [&](const std::function<void(DataParallel&)>& f) {
    DataParallel net(nn::Linear(7, kClasses, true, First()), Ids(2));
    net.Step(batch.x, batch.labels, {0.1});
    f(net);
    return ThrownText([&] { net.Step(batch.x, batch.labels, {0.1}); });
  };
  EXPECT_THAT(
      step_after([](DataParallel& net) { nn::To(net, net.devices()[1]); }),
      AllOf(HasSubstr("[DataParallel] weight of the module was moved "
                      "to "),
            HasSubstr("data_parallel_test.cc")));
  EXPECT_THAT(step_after([](DataParallel& net) {
                static_cast<nn::Linear&>(net.module()).bias() =
                    Ones({kClasses}, First());
              }),
              HasSubstr("[DataParallel] bias of the module was replaced"));
  EXPECT_THAT(step_after([](DataParallel& net) {
                static_cast<nn::Linear&>(net.replica(1)).bias() = Tensor();
              }),
              HasSubstr("[DataParallel] a tensor of the module was removed"));
}

TEST(DataParallelTest, RefusesBatchesWithoutSamples) {
  DataParallel net(nn::Linear(7, kClasses, true, First()), Ids(2));
  const Tensor none = Ones({0, 7}, First());
  const Tensor labels = Zeros({0}, First(), DType::kInt64);
  EXPECT_THAT(ThrownText([&] { net.Step(none, labels, {0.1}); }),
              HasSubstr("[DataParallel] a batch of at least one sample"));
  EXPECT_THAT(ThrownText([&] { net(none); }),
              HasSubstr("[DataParallel] a batch of at least one sample"));
  const Batch batch = MakeBatch(5, 1);
  EXPECT_THAT(ThrownText([&] {
                net.Step(batch.x, Slice(batch.labels, 0, 0, 4), {0.1});
              }),
              HasSubstr("[DataParallel] a label for each sample wanted"));
  DataParallel relu(nn::ReLU(), Ids(2));
  EXPECT_THAT(ThrownText([&] { relu.Step(batch.x, batch.labels, {0.1}); }),
              HasSubstr("[DataParallel] a module with parameters"));
}

// What waiting for the device throws.
std::string FailureOn(Device device) {
  try {
    Synchronize(device);
  } catch (const AsyncError& error) {
    return error.what();
  }
  return "nothing thrown";
}

// A label out of range on one device: no device may get the sum.
TEST(DataParallelTest, AFailureOnOneDeviceReachesAllAndLoadingCuresIt) {
  const std::vector<int> ids = Ids(3);
  const nn::SGDOptions sgd = {0.1, 0.9};
  // Each device's turn; the failure is known when the step ends, or, if the
  // host has waited for it, while the step is being requested.
  for (const auto& [wrong, known] : std::vector<std::pair<int, bool>>{
           {0, false}, {3, false}, {5, false}, {0, true}, {3, true}}) {
    ManualSeed(5);
    DataParallel net(Mlp(), ids);
    std::vector<Batch> batches;
    for (int i = 0; i < 4; ++i) batches.push_back(MakeBatch(6, i));
    net.Step(batches[0].x, batches[0].labels, sgd);
    // A checkpoint.
    const auto saved = nn::Clone(net.module(), First());
    std::vector<Tensor> momentum;
    for (const Tensor& x : net.sgd().momentum_buffers()) {
      momentum.push_back(Clone(x));
    }
    for (const Device device : net.devices()) Synchronize(device);

    std::vector<std::int64_t> labels(6, 1);
    labels[wrong] = kClasses;
    const DataParallel::Loss loss = [known = known](const Tensor& outputs,
                                                    const Tensor& labels) {
      const Tensor sum =
          nn::CrossEntropyLoss(outputs, labels, nn::Reduction::kSum);
      if (known) {
        CurrentStream(sum.device()).WaitFor(sum.storage()->written_by());
      }
      return sum;
    };
    int line = 0;
    std::vector<std::string> errors;
    try {
      const Tensor bad = FromVector<std::int64_t>(labels, {6}, First());
      line = __LINE__ + 1;
      Item(net.Step(batches[1].x, bad, sgd, loss).loss);
    } catch (const AsyncError& error) {
      errors.emplace_back(error.what());
    }
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_THAT(errors[0],
                HasSubstr("data_parallel_test.cc:" + std::to_string(line)));
    for (const Device device : net.devices()) {
      const std::string error = FailureOn(device);
      EXPECT_THAT(error,
                  HasSubstr("data_parallel_test.cc:" + std::to_string(line)));
    }
    // The parameters refuse to be used, on all devices.
    for (std::size_t i = 0; i < ids.size(); ++i) {
      EXPECT_THROW(ToVector<float>(nn::Parameters(net.replica(i))[0]),
                   AsyncError);
    }
    EXPECT_THROW(net.Step(batches[1].x, batches[1].labels, sgd), AsyncError);

    const auto load = [&] {
      const std::vector<Tensor> from = nn::Parameters(*saved);
      const std::vector<Tensor> to = nn::Parameters(net.module());
      for (std::size_t i = 0; i < to.size(); ++i) CopyTo(from[i], to[i]);
      for (std::size_t i = 0; i < to.size(); ++i) {
        net.sgd().momentum_buffers()[i] = Clone(momentum[i]);
      }
    };
    load();
    DataParallel unbroken(nn::Clone(*saved, First()), ids);
    unbroken.sgd().momentum_buffers() = momentum;
    for (int i = 2; i < 4; ++i) {
      net.Step(batches[i].x, batches[i].labels, sgd);
      unbroken.Step(batches[i].x, batches[i].labels, sgd);
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(BitsOf(net.replica(i)), BitsOf(unbroken.replica(i)));
    }
  }
}

// It is shown the plan of what it does.
TEST(DataParallelTest, SaysItsPlan) {
  DataParallelOptions options;
  options.first_bucket_bytes = 100;
  const DataParallel net(Mlp(), Ids(2), options);
  EXPECT_EQ(net.Plan(5),
            "A step with 5 samples on 2 devices:\n  " +
                net.devices()[0].ToString() + ": 3 samples\n  " +
                net.devices()[1].ToString() +
                ": 2 samples\n"
                "  gradients, added up by split while others are computed:\n"
                "  bucket 0, 560 bytes: module.2.bias, module.2.weight\n"
                "  bucket 1, 420 bytes: module.0.bias, module.0.weight\n");
}

TEST(DataParallelTest, AnEmulatedLinkChangesNoResult) {
  DataParallelOptions options = WithBuckets(1, true);
  options.emulated_link = EmulatedLink{1e-4, 1e9};
  ManualSeed(2);
  nn::Sequential net = Mlp();
  OneDevice one(net, {0.1});
  DataParallel many(std::move(net), Ids(2), options);
  const Batch batch = MakeBatch(5, 1);
  one.Step(batch, {3, 2});
  many.Step(batch.x, batch.labels, {0.1});
  EXPECT_EQ(BitsOf(many.replica(1)), BitsOf(one.net()));
}

}  // namespace
}  // namespace d2l
