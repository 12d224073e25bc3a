#include "common/parallel/data_parallel/data_parallel.h"

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/testing/testing.h"
#include "common/nn/layers.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "common/parallel/data_parallel/data_parallel_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

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
  // Devices other than the first two: a number is one of the table's.
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
              HasSubstr("the split 1:2:3 has 3 weights for 1 device"));
  options.split = {};
  options.max_in_flight = 0;
  EXPECT_THAT(ThrownText([&] { DataParallel(nn::Linear(2, 1), {0}, options); }),
              HasSubstr("max_in_flight, the number of steps under way"));
}

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
  const TestBatch batch = MakeBatch(5, 1);
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
  const TestBatch batch = MakeBatch(5, 1);
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
    // It also works in place.
    CopyTo(Zeros({}, First()), net.sgd().momentum_buffers()[1]);
    CopyTo(Zeros({}, First()), other.sgd().momentum_buffers()[1]);
  }
}

TEST(DataParallelTest, RefusesAModuleThatWasMovedOrReplaced) {
  const TestBatch batch = MakeBatch(5, 1);
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
  const TestBatch batch = MakeBatch(5, 1);
  EXPECT_THAT(ThrownText([&] {
                net.Step(batch.x, Slice(batch.labels, 0, 0, 4), {0.1});
              }),
              HasSubstr("[DataParallel] a label for each sample wanted"));
  DataParallel relu(nn::ReLU(), Ids(2));
  EXPECT_THAT(ThrownText([&] { relu.Step(batch.x, batch.labels, {0.1}); }),
              HasSubstr("[DataParallel] a module with parameters"));
}

TEST(DataParallelTest, PaceAndLinksChangeNoResult) {
  ManualSeed(2);
  nn::Sequential net = Mlp();
  OneDevice one(net, {0.1});
  const TestBatch batch = MakeBatch(5, 1);
  one.Step(batch, {3, 2});
  VirtualTiming timing;
  timing.pace = 2;
  timing.links =
      Topology::PcieSwitch(static_cast<int>(Devices().size()), 1e9, 1e-5);
  const VirtualTimingScope scope(timing);
  DataParallel many(std::move(net), Ids(2), WithBuckets(1, true));
  many.Step(batch.x, batch.labels, {0.1});
  EXPECT_EQ(BitsOf(many.replica(1)), BitsOf(one.net()));
}

}  // namespace
}  // namespace d2l
