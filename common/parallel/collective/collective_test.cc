#include "common/parallel/collective/collective.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/device/device_table.h"
#include "common/device/stream_stall.h"
#include "common/device/testing/testing.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "common/parallel/collective/collective_testing.h"
#include "common/parallel/collective/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

// Enough for non-temporal stores; ThreadSanitizer would take minutes.
#ifdef __SANITIZE_THREAD__
constexpr std::int64_t kLong = 10'001;
#else
constexpr std::int64_t kLong = 1'000'001;
#endif

TEST(AllReduce, MakesTheSumOnEveryDeviceBitForBit) {
  for (std::vector<Device> devices : Groups()) {
    const int most = std::min(8, static_cast<int>(devices.size()));
    for (int ranks = 1; ranks <= most; ++ranks) {
      for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
        for (const std::int64_t length :
             {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}, kLong}) {
          SCOPED_TRACE(absl::StrCat(AllReduceAlgorithmName(algorithm), " of ",
                                    ranks, ", ", length));
          const auto arrays = RandomArrays(ranks, length);
          const std::vector<Tensor> x = Place(arrays, devices);
          AllReduce(x, algorithm);
          const Values expected = Expected(arrays, algorithm);
          for (const Tensor& t : x) ASSERT_TRUE(SameBits(t, expected));
        }
      }
      // Ranks are places in the list, not the devices' numbers.
      std::rotate(devices.begin(), devices.begin() + 1, devices.end());
    }
  }
}

TEST(AllReduce, OfAnyDTypeAndOfPartsOfMemory) {
  for (const std::vector<Device>& devices : Groups()) {
    for (const DType dtype : kAllDTypes) {
      for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
        const Tensor a = RandomTensor({5, 7}, devices[0], dtype);
        const Tensor b =
            RandomTensor({5, 7}, devices[1], dtype, Placement::kOffset);
        const Tensor before = MemoryOf(b);
        const std::vector<double> sum = ValuesOf(a + To(b, a.device()));
        const auto memory = WithValues(ValuesOf(before), b, sum);
        AllReduce({a, b}, algorithm);
        EXPECT_EQ(ValuesOf(a), sum);
        EXPECT_EQ(ValuesOf(before), memory);
      }
    }
  }
}

// Each array's own part is summed; then all parts are gathered, by all ranks,
// or by one of them alone.
TEST(ReduceScatter, AndAllGatherMakeTheSumBitForBit) {
  for (std::vector<Device> devices : Groups()) {
    const int most = std::min(5, static_cast<int>(devices.size()));
    for (int ranks = 1; ranks <= most; ++ranks) {
      for (const std::int64_t length : {0, 1, 7, 1'003}) {
        SCOPED_TRACE(absl::StrCat(ranks, " ranks, ", length));
        const auto arrays = RandomArrays(ranks, length);
        const Values sum = Expected(arrays, AllReduceAlgorithm::kSplit);
        const std::vector<Tensor> x = Place(arrays, devices);
        ReduceScatterAsync(x).Wait();
        for (int r = 0; r < ranks; ++r) {
          const std::int64_t begin = ChunkBegin(length, ranks, r);
          const std::int64_t end = ChunkBegin(length, ranks, r + 1);
          EXPECT_TRUE(SameBits(Slice(x[r], 0, begin, end),
                               {sum.begin() + begin, sum.begin() + end}));
        }
        AllGatherAsync(x).Wait();
        for (const Tensor& t : x) EXPECT_TRUE(SameBits(t, sum));
      }
    }
  }
}

// ---- Order.

// Streams begin in a random order, and moves are delayed at random; the work
// before and behind the collective writes to the same memory.
TEST(AllReduce, IsRightUnderAnyDelays) {
  const std::vector<Device> devices = CpuDevices(8);
  const int ranks = static_cast<int>(devices.size());
  std::mt19937 random(20);
  for (int round = 0; round < 200; ++round) {
    const AllReduceAlgorithm algorithm =
        kAllReduceAlgorithms[round % std::size(kAllReduceAlgorithms)];
    SCOPED_TRACE(
        absl::StrCat("round ", round, ", ", AllReduceAlgorithmName(algorithm)));
    const auto arrays = RandomArrays(ranks, 1'003);
    const std::vector<Tensor> sources = Place(arrays, devices);
    const std::vector<Tensor> x =
        Place(std::vector<Values>(ranks, Values(1'003, 99)), devices);
    std::deque<StreamStall> stalls;
    for (const Device device : devices) {
      stalls.emplace_back(DefaultStream(device));
      stalls.emplace_back(CommunicationStream(device));
    }
    std::vector<Tensor> kept;
    for (int r = 0; r < ranks; ++r) CopyTo(sources[r], x[r]);
    {
      const MoveListener delay([&](int, Stream& stream) {
        const int spins = random() % 4 == 0 ? random() % 20'000 : 0;
        if (spins == 0) return;
        stream.HostCallback([spins] {
          for (std::atomic<int> i{0}; i < spins;) ++i;
        });
      });
      AllReduce(x, algorithm);
    }
    for (int r = 0; r < ranks; ++r) {
      kept.push_back(Clone(x[r]));
      FillInPlace(x[r], -1);
    }
    std::vector<StreamStall*> order;
    for (StreamStall& stall : stalls) order.push_back(&stall);
    std::shuffle(order.begin(), order.end(), random);
    for (StreamStall* const stall : order) {
      stall->Release();
      for (unsigned i = random() % 8; i > 0; --i) std::this_thread::yield();
    }
    const Values expected = Expected(arrays, algorithm);
    for (const Tensor& t : kept) ASSERT_TRUE(SameBits(t, expected));
    for (const Tensor& t : x) ASSERT_TRUE(SameBits(t, Values(1'003, -1)));
  }
}

// A device that is done overwrites its result at once. Its neighbour, which is
// late, must have read it before.
TEST(AllReduce, OverwritingTheResultWaitsForTheLastReader) {
  const std::vector<Device> devices = CpuDevices(8);
  const int ranks = static_cast<int>(devices.size());
  for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
    for (const Device late : devices) {
      const auto arrays = RandomArrays(ranks, 100);
      const std::vector<Tensor> x = Place(arrays, devices);
      StreamStall stall(CommunicationStream(late));
      AllReduce(x, algorithm);
      std::vector<Tensor> kept;
      for (const Tensor& t : x) {
        kept.push_back(Clone(t));
        FillInPlace(t, -1);
      }
      stall.Release();
      const Values expected = Expected(arrays, algorithm);
      for (const Tensor& t : kept) ASSERT_TRUE(SameBits(t, expected));
    }
  }
}

}  // namespace
}  // namespace d2l
