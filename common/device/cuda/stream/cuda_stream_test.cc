// What CudaStream does beyond the contract of Stream, on a model of a GPU whose
// host functions run one at a time.

#include "common/device/cuda/stream/cuda_stream.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/timer.h"
#include "common/device/cuda/cuda_errors.h"
#include "common/device/cuda/cuda_gpu.h"
#include "common/device/cuda/fake/fake_cuda.h"
#include "common/device/listener.h"
#include "common/device/nvtx_range.h"
#include "common/device/stream_stall.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Time in which something that must not happen could happen.
constexpr std::chrono::milliseconds kGrace(50);

// A kernel that does not end before the gate is opened.
class Gate {
 public:
  std::function<void()> kernel() {
    return [open = open_.get_future().share()] { open.wait(); };
  }
  void Open() { open_.set_value(); }

 private:
  std::promise<void> open_;
};

template <typename F>
std::unique_ptr<AsyncError> LateError(F f) {
  try {
    f();
  } catch (const AsyncError& error) {
    return std::make_unique<AsyncError>(error);
  }
  ADD_FAILURE() << "no AsyncError was thrown";
  return nullptr;
}

FakeCuda::Options TwoGpus() {
  FakeCuda::Options options;
  options.gpus = 2;
  return options;
}

class CudaStreamTest : public testing::Test {
 protected:
  explicit CudaStreamTest(FakeCuda::Options options = TwoGpus())
      : cuda_(options) {}
  void TearDown() override { EXPECT_THAT(cuda_.violations(), IsEmpty()); }

  std::unique_ptr<CudaStream> Make(
      int index, std::int64_t bound = 4096,
      std::int64_t launches = StreamOptions().max_queued_launches) {
    StreamOptions options;
    options.max_queued_operations = bound;
    options.max_queued_launches = launches;
    return std::make_unique<CudaStream>(gpu_, kDevice, index, options);
  }

  std::uint64_t Launch(
      CudaStream& stream, std::function<void()> kernel = [] {},
      const char* name = "kernel") {
    return stream.Launch(OpLabel(name), [&](const CudaLaunch& to) {
      cuda_.LaunchKernel(to.stream, std::move(kernel));
    });
  }

  // A kernel that reports that `index` is out of range.
  std::uint64_t LaunchBad(
      CudaStream& stream, std::int64_t index = 7,
      std::function<void()> before = [] {}) {
    return stream.Launch(OpLabel("index"), [&](const CudaLaunch& to) {
      cuda_.LaunchKernel(to.stream, [errors = to.errors, index, before] {
        before();
        ReportFromHost(errors, DeviceError::kIndexOutOfRange, 3, index, 6);
      });
    });
  }

  static constexpr Device kDevice{DeviceType::kCuda, 0};
  FakeCuda cuda_;
  CudaGpu gpu_{cuda_, 0, "sm_75", 4, {800, 900}};
  CudaGpu other_gpu_{cuda_, 1, "sm_90", 4, {900}};
  std::unique_ptr<CudaStream> stream_ = Make(1);
};

// ---- Order and progress.

TEST_F(CudaStreamTest, LaunchesInOrderAndNumbersFromZero) {
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(Launch(*stream_, [&order, i] { order.push_back(i); }),
              static_cast<std::uint64_t>(i));
  }
  stream_->Synchronize();
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
  EXPECT_EQ(stream_->QueuedOperations(), 0);
}

TEST_F(CudaStreamTest, RecordsFewEventsAndUsesThemAgain) {
  constexpr int kRounds = 20;
  constexpr int kLaunches = 160;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kLaunches; ++i) Launch(*stream_);
    stream_->Synchronize();
  }
  const auto per_round =
      static_cast<std::int64_t>(kLaunches / CudaStream::kCheckpointEvery) + 1;
  EXPECT_LE(cuda_.Calls("RecordEvent"), kRounds * per_round);
  EXPECT_LE(cuda_.events_created(), 2 * per_round);
}

TEST_F(CudaStreamTest, WaitsForFewMoreThanWasAskedFor) {
  Gate gate;
  std::atomic<int> ran{0};
  for (int i = 0; i < 40; ++i) Launch(*stream_, [&ran] { ++ran; });
  const std::uint64_t held = Launch(*stream_, gate.kernel());
  stream_->WaitFor(5);  // and not for the gate
  EXPECT_GE(ran, 6);
  stream_->WaitFor(held - CudaStream::kCheckpointEvery);
  EXPECT_GE(stream_->QueuedOperations(), 1);
  gate.Open();
  stream_->Synchronize();
}

TEST_F(CudaStreamTest, WaitsForNothingBehindALongOperation) {
  Gate gate;
  stream_->Synchronize();
  const std::uint64_t product =
      stream_->Launch(OpLabel("product"), [&](const CudaLaunch& to) {
        cuda_.LaunchKernel(to.stream, [] {});
        internal::long_kernel_launched = true;
      });
  Launch(*stream_, gate.kernel());
  Launch(*stream_);
  stream_->WaitFor(product);  // would hang
  EXPECT_GE(stream_->QueuedOperations(), 1);
  gate.Open();
  stream_->Synchronize();
}

TEST_F(CudaStreamTest, NeverWaitsForACallbackBehind) {
  Gate gate;
  const std::uint64_t number = Launch(*stream_);
  stream_->HostCallback(gate.kernel());
  stream_->Finish(number, "Item", {});  // would hang
  EXPECT_EQ(stream_->FailureOf(number), nullptr);
  gate.Open();
  stream_->Synchronize();
}

TEST_F(CudaStreamTest, NeverWaitsForAWaitBehind) {
  std::unique_ptr<CudaStream> other = Make(2);
  Gate gate;
  Launch(*other, gate.kernel());
  const std::uint64_t number = Launch(*stream_);
  stream_->Wait(other->Record());
  Launch(*stream_);
  stream_->Finish(number, "Item", {});  // would hang
  gate.Open();
  stream_->Synchronize();
}

class CudaReadTest : public CudaStreamTest {
 protected:
  CudaReadTest() {
    EXPECT_EQ(gpu_.MakeCurrent(), 0);
    EXPECT_EQ(cuda_.Allocate(sizeof(double), &x_), 0);
  }
  ~CudaReadTest() override {
    EXPECT_EQ(gpu_.MakeCurrent(), 0);
    EXPECT_EQ(cuda_.Free(x_), 0);
  }

  std::function<void()> Write(double value) {
    return [x = static_cast<double*>(x_), value] { *x = value; };
  }
  bool Read(std::uint64_t number) {
    return stream_->ReadBehind(number, &y_, x_, sizeof(y_), {});
  }

  void* x_ = nullptr;  // the GPU's
  double y_ = 0;
};

TEST_F(CudaReadTest, OneWaitIsEnough) {
  for (int i = 0; i < 40; ++i) Launch(*stream_);
  const std::uint64_t writer = Launch(*stream_, Write(2.5));
  const std::int64_t waits = cuda_.Calls("SynchronizeEvent");
  EXPECT_TRUE(Read(writer));
  EXPECT_EQ(y_, 2.5);
  stream_->Finish(writer, "Item", {});
  EXPECT_EQ(cuda_.Calls("SynchronizeEvent"), waits + 1);
  y_ = 0;
  EXPECT_TRUE(Read(writer)) << "nothing is queued";
  EXPECT_EQ(y_, 2.5);
}

TEST_F(CudaReadTest, NotBehindWhatIsQueuedSince) {
  Gate gate;
  const std::uint64_t writer = Launch(*stream_, Write(2.5));
  Launch(*stream_, gate.kernel());
  EXPECT_FALSE(Read(writer));  // would hang
  gate.Open();
  stream_->Synchronize();
  EXPECT_TRUE(Read(writer));
  EXPECT_EQ(y_, 2.5);
}

TEST_F(CudaReadTest, NotWhileAnotherThreadReads) {
  Gate gate;
  Launch(*stream_, gate.kernel());
  const std::uint64_t writer = Launch(*stream_, Write(2.5));
  std::thread first([&] { EXPECT_TRUE(Read(writer)); });
  while (cuda_.Calls("CopyAsync") == 0) std::this_thread::yield();
  double y = 0;
  EXPECT_FALSE(stream_->ReadBehind(writer + 1, &y, x_, sizeof(y), {}));
  gate.Open();
  first.join();
  EXPECT_EQ(y_, 2.5);
}

TEST_F(CudaReadTest, WhatFailedIsNoValue) {
  const std::uint64_t bad = LaunchBad(*stream_);
  Read(bad);
  for (int i = 0; i < 2; ++i) {
    const auto error = LateError([&] { stream_->Finish(bad, "Item", {}); });
    EXPECT_THAT(error->what(), HasSubstr("index 7 at position 3"));
  }
  const std::uint64_t good = Launch(*stream_, Write(2.5));
  EXPECT_TRUE(Read(good));
  stream_->Finish(good, "Item", {});
  EXPECT_EQ(y_, 2.5);
}

TEST_F(CudaReadTest, CudaRefusesTheCopy) {
  const std::uint64_t writer = Launch(*stream_, Write(2.5));
  cuda_.FailNext("CopyAsync", kCudaMemoryAllocation);
  const auto error = LateError([&] { Read(writer); });
  EXPECT_EQ(error->failure().operation, "copy");
  stream_->Synchronize();
  EXPECT_TRUE(Read(writer));
  EXPECT_EQ(y_, 2.5);
}

TEST_F(CudaStreamTest, NothingIsReadOfALostGpu) {
  Gate gate;
  const std::uint64_t number = Launch(*stream_, [this, open = gate.kernel()] {
    open();
    cuda_.Crash(0, kCudaIllegalAddress);
  });
  std::thread crash([&] {
    while (cuda_.Calls("CopyAsync") == 0) std::this_thread::yield();
    gate.Open();
  });
  double y = 0;
  EXPECT_FALSE(stream_->ReadBehind(number, &y, &y, sizeof(y), {}));
  crash.join();
  LateError([&] { stream_->Finish(number, "Item", {}); });
}

class CudaBoundTest : public CudaStreamTest,
                      public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Bounds, CudaBoundTest,
                         testing::Values(1, 2, 3, 7, 40));

TEST_P(CudaBoundTest, IsNeverExceeded) {
  const int bound = GetParam();
  constexpr int kThreads = 3;
  const int per_thread = 20 * bound;
  std::unique_ptr<CudaStream> stream = Make(2, bound);
  Gate gate;
  std::atomic<int> returned{0};
  std::atomic<int> ran{0};
  std::atomic<int> exceeded{0};
  Launch(*stream, [open = gate.kernel(), &ran] {
    open();
    ++ran;
  });
  ++returned;
  std::vector<std::thread> producers;
  for (int t = 0; t < kThreads; ++t) {
    producers.emplace_back([&] {
      for (int i = 0; i < per_thread; ++i) {
        Launch(*stream, [&] {
          if (returned > ran + bound) ++exceeded;
          ++ran;
        });
        ++returned;
      }
    });
  }
  while (returned < bound) std::this_thread::yield();
  while (stream->QueuedOperations() < bound + 1) std::this_thread::yield();
  std::this_thread::sleep_for(kGrace);  // for more to return, wrongly
  EXPECT_EQ(returned, bound);
  EXPECT_FALSE(stream->Query()) << "nor does who waits for room hold up others";
  gate.Open();
  for (std::thread& producer : producers) producer.join();
  stream->Synchronize();
  EXPECT_EQ(ran, 1 + kThreads * per_thread);
  EXPECT_EQ(exceeded, 0);
}

// Records the names of waits for room.
class WaitsForRoom : public DeviceListener {
 public:
  WaitsForRoom() { AddDeviceListener(this, kWaits); }
  ~WaitsForRoom() override { RemoveDeviceListener(this, kWaits); }
  void OnWait(const WaitRecord& record) noexcept override {
    if (record.full_queue > 0) names.push_back(record.what);
  }

  std::vector<std::string> names;  // read once no thread enqueues
};

// A thread that waits within CUDA for room blocks all threads that enqueue.
TEST_F(CudaStreamTest, ItsOwnQueueIsFullBeforeCudasIs) {
  struct Kind {
    const char* name;
    int count;
    std::function<void(OpStamps* stamps)> enqueue;
  };
  const auto no_kernel = [] {};
  const Kind kinds[] = {
      {"kernels", 3000, [&](OpStamps*) { Launch(*stream_); }},
      {"timed kernels", 3000,
       [&](OpStamps* stamps) {
         OpLabel label("kernel");
         label.set_stamps(stamps);
         stream_->Launch(label, [&](const CudaLaunch& to) {
           cuda_.LaunchKernel(to.stream, no_kernel);
         });
       }},
      {"operations of many kernels", 300,
       [&](OpStamps*) {
         stream_->Launch(OpLabel("conv2d"), [&](const CudaLaunch& to) {
           for (int i = 0; i < 24; ++i)
             cuda_.LaunchKernel(to.stream, no_kernel);
         });
       }},
      {"callbacks", 300, [&](OpStamps*) { stream_->HostCallback([] {}); }},
      {"records", 3000, [&](OpStamps*) { stream_->Record(); }}};
  for (const Kind& kind : kinds) {
    SCOPED_TRACE(kind.name);
    std::vector<OpStamps> stamps(kind.count);
    std::unique_ptr<CudaStream> other = Make(2);
    Gate gate;
    Launch(*stream_, gate.kernel());
    std::atomic<int> enqueued{0};
    const WaitsForRoom waits;
    std::thread producer([&] {
      for (OpStamps& of_one : stamps) {
        kind.enqueue(&of_one);
        ++enqueued;
      }
    });
    // Loops until the producer waits.
    int before;
    do {
      before = enqueued;
      std::this_thread::sleep_for(kGrace);
    } while (before == 0 || before != enqueued);
    other->Finish(Launch(*other), "Item", {});
    gate.Open();
    producer.join();
    stream_->Synchronize();
    EXPECT_EQ(cuda_.waits_for_room(), 0);
    EXPECT_THAT(waits.names, Not(IsEmpty()));
    EXPECT_THAT(waits.names,
                testing::Each("front end blocked: queue full 512/512"));
  }
}

TEST_F(CudaStreamTest, RoomIsFoundOnceHalfOfTheQueueIsFree) {
  std::unique_ptr<CudaStream> stream = Make(2, /*bound=*/8);
  Gate gate;
  for (int i = 0; i < 4; ++i) Launch(*stream);
  Launch(*stream, gate.kernel());
  for (int i = 0; i < 7; ++i) Launch(*stream);  // would hang at the ninth
  gate.Open();
  stream->Synchronize();
}

TEST_F(CudaStreamTest, LaunchBlockingWaitsForEachLaunch) {
  SetLaunchBlocking(true);
  bool ran = false;
  Launch(*stream_, [&ran] { ran = true; });
  EXPECT_TRUE(ran);
  const std::uint64_t bad = LaunchBad(*stream_);
  EXPECT_NE(stream_->FailureOf(bad), nullptr);
  SetLaunchBlocking(false);
  EXPECT_THROW(stream_->Synchronize(), AsyncError);
}

// ---- Errors that kernels find.

TEST_F(CudaStreamTest, KernelsErrorIsToldWithWhatItWasAskedFor) {
  bool ran = false;
  Launch(*stream_);
  OpLabel label("index_select", SourceLocation("net.cc", 88));
  label.AddInput({6, 2});
  stream_->Launch(label, [&](const CudaLaunch& to) {
    cuda_.LaunchKernel(to.stream, [errors = to.errors] {
      ReportFromHost(errors, DeviceError::kIndexOutOfRange, 3, 7, 6);
      ReportFromHost(errors, DeviceError::kIndexOutOfRange, 4, 8, 6);
    });
  });
  Launch(*stream_, [&ran] { ran = true; });
  auto error = LateError([&] { stream_->Synchronize(); });
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->failure().ToString(),
            "index_select (operation 1 of stream cuda:0/1, requested at "
            "net.cc:88, input (6, 2)) failed: index 7 at position 3 is out of "
            "range; valid are 0..5");
  EXPECT_TRUE(ran) << "a GPU skips nothing";
  EXPECT_EQ(stream_->FailureOf(0), nullptr);
  EXPECT_EQ(stream_->FailureOf(2), error->shared_failure());
  stream_->Synchronize();
  stream_->Finish(Launch(*stream_), "Item", {});
}

TEST_F(CudaStreamTest, EveryRoundOfErrorsIsTold) {
  for (int round = 0; round < 50; ++round) {
    Launch(*stream_);
    const std::uint64_t bad = LaunchBad(*stream_, 100 + round);
    LaunchBad(*stream_, -1);  // a consequence
    auto error = LateError([&] { stream_->Synchronize(); });
    ASSERT_NE(error, nullptr);
    EXPECT_EQ(error->failure().number, bad);
    EXPECT_THAT(error->failure().what,
                HasSubstr("index " + std::to_string(100 + round)));
    EXPECT_EQ(stream_->FailureOf(bad - 1), nullptr);
  }
}

TEST_F(CudaStreamTest, AnErrorFromBeforeTheReportHidesNoneFromAfterIt) {
  Gate gate;
  const std::uint64_t first = LaunchBad(*stream_);
  stream_->Record();
  const std::uint64_t late = LaunchBad(*stream_, 8, gate.kernel());
  EXPECT_THROW(stream_->Finish(first, "Item", {}), AsyncError);
  // From here on the stream is valid again, though `late` is still to fail.
  const std::uint64_t good = Launch(*stream_);
  stream_->Record();
  const std::uint64_t second = LaunchBad(*stream_, 9);
  gate.Open();
  stream_->Finish(good, "Item", {});
  auto error = LateError([&] { stream_->Finish(second, "Item", {}); });
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->failure().number, second);
  EXPECT_THAT(error->failure().what, HasSubstr("index 9"));
  ASSERT_NE(stream_->FailureOf(late), nullptr);
  EXPECT_EQ(stream_->FailureOf(late)->number, first);
}

TEST_F(CudaStreamTest, CallbacksBehindAKernelsErrorAreSkipped) {
  bool ran = false;
  LaunchBad(*stream_);
  stream_->HostCallback([&ran] { ran = true; });
  auto error = LateError([&] { stream_->Synchronize(); });
  ASSERT_NE(error, nullptr);
  EXPECT_THAT(error->what(), HasSubstr("The operation after it was skipped."));
  EXPECT_FALSE(ran);
}

TEST_F(CudaStreamTest, TheQueueTellsOfAFailureWithoutAnybodyWaiting) {
  std::unique_ptr<CudaStream> stream = Make(2, /*bound=*/4);
  const std::uint64_t bad = LaunchBad(*stream);
  for (int i = 0; i < 20; ++i) Launch(*stream);
  EXPECT_TRUE(stream->ever_failed());
  EXPECT_TRUE(stream->IsUnreported(bad));
  EXPECT_THROW(stream->Synchronize(), AsyncError);
  EXPECT_THROW(CheckResult(*stream, bad, *stream, "add", {}), AsyncError);
}

// ---- Poison that passes through events.

TEST_F(CudaStreamTest, AWaitForAFailedKernelPoisonsFromThereOn) {
  std::unique_ptr<CudaStream> second = Make(2);
  std::unique_ptr<CudaStream> third = Make(3);
  LaunchBad(*stream_);
  const std::uint64_t before = Launch(*second);
  second->Wait(stream_->Record());
  const std::uint64_t after = Launch(*second);
  third->Wait(second->Record());
  Launch(*third);
  auto error = LateError([&] { third->Synchronize(); });
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->failure().stream, "cuda:0/1");
  EXPECT_EQ(error->failure().number, 0u);
  EXPECT_EQ(second->FailureOf(before), nullptr);
  EXPECT_NE(second->FailureOf(after), nullptr)
      << "known from the third stream, though nobody asked the second";
  EXPECT_THROW(second->Synchronize(), AsyncError);
  EXPECT_THROW(stream_->Synchronize(), AsyncError);
}

TEST_F(CudaStreamTest, TheFirstOfTwoCausesIsTold) {
  for (const bool wait_first : {true, false}) {
    std::unique_ptr<CudaStream> waiter = Make(2);
    LaunchBad(*stream_, 40);
    const Event poisoned = stream_->Record();
    if (wait_first) waiter->Wait(poisoned);
    LaunchBad(*waiter, 50);
    if (!wait_first) waiter->Wait(poisoned);
    auto error = LateError([&] { waiter->Synchronize(); });
    ASSERT_NE(error, nullptr);
    EXPECT_THAT(error->failure().what,
                HasSubstr(wait_first ? "index 40" : "index 50"));
    // The other failure was a consequence or came later: it was reported, too.
    waiter->Finish(Launch(*waiter), "Item", {});
    EXPECT_THROW(stream_->Synchronize(), AsyncError);
  }
}

class LongQueueTest : public CudaStreamTest {
 protected:
  LongQueueTest() : CudaStreamTest(Options()) {}
  static FakeCuda::Options Options() {
    FakeCuda::Options options = TwoGpus();
    options.most_queued = 1 << 20;
    return options;
  }
};

TEST_F(LongQueueTest, ALongChainOfWaitsIsFollowedToItsBeginning) {
  constexpr int kRounds = 5000;
  constexpr std::int64_t kUnbounded = StreamOptions::kUnbounded;
  std::unique_ptr<CudaStream> a = Make(2, kUnbounded, kUnbounded);
  std::unique_ptr<CudaStream> b = Make(3, kUnbounded, kUnbounded);
  Gate gate;
  LaunchBad(*a, 7, gate.kernel());  // so that every wait is a pending one
  for (int i = 0; i < kRounds; ++i) {
    b->Wait(a->Record());
    a->Wait(b->Record());
  }
  gate.Open();
  auto error = LateError([&] { a->Synchronize(); });
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->failure().number, 0u);
  EXPECT_EQ(b->FailureOf(0), error->shared_failure());
  EXPECT_THROW(b->Synchronize(), AsyncError);
}

TEST_F(CudaStreamTest, StreamsThatWaitForEachOtherAreAskedByManyThreads) {
  std::unique_ptr<CudaStream> other = Make(2);
  for (int round = 0; round < 20; ++round) {
    LaunchBad(*stream_);
    for (int i = 0; i < 20; ++i) {
      other->Wait(stream_->Record());
      stream_->Wait(other->Record());
    }
    std::atomic<int> told{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        try {
          (t % 2 == 0 ? *stream_ : *other).Synchronize();
        } catch (const AsyncError&) {
          ++told;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(told, 2);
  }
}

TEST_F(CudaStreamTest, AWaitStandsThoughItsEventIsUsedAgain) {
  std::unique_ptr<CudaStream> waiter = Make(2);
  std::unique_ptr<CudaStream> third = Make(3);
  Gate gate;
  std::atomic<bool> open{false};
  std::atomic<int> too_early{0};
  Launch(*stream_, gate.kernel());
  for (int i = 0; i < 10; ++i) {
    // The event is released, so the pool gives it to the next Record. The
    // stream itself keeps it until it is done.
    waiter->Wait(stream_->Record());
    third->Record().Synchronize();
  }
  Launch(*waiter, [&] { too_early += open ? 0 : 1; });
  for (int i = 0; i < 10; ++i) third->Record().Synchronize();
  open = true;
  gate.Open();
  waiter->Synchronize();
  EXPECT_EQ(too_early, 0);
}

// ---- Launches that fail.

TEST_F(CudaStreamTest, ALaunchThatIsNotTakenThrowsAtOnce) {
  cuda_.FailNext("LaunchKernel", kCudaNoKernelImageForDevice);
  const SourceLocation at("net.cc", 88);
  auto error = LateError([&] {
    stream_->Launch(OpLabel("relu", at), [&](const CudaLaunch& to) {
      cuda_.LaunchKernel(to.stream, [] {});
    });
  });
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->failure().ToString(),
            "relu (operation 0 of stream cuda:0/1, requested at net.cc:88) "
            "failed: The GPU is sm_75; this binary has sm_80 and sm_90, and "
            "PTX for sm_90 and newer. Rebuild with --//:cuda_archs=sm_75.");
  EXPECT_EQ(stream_->FailureOf(0), error->shared_failure());
  const std::uint64_t next = Launch(*stream_);
  stream_->Synchronize();
  EXPECT_EQ(stream_->FailureOf(next), nullptr);
}

TEST_F(CudaStreamTest, WhatALaunchThrowsIsItsFailure) {
  auto error = LateError([&] {
    stream_->Launch(OpLabel("matmul"), [](const CudaLaunch&) {
      throw std::runtime_error("cuBLAS: no");
    });
  });
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->failure().what, "cuBLAS: no");
  EXPECT_THROW(std::rethrow_exception(error->failure().cause),
               std::runtime_error);
  stream_->Finish(Launch(*stream_), "Item", {});
}

TEST_F(CudaStreamTest, AFailedLaunchHidesNoErrorBehindIt) {
  // Its first kernel is launched and writes to the record; its second is not.
  EXPECT_THROW(stream_->Launch(
                   OpLabel("two"),
                   [&](const CudaLaunch& to) {
                     cuda_.LaunchKernel(to.stream, [errors = to.errors] {
                       ReportFromHost(errors, DeviceError::kDivisionByZero, 1);
                     });
                     cuda_.FailNext("LaunchKernel", kCudaLaunchOutOfResources);
                     cuda_.LaunchKernel(to.stream, [] {});
                   }),
               AsyncError);
  const std::uint64_t bad = LaunchBad(*stream_);
  EXPECT_THROW(stream_->Finish(bad, "Item", {}), AsyncError);
  stream_->Finish(Launch(*stream_), "Item", {});
}

TEST_F(CudaStreamTest, ACallbackThatIsNotTakenIsDestroyed) {
  auto owned = std::make_shared<int>(0);
  bool ran = false;
  stream_->HostCallback([&ran] { ran = true; });
  cuda_.FailNext("LaunchHostFunction", kCudaMemoryAllocation);
  EXPECT_THROW(stream_->HostCallback([owned] { ++*owned; }), AsyncError);
  EXPECT_EQ(owned.use_count(), 1);
  stream_->Synchronize();
  EXPECT_TRUE(ran);
}

TEST_F(CudaStreamTest, AStreamThatCudaDoesNotMake) {
  cuda_.FailNext("CreateStream", kCudaMemoryAllocation);
  try {
    Make(2);
    ADD_FAILURE() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("cuda:0/2"), HasSubstr("out of memory")));
  }
  Make(2)->Synchronize();
}

// ---- A GPU whose context is lost.

TEST_F(CudaStreamTest, ALostGpuIsToldWithWhatWasInFlight) {
  std::unique_ptr<CudaStream> same_gpu = Make(2);
  StreamOptions options;
  CudaStream elsewhere(other_gpu_, Device(DeviceType::kCuda, 1), 0, options);
  Launch(*stream_);
  stream_->Synchronize();
  Gate gate;
  stream_->Launch(OpLabel("scatter", SourceLocation("net.cc", 7)),
                  [&](const CudaLaunch& to) {
                    cuda_.LaunchKernel(to.stream, [this, held = gate.kernel()] {
                      held();
                      cuda_.Crash(0, kCudaIllegalAddress);
                    });
                  });
  auto owned = std::make_shared<int>(0);
  stream_->HostCallback([owned] { ++*owned; });
  const std::uint64_t last = Launch(
      *stream_, [] {}, "relu");
  gate.Open();
  for (int i = 0; i < 2; ++i) {  // every time
    auto error = LateError([&] { stream_->Synchronize(); });
    ASSERT_NE(error, nullptr);
    EXPECT_THAT(error->what(),
                AllOf(HasSubstr("scatter (operation 1 of stream cuda:0/1, "
                                "requested at net.cc:7) failed: "
                                "cudaErrorIllegalAddress"),
                      HasSubstr("from scatter (operation 1, requested at "
                                "net.cc:7) to relu (operation 3)"),
                      HasSubstr("compute-sanitizer"), Not(HasSubstr(".."))));
  }
  EXPECT_EQ(owned.use_count(), 1) << "what will not run is destroyed";
  EXPECT_EQ(stream_->FailureOf(0), nullptr);
  EXPECT_NE(stream_->FailureOf(last), nullptr);
  stream_->WaitFor(last);
  EXPECT_EQ(stream_->QueuedOperations(), 0);
  EXPECT_THROW(Launch(*stream_), AsyncError);
  EXPECT_THROW(stream_->HostCallback([] {}), AsyncError);
  int host = 0;
  EXPECT_THROW(stream_->CopyAsync(&host, &host, 4, CopyKind::kDeviceToHost),
               AsyncError);
  // Record is called where memory is released, so it throws nothing.
  const Event event = stream_->Record();
  EXPECT_TRUE(event.Query());
  EXPECT_THROW(event.Synchronize(), AsyncError);
  // A stream of the same GPU notices the loss by itself.
  auto error = LateError([&] { Launch(*same_gpu); });
  ASSERT_NE(error, nullptr);
  EXPECT_THAT(error->what(), HasSubstr("cudaErrorIllegalAddress"));
  // Another GPU is unaffected, until it waits for an event of the first.
  Launch(elsewhere);
  elsewhere.Synchronize();
  elsewhere.Wait(event);
  EXPECT_THROW(elsewhere.Synchronize(), AsyncError);
  testing::internal::CaptureStderr();
  stream_.reset();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "it has been told";
}

TEST_F(CudaStreamTest, ALossComesOnTopOfAFailure) {
  const std::uint64_t bad = LaunchBad(*stream_);
  stream_->WaitFor(bad);  // known, but not reported
  Gate gate;
  Launch(*stream_, [this, held = gate.kernel()] {
    held();
    cuda_.Crash(0, kCudaIllegalAddress);
  });
  gate.Open();
  auto error = LateError([&] { stream_->Synchronize(); });
  ASSERT_NE(error, nullptr);
  EXPECT_THAT(error->what(), HasSubstr("cudaErrorIllegalAddress"));
  EXPECT_THAT(stream_->FailureOf(bad)->what, HasSubstr("index 7"));
  EXPECT_THROW(Launch(*stream_), AsyncError);
  EXPECT_EQ(stream_->FailureOf(bad + 2), error->shared_failure());
}

TEST_F(CudaStreamTest, WhoWaitsForRoomHearsOfALostGpu) {
  std::unique_ptr<CudaStream> stream = Make(2, /*bound=*/2);
  Gate gate;
  Launch(*stream, [this, held = gate.kernel()] {
    held();
    cuda_.Crash(0, kCudaIllegalAddress);
  });
  Launch(*stream);
  std::future<void> producer = std::async(
      std::launch::async, [&] { EXPECT_THROW(Launch(*stream), AsyncError); });
  EXPECT_EQ(producer.wait_for(kGrace), std::future_status::timeout);
  gate.Open();
  producer.get();
}

// ---- Time.

TEST_F(CudaStreamTest, StampsAreOnTheHostsClock) {
  StreamOptions options;
  CudaStream stream(other_gpu_, Device(DeviceType::kCuda, 1), 0, options);
  const auto spin = [] {
    const Timer timer;
    while (timer.Nanos() < 5'000'000) {
    }
  };
  OpStamps stamps[2];
  const std::int64_t before = NowNanos();
  std::uint64_t number = 0;
  for (OpStamps& of_one : stamps) {
    OpLabel label("spin");
    label.set_stamps(&of_one);
    number = stream.Launch(label, [&](const CudaLaunch& to) {
      cuda_.LaunchKernel(to.stream, spin);
    });
  }
  stream.WaitFor(number);
  const std::int64_t after = NowNanos();
  // The comparison of the clocks may be wrong by this much.
  const std::int64_t error = other_gpu_.Clock()->uncertainty_nanos + 2000;
  for (const OpStamps& of_one : stamps) {
    EXPECT_GE(of_one.begin, before - error);
    EXPECT_GE(of_one.end - of_one.begin, 4'990'000);
    EXPECT_LE(of_one.end, after + error);
  }
  EXPECT_GE(stamps[1].begin, stamps[0].end - 2000);
}

// Records its calls.
class Marker : public RangeMarker {
 public:
  void Push(const char* name) override { told.push_back(name); }
  void Pop() override { told.push_back("end"); }

  std::vector<std::string> told;
};

TEST_F(CudaStreamTest, ALaunchIsAnNvtxRange) {
  Marker marker;
  SetRangeMarker(&marker);
  for (const char* const name : {"add", "matmul"}) {
    stream_->Launch(OpLabel(name), [&](const CudaLaunch&) {
      marker.told.push_back("kernel");
    });
  }
  EXPECT_THROW(stream_->Launch(
                   OpLabel("bad"),
                   [](const CudaLaunch&) { throw std::runtime_error("no"); }),
               AsyncError);
  SetRangeMarker(nullptr);
  stream_->Launch(OpLabel("unheard"), [](const CudaLaunch&) {});
  EXPECT_THAT(marker.told,
              testing::ElementsAre("add", "kernel", "end", "matmul", "kernel",
                                   "end", "bad", "end"));
}

TEST_F(CudaStreamTest, NoTimeBetweenTwoGpus) {
  CudaStream other(other_gpu_, Device(DeviceType::kCuda, 1), 0,
                   StreamOptions());
  const Event begin = stream_->Record();
  const Event end = other.Record();
  begin.Synchronize();
  end.Synchronize();
  EXPECT_THROW(ElapsedTime(begin, end), std::invalid_argument);
  EXPECT_THROW(ElapsedTime(end, begin), std::invalid_argument);
}

TEST_F(CudaStreamTest, TimedKernelsOnAStalledStreamFitCudasQueue) {
  const int kCount = StreamStall::Room(kDevice);
  std::vector<OpStamps> stamps(kCount);
  StreamStall stall(*stream_);
  const std::int64_t events_before = cuda_.Calls("RecordEvent");
  std::uint64_t last = 0;
  for (OpStamps& of_one : stamps) {
    OpLabel label("kernel");
    label.set_stamps(&of_one);
    last = stream_->Launch(label, [&](const CudaLaunch& to) {
      cuda_.LaunchKernel(to.stream, [] {});
    });
  }
  EXPECT_LE(cuda_.Calls("RecordEvent") - events_before, kCount + 1);
  stall.Release();
  stream_->WaitFor(last);
  for (int i = 0; i < kCount; ++i) {
    EXPECT_GT(stamps[i].begin, 0);
    EXPECT_LE(stamps[i].begin, stamps[i].end);
    if (i > 0) {
      EXPECT_EQ(stamps[i].begin, stamps[i - 1].end);
    }
  }
}

TEST_F(CudaStreamTest, NoKernelsTimeBeginsWhileItsStreamIsIdle) {
  std::unique_ptr<CudaStream> other = Make(2);
  Launch(*stream_);
  other->Wait(stream_->Record());
  other->Synchronize();
  // Now the event before the kernel is done, but the stream was not polled.
  const Timer timer;
  while (timer.Nanos() < 5'000'000) {
  }
  const std::int64_t idle_until = NowNanos();
  OpStamps stamps;
  OpLabel label("kernel");
  label.set_stamps(&stamps);
  stream_->WaitFor(stream_->Launch(label, [&](const CudaLaunch& to) {
    cuda_.LaunchKernel(to.stream, [] {});
  }));
  EXPECT_GE(stamps.begin, idle_until - gpu_.Clock()->uncertainty_nanos - 2000);
}

// ---- Where CUDA would wait, or do something on another GPU.

TEST_F(CudaStreamTest, AThreadUsesAnEventOnItsOwnGpu) {
  CudaStream stream(other_gpu_, Device(DeviceType::kCuda, 1), 0,
                    StreamOptions());
  const Event begin = stream.Record();
  const Event end = stream.Record();
  // This thread has no current device, then another than the event's.
  std::thread([&] {
    EXPECT_TRUE(begin.state() != nullptr);
    while (!end.Query()) std::this_thread::yield();
    EXPECT_GE(ElapsedTime(begin, end), 0);
    stream_->Record().Synchronize();
    end.Synchronize();
    stream.WaitFor(1);
  }).join();
  EXPECT_THAT(cuda_.violations(), IsEmpty());
}

TEST(CudaGpuTest, TheClockDoesNotWaitForAStalledStream) {
  FakeCuda::Options options;
  options.hardware_queues = 1;
  FakeCuda cuda(options);
  CudaGpu gpu(cuda, 0, "sm_90", 4, {900});
  CudaStream stream(gpu, Device(DeviceType::kCuda, 0), 0, StreamOptions());
  const auto before = gpu.Clock();
  ASSERT_NE(before, nullptr);
  CudaGpu unread(cuda, 0, "sm_90", 4, {900});
  cuda.FailNext("RecordEvent", kCudaMemoryAllocation);
  EXPECT_EQ(unread.Clock(), nullptr);  // it has its stream now
  StreamStall stall(stream);
  EXPECT_EQ(unread.Clock(), nullptr) << "it would be reached after the stall";
  EXPECT_EQ(gpu.Clock(), before);
  stall.Release();
  EXPECT_NE(unread.Clock(), nullptr);
}

TEST_F(CudaStreamTest, ACopyToTheProgramNeedsNoEventBehindIt) {
  void* data = nullptr;
  ASSERT_EQ(gpu_.MakeCurrent(), 0);
  ASSERT_EQ(cuda_.Allocate(4, &data), 0);
  const int value = 7;
  stream_->CopyAsync(data, &value, 4, CopyKind::kHostToDevice);
  const std::int64_t events = cuda_.Calls("RecordEvent");
  int result = 0;
  stream_->CopyAsync(&result, data, 4, CopyKind::kDeviceToHost);
  EXPECT_EQ(result, 7);
  EXPECT_TRUE(stream_->Query());
  EXPECT_EQ(cuda_.Calls("RecordEvent"), events);
}

// Making a stream waits for a stalled one, but other streams' events do not.
TEST_F(CudaStreamTest, MakingAStreamHoldsUpNoEvents) {
  constexpr int kInAPage = 4096 / sizeof(StreamMemory);
  std::vector<StreamMemory*> taken(kInAPage - 1);  // one is of stream_
  ASSERT_EQ(gpu_.MakeCurrent(), 0);
  for (StreamMemory*& memory : taken) {
    ASSERT_EQ(gpu_.NewStreamMemory(&memory), 0);
  }
  StreamStall stall(*stream_);
  std::future<void> made =
      std::async(std::launch::async, [this] { Make(2)->Synchronize(); });
  EXPECT_EQ(made.wait_for(kGrace), std::future_status::timeout);
  std::future<void> launched = std::async(std::launch::async, [this] {
    for (int i = 0; i < 100; ++i) Launch(*stream_);
  });
  EXPECT_EQ(launched.wait_for(std::chrono::seconds(10)),
            std::future_status::ready);
  stall.Release();
  made.get();
  for (StreamMemory* const memory : taken) gpu_.ReturnStreamMemory(memory);
}

// Tests the model: what would hang on a GPU must not pass here.
TEST_F(CudaStreamTest, TheModelWaitsWhereCudaMay) {
  std::unique_ptr<CudaStream> full =
      Make(2, /*bound=*/4096, /*launches=*/1 << 20);
  std::unique_ptr<CudaStream> third = Make(3);
  CudaStreamHandle captured = nullptr;
  ASSERT_EQ(gpu_.MakeCurrent(), 0);
  ASSERT_EQ(cuda_.CreateStream(&captured), 0);
  ASSERT_EQ(cuda_.BeginCapture(captured), 0);
  StreamStall stall(*full);
  const auto start = [this](std::function<int()> call) {
    return std::async(std::launch::async, [this, call] {
      EXPECT_EQ(gpu_.MakeCurrent(), 0);
      EXPECT_EQ(call(), 0);
    });
  };
  void* data = nullptr;
  void* pinned = nullptr;
  CudaStreamHandle made = nullptr;
  CudaGraphHandle graph = nullptr;
  std::vector<std::future<void>> calls;
  calls.push_back(start([&] { return cuda_.Allocate(8, &data); }));
  calls.push_back(start([&] { return cuda_.AllocatePinned(8, &pinned); }));
  calls.push_back(start([&] { return cuda_.CreateStream(&made); }));
  calls.push_back(start([&] { return cuda_.EndCapture(captured, &graph); }));
  calls.push_back(start([&] {
    for (std::size_t i = 0; i < FakeCuda::Options().most_queued; ++i) {
      Launch(*full);
    }
    return 0;
  }));
  while (cuda_.waits_for_room() == 0) std::this_thread::yield();
  calls.push_back(start([&] {
    Launch(*third);
    return 0;
  }));
  for (std::future<void>& call : calls) {
    EXPECT_EQ(call.wait_for(kGrace), std::future_status::timeout);
  }
  stall.Release();
  for (std::future<void>& call : calls) call.get();
}

// ---- The end.

// Streams that have been drained, and what they use, are never destroyed.
std::vector<std::unique_ptr<CudaStream>>& Drained() {
  static auto& streams = *new std::vector<std::unique_ptr<CudaStream>>;
  return streams;
}

TEST(CudaStreamEndTest, NoCudaIsCalledOnceTheStreamIsDrained) {
  FakeCuda& cuda = *new FakeCuda;
  CudaGpu& gpu = *new CudaGpu(cuda, 0, "sm_90", 4, {900});
  auto& stream = *Drained().emplace_back(std::make_unique<CudaStream>(
      gpu, Device(DeviceType::kCuda, 0), 0, StreamOptions()));
  std::atomic<int> ran{0};
  Gate gate;
  stream.HostCallback(gate.kernel());
  for (int i = 0; i < 10; ++i) stream.HostCallback([&ran] { ++ran; });
  stream.Launch(OpLabel("kernel"), [&](const CudaLaunch& to) {
    cuda.LaunchKernel(to.stream, [&ran] { ran += 100; });
  });
  const Event before = stream.Record();
  stream.Shutdown();
  gate.Open();
  testing::internal::CaptureStderr();
  stream.Drain();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  // The gate may or may not have been skipped; behind it only the kernel ran.
  EXPECT_EQ(ran, 100);
  const std::int64_t calls = cuda.Calls("");
  auto owned = std::make_shared<int>(0);
  stream.HostCallback([owned] { ++*owned; });
  EXPECT_EQ(owned.use_count(), 1);
  const std::uint64_t number = stream.Launch(
      OpLabel("kernel"),
      [&](const CudaLaunch& to) { cuda.LaunchKernel(to.stream, [] {}); });
  before.Synchronize();
  stream.Record().Synchronize();
  stream.Wait(stream.Record());
  stream.Synchronize();
  stream.WaitFor(number);
  EXPECT_TRUE(stream.Query());
  auto error = LateError([&] { stream.Finish(number, "Item", {}); });
  ASSERT_NE(error, nullptr);
  EXPECT_THAT(error->what(), HasSubstr("the program is ending"));
  EXPECT_EQ(cuda.Calls(""), calls);
}

TEST(CudaStreamEndTest, ARuntimeThatIsGoneIsNoError) {
  FakeCuda& cuda = *new FakeCuda;
  CudaGpu& gpu = *new CudaGpu(cuda, 0, "sm_90", 4, {900});
  auto& stream = *Drained().emplace_back(std::make_unique<CudaStream>(
      gpu, Device(DeviceType::kCuda, 0), 0, StreamOptions()));
  stream.HostCallback([] {});
  stream.Synchronize();
  cuda.Unload();
  stream.HostCallback([] {});
  stream.Record().Synchronize();
  stream.Synchronize();
  EXPECT_EQ(stream.QueuedOperations(), 0);
}

}  // namespace
}  // namespace d2l
