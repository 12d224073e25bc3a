#include "common/lesson/recorder.h"

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/base/timer.h"
#include "common/ops/ops.h"
#include "common/ops/record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

const Device kCpu(DeviceType::kCpu, 0);

// Holds up a stream until it goes or is opened.
class Gate {
 public:
  explicit Gate(Device device) {
    DefaultStream(device).HostCallback([this] {
      std::unique_lock<std::mutex> lock(mutex_);
      opened_.wait(lock, [this] { return open_; });
    });
  }
  void Open() {
    std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

TEST(Record, KeepsWhatTheProgramAskedFor) {
  const Tensor x = Ones({2, 3}, kCpu);
  Tensor z;
  const std::int64_t before = NowNanos();
  const Recording run = Record([&] {
    z = x * x + 2;
    z += x;
    T(z);
  });
  const Tensor unheard = x + 1;
  ASSERT_EQ(run.ops.size(), 4u);
  ASSERT_EQ(run.streams.size(), 1u);
  EXPECT_EQ(run.streams[0].name, "cpu:0");
  EXPECT_EQ(run.streams[0].device, kCpu);
  EXPECT_EQ(run.threads, 1);

  const RecordedOp& mul = run.ops[0];
  EXPECT_EQ(mul.name, "mul");
  ASSERT_EQ(mul.inputs.size(), 2u);
  EXPECT_EQ(mul.inputs[1].id, x.id());
  EXPECT_EQ(mul.inputs[1].storage, x.storage()->id());
  EXPECT_EQ(mul.output.shape, (Shape{2, 3}));
  EXPECT_FALSE(mul.in_place);
  EXPECT_EQ(std::string(mul.line().file()), __FILE__);
  EXPECT_THAT(run.ops[1].attributes, ElementsAre(Pair(testing::_, "2")));
  EXPECT_EQ(run.ops[1].number, mul.number + 1);

  EXPECT_TRUE(run.ops[2].in_place);
  EXPECT_EQ(run.ops[2].output.id, z.id());
  EXPECT_EQ(run.ops[2].output.version, run.ops[1].output.version + 1);
  EXPECT_TRUE(run.ops[3].view);
  EXPECT_EQ(run.ops[3].stream, -1);
  EXPECT_EQ(run.ops[3].end, 0);

  for (int i = 0; i < 3; ++i) {
    const RecordedOp& op = run.ops[i];
    EXPECT_EQ(op.stream, 0);
    EXPECT_LE(before, op.host_begin);
    EXPECT_LE(op.host_begin, op.host_end);
    EXPECT_LE(op.host_begin, op.begin);
    EXPECT_LE(op.begin, op.end);
    EXPECT_LE(op.end, NowNanos());
    if (i > 0) {
      EXPECT_LE(run.ops[i - 1].end, op.begin);
    }
  }
}

TEST(Record, ReadsAndWaitsAreKept) {
  const Tensor x = Ones({1}, kCpu);
  Recorder recorder;
  {
    ScopedOpListener listen(&recorder);
    Item(x);
    recorder.Wait("synchronize", [] { Synchronize(kCpu); });
  }
  const Recording run = recorder.Finish();
  ASSERT_EQ(run.waits.size(), 2u);
  EXPECT_EQ(run.waits[0].what, "item");
  EXPECT_EQ(run.waits[0].value, x.id());
  EXPECT_EQ(run.waits[1].what, "synchronize");
  EXPECT_EQ(run.waits[1].value, 0u);
  EXPECT_LE(run.waits[0].begin, run.waits[0].end);
  EXPECT_LE(run.waits[0].end, run.waits[1].begin);
}

TEST(Recorder, FinishMayBeCalledInBetween) {
  const Tensor x = Ones({1}, kCpu);
  Recorder recorder;
  ScopedOpListener listen(&recorder);
  Tensor y = x + 1;
  EXPECT_EQ(recorder.Finish().ops.size(), 1u);
  y = y * 2;
  const Recording run = recorder.Finish();
  ASSERT_EQ(run.ops.size(), 2u);
  EXPECT_EQ(run.ops[1].name, "mul");
  for (const RecordedOp& op : run.ops) EXPECT_GT(op.end, 0);
}

TEST(Recorder, ListensToSeveralThreads) {
  constexpr int kThreads = 4;
  constexpr int kOps = 200;
  Recorder recorder;
  AddProcessOpListener(&recorder);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([] {
      Tensor x = Ones({3}, kCpu);
      for (int j = 1; j < kOps; ++j) x = x + 1;
      EXPECT_EQ(ToVector<float>(x), std::vector<float>(3, kOps));
    });
  }
  for (std::thread& thread : threads) thread.join();
  RemoveProcessOpListener(&recorder);
  const Recording run = recorder.Finish();
  ASSERT_EQ(run.ops.size(), static_cast<std::size_t>(kThreads * kOps));
  EXPECT_EQ(run.waits.size(), static_cast<std::size_t>(kThreads));
  // A thread that begins when another has ended may have its number.
  EXPECT_GE(run.threads, 1);
  EXPECT_LE(run.threads, kThreads);
  for (const RecordedOp& op : run.ops) {
    EXPECT_LT(op.thread, run.threads);
    EXPECT_GT(op.end, 0);
  }
}

// The device writes the times when the recorder has long gone.
TEST(Recorder, MayGoBeforeTheWorkIsDone) {
  const Tensor x = Ones({1000}, kCpu);
  for (int round = 0; round < 3; ++round) {
    Gate gate(kCpu);
    Tensor y;
    {
      Recorder recorder;
      ScopedOpListener listen(&recorder);
      for (int i = 0; i < 50; ++i) y = x + i;
      // Would wait for ever if the destructor waited.
    }
    gate.Open();
    EXPECT_EQ(ToVector<float>(y)[0], 50);
  }
}

TEST(Recorder, FailedAndSkippedOperationsHaveNoEnd) {
  const Tensor x = Ones({2}, kCpu);
  Synchronize(kCpu);
  Recorder recorder;
  {
    // Behind a failure everything is skipped.
    Gate gate(kCpu);
    DefaultStream(kCpu).HostCallback([] { throw std::runtime_error("no"); });
    ScopedOpListener listen(&recorder);
    const Tensor y = x + 1;
    gate.Open();
    const Recording run = recorder.Finish();
    ASSERT_EQ(run.ops.size(), 1u);
    EXPECT_EQ(run.ops[0].end, 0);
    EXPECT_EQ(run.ops[0].seconds(), 0);
  }
  EXPECT_THROW(Synchronize(kCpu), AsyncError);
}

TEST(Recorder, SeveralKnowWhenAnOperationRan) {
  const Tensor x = Ones({2}, kCpu);
  Recorder process, thread;
  AddProcessOpListener(&process);
  {
    ScopedOpListener listen(&thread);
    const Tensor y = x + 1;
  }
  RemoveProcessOpListener(&process);
  EXPECT_GT(process.Finish().ops.at(0).end, 0);
  EXPECT_EQ(thread.Finish().ops.at(0).end, process.Finish().ops.at(0).end);
}

TEST(Recorder, ARefusedRequestIsNotRecorded) {
  const Tensor x = Ones({2}, kCpu);
  const Recording run =
      Record([&] { EXPECT_THROW(x + Ones({3}, kCpu), std::invalid_argument); });
  ASSERT_EQ(run.ops.size(), 1u);
  EXPECT_EQ(run.ops[0].name, "ones");
}

}  // namespace
}  // namespace d2l
