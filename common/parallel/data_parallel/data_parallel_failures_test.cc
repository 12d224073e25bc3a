// A step that fails on one device: the rule is one for all kinds of shards.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/testing/testing.h"
#include "common/nn/layers.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/record.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/parallel/data_parallel/data_parallel_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::HasSubstr;

constexpr nn::SGDOptions kSgd = {0.1, 0.9};

// Waits for each operation, as a slow host does. For tests only: a listener
// must not wait.
class WaitForEach final : public OpListener {
 public:
  void OnOp(const OpRecord& record) override {
    if (record.stream != nullptr) record.stream->WaitFor(record.number);
  }
};

// Makes the device fail behind the operation of this number, of those that are
// requested while this listens.
class FailBehind final : public OpListener {
 public:
  // where: the stream that fails; null for the operation's.
  FailBehind(int operation, Stream* where)
      : operation_(operation), where_(where) {}

  void OnOp(const OpRecord& record) override {
    if (record.stream == nullptr || count++ != operation_) return;
    Stream& stream = where_ == nullptr ? *record.stream : *where_;
    stream.HostCallback([] { throw std::runtime_error("as the test wants"); });
  }

  int count = 0;

 private:
  const int operation_;
  Stream* const where_;
};

// The message of the error that `f` throws.
template <typename F>
std::string AsyncErrorOf(F f) {
  try {
    f();
  } catch (const AsyncError& error) {
    return error.what();
  }
  return "nothing thrown";
}

// A failure is known when the step ends, or, if the host waits for each
// operation, while the step is being requested.
class FailuresTest : public testing::TestWithParam<std::tuple<Shard, bool>> {
 protected:
  static constexpr int kSamples = 6;  // two on each device

  FailuresTest() {
    options_.shard = std::get<0>(GetParam());
    for (unsigned i = 0; i < 4; ++i) batches_.push_back(MakeBatch(kSamples, i));
  }

  // A step with a label out of range. Returns its line.
  int FailingStep(DataParallel& net, int wrong) {
    std::vector<std::int64_t> labels(kSamples, 1);
    labels[wrong] = kClasses;
    const Tensor bad = FromVector<std::int64_t>(labels, {kSamples}, First());
    WaitForEach waits;
    std::optional<ScopedOpListener> listen;
    if (std::get<1>(GetParam())) listen.emplace(&waits);
    int line = 0;
    try {
      line = __LINE__ + 1;
      net.Step(batches_[0].x, bad, kSgd);
    } catch (const AsyncError&) {  // NOLINT(bugprone-empty-catch)
    }
    return line;
  }

  // With the batches [first, end).
  void Steps(DataParallel& net, int first, int end) {
    for (int i = first; i < end; ++i) {
      net.Step(batches_[i].x, batches_[i].labels, kSgd);
    }
  }

  static void LoadState(const nn::Module& from, DataParallel& to) {
    for (const Device device : to.devices()) {
      AsyncErrorOf([device] { Synchronize(device); });
    }
    const auto saved = nn::NamedState(from),
               state = nn::NamedState(to.module());
    for (std::size_t i = 0; i < saved.size(); ++i) {
      CopyTo(saved[i].second, state[i].second);
    }
  }

  static void ExpectSame(DataParallel& net, DataParallel& unbroken) {
    for (std::size_t i = 0; i < net.devices().size(); ++i) {
      const int device = static_cast<int>(i);
      EXPECT_EQ(BitsOf(net.replica(device)), BitsOf(unbroken.replica(device)));
    }
    const std::vector<Tensor>& got = net.sgd().momentum_buffers();
    const std::vector<Tensor>& expected = unbroken.sgd().momentum_buffers();
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(BitsOf(got[i]), BitsOf(expected[i]));
    }
  }

  const std::vector<int> ids_ = Ids(3);
  DataParallelOptions options_ = WithBuckets(300, true);
  std::vector<TestBatch> batches_;
};

TEST_P(FailuresTest, ReachTheParametersOfAllDevicesAndLoadingCuresThem) {
  for (const int wrong : {0, 3, 5}) {  // each device's turn
    ManualSeed(5);
    DataParallel net(Mlp(), ids_, options_);
    Steps(net, 0, 1);
    const auto saved = nn::Clone(net.module(), First());
    std::vector<Tensor> momentum;
    for (const Tensor& v : net.sgd().momentum_buffers()) {
      momentum.push_back(Clone(v));
    }
    const std::string line =
        "failures_test.cc:" + std::to_string(FailingStep(net, wrong));
    for (const Device device : net.devices()) {
      EXPECT_THAT(AsyncErrorOf([&] { Synchronize(device); }), HasSubstr(line));
    }
    // The parameters refuse to be used.
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      const int device = static_cast<int>(i);
      for (const Tensor& x : nn::Parameters(net.replica(device))) {
        EXPECT_THAT(AsyncErrorOf([&] { BitsOf(x); }), HasSubstr(line));
      }
    }
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(AsyncErrorOf([&] { Steps(net, 1, 2); }), HasSubstr(line));
      EXPECT_THROW(BitsOf(net(batches_[1].x)), AsyncError);
    }
    LoadState(*saved, net);
    for (std::size_t i = 0; i < momentum.size(); ++i) {
      net.sgd().momentum_buffers()[i] = Clone(momentum[i]);
    }
    DataParallel unbroken(nn::Clone(*saved, First()), ids_,
                          WithBuckets(300, true));
    unbroken.sgd().momentum_buffers() = momentum;
    Steps(net, 2, 4);
    Steps(unbroken, 2, 4);
    ExpectSame(net, unbroken);
  }
}

// Also in the first step, which makes it.
TEST_P(FailuresTest, TakeTheMomentumAlong) {
  for (const int before : {0, 2}) {
    ManualSeed(6);
    DataParallel net(Mlp(), ids_, options_);
    Steps(net, 0, before);
    const auto saved = nn::Clone(net.module(), First());
    FailingStep(net, 3);
    // Nobody has waited for the devices, and nothing is thrown.
    for (const Tensor& v : net.sgd().momentum_buffers()) {
      EXPECT_FALSE(v.defined());
    }
    EXPECT_THROW(BitsOf(nn::Parameters(net.module())[0]), AsyncError);
    LoadState(*saved, net);
    DataParallel unbroken(nn::Clone(*saved, First()), ids_,
                          WithBuckets(300, true));
    Steps(net, 2, 4);
    Steps(unbroken, 2, 4);
    ExpectSame(net, unbroken);
  }
}

TEST_P(FailuresTest, AreCuredWithoutAReadOfTheMomentum) {
  ManualSeed(7);
  DataParallel net(Mlp(), ids_, options_);
  const auto saved = nn::Clone(net.module(), First());
  for (int i = 0; i < 3; ++i) {
    FailingStep(net, i);
    LoadState(*saved, net);
  }
  DataParallel unbroken(nn::Clone(*saved, First()), ids_,
                        WithBuckets(300, true));
  Steps(net, 0, 2);
  Steps(unbroken, 0, 2);
  ExpectSame(net, unbroken);
}

TEST_P(FailuresTest, TakeRunningStatisticsAlong) {
  ManualSeed(8);
  for (TestBatch& batch : batches_) {
    batch.x = Randn({kSamples, 1, 5, 5}, First());
  }
  DataParallel net(
      nn::Sequential(nn::BatchNorm2d(1, 1e-5, 0.1, First()), nn::Flatten(),
                     nn::Linear(25, kClasses, true, First())),
      ids_, options_);
  Steps(net, 0, 1);
  const auto saved = nn::Clone(net.module(), First());
  FailingStep(net, 5);
  LoadState(*saved, net);
  DataParallel unbroken(nn::Clone(*saved, First()), ids_,
                        WithBuckets(300, true));
  Steps(net, 1, 3);
  Steps(unbroken, 1, 3);
  ExpectSame(net, unbroken);
}

// In the forward pass, the backward pass, the sums and the update, on any
// device, of random networks.
TEST_P(FailuresTest, BehindAnyOperationAreCuredByLoading) {
  const auto& [shard, known_early] = GetParam();
  std::mt19937 random(31);
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  for (int round = 0; round < 24; ++round) {
    SCOPED_TRACE(round);
    ManualSeed(round);
    const bool images = below(2) == 0;
    nn::Sequential layers;
    int width = 7;
    if (images) {
      layers.Append(nn::BatchNorm2d(1, 1e-5, 0.1, First()));
      layers.Append(nn::Flatten());
      width = 25;
    }
    for (int depth = below(3); depth > 0; --depth) {
      const int next = 1 + below(20);
      layers.Append(nn::Linear(width, next, below(2) == 0, First()));
      layers.Append(nn::ReLU());
      width = next;
    }
    layers.Append(nn::Linear(width, kClasses, true, First()));
    for (TestBatch& batch : batches_) {
      batch.x = images ? Randn({kSamples, 1, 5, 5}, First())
                       : Randn({kSamples, 7}, First());
    }
    DataParallelOptions options = WithBuckets(100 + below(900), below(2) == 0);
    options.shard = shard;
    const int before = below(3);
    const auto whole = nn::Clone(layers, First());
    const auto counts = [&] {
      DataParallel net(nn::Clone(*whole, First()), ids_, options);
      Steps(net, 0, before);
      FailBehind never(-1, nullptr);
      const ScopedOpListener listen(&never);
      Steps(net, before, before + 1);
      return never.count;
    }();

    DataParallel net(nn::Clone(*whole, First()), ids_, options);
    Steps(net, 0, before);
    const auto saved = nn::Clone(net.module(), First());
    std::vector<Tensor> momentum;
    for (const Tensor& v : net.sgd().momentum_buffers()) {
      momentum.push_back(v.defined() ? Clone(v) : Tensor());
    }
    {
      // The sums are behind the forward pass, which is a part of the first
      // half.
      const bool in_sums = below(3) == 0;
      Stream& sums = CommunicationStream(net.devices()[below(3)]);
      FailBehind fail(below(in_sums ? counts / 4 : counts),
                      in_sums ? &sums : nullptr);
      const ScopedOpListener listen(&fail);
      WaitForEach waits;
      std::optional<ScopedOpListener> wait;
      if (known_early) wait.emplace(&waits);
      Steps(net, before, before + 1);  // throws nothing
    }
    int failed = 0;
    for (const Device device : net.devices()) {
      failed += AsyncErrorOf([&] { Synchronize(device); }) != "nothing thrown";
    }
    EXPECT_GT(failed, 0);
    LoadState(*saved, net);
    const bool loads_momentum = below(2) == 0;
    DataParallel unbroken(nn::Clone(*saved, First()), ids_, options);
    for (std::size_t i = 0; i < momentum.size() && loads_momentum; ++i) {
      if (!momentum[i].defined()) continue;
      net.sgd().momentum_buffers()[i] = Clone(momentum[i]);
      unbroken.sgd().momentum_buffers()[i] = Clone(momentum[i]);
    }
    Steps(net, 1, 4);
    Steps(unbroken, 1, 4);
    ExpectSame(net, unbroken);
    for (const Device device : net.devices()) Synchronize(device);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, FailuresTest,
    testing::Combine(testing::Values(Shard::kNone, Shard::kOptimizer,
                                     Shard::kGradients),
                     testing::Bool()),
    [](const auto& info) {
      return "Stage" +
             std::to_string(static_cast<int>(std::get<0>(info.param))) +
             (std::get<1>(info.param) ? "KnownEarly" : "KnownLate");
    });

}  // namespace
}  // namespace d2l
