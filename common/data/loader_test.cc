#include "common/data/loader.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <vector>

#include "common/data/dataset.h"
#include "common/device/device_table.h"
#include "common/device/memory/memory.h"
#include "common/device/stream_stall.h"
#include "common/device/testing/testing.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::HasSubstr;

const Device kCpu(DeviceType::kCpu, 0);

// The rest of an epoch: the sum of each image's pixels, and the sizes of the
// batches.
struct Epoch {
  std::vector<float> sums;
  std::vector<std::int64_t> sizes;
};
Epoch ReadEpoch(DataLoader& loader) {
  Epoch epoch;
  while (std::optional<Batch> batch = loader.Next()) {
    const std::int64_t n = batch->labels.size(0);
    const auto values = ToVector<float>(batch->images);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto first = values.begin() + i * kImagePixels;
      epoch.sums.push_back(std::accumulate(first, first + kImagePixels, 0.0F));
    }
    epoch.sizes.push_back(n);
  }
  return epoch;
}

TEST(ShuffledOrder, IsAPermutationOfItsOwn) {
  for (const int count : {0, 1, 2, 17, 1000}) {
    std::vector<std::int64_t> order = ShuffledOrder(count, 3, 4);
    EXPECT_EQ(order, ShuffledOrder(count, 3, 4));
    std::sort(order.begin(), order.end());
    for (int i = 0; i < count; ++i) EXPECT_EQ(order[i], i);
  }
  std::set<std::vector<std::int64_t>> orders;
  for (int seed = 0; seed < 20; ++seed) {
    for (int epoch = 0; epoch < 20; ++epoch) {
      orders.insert(ShuffledOrder(50, seed, epoch));
    }
  }
  EXPECT_EQ(orders.size(), 400U);
}

// Every old checkpoint must resume where it stopped.
TEST(ShuffledOrder, IsTheSameForEver) {
  EXPECT_EQ(ShuffledOrder(12, 42, 7),
            (std::vector<std::int64_t>{3, 1, 5, 9, 8, 7, 11, 6, 4, 2, 10, 0}));
}

TEST(ShuffledOrder, HasEveryNumberInEveryPlaceEquallyOften) {
  constexpr int kCount = 6, kEpochs = 6000;
  int found[kCount][kCount] = {};
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<std::int64_t> order = ShuffledOrder(kCount, 0, epoch);
    for (int i = 0; i < kCount; ++i) ++found[i][order[i]];
  }
  // The standard deviation is 29.
  for (const auto& row : found) {
    for (const int n : row) EXPECT_NEAR(n, kEpochs / kCount, 150);
  }
}

class DataLoaderTest : public testing::TestWithParam<Device> {
 protected:
  const Device device_ = GetParam();
};

TEST_P(DataLoaderTest, HasTheBytesDividedBy255) {
  const Dataset data = GenerateImages(11, 2);
  DataLoader loader(data,
                    {/*batch_size=*/4, /*shuffle=*/true,
                     /*drop_last=*/false, /*seed=*/9},
                    device_);
  EXPECT_EQ(loader.batches(), 3);
  for (int epoch = 0; epoch < 3; ++epoch) {
    const std::vector<std::int64_t> order = ShuffledOrder(11, 9, epoch);
    for (std::int64_t first = 0; first < 11; first += 4) {
      const std::optional<Batch> batch = loader.Next();
      ASSERT_TRUE(batch.has_value());
      const std::int64_t n = std::min<std::int64_t>(4, 11 - first);
      EXPECT_EQ(batch->images.shape(), Shape({n, 1, 28, 28}));
      EXPECT_EQ(batch->images.dtype(), DType::kFloat32);
      EXPECT_EQ(batch->images.device(), device_);
      EXPECT_EQ(batch->labels.shape(), Shape({n}));
      const auto images = ToVector<float>(batch->images);
      const auto labels = ToVector<std::int64_t>(batch->labels);
      for (std::int64_t i = 0; i < n * kImagePixels; ++i) {
        const std::int64_t pixel =
            order[first + i / kImagePixels] * kImagePixels + i % kImagePixels;
        ASSERT_EQ(images[i], static_cast<float>(data.images[pixel]) / 255.0F);
      }
      for (std::int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(labels[i], data.labels[order[first + i]]);
      }
    }
    EXPECT_FALSE(loader.Next().has_value());
  }
}

TEST_P(DataLoaderTest, DropsTheLastOrKeepsTheOrder) {
  const Dataset data = GenerateImages(10);
  LoaderOptions options;
  options.batch_size = 4;
  options.shuffle = false;
  DataLoader in_order(data, options, device_);
  const Epoch all = ReadEpoch(in_order);
  EXPECT_EQ(all.sizes, (std::vector<std::int64_t>{4, 4, 2}));
  for (int i = 0; i < 10; ++i) {
    float sum = 0;
    for (int p = 0; p < kImagePixels; ++p) {
      sum += static_cast<float>(data.images[i * kImagePixels + p]) / 255.0F;
    }
    EXPECT_EQ(all.sums[i], sum);
  }
  EXPECT_EQ(ReadEpoch(in_order).sums, all.sums);
  options.drop_last = true;
  DataLoader whole(data, options, device_);
  EXPECT_EQ(ReadEpoch(whole).sizes, (std::vector<std::int64_t>{4, 4}));
}

TEST_P(DataLoaderTest, ResumesAnywhere) {
  const Dataset data = GenerateImages(13, 1);
  LoaderOptions options;
  options.batch_size = 5;
  options.seed = 77;
  DataLoader unbroken(data, options, device_);
  std::vector<Epoch> epochs;
  for (int i = 0; i < 3; ++i) epochs.push_back(ReadEpoch(unbroken));
  EXPECT_NE(epochs[0].sums, epochs[1].sums);
  for (int stop = 0; stop <= 7; ++stop) {
    DataLoader before(data, options, device_);
    for (int i = 0; i < stop; ++i) before.Next();
    const LoaderPosition position = before.position();
    EXPECT_EQ(position.epoch, stop / 4);
    EXPECT_EQ(position.batch, stop % 4);
    DataLoader after(data, options, device_);
    after.Next();  // not the epoch's start
    after.SetPosition(position);
    for (std::int64_t e = position.epoch; e < 3; ++e) {
      const std::int64_t skipped =
          e == position.epoch ? std::min<std::int64_t>(position.batch * 5, 13)
                              : 0;
      const std::vector<float> wanted(epochs[e].sums.begin() + skipped,
                                      epochs[e].sums.end());
      EXPECT_EQ(ReadEpoch(after).sums, wanted) << stop << " " << e;
    }
  }
}

TEST_P(DataLoaderTest, DoesNotWaitForTheDevice) {
  const Dataset data = GenerateImages(6);
  LoaderOptions options;
  options.batch_size = 3;
  DataLoader loader(data, options, device_);
  Epoch wanted = ReadEpoch(loader);
  std::vector<Batch> batches;
  const auto read_all = [&] {
    loader.SetPosition({0, 0});
    while (std::optional<Batch> batch = loader.Next()) {
      batches.push_back(*batch);
    }
  };
  // Allocating memory on a GPU may wait for the stalled stream.
  RunOnce(read_all);
  batches.clear();
  {
    StreamStall stall(CurrentStream(device_));
    read_all();
  }
  ASSERT_EQ(batches.size(), 2U);
  const auto values = ToVector<float>(batches[0].images);
  EXPECT_EQ(std::accumulate(values.begin(), values.begin() + kImagePixels, 0.F),
            wanted.sums[0]);
}

TEST_P(DataLoaderTest, GivesItsMemoryBack) {
  const Dataset data = GenerateImages(64);
  LoaderOptions options;
  options.batch_size = 8;
  Synchronize(device_);
  const std::int64_t before = PinnedMemory(device_).Stats().allocated;
  for (int taken = 0; taken < 10; ++taken) {
    DataLoader loader(data, options, device_);
    for (int i = 0; i < taken; ++i) loader.Next();
  }
  EXPECT_EQ(PinnedMemory(device_).Stats().allocated, before);
}

INSTANTIATE_TEST_SUITE_P(All, DataLoaderTest, testing::ValuesIn(AllDevices()),
                         DeviceTestName);

TEST(DataLoader, OfNothing) {
  const Dataset none = GenerateImages(0);
  DataLoader empty(none, {}, kCpu);
  EXPECT_EQ(empty.batches(), 0);
  EXPECT_FALSE(empty.Next().has_value());
  EXPECT_FALSE(empty.Next().has_value());
  const Dataset few = GenerateImages(3);
  LoaderOptions options;
  options.drop_last = true;
  DataLoader dropped(few, options, kCpu);
  EXPECT_FALSE(dropped.Next().has_value());
}

TEST(DataLoader, RefusesWhatIsWrong) {
  Dataset data = GenerateImages(3);
  EXPECT_THAT(ThrownText([&] { DataLoader(data, {/*batch_size=*/0}, kCpu); }),
              HasSubstr("a batch size of at least 1 wanted; got 0"));
  EXPECT_THROW(DataLoader(data, {}, Device(DeviceType::kCpu, 63)),
               std::invalid_argument);
  DataLoader loader(data, {/*batch_size=*/2}, kCpu);
  for (const LoaderPosition position :
       {LoaderPosition{-1, 0}, {0, -1}, {0, 3}, {std::int64_t{1} << 40, 0}}) {
    EXPECT_THAT(ThrownText([&] { loader.SetPosition(position); }),
                HasSubstr("an epoch has 2 batches"));
  }
  data.labels[1] = 10;
  EXPECT_THAT(ThrownText([&] { DataLoader(data, {}, kCpu); }),
              HasSubstr("label 1 of generated data, seed 0 is 10; labels are "
                        "from 0 to 9"));
  data.labels.pop_back();
  EXPECT_THAT(ThrownText([&] { DataLoader(data, {}, kCpu); }),
              HasSubstr("2 labels need 1568 pixels"));
}

}  // namespace
}  // namespace d2l
