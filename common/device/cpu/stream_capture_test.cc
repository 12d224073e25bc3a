#include "common/device/cpu/stream_capture.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/source_location.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/listener.h"
#include "common/device/op_label.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::HasSubstr;

const Device kDevice(DeviceType::kCpu, 1);

// The steps of a program; a failure names its step.
class Program : public StreamCapture {
 public:
  std::uint64_t Capture(CpuStream&, const OpLabel& label,
                        std::function<void()> task) override {
    steps_.push_back({label, std::move(task)});
    return steps_.size() - 1;
  }

  void Run() const {
    for (const Step& step : steps_) {
      try {
        step.task();
      } catch (...) {
        throw StepError(step.label, std::current_exception());
      }
    }
  }

  std::size_t size() const { return steps_.size(); }
  const OpLabel& label(std::size_t i) const { return steps_[i].label; }

 private:
  struct Step {
    OpLabel label;
    std::function<void()> task;
  };
  std::vector<Step> steps_;
};

std::string LogicErrorOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "nothing thrown";
}

class StreamCaptureTest : public testing::Test {
 protected:
  CpuStream stream_{kDevice, 3, StreamOptions()};
  Program program_;
};

TEST_F(StreamCaptureTest, CapturesInsteadOfRunning) {
  std::vector<int> seen;
  std::vector<int>* const out = &seen;
  {
    const ScopedStreamCapture scope(program_);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(
          stream_.Enqueue(OpLabel("step"), [out, i] { out->push_back(i); }),
          static_cast<std::uint64_t>(i));
    }
  }
  stream_.Synchronize();
  EXPECT_TRUE(seen.empty());
  EXPECT_EQ(program_.size(), 3u);
  // Runs again and again, also as a copy that outlives the original.
  auto original = std::make_unique<Program>(program_);
  const Program moved = std::move(*original);
  original.reset();
  for (int run = 0; run < 3; ++run) {
    stream_.Enqueue(OpLabel("program"), [&moved] { moved.Run(); });
  }
  stream_.Synchronize();
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1, 2}));
}

TEST_F(StreamCaptureTest, OtherThreadsEnqueueAsBefore) {
  std::atomic<int> ran{0};
  const ScopedStreamCapture scope(program_);
  std::thread([&] {
    stream_.Enqueue(OpLabel("task"), [&ran] { ++ran; });
    stream_.Synchronize();
  }).join();
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(program_.size(), 0u);
}

TEST_F(StreamCaptureTest, ScopesNest) {
  Program inner;
  {
    const ScopedStreamCapture outer_scope(program_);
    stream_.Enqueue(OpLabel("a"), [] {});
    {
      const ScopedStreamCapture inner_scope(inner);
      stream_.Enqueue(OpLabel("b"), [] {});
    }
    stream_.Enqueue(OpLabel("c"), [] {});
  }
  EXPECT_EQ(inner.size(), 1u);
  ASSERT_EQ(program_.size(), 2u);
  EXPECT_STREQ(program_.label(1).name(), "c");
}

TEST_F(StreamCaptureTest, RefusesWhatCannotBeCaptured) {
  const Event event = stream_.Record();
  event.Synchronize();
  int pageable = 0;
  char device[sizeof(int)] = {};
  {
    const ScopedStreamCapture scope(program_);
    const std::vector<std::function<void()>> calls = {
        [&] { stream_.Record(); },
        [&] { stream_.Wait(event); },
        [&] { stream_.HostCallback([] {}); },
        [&] { stream_.Synchronize(); },
        [&] { stream_.WaitFor(0); },
        [&] { stream_.Finish(0, "Item", {}); },
        [&] {
          stream_.CopyAsync(&pageable, device, sizeof(int),
                            CopyKind::kDeviceToHost);
        },
    };
    class Requests : public DeviceListener {
     public:
      void OnStream(const StreamRecord&) override { ++count; }
      int count = 0;
    } reported;
    const ScopedDeviceListener listen(&reported, DeviceListener::kStreams);
    for (const auto& call : calls) {
      EXPECT_THAT(
          LogicErrorOf(call),
          HasSubstr("called while a StreamCapture captures this thread's "
                    "tasks"));
    }
    EXPECT_EQ(reported.count, 0) << "what is refused never was";
    EXPECT_EQ(program_.size(), 0u);
    char to[4] = {};
    stream_.CopyAsync(to, device, 4, CopyKind::kDeviceToDevice);
    EXPECT_EQ(program_.size(), 1u);
    auto owned = std::make_unique<int>(1);
    EXPECT_THAT(LogicErrorOf([&] {
                  stream_.Enqueue(OpLabel("moved"),
                                  [owned = std::move(owned)] {});
                }),
                HasSubstr("[moved] cannot be captured: its task cannot be "
                          "copied"));
  }
  // Afterwards all calls work again.
  stream_.Record().Synchronize();
  stream_.HostCallback([] {});
  stream_.Synchronize();
}

TEST_F(StreamCaptureTest, WorkCannotCapture) {
  stream_.Enqueue(OpLabel("task"),
                  [this] { const ScopedStreamCapture scope(program_); });
  try {
    stream_.Synchronize();
    FAIL() << "nothing thrown";
  } catch (const AsyncError& error) {
    EXPECT_THAT(error.what(), HasSubstr("on a thread that may not enqueue"));
  }
}

TEST_F(StreamCaptureTest, LaunchBlockingDoesNotWaitForACapturedTask) {
  SetLaunchBlocking(true);
  {
    const ScopedStreamCapture scope(program_);
    stream_.Enqueue(OpLabel("task"), [] {});
  }
  SetLaunchBlocking(false);
  EXPECT_EQ(program_.size(), 1u);
}

TEST_F(StreamCaptureTest, StampsOfCapturedTasksAreWrittenAtOnce) {
  OpStamps stamps;
  OpLabel label("task");
  label.set_stamps(&stamps);
  {
    const ScopedStreamCapture scope(program_);
    stream_.Enqueue(label, [] {});
  }
  EXPECT_GT(stamps.end, 0);
  EXPECT_EQ(stamps.begin, stamps.end);
  EXPECT_EQ(program_.label(0).stamps(), nullptr);
}

TEST_F(StreamCaptureTest, MemoryLetGoOfMeanwhileIsReusedAfterwards) {
  DeviceMemory& memory = Memory(kDevice);
  const std::int64_t allocated = memory.Stats().allocated;
  {
    StorageRef block = memory.Allocate(1000, DefaultStream(kDevice));
    block->RecordStream(stream_);
    const ScopedStreamCapture scope(program_);
    block.reset();
    memory.Allocate(1000, DefaultStream(kDevice));
  }
  memory.Allocate(1000, DefaultStream(kDevice));
  EXPECT_EQ(memory.Stats().allocated, allocated);
}

// The failure has the step's name, line and exception, even if the program was
// loaded and its texts are destroyed.
TEST_F(StreamCaptureTest, AFailureNamesTheStep) {
  {
    std::string name = "floor_divide";
    std::string file = "my_mlp.program";
    OpLabel label(Intern(name), SourceLocation(Intern(file), 12));
    label.AddInput({2, 3});
    name.assign(100, 'x');
    file.assign(100, 'x');
    const ScopedStreamCapture scope(program_);
    stream_.Enqueue(OpLabel("fine"), [] {});
    stream_.Enqueue(label, [] { throw std::runtime_error("alas"); });
  }
  const std::uint64_t number =
      stream_.Enqueue(OpLabel("program", SourceLocation("main.cc", 1)),
                      [this] { program_.Run(); });
  try {
    stream_.Synchronize();
    FAIL() << "nothing thrown";
  } catch (const AsyncError& error) {
    const Failure& failure = error.failure();
    EXPECT_EQ(failure.operation, "floor_divide");
    EXPECT_EQ(failure.number, number);
    EXPECT_EQ(failure.inputs, "(2, 3)");
    EXPECT_THAT(error.what(), HasSubstr("my_mlp.program:12"));
    EXPECT_EQ(failure.what, "alas");
    EXPECT_THROW(std::rethrow_exception(failure.cause), std::runtime_error);
  }
}

}  // namespace
}  // namespace d2l
