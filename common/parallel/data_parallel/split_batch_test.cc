#include "common/parallel/data_parallel/split_batch.h"

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "common/device/device.h"
#include "common/device/testing/testing.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ShardSizesTest, AreEvenAndTheFirstGetTheRest) {
  EXPECT_THAT(ShardSizes(9, {1, 1, 1, 1}), ElementsAre(3, 2, 2, 2));
  EXPECT_THAT(ShardSizes(3, {1, 1, 1, 1}), ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(ShardSizes(0, {1, 1}), ElementsAre(0, 0));
  EXPECT_THAT(ShardSizes(7, {1}), ElementsAre(7));
}

TEST(ShardSizesTest, FollowTheWeights) {
  EXPECT_THAT(ShardSizes(256, {3, 1}), ElementsAre(192, 64));
  EXPECT_THAT(ShardSizes(5, {1, 3}), ElementsAre(1, 4));
  EXPECT_THAT(ShardSizes(4, {0, 1, 1}), ElementsAre(0, 2, 2));
  // 10 / 7 = 1.43, 1.43, 7.14: the rest goes to the first of equals.
  EXPECT_THAT(ShardSizes(10, {1, 1, 5}), ElementsAre(2, 1, 7));
}

// No size is further than one from its share, and all samples are there.
TEST(ShardSizesTest, AddUpForAllBatches) {
  const std::vector<std::vector<int>> all = {
      {1}, {1, 1, 1}, {3, 1}, {2, 0, 5, 7}, {1000000, 1, 999999}};
  for (const std::vector<int>& weights : all) {
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (const std::int64_t samples :
         {0L, 1L, 2L, 3L, 17L, 4096L, 1000000000000000000L}) {
      const std::vector<std::int64_t> sizes = ShardSizes(samples, weights);
      EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}),
                samples);
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const double share = static_cast<double>(samples) * weights[i] / total;
        EXPECT_NEAR(static_cast<double>(sizes[i]), share, 1 + share * 1e-15);
      }
    }
  }
}

TEST(ShardSizesTest, RefuseWhatAreNoWeights) {
  for (const std::vector<int>& weights :
       std::vector<std::vector<int>>{{}, {0, 0}, {1, -1}, {1, 1000001}}) {
    EXPECT_THAT(ThrownText([&] { ShardSizes(8, weights); }),
                HasSubstr("[ShardSizes] weights from 0 to 1000000, not all of "
                          "them 0, wanted; got "));
  }
  EXPECT_THAT(ThrownText([&] { ShardSizes(-1, {1}); }),
              HasSubstr("for -1 samples"));
}

TEST(ParseSplitTest, ReadsWeightsOrSaysWhatToWrite) {
  EXPECT_THAT(ParseSplit("3:1", 2).value(), ElementsAre(3, 1));
  EXPECT_THAT(ParseSplit("4", 1).value(), ElementsAre(4));
  EXPECT_THAT(ParseSplit("3:1", 3).status().message(),
              HasSubstr("\"3:1\" has 2 weights for 3 devices; write one for "
                        "each, such as 1:1:1"));
  for (const char* text : {"", "3:", "3:x", "-1:2", "3;1", "1000001:1"}) {
    EXPECT_THAT(ParseSplit(text, 2).status().message(),
                HasSubstr("is not a list of weights"))
        << text;
  }
  EXPECT_THAT(ParseSplit("0:0", 2).status().message(),
              HasSubstr("gives no device any work"));
}

TEST(SplitBatchTest, PutsConsecutiveRowsOnTheDevices) {
  const std::vector<Device> devices = AllDevices();
  for (std::int64_t rows = 0; rows < 10; ++rows) {
    const Tensor x = RandomTensor({rows, 3}, devices[0]);
    const std::vector<Tensor> shards = SplitBatch(x, devices);
    const std::vector<std::int64_t> sizes =
        ShardSizes(rows, std::vector<int>(devices.size(), 1));
    ASSERT_EQ(shards.size(), devices.size());
    std::vector<double> values;
    for (std::size_t i = 0; i < shards.size(); ++i) {
      EXPECT_EQ(shards[i].device(), devices[i]);
      EXPECT_EQ(shards[i].shape(), (Shape{sizes[i], 3}));
      for (const double value : ValuesOf(shards[i])) values.push_back(value);
    }
    EXPECT_EQ(values, ValuesOf(x));
    EXPECT_EQ(shards[0].storage().get(), x.storage().get());
  }
}

// The book's: arange(20) of shape (5, 4) in two.
TEST(SplitBatchTest, TakesSizes) {
  const Device device = AllDevices()[0];
  const Tensor x = Reshape(Arange(20, device), {5, 4});
  const std::vector<Tensor> shards = SplitBatch(x, {device, device}, {1, 4});
  EXPECT_THAT(ValuesOf(shards[0]), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(shards[1].shape(), (Shape{4, 4}));
}

TEST(SplitBatchTest, RefusesSizesThatDoNotAddUp) {
  const Device device = AllDevices()[0];
  const std::vector<Device> devices(2, device);
  const Tensor x = Ones({5, 4}, device);
  const std::string shards = "do not split a float32 tensor of shape (5, 4) on";
  for (const std::vector<std::int64_t>& sizes :
       std::vector<std::vector<std::int64_t>>{
           {2, 2}, {5}, {6, -1}, {2, 2, 1}}) {
    EXPECT_THAT(ThrownText([&] { SplitBatch(x, devices, sizes); }),
                HasSubstr(shards));
  }
  EXPECT_THAT(
      ThrownText([&] {
        SplitBatch(x, devices, {2, 2});
      }),
      HasSubstr("[SplitBatch] shards of sizes 2, 2, 4 in all, do not split"));
  EXPECT_THAT(ThrownText([&] { SplitBatch(x, {}); }),
              HasSubstr("at least one device wanted"));
  EXPECT_THAT(ThrownText([&] { SplitBatch(Ones({}, device), devices); }),
              HasSubstr("a tensor with rows"));
}

}  // namespace
}  // namespace d2l
