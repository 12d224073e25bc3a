#include "common/device/listener.h"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/device/device_table.h"
#include "common/device/memory/host_memory.h"
#include "common/device/memory/memory.h"
#include "common/device/stream.h"
#include "common/device/stream_stall.h"
#include "common/device/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

class Seen : public DeviceListener {
 public:
  static constexpr unsigned kAll = kMemory | kWaits | kStreams;

  Seen() { AddDeviceListener(this, kAll); }
  ~Seen() override { RemoveDeviceListener(this, kAll); }
  void OnMemory(const MemoryRecord& record) noexcept override {
    memory.push_back(record);
  }
  void OnWait(const WaitRecord& record) noexcept override {
    EXPECT_LE(record.host_begin, record.host_end);
    waits.push_back(record.what);
    lines.push_back(record.requested_at.line());
    full_queues.push_back(record.full_queue);
  }

  void OnStream(const StreamRecord& record) override {
    streams.push_back(record);
  }

  std::vector<MemoryRecord> memory;
  std::vector<std::string> waits;
  std::vector<int> lines;
  std::vector<std::uint64_t> full_queues;
  std::vector<StreamRecord> streams;
};

class ListenerTest : public testing::TestWithParam<Device> {
 protected:
  const Device device_ = GetParam();
  Stream& stream_ = DefaultStream(device_);
  DeviceMemory& memory_ = Memory(device_);
};

TEST_P(ListenerTest, IsToldOfEachBlockWhatTheAccountSaysAfterIt) {
  const MemoryStats before = memory_.Stats();
  std::uint64_t id = 0;
  std::vector<MemoryRecord> records;
  {
    Seen seen;
    StorageRef block = memory_.Allocate(1000, stream_);
    id = block->id();
    ASSERT_EQ(seen.memory.size(), 1u);
    EXPECT_EQ(seen.memory[0].allocated, memory_.Stats().allocated);
    EXPECT_EQ(seen.memory[0].reserved, memory_.Stats().reserved);
    StorageRef second = block;
    block.reset();
    EXPECT_EQ(seen.memory.size(), 1u) << "there is another handle";
    second.reset();
    records = seen.memory;
  }
  ASSERT_EQ(records.size(), 2u);
  for (const MemoryRecord& record : records) {
    EXPECT_EQ(record.device, device_);
    EXPECT_FALSE(record.pinned);
    EXPECT_EQ(record.storage, id);
  }
  EXPECT_GE(records[0].change, 1000);
  EXPECT_EQ(records[1].change, -records[0].change);
  EXPECT_EQ(records[1].allocated, before.allocated);
  EXPECT_LE(records[0].time, records[1].time);
}

TEST_P(ListenerTest, ABlockThatAnotherStreamUsesIsInFlight) {
  if (LaunchBlocking()) GTEST_SKIP() << "nothing can be held up";
  const std::unique_ptr<Stream> other = MakeStream(device_, 1);
  Seen seen;
  StorageRef block = memory_.Allocate(1000, stream_);
  const std::int64_t before = memory_.Stats().in_flight;
  {
    StreamStall stall(*other);
    block->RecordStream(*other);
    block.reset();
    ASSERT_EQ(seen.memory.size(), 2u);
    EXPECT_EQ(seen.memory[1].in_flight, before + seen.memory[0].change);
  }
  other->Synchronize();
  memory_.EmptyCache();
}

TEST_P(ListenerTest, PinnedMemoryIsToldApart) {
  Seen seen;
  PinnedMemory(device_).AllocatePinned(100).reset();
  ASSERT_EQ(seen.memory.size(), 2u);
  EXPECT_TRUE(seen.memory[0].pinned);
}

TEST_P(ListenerTest, IsToldOnceOfEachWaitAndItsLine) {
  Seen seen;
  Synchronize(device_);
  const int line = __LINE__ - 1;
  stream_.Synchronize();
  stream_.Record().Synchronize();
  EXPECT_THAT(seen.waits, ElementsAre("synchronize", "stream_synchronize",
                                      "event_synchronize"));
  EXPECT_THAT(seen.lines, ElementsAre(line, line + 2, line + 3));
  EXPECT_THAT(seen.full_queues, Each(0));
}

TEST_P(ListenerTest, IsToldThatAQueueIsFull) {
  constexpr int kBound = 16;
  Stream& stream = NewStream(device_, kBound);
  Seen seen;
  // The queue may have room again before the producer checks it.
  for (int i = 0; i < 1000 && seen.waits.empty(); ++i) {
    StreamStall stall(stream);
    std::thread producer([&] {
      for (int i = 0; i < 2 * kBound; ++i) stream.HostCallback([] {});
    });
    while (stream.QueuedOperations() <= kBound) std::this_thread::yield();
    stall.Release();
    producer.join();
  }
  ASSERT_FALSE(seen.waits.empty());
  EXPECT_THAT(seen.waits, Each("front end blocked: queue full 16/16"));
  EXPECT_THAT(seen.full_queues, Each(kBound));
  stream.Synchronize();
}

using Kind = StreamRecord::Kind;

TEST_P(ListenerTest, HearsWhatStreamsAreAskedFor) {
  Seen seen;
  const StorageRef host = PinnedMemory(device_).AllocatePinned(64);
  const StorageRef block = memory_.Allocate(64, stream_);
  const Event event = stream_.Record();
  stream_.Wait(event);
  stream_.CopyAsync(block->data(), host->data(), 64, CopyKind::kHostToDevice);
  const int copy_line = __LINE__ - 1;
  stream_.HostCallback([] {});
  stream_.Synchronize();
  ASSERT_EQ(seen.streams.size(), 4u);
  EXPECT_EQ(seen.streams[0].kind, Kind::kRecord);
  EXPECT_EQ(seen.streams[0].stream, &stream_);
  EXPECT_EQ(seen.streams[0].event, event.id());
  EXPECT_NE(event.id(), 0u);
  EXPECT_EQ(seen.streams[1].kind, Kind::kWait);
  EXPECT_EQ(seen.streams[1].event, event.id());
  EXPECT_NE(stream_.Record().id(), event.id());
  EXPECT_EQ(seen.streams[2].kind, Kind::kCopy);
  EXPECT_EQ(seen.streams[2].dst, block->data());
  EXPECT_EQ(seen.streams[2].src, host->data());
  EXPECT_EQ(seen.streams[2].bytes, 64u);
  EXPECT_EQ(seen.streams[2].requested_at.line(), copy_line);
  EXPECT_EQ(seen.streams[3].kind, Kind::kHostCallback);
}

TEST_P(ListenerTest, MayRefuseWhatAStreamIsAskedFor) {
  class Refusal : public DeviceListener {
   public:
    void OnStream(const StreamRecord&) override {
      throw std::runtime_error("not while tracing");
    }
  } refusal;
  bool called = false;
  {
    const ScopedDeviceListener listen(&refusal, DeviceListener::kStreams);
    EXPECT_THROW(stream_.HostCallback([&] { called = true; }),
                 std::runtime_error);
  }
  stream_.Synchronize();
  EXPECT_FALSE(called);
}

TEST_P(ListenerTest, AllAreToldOfTheirThreadAndTopics) {
  Seen everything;
  Seen inner, outer;
  RemoveDeviceListener(&inner, Seen::kAll);
  RemoveDeviceListener(&outer, Seen::kAll);
  {
    const ScopedDeviceListener listen_to_all(&outer, Seen::kAll);
    const ScopedDeviceListener listen(&inner, DeviceListener::kWaits);
    memory_.Allocate(100, stream_);
    stream_.Synchronize();
    std::thread([this] {
      memory_.Allocate(100, stream_);
      stream_.Synchronize();
    }).join();
  }
  EXPECT_EQ(everything.memory.size(), 4u);
  EXPECT_EQ(everything.waits.size(), 2u);
  EXPECT_EQ(outer.memory.size(), 2u);
  EXPECT_EQ(outer.waits.size(), 1u);
  EXPECT_EQ(inner.memory.size(), 0u);
  EXPECT_EQ(inner.waits.size(), 1u);
  AddDeviceListener(&inner, Seen::kAll);  // the destructors remove them
  AddDeviceListener(&outer, Seen::kAll);
}

TEST_P(ListenerTest, MemoryIsKeptUntilTheStreamHasPassed) {
  if (LaunchBlocking()) GTEST_SKIP() << "nothing can be held up";
  const std::unique_ptr<Stream> stream = MakeStream(device_, 1);
  auto memory = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = memory;
  {
    StreamStall stall(*stream);
    KeepUntilPassed(std::move(memory), {stream.get(), stream.get()});
    KeepUntilPassed(std::make_shared<int>(2), {});
    EXPECT_FALSE(seen.expired());
  }
  stream->Synchronize();
  KeepUntilPassed(std::make_shared<int>(3), {});
  EXPECT_TRUE(seen.expired());
}

INSTANTIATE_TEST_SUITE_P(All, ListenerTest, testing::ValuesIn(AllDevices()),
                         DeviceTestName);

}  // namespace
}  // namespace d2l
