// Operations are asynchronous: which calls wait, which do not, and who owns
// memory meanwhile.

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "common/device/memory/memory.h"
#include "common/device/stream.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AsyncTest : public DeviceTest {};

TEST_P(AsyncTest, TheNotebooksExample) {
  const Tensor x = Ones({1, 2}, device());
  const Tensor y = Ones({1, 2}, device());
  const Tensor z = x * y + 2;
  EXPECT_THAT(ToVector<float>(z), ElementsAre(3.f, 3.f));
  EXPECT_EQ(ToString(z),
            "tensor([[3., 3.]], device='" + device().ToString() + "')");
}

TEST_P(AsyncTest, StatementsOnlyEnqueue) {
  Stream& stream = CurrentStream(device());
  Tensor z, sum, view, empty;
  const auto compute = [&] {
    const Tensor x = Ones({1, 2}, device());
    z = x * x + 2;
    sum = Sum(z);
  };
  const auto allocate = [&] {
    view = T(z)[0];
    empty = Empty({1000}, device());
  };
  RunOnce([&] {
    compute();
    allocate();
  });
  z = sum = view = empty = Tensor();
  StreamStall hold(stream);
  compute();
  EXPECT_EQ(stream.QueuedOperations(), 5);  // the stall and four
  allocate();
  EXPECT_EQ(stream.QueuedOperations(), 5);
  hold.Release();
  EXPECT_THAT(ToVector<float>(z), ElementsAre(3.f, 3.f));
  EXPECT_EQ(Item(sum), 6);
}

TEST_P(AsyncTest, ReadingWaitsForTheWriterOnly) {
  const Tensor early = Ones({1}, device());
  Stream& stream = CurrentStream(device());
  RunOnce([&] { Item(early + 1); });
  StreamStall hold(stream);
  const Tensor late = early + 1;
  // The work behind is stalled: reading a finished result must not wait for it.
  EXPECT_EQ(Item(early), 1);
  WaitToRead(early);
  EXPECT_FALSE(stream.Query());
  hold.Release();
  EXPECT_EQ(Item(late), 2);
}

TEST_P(AsyncTest, ItemConvertsAnyDType) {
  constexpr std::int64_t kBig = (std::int64_t{1} << 53) + 1;
  for (const DType dtype : kAllDTypes) {
    const Tensor x = RandomTensor({3, 4}, device(), dtype);
    EXPECT_EQ(Item(x[{2, 1}]), ValuesOf(x)[9]);
    EXPECT_EQ(Item<std::int64_t>(Full({1, 1}, 7, device(), dtype)), 7);
  }
  EXPECT_EQ(Item<std::int64_t>(Full({}, kBig, device(), DType::kInt64)), kBig);
}

TEST_P(AsyncTest, TemporariesReuseMemoryWhileTheQueueIsLong) {
  const Tensor x = Ones({1000}, device());
  Tensor z;
  const auto add_twice = [&] {
    z = x + 1;
    z = x + 1;  // now two blocks are in the cycle
  };
  RunOnce(add_twice);
  StreamStall hold(CurrentStream(device()));
  add_twice();
  const std::int64_t before = Memory(device()).Stats().raw_allocations;
  const int more = std::min(1000, StreamStall::Room(device()) - 2);
  for (int i = 0; i < more; ++i) z = x + 1;
  EXPECT_EQ(Memory(device()).Stats().raw_allocations, before);
  hold.Release();
  EXPECT_EQ(ValuesOf(z), std::vector<double>(1000, 2.0));
}

TEST_P(AsyncTest, StreamsOfADeviceShareTensorsThroughEvents) {
  Stream& other = NewStream(device());
  const Tensor x = RandomTensor({100}, device());
  other.Wait(CurrentStream(device()).Record());
  Tensor y;
  {
    StreamGuard guard(other);
    y = x + 1;
  }
  EXPECT_TRUE(Matches(y, {100}, DType::kFloat32,
                      Map(x, [](double a) { return a + 1; })));
}

TEST_P(AsyncTest, ThreadsMayReadOneTensorOnStreamsOfTheirOwn) {
  const Tensor x = RandomTensor({100}, device());
  Synchronize(device());
  std::vector<Tensor> results(4);
  std::vector<Stream*> streams;
  for (int t = 0; t < 4; ++t) streams.push_back(&NewStream(device()));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const StreamGuard guard(*streams[t]);
      for (int i = 0; i < 100; ++i) results[t] = x + t;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 4; ++t) {
    EXPECT_TRUE(Matches(results[t], {100}, DType::kFloat32,
                        Map(x, [t](double a) { return a + t; })));
  }
}

TEST_P(AsyncTest, EmptyTensorsMayHaveLongSides) {
  const std::int64_t kLong = std::int64_t{1} << 40;
  const Tensor x = Ones({kLong, kLong, 0}, device());
  EXPECT_EQ(ValuesOf(x + x), std::vector<double>());
}

TEST_P(AsyncTest, MoreThanTheMachineHasIsAnErrorNotACrash) {
  try {
    Ones({std::int64_t{1} << 42}, device());
    FAIL() << "16 TiB were allocated";
  } catch (const OutOfMemoryError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("16.0 TiB asked for on " + device().ToString()));
  }
  EXPECT_EQ(Item(Ones({}, device())), 1);  // the device works again
}

TEST_P(AsyncTest, ItemConvertsAsToDoes) {
  const double kInfinity = std::numeric_limits<double>::infinity();
  for (const double value : {kInfinity, -kInfinity, 1e30, -1e30, std::nan(""),
                             -2.7, 9007199254740993.0}) {
    for (const DType dtype : kFloatDTypes) {
      const Tensor x = Full({}, value, device(), dtype);
      EXPECT_EQ(Item<std::int64_t>(x), Item<std::int64_t>(To(x, DType::kInt64)))
          << value;
    }
  }
}

INSTANTIATE_FOR_ALL_DEVICES(AsyncTest);

}  // namespace
}  // namespace d2l
