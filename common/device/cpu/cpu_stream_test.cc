// What CpuStream has beyond the contract of Stream: Enqueue. The contract has
// tests of its own, in ../stream_contract_test.cc.

#include "common/device/cpu/cpu_stream.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/failure.h"
#include "common/device/op_label.h"
#include "common/device/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

const Device kDevice(DeviceType::kCpu, 1);

std::unique_ptr<AsyncError> LateError(Stream& stream) {
  try {
    stream.Synchronize();
  } catch (const AsyncError& error) {
    return std::make_unique<AsyncError>(error);
  }
  ADD_FAILURE() << "no AsyncError was thrown";
  return nullptr;
}

TEST(CpuStreamTest, AMillionOperationsFromEightThreads) {
  constexpr int kThreads = 8;
  constexpr std::uint64_t kPerThread = 125'000;
  CpuStream stream(kDevice, 0, StreamOptions());
  std::array<std::uint64_t, kThreads> next{};
  std::uint64_t out_of_order = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kPerThread; ++i) {
        stream.Enqueue(OpLabel("count"), [&, t, i] {
          if (next[t]++ != i) ++out_of_order;
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stream.Synchronize();
  for (const std::uint64_t n : next) EXPECT_EQ(n, kPerThread);
  EXPECT_EQ(out_of_order, 0u);
}

TEST(CpuStreamTest, TheSmallestBoundStillMakesProgress) {
  StreamOptions options;
  options.max_queued_operations = 1;
  CpuStream a(kDevice, 0, options);
  CpuStream b(kDevice, 1, options);
  std::uint64_t value = 0;
  for (int i = 0; i < 2000; ++i) {
    a.Enqueue(OpLabel("add"), [&value] { value += 1; });
    b.Wait(a.Record());
    b.Enqueue(OpLabel("double"), [&value] { value *= 2; });
    a.Wait(b.Record());
  }
  a.Synchronize();
  b.Synchronize();
  std::uint64_t expected = 0;
  for (int i = 0; i < 2000; ++i) expected = (expected + 1) * 2;
  EXPECT_EQ(value, expected);
}

TEST(CpuStreamTest, ReturnsTheNumbersThatWaitForAndFailureOfTake) {
  CpuStream stream(kDevice, 0, StreamOptions());
  std::atomic<bool> ran{false};
  EXPECT_EQ(stream.Enqueue(OpLabel("a"), [] {}), 0u);
  const std::uint64_t number =
      stream.Enqueue(OpLabel("b"), [&ran] { ran = true; });
  EXPECT_EQ(number, 1u);
  StreamStall stall(stream);
  stream.WaitFor(number);  // and not for what is behind it
  EXPECT_TRUE(ran);
  EXPECT_EQ(stream.FailureOf(number), nullptr);
}

TEST(CpuStreamTest, FailureCarriesTheWholeLabel) {
  CpuStream stream(kDevice, 2, StreamOptions());
  const SourceLocation here = SourceLocation::Current();
  OpLabel label("relu", here, SourceLocation("user.cc", 12));
  label.AddInput({256, 128});
  label.AddInput({});
  label.AddInput({128});
  const std::uint64_t number =
      stream.Enqueue(label, [] { throw std::runtime_error("no luck"); });
  auto error = LateError(stream);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->failure().operation, "relu");
  EXPECT_EQ(error->failure().number, number);
  EXPECT_EQ(error->failure().requested_at, here);
  EXPECT_EQ(error->failure().inputs, "(256, 128), (), (128)");
  EXPECT_EQ(error->failure().ToString(),
            "relu (operation 0 of stream cpu:1/2, requested at " +
                here.ToString() +
                ", called from user.cc:12, input (256, 128), (), (128)) "
                "failed: no luck");
}

TEST(CpuStreamTest, LabelNamesWhatFitsAndSaysThatThereIsMore) {
  OpLabel label("many");
  EXPECT_EQ(label.InputsToString(), "");
  for (int i = 1; i <= 5; ++i) label.AddInput({i});
  EXPECT_EQ(label.InputsToString(), "(1), (2), (3), (4), …");
  OpLabel deep("deep");
  deep.AddInput({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  EXPECT_EQ(deep.InputsToString(), "…");
  OpLabel copy = label;
  EXPECT_EQ(copy.InputsToString(), label.InputsToString());
  EXPECT_STREQ(copy.name(), "many");
}

TEST(CpuStreamTest, ThrownExceptionsAndOtherThings) {
  CpuStream stream(kDevice, 0, StreamOptions());
  stream.Enqueue(OpLabel("a"), [] { throw std::out_of_range("index 7"); });
  auto error = LateError(stream);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->failure().what, "index 7");
  EXPECT_THROW(std::rethrow_exception(error->failure().cause),
               std::out_of_range);
  stream.Enqueue(OpLabel("b"), [] { throw 42; });
  error = LateError(stream);
  ASSERT_NE(error, nullptr);
  EXPECT_THROW(std::rethrow_exception(error->failure().cause), int);
  stream.Synchronize();
}

TEST(CpuStreamTest, TakesMoveOnlyTasksOf96Bytes) {
  struct Task {
    std::array<std::uint64_t, 10> numbers;
    std::unique_ptr<std::uint64_t> last;
    std::uint64_t* sum;
    void operator()() {
      for (const std::uint64_t n : numbers) *sum += n;
      *sum += *last;
    }
  };
  static_assert(sizeof(Task) == 96);
  CpuStream stream(kDevice, 0, StreamOptions());
  OpStamps stamps;  // they are stored beside the task
  OpLabel label("large");
  label.set_stamps(&stamps);
  std::uint64_t sum = 0;
  stream.Enqueue(label, Task{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
                             std::make_unique<std::uint64_t>(100),
                             &sum});
  stream.Synchronize();
  EXPECT_EQ(sum, 155u);
}

TEST(CpuStreamTest, StampsSayWhenAnOperationBeganAndEnded) {
  CpuStream stream(kDevice, 0, StreamOptions());
  OpStamps stamps;
  OpLabel label("timed");
  label.set_stamps(&stamps);
  StreamStall stall(stream);
  stream.Enqueue(label, [] {
    const Timer timer;
    while (timer.Nanos() < 1'000'000) {
    }
  });
  EXPECT_EQ(stamps.begin, 0);
  EXPECT_EQ(stamps.end, 0);
  const std::int64_t released = NowNanos();
  stall.Release();
  stream.Synchronize();
  EXPECT_GE(stamps.begin, released);
  EXPECT_GE(stamps.end, stamps.begin + 1'000'000);
  EXPECT_LE(stamps.end, NowNanos());
}

TEST(CpuStreamTest, StampsOfFailedAndSkippedOperations) {
  CpuStream stream(kDevice, 0, StreamOptions());
  OpStamps failed;
  OpStamps skipped;
  OpLabel first("failed");
  first.set_stamps(&failed);
  OpLabel second("skipped");
  second.set_stamps(&skipped);
  StreamStall stall(stream);
  stream.Enqueue(first, [] { throw std::runtime_error("no"); });
  stream.Enqueue(second, [] {});
  stall.Release();
  EXPECT_THROW(stream.Synchronize(), AsyncError);
  EXPECT_GE(failed.end, failed.begin);
  EXPECT_NE(failed.begin, 0);
  EXPECT_EQ(skipped.begin, 0) << "it never began";
  EXPECT_EQ(skipped.end, 0);
}

TEST(CpuStreamTest, EnqueueFromATaskThrows) {
  CpuStream stream(kDevice, 0, StreamOptions());
  CpuStream other(kDevice, 1, StreamOptions());
  stream.Enqueue(OpLabel("outer"),
                 [&other] { other.Enqueue(OpLabel("inner"), [] {}); });
  auto error = LateError(stream);
  ASSERT_NE(error, nullptr);
  EXPECT_THAT(error->what(), HasSubstr("[Enqueue] called from work"));
  EXPECT_THROW(std::rethrow_exception(error->failure().cause),
               std::logic_error);
  EXPECT_TRUE(other.Query());
}

TEST(CpuStreamTest, FailuresWhileManyThreadsEnqueueAreNeverLost) {
  // Some tasks fail while other threads enqueue and synchronise. In the end
  // each operation has either run or has a recorded failure, not both.
  constexpr int kThreads = 4;
  constexpr int kPerThread = 5000;
  CpuStream stream(kDevice, 0, StreamOptions());
  struct Operation {
    std::uint64_t number = 0;
    bool ran = false;
  };
  std::vector<std::vector<Operation>> operations(
      kThreads, std::vector<Operation>(kPerThread));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kPerThread; ++i) {
        Operation* operation = &operations[t][i];
        operation->number = stream.Enqueue(OpLabel("maybe"), [operation, i] {
          if (i % 97 == 0) throw std::runtime_error("one of them");
          operation->ran = true;
        });
        if (i % 50 == 0) {
          try {
            stream.Synchronize();
          } catch (const AsyncError&) {
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  try {
    stream.Synchronize();
  } catch (const AsyncError&) {
  }
  stream.Synchronize();
  int wrong = 0;
  for (const auto& of_thread : operations) {
    for (const Operation& operation : of_thread) {
      if (operation.ran != (stream.FailureOf(operation.number) == nullptr)) {
        ++wrong;
      }
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(CpuStreamTest, AbandonSkipsWhatIsQueuedAndCompletesEvents) {
  auto owned = std::make_shared<int>(0);
  std::atomic<bool> ran{false};
  {
    CpuStream stream(kDevice, 0, StreamOptions());
    StreamStall stall(stream);
    std::uint64_t last = 0;
    for (int i = 0; i < 100; ++i) {
      last = stream.Enqueue(OpLabel("task"), [owned, &ran] { ran = true; });
    }
    const Event event = stream.Record();
    stream.Shutdown();
    stall.Release();
    event.Synchronize();  // a wait alone throws nothing
    stream.Synchronize();
    // A thread that reads a skipped result gets the failure.
    const FailurePtr failure = stream.FailureOf(last);
    ASSERT_NE(failure, nullptr);
    EXPECT_THAT(failure->what, testing::HasSubstr("the program is ending"));
    EXPECT_THROW(stream.Finish(last, "Item", {}), AsyncError);
    EXPECT_EQ(stream.UnreportedFailure(), nullptr);
  }
  EXPECT_FALSE(ran);
  EXPECT_EQ(owned.use_count(), 1);
}

}  // namespace
}  // namespace d2l
