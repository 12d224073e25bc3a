// What every back end promises, tested by Stream, Event and DeviceMemory alone.
// Each test runs on every device of the table. How work is launched is not
// portable, so the work here is copies and host callbacks. The file is long
// because it is one list: what a new back end must do.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/device/backend.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/event.h"
#include "common/device/failure.h"
#include "common/device/listener.h"
#include "common/device/memory/memory.h"
#include "common/device/stream.h"
#include "common/device/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using std::chrono::milliseconds;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// Time in which something that must not happen could happen. A test that waits
// this long can miss a fault, but never fails without one.
constexpr milliseconds kGrace(50);

void Fail() { throw std::runtime_error("the disk is on fire"); }

// The AsyncError that f throws; null, and a failed test, if it throws none.
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

class StreamContractTest : public testing::TestWithParam<Device> {
 protected:
  static std::unique_ptr<DeviceMemory> MakeMemory(
      std::int64_t max_bytes_in_flight = std::int64_t{1} << 30) {
    const Device device = GetParam();
    return std::make_unique<DeviceMemory>(
        device.type() == DeviceType::kCpu ? CpuBackend() : CudaBackend(),
        device, GetDeviceInfo(device).physical_index,
        DeviceMemory::Kind::kDevice, max_bytes_in_flight);
  }

  // Leaves free blocks for the stream. While a stream is stalled, no memory may
  // be allocated on a GPU, which may wait for the stream.
  void LeaveFree(DeviceMemory& memory, int count, std::size_t bytes) {
    std::vector<StorageRef> blocks(count);
    for (StorageRef& block : blocks) block = memory.Allocate(bytes, *stream_);
  }

  // Another device than the one tested.
  static Device OtherDevice() {
    for (const Device device : AllDevices()) {
      if (device != GetParam()) return device;
    }
    return GetParam();
  }

  std::unique_ptr<Stream> stream_ = MakeStream(GetParam(), 1);
};

INSTANTIATE_TEST_SUITE_P(All, StreamContractTest,
                         testing::ValuesIn(AllDevices()), DeviceTestName);

// --- order ---

TEST_P(StreamContractTest, RunsInTheOrderOfEnqueueing) {
  std::vector<int> order;
  for (int i = 0; i < 10'000; ++i) {
    stream_->HostCallback([&order, i] { order.push_back(i); });
  }
  stream_->Synchronize();
  std::vector<int> expected(10'000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST_P(StreamContractTest, CopiesAndCallbacksShareOneOrder) {
  DeviceMemory& pinned = PinnedMemory(GetParam());
  std::unique_ptr<DeviceMemory> memory = MakeMemory();
  {
    StorageRef in = pinned.AllocatePinned(sizeof(int));
    StorageRef out = pinned.AllocatePinned(sizeof(int));
    StorageRef device = memory->Allocate(sizeof(int), *stream_);
    int* const source = static_cast<int*>(in->data());
    const int* const result = static_cast<int*>(out->data());
    *source = 0;
    std::vector<int> seen;
    for (int i = 0; i < 1000; ++i) {
      stream_->CopyAsync(device->data(), source, sizeof(int),
                         CopyKind::kHostToDevice);
      stream_->HostCallback([source] { ++*source; });
      stream_->CopyAsync(out->data(), device->data(), sizeof(int),
                         CopyKind::kDeviceToHost);
      stream_->HostCallback([&seen, result] { seen.push_back(*result); });
    }
    stream_->Synchronize();
    std::vector<int> expected(1000);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(seen, expected);
  }
}

TEST_P(StreamContractTest, APoisonedStreamIsStalledToo) {
  stream_->HostCallback(Fail);
  stream_->WaitFor(0);
  StreamStall stall(*stream_);
  stream_->Record();
  EXPECT_FALSE(stream_->Query());
  stall.Release();
  LateError([this] { stream_->Synchronize(); });
}

TEST_P(StreamContractTest, EnqueueingDoesNotWaitForTheWork) {
  std::atomic<int> ran{0};
  StreamStall stall(*stream_);
  // A GPU's queue has room for some dozens of callbacks.
  for (int i = 0; i < 25; ++i) stream_->HostCallback([&ran] { ++ran; });
  EXPECT_EQ(ran, 0);
  EXPECT_FALSE(stream_->Query());
  EXPECT_GE(stream_->QueuedOperations(), 25);
  stall.Release();
  stream_->Synchronize();
  EXPECT_EQ(ran, 25);
  EXPECT_TRUE(stream_->Query());
  EXPECT_EQ(stream_->QueuedOperations(), 0);
}

TEST_P(StreamContractTest, StreamsAreNotOrderedByThemselves) {
  std::unique_ptr<Stream> other = MakeStream(GetParam(), 2);
  StreamStall stall(*stream_);
  std::atomic<bool> ran{false};
  other->HostCallback([&ran] { ran = true; });
  other->Synchronize();  // would hang if it waited for `stream_`
  EXPECT_TRUE(ran);
}

// On a GPU, making a stream may wait for a stalled one.
TEST_P(StreamContractTest, MakingAStreamHoldsUpNoOtherThread) {
  Stream& read = ReadStream(GetParam());
  StreamStall stall(*stream_);
  std::future<void> made =
      std::async(std::launch::async, [] { NewStream(GetParam()); });
  made.wait_for(kGrace);
  std::future<Stream*> asked =
      std::async(std::launch::async, [] { return &ReadStream(GetParam()); });
  EXPECT_EQ(asked.wait_for(std::chrono::seconds(10)),
            std::future_status::ready);
  stall.Release();
  EXPECT_EQ(asked.get(), &read);
  made.get();
}

TEST_P(StreamContractTest, KeepsTheOrderOfEachEnqueueingThread) {
  constexpr int kThreads = 4;
  std::vector<std::vector<int>> seen(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t, &seen] {
      for (int i = 0; i < 2000; ++i) {
        stream_->HostCallback([&seen, t, i] { seen[t].push_back(i); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stream_->Synchronize();
  std::vector<int> expected(2000);
  std::iota(expected.begin(), expected.end(), 0);
  for (int t = 0; t < kThreads; ++t) EXPECT_EQ(seen[t], expected);
}

// --- events ---

TEST_P(StreamContractTest, EventStandsForWhatWasEnqueuedBeforeIt) {
  const Event first = stream_->Record();
  first.Synchronize();
  EXPECT_TRUE(first.Query());
  StreamStall stall(*stream_);
  std::atomic<bool> ran{false};
  stream_->HostCallback([&ran] { ran = true; });
  const Event second = stream_->Record();
  EXPECT_TRUE(first.Query()) << "what comes later must not undo an event";
  EXPECT_FALSE(second.Query());
  EXPECT_EQ(second.failure(), nullptr);
  stall.Release();
  second.Synchronize();
  EXPECT_TRUE(ran);
  EXPECT_TRUE(second.Query());
}

TEST_P(StreamContractTest, EventOfAnIdleStreamCompletes) {
  stream_->Record().Synchronize();
  stream_->Synchronize();
  stream_->Record().Synchronize();
}

TEST_P(StreamContractTest, EventThatStandsForNothingIsComplete) {
  const Event nothing;
  EXPECT_TRUE(nothing.Query());
  EXPECT_EQ(nothing.failure(), nullptr);
  nothing.Synchronize();
  stream_->Wait(nothing);
  stream_->Synchronize();
  EXPECT_THROW(ElapsedTime(nothing, stream_->Record()), std::invalid_argument);
}

TEST_P(StreamContractTest, WaitHoldsUpTheWaitingStreamAlone) {
  std::unique_ptr<Stream> waiter = MakeStream(GetParam(), 2);
  StreamStall stall(*stream_);
  std::atomic<int> step{0};
  int seen = -1;
  stream_->HostCallback([&step] { step = 1; });
  const Event event = stream_->Record();
  waiter->HostCallback([&step, &seen] { seen = step; });
  waiter->Record().Synchronize();  // enqueued before the wait: runs
  EXPECT_EQ(seen, 0);
  waiter->Wait(event);
  waiter->HostCallback([&step, &seen] { seen = step; });
  const Event after = waiter->Record();
  EXPECT_FALSE(after.Query());
  stall.Release();
  waiter->Synchronize();
  EXPECT_EQ(seen, 1);
}

TEST_P(StreamContractTest, WaitsAcrossDevices) {
  // For a CPU stream's event and a CUDA stream the caller waits, so the event
  // is not held back here; many rounds replace that.
  std::unique_ptr<Stream> other = MakeStream(OtherDevice(), 1);
  std::uint64_t value = 0;  // only ever touched in the order of the events
  for (std::uint64_t i = 0; i < 500; ++i) {
    stream_->HostCallback([&value] { value = value * 3 + 1; });
    other->Wait(stream_->Record());
    other->HostCallback([&value] { value = value * 5 + 2; });
    stream_->Wait(other->Record());
  }
  stream_->Synchronize();
  std::uint64_t expected = 0;
  for (int i = 0; i < 500; ++i) expected = (expected * 3 + 1) * 5 + 2;
  EXPECT_EQ(value, expected);
}

TEST_P(StreamContractTest, ManyStreamsWaitForOneEvent) {
  constexpr int kWaiters = 5;
  std::vector<std::unique_ptr<Stream>> waiters;
  for (int i = 0; i < kWaiters; ++i) {
    waiters.push_back(MakeStream(GetParam(), 2 + i));
  }
  std::atomic<bool> done{false};
  std::atomic<int> too_early{0};
  StreamStall stall(*stream_);
  stream_->HostCallback([&done] { done = true; });
  const Event event = stream_->Record();
  for (auto& waiter : waiters) {
    waiter->Wait(event);
    waiter->HostCallback([&] { too_early += done ? 0 : 1; });
  }
  stall.Release();
  for (auto& waiter : waiters) waiter->Synchronize();
  EXPECT_EQ(too_early, 0);
}

TEST_P(StreamContractTest, AStreamMayWaitForItsOwnEvent) {
  StreamStall stall(*stream_);
  stream_->Wait(stream_->Record());
  stall.Release();
  stream_->Synchronize();
}

TEST_P(StreamContractTest, ElapsedTimeIsTheTimeBetweenTheEvents) {
  const Event begin = stream_->Record();
  stream_->HostCallback([] {
    const auto until = std::chrono::steady_clock::now() + milliseconds(20);
    while (std::chrono::steady_clock::now() < until) {
    }
  });
  const Event end = stream_->Record();
  end.Synchronize();
  EXPECT_GE(ElapsedTime(begin, end), 19.0);
  EXPECT_LT(ElapsedTime(begin, end), 60'000.0);
  EXPECT_EQ(ElapsedTime(begin, begin), 0.0);
  EXPECT_LE(ElapsedTime(end, begin), -19.0);
}

TEST_P(StreamContractTest, ElapsedTimeNeedsEventsThatHaveCompleted) {
  const Event begin = stream_->Record();
  begin.Synchronize();
  StreamStall stall(*stream_);
  const Event end = stream_->Record();
  try {
    ElapsedTime(begin, end);
    ADD_FAILURE() << "no error";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("has not completed yet"));
  }
  EXPECT_THROW(ElapsedTime(end, begin), std::invalid_argument);
  stall.Release();
  end.Synchronize();
  EXPECT_GE(ElapsedTime(begin, end), 0);
}

TEST_P(StreamContractTest, EventOutlivesItsStream) {
  Event good;
  Event poisoned;
  testing::internal::CaptureStderr();
  {
    std::unique_ptr<Stream> gone = MakeStream(GetParam(), 2);
    good = gone->Record();
    gone->HostCallback(Fail);
    poisoned = gone->Record();
  }
  testing::internal::GetCapturedStderr();
  EXPECT_TRUE(good.Query());
  good.Synchronize();
  EXPECT_GE(ElapsedTime(good, poisoned), 0.0);
  stream_->Wait(good);
  stream_->Synchronize();
  stream_->Wait(poisoned);
  EXPECT_THROW(stream_->Synchronize(), AsyncError);
}

// --- copies ---

TEST_P(StreamContractTest, CopyFromAndToPinnedMemoryIsAsynchronous) {
  DeviceMemory& pinned = PinnedMemory(GetParam());
  StorageRef in = pinned.AllocatePinned(1000);
  StorageRef out = pinned.AllocatePinned(1000);
  std::memset(in->data(), 1, 1000);
  std::memset(out->data(), 2, 1000);
  std::unique_ptr<DeviceMemory> memory = MakeMemory();
  {
    StorageRef a = memory->Allocate(1000, *stream_);
    StorageRef b = memory->Allocate(1000, *stream_);
    StreamStall stall(*stream_);
    stream_->CopyAsync(a->data(), in->data(), 1000, CopyKind::kHostToDevice);
    stream_->CopyAsync(b->data(), a->data(), 1000, CopyKind::kDeviceToDevice);
    stream_->CopyAsync(out->data(), b->data(), 1000, CopyKind::kDeviceToHost);
    // All three have returned, and none has run: the copy reads what the source
    // holds when the stream gets there.
    EXPECT_EQ(static_cast<char*>(out->data())[999], 2);
    std::memset(in->data(), 3, 1000);
    stall.Release();
    stream_->Synchronize();
    EXPECT_EQ(static_cast<char*>(out->data())[0], 3);
    EXPECT_EQ(static_cast<char*>(out->data())[999], 3);
  }
}

TEST_P(StreamContractTest, CopyFromAndToPageableMemoryIsSynchronous) {
  std::unique_ptr<DeviceMemory> memory = MakeMemory();
  {
    std::vector<char> in(1000, 1);
    std::vector<char> out(1000, 2);
    StorageRef block = memory->Allocate(1000, *stream_);
    for (const bool to_device : {true, false}) {
      StreamStall stall(*stream_);
      std::future<void> copied = std::async(std::launch::async, [&] {
        if (to_device) {
          stream_->CopyAsync(block->data(), in.data(), 1000,
                             CopyKind::kHostToDevice);
        } else {
          stream_->CopyAsync(out.data(), block->data(), 1000,
                             CopyKind::kDeviceToHost);
        }
      });
      EXPECT_EQ(copied.wait_for(kGrace), std::future_status::timeout);
      stall.Release();
      copied.get();
      if (to_device) in.assign(1000, 9);  // the program may overwrite it again
    }
    EXPECT_EQ(out, std::vector<char>(1000, 1));
  }
}

TEST_P(StreamContractTest, CopyOfNothingIsFine) {
  stream_->CopyAsync(nullptr, nullptr, 0, CopyKind::kHostToDevice);
  stream_->CopyAsync(nullptr, nullptr, 0, CopyKind::kDeviceToHost);
  stream_->CopyAsync(nullptr, nullptr, 0, CopyKind::kDeviceToDevice);
  stream_->Synchronize();
}

TEST_P(StreamContractTest, PageableCopyThatIsSkippedThrows) {
  std::unique_ptr<DeviceMemory> memory = MakeMemory();
  {
    StorageRef block = memory->Allocate(4, *stream_);
    int host = 7;
    stream_->HostCallback(Fail);
    auto error = LateError([&] {
      stream_->CopyAsync(&host, block->data(), 4, CopyKind::kDeviceToHost);
    });
    ASSERT_NE(error, nullptr);
    EXPECT_EQ(error->failure().operation, "host_callback");
    EXPECT_EQ(host, 7);
  }
}

// --- work may not call into streams ---

// Counts the requests to streams that are reported to listeners.
class Requests : public DeviceListener {
 public:
  void OnStream(const StreamRecord&) override { ++count; }

  int count = 0;
};

TEST_P(StreamContractTest, CallingIntoAStreamFromWorkIsALateFailure) {
  std::unique_ptr<Stream> other = MakeStream(GetParam(), 2);
  const Event event = other->Record();
  char a = 1;
  char b = 2;
  const std::vector<std::pair<const char*, std::function<void(Stream&)>>>
      calls = {
          {"Record", [](Stream& s) { s.Record(); }},
          {"HostCallback", [](Stream& s) { s.HostCallback([] {}); }},
          {"CopyAsync",
           [&](Stream& s) { s.CopyAsync(&a, &b, 1, CopyKind::kHostToDevice); }},
          {"CopyAsync",
           [&](Stream& s) {
             s.CopyAsync(&a, &b, 1, CopyKind::kDeviceToDevice);
           }},
          {"Wait", [&](Stream& s) { s.Wait(event); }},
          {"Synchronize", [](Stream& s) { s.Synchronize(); }},
          {"WaitFor", [](Stream& s) { s.WaitFor(0); }},
          {"Finish", [](Stream& s) { s.Finish(0, "Item", {}); }},
          {"Stall", [](Stream& s) { s.Stall(); }},
      };
  for (const auto& [name, call] : calls) {
    for (Stream* target : {stream_.get(), other.get()}) {
      SCOPED_TRACE(absl::StrCat(name, " of ", target->name()));
      bool logic_error = false;
      Requests reported;
      stream_->HostCallback([&, &call = call] {
        const ScopedDeviceListener listen(&reported, DeviceListener::kStreams);
        try {
          call(*target);
        } catch (const std::logic_error&) {
          logic_error = true;
          throw;
        }
      });
      auto error = LateError([&] { stream_->Synchronize(); });
      EXPECT_TRUE(logic_error);
      EXPECT_EQ(reported.count, 0) << "it is refused, so it never was";
      ASSERT_NE(error, nullptr);
      EXPECT_THAT(error->what(),
                  HasSubstr(absl::StrCat("[", name, "] called from work")));
      EXPECT_THAT(error->what(), HasSubstr(target->name()));
    }
  }
  EXPECT_EQ(a, 1);
}

// --- memory in the order of streams ---

TEST_P(StreamContractTest, BlockIsReusedAtOnceOnItsOwnStream) {
  std::unique_ptr<DeviceMemory> memory = MakeMemory();
  {
    LeaveFree(*memory, 1, 1000);
    StreamStall stall(*stream_);
    StorageRef block = memory->Allocate(1000, *stream_);
    void* const data = block->data();
    block->RecordStream(*stream_);
    stream_->HostCallback([] {});
    block.reset();
    EXPECT_EQ(memory->Stats().in_flight, 0);
    block = memory->Allocate(1000, *stream_);
    EXPECT_EQ(block->data(), data) << "the stream itself keeps the order";
  }
  stream_->Synchronize();
}

TEST_P(StreamContractTest, BlockIsNotHandedToAnotherStream) {
  std::unique_ptr<Stream> other = MakeStream(GetParam(), 2);
  std::unique_ptr<DeviceMemory> memory = MakeMemory();
  StorageRef block = memory->Allocate(1000, *stream_);
  void* const data = block->data();
  block.reset();
  StorageRef of_other = memory->Allocate(1000, *other);
  EXPECT_NE(of_other->data(), data);
  block = memory->Allocate(1000, *stream_);
  EXPECT_EQ(block->data(), data);
}

TEST_P(StreamContractTest, BlockThatAnotherStreamUsesIsInFlight) {
  std::unique_ptr<Stream> user = MakeStream(OtherDevice(), 2);
  std::unique_ptr<DeviceMemory> memory = MakeMemory();
  {
    LeaveFree(*memory, 2, 1000);
    StreamStall stall(*user);
    StorageRef block = memory->Allocate(1000, *stream_);
    void* const data = block->data();
    user->HostCallback([] {});
    block->RecordStream(*user);
    block.reset();
    EXPECT_GE(memory->Stats().in_flight, 1000);
    EXPECT_EQ(memory->Stats().allocated, 0);
    StorageRef second = memory->Allocate(1000, *stream_);
    EXPECT_NE(second->data(), data) << "the other stream still needs it";
    stall.Release();
    user->Synchronize();
    StorageRef third = memory->Allocate(1000, *stream_);
    EXPECT_EQ(third->data(), data);
    EXPECT_EQ(memory->Stats().in_flight, 0);
  }
}

TEST_P(StreamContractTest, BlockUsedByTwoOthersWaitsForBoth) {
  std::unique_ptr<Stream> first = MakeStream(GetParam(), 2);
  std::unique_ptr<Stream> second = MakeStream(OtherDevice(), 3);
  std::unique_ptr<DeviceMemory> memory = MakeMemory();
  {
    LeaveFree(*memory, 2, 1000);
    StreamStall hold_first(*first);
    StreamStall hold_second(*second);
    StorageRef block = memory->Allocate(1000, *stream_);
    void* const data = block->data();
    block->RecordStream(*first);
    block->RecordStream(*second);
    block.reset();
    hold_first.Release();
    first->Synchronize();
    StorageRef a = memory->Allocate(1000, *stream_);
    EXPECT_NE(a->data(), data);
    hold_second.Release();
    second->Synchronize();
    StorageRef b = memory->Allocate(1000, *stream_);
    EXPECT_EQ(b->data(), data);
  }
}

TEST_P(StreamContractTest, BlockFreedByACallbackIsInFlightToo) {
  std::unique_ptr<Stream> user = MakeStream(GetParam(), 2);
  std::unique_ptr<DeviceMemory> memory = MakeMemory();
  {
    LeaveFree(*memory, 2, 1000);
    auto block = std::make_shared<StorageRef>(memory->Allocate(1000, *stream_));
    void* const data = (*block)->data();
    (*block)->RecordStream(*user);
    user->HostCallback([block] { block->reset(); });
    user->Synchronize();
    EXPECT_FALSE(*block);
    EXPECT_GE(memory->Stats().in_flight, 1000);
    // No event could be recorded at that time. So the block waits for all that
    // the user has queued by the next allocation.
    StreamStall stall(*user);
    StorageRef second = memory->Allocate(1000, *stream_);
    EXPECT_NE(second->data(), data);
    stall.Release();
    user->Synchronize();
    StorageRef third = memory->Allocate(1000, *stream_);
    EXPECT_EQ(third->data(), data);
  }
}

TEST_P(StreamContractTest, AllocationWaitsWhileTooMuchIsInFlight) {
  std::unique_ptr<Stream> user = MakeStream(GetParam(), 2);
  std::unique_ptr<DeviceMemory> memory = MakeMemory(/*max_bytes_in_flight=*/
                                                    4096);
  {
    LeaveFree(*memory, 2, 4096);
    StreamStall stall(*user);
    for (int i = 0; i < 2; ++i) {
      // The first 4096 bytes are within the bound.
      StorageRef block = memory->Allocate(4096, *stream_);
      block->RecordStream(*user);
    }
    EXPECT_EQ(memory->Stats().in_flight, 8192);
    std::future<StorageRef> waiting = std::async(
        std::launch::async, [&] { return memory->Allocate(64, *stream_); });
    EXPECT_EQ(waiting.wait_for(kGrace), std::future_status::timeout);
    stall.Release();
    StorageRef block = waiting.get();
    EXPECT_LE(memory->Stats().in_flight, 4096);
  }
}

// --- failures ---

TEST_P(StreamContractTest, LateErrorSaysWhatFailedAndWhere) {
  std::atomic<int> ran{0};
  StreamStall stall(*stream_);
  stream_->HostCallback([&ran] { ++ran; });
  const int line = __LINE__ + 1;
  stream_->HostCallback(Fail);
  for (int i = 0; i < 3; ++i) stream_->HostCallback([&ran] { ++ran; });
  stall.Release();
  int noticed_line = 0;
  auto error = LateError([&] {
    noticed_line = __LINE__ + 1;
    stream_->Synchronize();
  });
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(ran, 1);
  const Failure& failure = error->failure();
  EXPECT_EQ(failure.operation, "host_callback");
  EXPECT_EQ(failure.number, 2u);
  EXPECT_EQ(failure.stream, stream_->name());
  EXPECT_THAT(failure.requested_at.file(),
              EndsWith("common/device/stream_contract_test.cc"));
  EXPECT_EQ(failure.requested_at.line(), line);
  EXPECT_EQ(failure.what, "the disk is on fire");
  EXPECT_NE(failure.cause, nullptr);
  EXPECT_EQ(error->noticed_at().line(), noticed_line);
  EXPECT_EQ(
      std::string(error->what()),
      absl::StrCat("host_callback (operation 2 of stream ", stream_->name(),
                   ", requested at ", failure.requested_at.ToString(),
                   ") failed: the disk is on fire. Noticed at Synchronize, ",
                   error->noticed_at().ToString(),
                   ". The 3 operations after it were skipped."));
  EXPECT_THROW(std::rethrow_exception(failure.cause), std::runtime_error);
}

TEST_P(StreamContractTest, SynchronizeThrowsOnceThenTheStreamWorksAgain) {
  std::atomic<int> ran{0};
  for (int round = 0; round < 20; ++round) {
    stream_->HostCallback(Fail);
    stream_->HostCallback([&ran] { ran += 1000; });
    EXPECT_THROW(stream_->Synchronize(), AsyncError);
    stream_->Synchronize();
    stream_->HostCallback([&ran] { ++ran; });
    stream_->Synchronize();
  }
  EXPECT_EQ(ran, 20);
}

TEST_P(StreamContractTest, TheFirstFailureIsTheOneReported) {
  StreamStall stall(*stream_);
  stream_->HostCallback([] { throw std::runtime_error("first"); });
  stream_->HostCallback([] { throw std::runtime_error("second"); });
  stall.Release();
  auto error = LateError([&] { stream_->Synchronize(); });
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->failure().what, "first");
}

TEST_P(StreamContractTest, ThrowingSomethingElseIsAFailureToo) {
  stream_->HostCallback([] { throw 42; });
  auto error = LateError([&] { stream_->Synchronize(); });
  ASSERT_NE(error, nullptr);
  EXPECT_THAT(error->failure().what, HasSubstr("not a std::exception"));
  try {
    std::rethrow_exception(error->failure().cause);
  } catch (int value) {
    EXPECT_EQ(value, 42);
  }
}

TEST_P(StreamContractTest, SkippedCallbacksAreDestroyed) {
  auto owned = std::make_shared<int>(0);
  StreamStall stall(*stream_);
  stream_->HostCallback(Fail);
  for (int i = 0; i < 10; ++i) {
    stream_->HostCallback([owned] { ++*owned; });
  }
  EXPECT_EQ(owned.use_count(), 11);
  stall.Release();
  EXPECT_THROW(stream_->Synchronize(), AsyncError);
  EXPECT_EQ(owned.use_count(), 1);
  EXPECT_EQ(*owned, 0);
}

TEST_P(StreamContractTest, EventsBehindAFailureCompleteAndArePoisoned) {
  StreamStall stall(*stream_);
  const Event before = stream_->Record();
  stream_->HostCallback(Fail);
  const Event after = stream_->Record();
  EXPECT_EQ(after.failure(), nullptr) << "nobody knows yet";
  stall.Release();
  before.Synchronize();
  EXPECT_EQ(before.failure(), nullptr);
  for (int i = 0; i < 3; ++i) {  // every time
    int line = 0;
    auto error = LateError([&] {
      line = __LINE__ + 1;
      after.Synchronize();
    });
    ASSERT_NE(error, nullptr);
    EXPECT_EQ(error->noticed_at().line(), line);
    EXPECT_THAT(error->what(), HasSubstr("Noticed at Event::Synchronize"));
    EXPECT_THAT(error->what(), HasSubstr("the disk is on fire"));
    EXPECT_THAT(error->what(), Not(HasSubstr("skipped")));
  }
  EXPECT_TRUE(after.Query());
  EXPECT_NE(after.failure(), nullptr);
  // The report clears the stream's failure, not the event's.
  stream_->Synchronize();
  EXPECT_THROW(after.Synchronize(), AsyncError);
  // Nor does the event report a failure that came later.
  stream_->HostCallback(Fail);
  stream_->WaitFor(4);
  EXPECT_THROW(after.Synchronize(), AsyncError);
  EXPECT_THROW(stream_->Synchronize(), AsyncError);
  const Event mended = stream_->Record();
  mended.Synchronize();
}

TEST_P(StreamContractTest, FailuresAreRememberedForEver) {
  constexpr int kRounds = 50;
  EXPECT_FALSE(stream_->ever_failed());
  // Numbers 3r, 3r + 1, 3r + 2: good, failing, skipped.
  for (int round = 0; round < kRounds; ++round) {
    stream_->HostCallback([] {});
    stream_->HostCallback(
        [round] { throw std::runtime_error(absl::StrCat("round ", round)); });
    stream_->HostCallback([] {});
    EXPECT_THROW(stream_->Synchronize(), AsyncError);
  }
  EXPECT_TRUE(stream_->ever_failed());
  for (int i = 0; i < 100; ++i) stream_->HostCallback([] {});
  stream_->Synchronize();
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t first = 3 * static_cast<std::uint64_t>(round);
    stream_->WaitFor(first + 2);
    EXPECT_EQ(stream_->FailureOf(first), nullptr);
    for (const std::uint64_t number : {first + 1, first + 2}) {
      const FailurePtr failure = stream_->FailureOf(number);
      ASSERT_NE(failure, nullptr) << number;
      EXPECT_EQ(failure->what, absl::StrCat("round ", round));
      EXPECT_EQ(failure->number, first + 1);
      EXPECT_THROW(CheckResult(*stream_, number, *stream_, "add", {}),
                   AsyncError);
    }
    EXPECT_NO_THROW(CheckResult(*stream_, first, *stream_, "add", {}));
  }
  EXPECT_EQ(stream_->FailureOf(3 * kRounds), nullptr);
}

TEST_P(StreamContractTest, WaitForReturnsForAFailedOperationToo) {
  StreamStall stall(*stream_);
  stream_->HostCallback(Fail);  // operation 1
  std::future<void> waiting =
      std::async(std::launch::async, [this] { stream_->WaitFor(1); });
  EXPECT_EQ(waiting.wait_for(kGrace), std::future_status::timeout);
  stall.Release();
  waiting.get();
  EXPECT_NE(stream_->FailureOf(1), nullptr);
  EXPECT_THROW(stream_->Synchronize(), AsyncError);
}

TEST_P(StreamContractTest, FinishThrowsEveryTimeAndMendsTheStream) {
  stream_->HostCallback([] {});  // operation 0
  stream_->HostCallback(Fail);
  stream_->HostCallback([] {});
  stream_->Finish(0, "Item", SourceLocation::Current());
  for (int i = 0; i < 3; ++i) {
    for (const std::uint64_t number : {2, 1}) {
      const SourceLocation here = SourceLocation::Current();
      auto error = LateError([&] { stream_->Finish(number, "Item", here); });
      ASSERT_NE(error, nullptr);
      EXPECT_EQ(error->failure().number, 1u);
      EXPECT_EQ(error->noticed_at(), here);
      EXPECT_THAT(error->what(), HasSubstr("Noticed at Item, "));
    }
  }
  stream_->Finish(0, "Item", SourceLocation::Current());
  stream_->Synchronize();  // the failure has been reported
  bool ran = false;
  stream_->HostCallback([&ran] { ran = true; });
  stream_->Synchronize();
  EXPECT_TRUE(ran);
}

// When the failure of operation 1 becomes known: while the program enqueues, or
// before.
enum class Known { kLater, kBefore, kWithAFullQueue };

// A call that throws a failure has reported it, and which call that is does not
// depend on time. Operation 1 of the stream fails.
TEST_P(StreamContractTest, WaitsThrowAFailureAndReportItAndEnqueueingDoesNot) {
  struct Waiting {
    const char* name;
    void (*wait)(Stream& stream, const Event& behind, DeviceMemory& memory);
  };
  const Waiting waitings[] = {
      {"Synchronize",
       [](Stream& s, const Event&, DeviceMemory&) { s.Synchronize(); }},
      {"Event::Synchronize",
       [](Stream&, const Event& e, DeviceMemory&) { e.Synchronize(); }},
      {"Finish of what failed",
       [](Stream& s, const Event&, DeviceMemory&) { s.Finish(1, "Item", {}); }},
      {"Finish of what was skipped",
       [](Stream& s, const Event&, DeviceMemory&) { s.Finish(2, "Item", {}); }},
      {"CopyAsync",
       [](Stream& s, const Event&, DeviceMemory& memory) {
         StorageRef block = memory.Allocate(4, s);
         int host = 7;
         s.CopyAsync(&host, block->data(), 4, CopyKind::kDeviceToHost);
       }},
      {"launch blocking",
       [](Stream& s, const Event&, DeviceMemory&) {
         const LaunchBlockingGuard guard(true);
         s.HostCallback([] {});
       }},
  };
  const auto make = [](int index, std::int64_t bound) {
    Backend& backend =
        GetParam().type() == DeviceType::kCpu ? CpuBackend() : CudaBackend();
    StreamOptions options;
    options.max_queued_operations = bound;
    return backend.NewStream(
        GetParam(), GetDeviceInfo(GetParam()).physical_index, index, options);
  };
  constexpr int kBound = 4;
  for (const Waiting& waiting : waitings) {
    for (const Known known :
         {Known::kLater, Known::kBefore, Known::kWithAFullQueue}) {
      SCOPED_TRACE(absl::StrCat(waiting.name, ", ", static_cast<int>(known)));
      const std::unique_ptr<Stream> stream =
          make(2, known == Known::kWithAFullQueue ? kBound : 1000);
      const std::unique_ptr<Stream> second = make(3, 1000);
      const std::unique_ptr<DeviceMemory> memory = MakeMemory();
      std::atomic<int> ran{0};
      const auto run = [&ran] { ++ran; };
      Event behind;
      const auto enqueue_more = [&] {
        for (int i = 0; i < 2 * kBound; ++i) stream->HostCallback(run);
        behind = stream->Record();
        if (known == Known::kBefore) {
          CheckResult(*stream, 1, *stream, "add", {});
          CheckResult(*stream, 2, *second, "add", {});
        } else {
          second->Wait(behind);
        }
        second->HostCallback(run);
      };
      {
        StreamStall stall(*stream);  // operation 0
        stream->HostCallback(Fail);
        stream->HostCallback(run);
        if (known == Known::kWithAFullQueue) {
          std::future<void> waits_for_room =
              std::async(std::launch::async, enqueue_more);
          while (stream->QueuedOperations() <= kBound) {
            std::this_thread::yield();
          }
          stall.Release();
          waits_for_room.get();
        } else {
          if (known == Known::kBefore) {
            stall.Release();
            stream->WaitFor(1);
          }
          enqueue_more();
        }
      }
      auto error = LateError([&] { waiting.wait(*stream, behind, *memory); });
      ASSERT_NE(error, nullptr);
      EXPECT_EQ(error->failure().number, 1u);
      EXPECT_EQ(error->failure().what, "the disk is on fire");
      stream->Synchronize();
      EXPECT_EQ(ran, 0);
      stream->HostCallback(run);
      stream->Synchronize();
      EXPECT_EQ(ran, 1);
      // The second stream got it as well, and reports it, too.
      EXPECT_THROW(second->Synchronize(), AsyncError);
      second->HostCallback(run);
      second->Synchronize();
      EXPECT_EQ(ran, 2);
      // Who needs a result now gets the failure at once.
      for (Stream* const user : {stream.get(), second.get()}) {
        EXPECT_THROW(CheckResult(*stream, 1, *user, "add", {}), AsyncError);
        user->Synchronize();
      }
    }
  }
}

// An event that outlives its stream has nobody to report to.
TEST_P(StreamContractTest, APoisonedEventOutlivesItsStream) {
  stream_->HostCallback(Fail);
  const Event behind = stream_->Record();
  behind.failure();
  testing::internal::CaptureStderr();
  stream_.reset();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("Unreported asynchronous error"));
  for (int i = 0; i < 2; ++i) EXPECT_THROW(behind.Synchronize(), AsyncError);
}

// A wait that a poisoned stream has passed still orders later work.
TEST_P(StreamContractTest, AWaitBehindAFailureStillCounts) {
  std::unique_ptr<Stream> slow = MakeStream(GetParam(), 2);
  int x = 0;
  StreamStall stall(*slow);
  slow->HostCallback([&x] { x = 1; });
  const Event written = slow->Record();
  stream_->HostCallback([] { throw std::runtime_error("alas"); });
  stream_->Wait(written);
  std::thread release([&] {
    while (!stream_->ever_failed()) std::this_thread::yield();
    stall.Release();
  });
  EXPECT_THROW(stream_->Synchronize(), AsyncError);
  int seen = 0;
  stream_->HostCallback([&] { seen = x; });
  stream_->Synchronize();
  release.join();
  EXPECT_EQ(seen, 1);
}

// Running work cannot wait for work behind it.
TEST_P(StreamContractTest, WorkMayAllocateWhileMuchIsInFlight) {
  std::unique_ptr<Stream> home = MakeStream(GetParam(), 2);
  std::unique_ptr<DeviceMemory> memory = MakeMemory(/*max_bytes_in_flight=*/1);
  // Work on a GPU can get free blocks only.
  memory->Allocate(1000, *home).reset();
  StorageRef block = memory->Allocate(100, *home);
  StreamStall stall(*stream_);
  stream_->HostCallback([&] { memory->Allocate(1000, *home); });
  block->RecordStream(*stream_);
  block.reset();  // in flight behind the callback
  stall.Release();
  stream_->Synchronize();
}

TEST_P(StreamContractTest, PoisonPassesThroughEventsToOtherStreams) {
  std::unique_ptr<Stream> second = MakeStream(GetParam(), 2);
  std::unique_ptr<Stream> third = MakeStream(OtherDevice(), 3);
  std::atomic<bool> ran{false};
  StreamStall stall(*stream_);
  stream_->HostCallback(Fail);
  second->Wait(stream_->Record());
  second->HostCallback([&ran] { ran = true; });
  stall.Release();
  third->Wait(second->Record());
  third->HostCallback([&ran] { ran = true; });
  for (Stream* stream : {third.get(), second.get(), stream_.get()}) {
    auto error = LateError([&] { stream->Synchronize(); });
    ASSERT_NE(error, nullptr);
    EXPECT_EQ(error->failure().what, "the disk is on fire");
    EXPECT_EQ(error->failure().stream, stream_->name())
        << "where it came from, not where it went";
    EXPECT_EQ(error->failure().number, 1u);
    stream->Synchronize();
  }
  EXPECT_FALSE(ran);
}

TEST_P(StreamContractTest, WaitsForEventsThatHaveCompleted) {
  std::unique_ptr<Stream> other = MakeStream(GetParam(), 2);
  const Event good = stream_->Record();
  stream_->HostCallback(Fail);
  const Event poisoned = stream_->Record();
  EXPECT_THROW(stream_->Synchronize(), AsyncError);
  std::atomic<int> ran{0};
  other->Wait(good);
  other->HostCallback([&ran] { ++ran; });
  other->Synchronize();
  EXPECT_EQ(ran, 1);
  // Its failure has been reported on its own stream, but streams that use the
  // missing result must report it, too.
  other->Wait(poisoned);
  other->HostCallback([&ran] { ++ran; });
  EXPECT_THROW(other->Synchronize(), AsyncError);
  EXPECT_EQ(ran, 1);
  stream_->Wait(poisoned);
  EXPECT_THROW(stream_->Synchronize(), AsyncError);
}

// ---- Copy streams.

class CopyStreamTest : public testing::TestWithParam<Device> {
 protected:
  Stream& receiver_ = NewStream(GetParam());
  Stream& copies_ = CopyStream(receiver_);
};

INSTANTIATE_TEST_SUITE_P(All, CopyStreamTest, testing::ValuesIn(AllDevices()),
                         DeviceTestName);

TEST_P(CopyStreamTest, IsMadeOnceForEachStream) {
  EXPECT_EQ(&CopyStream(receiver_), &copies_);
  EXPECT_EQ(receiver_.copy_stream(), &copies_);
  EXPECT_NE(&copies_, &receiver_);
  EXPECT_EQ(&copies_.receiver(), &receiver_);
  EXPECT_EQ(&receiver_.receiver(), &receiver_);
  EXPECT_NE(&CopyStream(NewStream(GetParam())), &copies_);
  Stream& shared = NewStream(GetParam());
  std::vector<std::future<Stream*>> made(4);
  for (auto& one : made) {
    one = std::async(std::launch::async, [&] { return &CopyStream(shared); });
  }
  for (auto& one : made) {
    Stream* const stream = one.get();
    EXPECT_EQ(stream, shared.copy_stream());
  }
}

TEST_P(CopyStreamTest, GoesAheadOfTheReceiversWork) {
  copies_.Synchronize();
  StreamStall stall(receiver_);
  int copied = 0, seen = 0;
  copies_.HostCallback([&copied] { copied = 1; });
  const Event event = copies_.Record();
  receiver_.WaitForCopy(event, {});
  receiver_.HostCallback([&] { seen = copied; });
  event.Synchronize();  // it would wait for ever behind the receiver's work
  EXPECT_EQ(copied, 1);
  stall.Release();
  receiver_.Synchronize();
  EXPECT_EQ(seen, 1);
}

TEST_P(CopyStreamTest, WaitsForWhatTheReceiverWaitsFor) {
  // Also for what that was told before there was a copy stream.
  for (const bool is_made : {true, false}) {
    Stream& writer = NewStream(GetParam());
    Stream& receiver = NewStream(GetParam());
    if (is_made) CopyStream(receiver);
    std::atomic<bool> written{false};
    bool seen = false;
    {
      StreamStall stall(writer);
      writer.HostCallback([&written] { written = true; });
      receiver.Wait(writer.Record());
      if (GetParam().type() == DeviceType::kCuda && !is_made) stall.Release();
      CopyStream(receiver).HostCallback([&] { seen = written; });
    }
    receiver.copy_stream()->Synchronize();
    EXPECT_TRUE(seen);
    // But not for a copy from the receiver's device.
    StreamStall stall(writer);
    receiver.WaitForCopy(writer.Record(), {});
    receiver.copy_stream()->Synchronize();
    stall.Release();
    receiver.Synchronize();
  }
}

TEST_P(CopyStreamTest, ItsFailureIsTheReceivers) {
  int ran = 0;
  for (int round = 0; round < 3; ++round) {
    copies_.HostCallback(Fail);
    const std::uint64_t number =
        receiver_.WaitForCopy(copies_.Record(), {"net.cc", 7});
    receiver_.HostCallback([&ran] { ++ran; });
    copies_.Synchronize();  // throws nothing: it is not reported here
    EXPECT_EQ(copies_.UnreportedFailure(), nullptr);
    const auto error = LateError([&] { receiver_.Finish(number, "Read", {}); });
    ASSERT_NE(error, nullptr);
    EXPECT_EQ(error->failure().what, "the disk is on fire");
    EXPECT_NE(receiver_.FailureOf(number), nullptr);
    // Both run again.
    bool copied = false;
    copies_.HostCallback([&copied] { copied = true; });
    receiver_.WaitForCopy(copies_.Record(), {});
    receiver_.Synchronize();
    EXPECT_TRUE(copied);
  }
  EXPECT_EQ(ran, 0);
}

TEST_P(CopyStreamTest, WhatTheReceiverHasReportedIsPastForItsCopies) {
  // The copy stream learns of the failure after the receiver has reported it.
  for (int round = 0; round < 20; ++round) {
    Stream& source = NewStream(GetParam());
    source.HostCallback(Fail);
    const Event failed = source.Record();
    {
      StreamStall late(copies_);
      receiver_.Wait(failed);
      EXPECT_THROW(receiver_.Synchronize(), AsyncError);
    }
    bool copied = false;
    copies_.HostCallback([&copied] { copied = true; });
    receiver_.WaitForCopy(copies_.Record(), {});
    receiver_.Synchronize();
    EXPECT_TRUE(copied);
    EXPECT_THROW(source.Synchronize(), AsyncError);
  }
}

TEST_P(StreamContractTest, SynchronizeFromManyThreadsReportsOnce) {
  constexpr int kThreads = 4;
  std::atomic<int> reports{0};
  StreamStall stall(*stream_);
  stream_->HostCallback(Fail);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, &reports] {
      try {
        stream_->Synchronize();
      } catch (const AsyncError&) {
        ++reports;
      }
    });
  }
  stall.Release();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(reports, 1);
}

// --- launch blocking ---

class LaunchBlockingTest : public StreamContractTest {
 protected:
  void SetUp() override { SetLaunchBlocking(true); }
  void TearDown() override { SetLaunchBlocking(false); }
};

INSTANTIATE_TEST_SUITE_P(All, LaunchBlockingTest,
                         testing::ValuesIn(AllDevices()), DeviceTestName);

TEST_P(LaunchBlockingTest, ErrorsAreThrownByTheCallThatEnqueues) {
  bool ran = false;
  stream_->HostCallback([&ran] { ran = true; });
  EXPECT_TRUE(ran);
  auto error = LateError([&] { stream_->HostCallback(Fail); });
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->failure().what, "the disk is on fire");
  EXPECT_EQ(error->noticed_at(), error->failure().requested_at);
  // The failure has been reported: the stream goes on.
  ran = false;
  stream_->HostCallback([&ran] { ran = true; });
  EXPECT_TRUE(ran);
  stream_->Synchronize();
}

TEST_P(LaunchBlockingTest, WaitForAPoisonedEventThrowsAtOnce) {
  SetLaunchBlocking(false);
  std::unique_ptr<Stream> other = MakeStream(GetParam(), 2);
  other->HostCallback(Fail);
  const Event poisoned = other->Record();
  EXPECT_THROW(other->Synchronize(), AsyncError);
  SetLaunchBlocking(true);
  EXPECT_THROW(stream_->Wait(poisoned), AsyncError);
  stream_->Synchronize();
}

// --- destruction ---

TEST_P(StreamContractTest, DestructorFinishesWhatIsQueued) {
  int ran = 0;
  std::future<void> gone;
  {
    StreamStall stall(*stream_);
    for (int i = 0; i < 25; ++i) stream_->HostCallback([&ran] { ++ran; });
    gone = std::async(std::launch::async, [this] { stream_.reset(); });
    EXPECT_EQ(gone.wait_for(kGrace), std::future_status::timeout);
  }
  gone.get();
  EXPECT_EQ(ran, 25);
}

TEST_P(StreamContractTest, DestructorTellsOfAFailureNobodyHasSeen) {
  stream_->HostCallback(Fail);
  testing::internal::CaptureStderr();
  stream_.reset();
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, HasSubstr("Unreported asynchronous error"));
  EXPECT_THAT(told, HasSubstr("host_callback (operation 0 of stream"));
  EXPECT_THAT(told, HasSubstr("the disk is on fire"));

  stream_ = MakeStream(GetParam(), 1);
  stream_->HostCallback(Fail);
  EXPECT_THROW(stream_->Synchronize(), AsyncError);
  testing::internal::CaptureStderr();
  stream_.reset();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "")
      << "a failure that was reported is no news";
}

TEST_P(StreamContractTest, DestructionInEveryOrder) {
  // Two streams that wait for each other, events of both, and memory that both
  // use, with work in flight. Memory is destroyed before the streams, as
  // memory.h requires; otherwise every order is tried.
  enum What { kStreamA, kStreamB, kEventA, kEventB, kMemory };
  std::vector<int> order = {kStreamA, kStreamB, kEventA, kEventB, kMemory};
  int orders = 0;
  do {
    const auto memory_at = std::find(order.begin(), order.end(), kMemory);
    if (std::any_of(order.begin(), memory_at,
                    [](int what) { return what <= kStreamB; })) {
      continue;
    }
    ++orders;
    std::unique_ptr<Stream> a = MakeStream(GetParam(), 1);
    std::unique_ptr<Stream> b = MakeStream(OtherDevice(), 2);
    std::unique_ptr<DeviceMemory> memory = MakeMemory();
    std::atomic<int> ran{0};
    StorageRef block = memory->Allocate(100, *a);
    block->RecordStream(*b);
    for (int i = 0; i < 5; ++i) {
      a->HostCallback([&ran] { ++ran; });
      b->Wait(a->Record());
      b->HostCallback([&ran] { ++ran; });
      a->Wait(b->Record());
    }
    Event of_a = a->Record();
    Event of_b = b->Record();
    for (const int what : order) {
      if (what == kStreamA) a.reset();
      if (what == kStreamB) b.reset();
      if (what == kEventA) of_a = Event();
      if (what == kEventB) of_b = Event();
      if (what == kMemory) {
        block.reset();
        memory.reset();
      }
    }
    EXPECT_EQ(ran, 10);
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 40);
}

// --- across devices ---

// Stands for an event of another back end, whether or not there is one.
class ForeignEvent final : public EventState {
 public:
  explicit ForeignEvent(DeviceType type) : EventState(type) {}
  bool Query() override { return true; }
  void Block() override {}
  FailurePtr failure() override { return nullptr; }
  double NanosSince(EventState&) override { return 0; }
};

TEST(EventTest, TimesOfTwoBackEndsCannotBeCompared) {
  const Event cpu(std::make_shared<ForeignEvent>(DeviceType::kCpu));
  const Event cuda(std::make_shared<ForeignEvent>(DeviceType::kCuda));
  EXPECT_EQ(ElapsedTime(cpu, cpu), 0);
  try {
    ElapsedTime(cpu, cuda);
    ADD_FAILURE() << "no error";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("two back ends, cpu and cuda"));
  }
}

}  // namespace
}  // namespace d2l
