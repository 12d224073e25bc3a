// Blocks, statistics and what happens when memory runs out. How blocks follow
// the order of streams is in stream_contract_test.cc.

#include "common/device/memory/memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <future>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <ostream>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/device/backend.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/memory/host_memory.h"
#include "common/device/stream.h"
#include "common/device/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::HasSubstr;

const Device kCpu0(DeviceType::kCpu, 0);
constexpr std::chrono::milliseconds kGrace(50);
// More than anything here takes on a busy machine.
constexpr std::chrono::seconds kLongest(10);
constexpr std::int64_t kNoBound = std::int64_t{1} << 40;

// A device with little memory.
class SmallBackend final : public Backend {
 public:
  // free_waits: Free waits, as on a GPU.
  explicit SmallBackend(std::int64_t bytes, bool free_waits = false)
      : free_waits_(free_waits), free_(bytes) {}
  ~SmallBackend() override { EXPECT_TRUE(blocks_.empty()) << "leaked"; }

  DeviceType type() const override { return DeviceType::kCpu; }
  const DeviceInventory& Inventory() override { return inventory_; }
  std::unique_ptr<Stream> NewStream(Device, int, int,
                                    const StreamOptions&) override {
    return nullptr;
  }
  void* Allocate(int, std::size_t bytes) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (static_cast<std::int64_t>(bytes) > free_) return nullptr;
    free_ -= static_cast<std::int64_t>(bytes);
    void* data = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    blocks_[data] = bytes;
    return data;
  }
  void Free(int, void* data, std::size_t bytes) override {
    std::lock_guard<std::mutex> lock(mutex_);
    ASSERT_EQ(blocks_.count(data), 1u);
    EXPECT_EQ(blocks_[data], bytes);
    blocks_.erase(data);
    free_ += static_cast<std::int64_t>(bytes);
    std::free(data);
  }
  bool FreeWaits() const override { return free_waits_; }
  void* AllocatePinned(std::size_t bytes) override {
    return Allocate(0, bytes);
  }
  void FreePinned(void* data, std::size_t bytes) override {
    Free(0, data, bytes);
  }
  std::int64_t FreeMemory(int) override {
    std::lock_guard<std::mutex> lock(mutex_);
    return free_;
  }

 private:
  const bool free_waits_;
  std::mutex mutex_;
  std::int64_t free_;
  std::map<void*, std::size_t> blocks_;
  DeviceInventory inventory_;
};

class MemoryTest : public testing::Test {
 protected:
  std::unique_ptr<Stream> stream_ = MakeStream(kCpu0, 1);
  std::unique_ptr<Stream> other_ = MakeStream(kCpu0, 2);
  DeviceMemory memory_{CpuBackend(), kCpu0, 0, DeviceMemory::Kind::kDevice,
                       kNoBound};
};

TEST_F(MemoryTest, BlocksAreAlignedAndLargeEnough) {
  for (const std::size_t bytes : {0,
                                  1,
                                  7,
                                  63,
                                  64,
                                  65,
                                  71,
                                  72,
                                  73,
                                  100,
                                  127,
                                  128,
                                  129,
                                  1000,
                                  4095,
                                  4097,
                                  65537,
                                  1 << 20,
                                  (1 << 20) + 1,
                                  (2 << 20) - 1,
                                  (2 << 20) + 1,
                                  (3 << 20) + 5}) {
    SCOPED_TRACE(bytes);
    StorageRef block = memory_.Allocate(bytes, *stream_);
    ASSERT_NE(block->data(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block->data()) % 64, 0u);
    EXPECT_EQ(block->bytes(), bytes);
    std::memset(block->data(), 0xa5, bytes);  // AddressSanitizer looks on
    EXPECT_GE(memory_.Stats().allocated, static_cast<std::int64_t>(bytes));
  }
}

TEST_F(MemoryTest, AtMostAnEighthOfABlockIsWasted) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    const std::size_t bytes = 64 + random() % (std::size_t{1} << (6 + i % 16));
    StorageRef block = memory_.Allocate(bytes, *stream_);
    const std::int64_t size = memory_.Stats().allocated;
    EXPECT_GE(size, static_cast<std::int64_t>(bytes));
    EXPECT_LE(size, static_cast<std::int64_t>(bytes + bytes / 8 + 1));
  }
}

TEST_F(MemoryTest, BlocksOfLikeSizeAreReused) {
  // Sizes lie an eighth of a power of two apart: 961 to 1024 bytes share one.
  StorageRef block = memory_.Allocate(1024, *stream_);
  void* const data = block->data();
  const std::uint64_t id = block->id();
  block.reset();
  block = memory_.Allocate(961, *stream_);
  EXPECT_EQ(block->data(), data);
  EXPECT_EQ(block->bytes(), 961u);
  EXPECT_NE(block->id(), id) << "an id is never used again";
  block.reset();
  block = memory_.Allocate(960, *stream_);
  EXPECT_NE(block->data(), data) << "of a smaller class";
  StorageRef larger = memory_.Allocate(1025, *stream_);
  EXPECT_NE(larger->data(), data);
}

TEST_F(MemoryTest, AFreshBlockHasNoHistory) {
  StorageRef block = memory_.Allocate(100, *stream_);
  EXPECT_EQ(block->writer(), nullptr);
  EXPECT_EQ(block->version(), 0u);
  block->MarkWritten(*stream_, 41);
  block->MarkWritten(*stream_, 42);
  EXPECT_EQ(block->writer(), stream_.get());
  EXPECT_EQ(block->written_by(), 42u);
  EXPECT_EQ(block->version(), 2u);
  void* const data = block->data();
  block.reset();
  block = memory_.Allocate(100, *stream_);
  ASSERT_EQ(block->data(), data);
  EXPECT_EQ(block->writer(), nullptr);
  EXPECT_EQ(block->version(), 0u);
}

TEST_F(MemoryTest, TheLastHandleReturnsTheBlock) {
  StorageRef a = memory_.Allocate(100, *stream_);
  void* const data = a->data();
  StorageRef b = a;
  StorageRef c = std::move(a);
  EXPECT_FALSE(a);
  b = b;
  c.reset();
  EXPECT_EQ(memory_.Stats().allocated, 104);
  EXPECT_EQ(b->data(), data);
  b = StorageRef();
  EXPECT_EQ(memory_.Stats().allocated, 0);
  b.reset();  // again: nothing to do
}

TEST_F(MemoryTest, StatsAddUp) {
  EXPECT_EQ(memory_.Stats().reserved, 0);
  StorageRef a = memory_.Allocate(1024, *stream_);
  StorageRef b = memory_.Allocate(512, *stream_);
  MemoryStats stats = memory_.Stats();
  EXPECT_EQ(stats.allocated, 1536);
  EXPECT_EQ(stats.peak, 1536);
  EXPECT_EQ(stats.reserved, 1536);
  EXPECT_EQ(stats.in_flight, 0);
  EXPECT_EQ(stats.allocations, 2);
  EXPECT_EQ(stats.raw_allocations, 2);

  a.reset();
  a = memory_.Allocate(1024, *stream_);
  stats = memory_.Stats();
  EXPECT_EQ(stats.allocations, 3);
  EXPECT_EQ(stats.raw_allocations, 2) << "reused";
  EXPECT_EQ(stats.peak, 1536);

  StreamStall stall(*other_);
  a->RecordStream(*other_);
  a.reset();
  stats = memory_.Stats();
  EXPECT_EQ(stats.allocated, 512);
  EXPECT_EQ(stats.in_flight, 1024);
  StorageRef c = memory_.Allocate(1024, *stream_);
  stats = memory_.Stats();
  EXPECT_EQ(stats.allocated, 1536);
  EXPECT_EQ(stats.peak, 2560) << "what is in flight counts";
  EXPECT_EQ(stats.reserved, 2560);
  b.reset();
  memory_.ResetPeak();
  EXPECT_EQ(memory_.Stats().peak, 2048);
  stall.Release();
  memory_.EmptyCache();
  stats = memory_.Stats();
  EXPECT_EQ(stats.in_flight, 0);
  EXPECT_EQ(stats.reserved, 1024) << "what somebody holds";
  EXPECT_EQ(stats.allocated, 1024);
}

TEST_F(MemoryTest, NoMoreIsTakenThanItMay) {
  const std::int64_t before = memory_.SetMaxBytes(3 << 20);
  StorageRef a = memory_.Allocate(2 << 20, *stream_);
  EXPECT_THROW(memory_.Allocate(2 << 20, *stream_), OutOfMemoryError);
  StorageRef b = memory_.Allocate(1 << 20, *stream_);
  // Free blocks are given back first, or used again.
  a.reset();
  b.reset();
  a = memory_.Allocate(3 << 20, *other_);
  EXPECT_EQ(memory_.SetMaxBytes(before), 3 << 20);
  b = memory_.Allocate(2 << 20, *stream_);
}

TEST_F(MemoryTest, ABlockInUseIsNoFreeBlock) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  memory_.Allocate(1024, *stream_);
  const StorageRef block = memory_.Allocate(1024, *stream_);
  block->RecordStream(*other_);
  FreeBlocks free;
  free.AddStream(stream_.get());
  EXPECT_DEATH(free.Put(static_cast<MemoryBlock*>(block.get())),
               "block 2 is still used by stream " + other_->name());
}

TEST_F(MemoryTest, TheBoundOnWhatIsInFlightCanBeChanged) {
  const auto use_elsewhere = [this] {
    StorageRef block = memory_.Allocate(1024, *stream_);
    block->RecordStream(*other_);
  };
  EXPECT_EQ(memory_.SetMaxBytesInFlight(2048), kNoBound);
  {
    StreamStall stall(*other_);
    std::thread producer([&] {
      for (int i = 0; i < 20; ++i) {
        use_elsewhere();
        EXPECT_LE(memory_.Stats().in_flight, 2048 + 1024);
      }
    });
    const auto end = std::chrono::steady_clock::now() + kLongest;
    while (memory_.Stats().in_flight <= 2048 &&
           std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    EXPECT_GT(memory_.Stats().in_flight, 2048)
        << "nothing came to be in flight";
    stall.Release();
    producer.join();
  }
  EXPECT_EQ(memory_.SetMaxBytesInFlight(kNoBound), 2048);
  memory_.EmptyCache();
  StreamStall stall(*other_);
  for (int i = 0; i < 20; ++i) use_elsewhere();
  EXPECT_EQ(memory_.Stats().in_flight, 20 * 1024) << "nobody waited";
  EXPECT_THROW(memory_.SetMaxBytesInFlight(0), std::invalid_argument);
}

TEST_F(MemoryTest, EmptyCacheWaitsForWorkThatMayUseAFreeBlock) {
  StorageRef block = memory_.Allocate(4096, *stream_);
  StreamStall stall(*stream_);
  auto* const data = static_cast<char*>(block->data());
  stream_->HostCallback([data] { std::memset(data, 1, 4096); });
  block.reset();
  std::future<void> emptied =
      std::async(std::launch::async, [this] { memory_.EmptyCache(); });
  EXPECT_EQ(emptied.wait_for(kGrace), std::future_status::timeout);
  stall.Release();
  emptied.get();
  EXPECT_EQ(memory_.Stats().reserved, 0);
  memory_.EmptyCache();  // again: nothing to do
}

TEST_F(MemoryTest, PinnedMemoryIsKnownAsSuch) {
  DeviceMemory pinned(CpuBackend(), kCpu0, 0, DeviceMemory::Kind::kPinned,
                      kNoBound);
  StorageRef block = pinned.AllocatePinned(1024);
  char* const data = static_cast<char*>(block->data());
  EXPECT_TRUE(IsPinned(data, 1024));
  EXPECT_TRUE(IsPinned(data, 0));
  EXPECT_TRUE(IsPinned(data + 1000, 24));
  EXPECT_FALSE(IsPinned(data + 1000, 25));
  EXPECT_FALSE(IsPinned(data - 1, 2));
  EXPECT_FALSE(IsPinned(data, std::numeric_limits<std::size_t>::max()));
  StorageRef device = memory_.Allocate(1024, *stream_);
  EXPECT_FALSE(IsPinned(device->data(), 1024));
  int on_the_stack = 0;
  EXPECT_FALSE(IsPinned(&on_the_stack, sizeof on_the_stack));
  EXPECT_FALSE(IsPinned(nullptr, 1));
  block.reset();
  EXPECT_TRUE(IsPinned(data, 1024)) << "cached, not given back";
  pinned.EmptyCache();
  EXPECT_FALSE(IsPinned(data, 1024));
}

TEST_F(MemoryTest, PinnedBlockWaitsForTheStreamsThatUseIt) {
  DeviceMemory pinned(CpuBackend(), kCpu0, 0, DeviceMemory::Kind::kPinned,
                      kNoBound);
  {
    StorageRef block = pinned.AllocatePinned(100);
    void* const data = block->data();
    StreamStall stall(*stream_);
    block->RecordStream(*stream_);
    block.reset();
    StorageRef second = pinned.AllocatePinned(100);
    EXPECT_NE(second->data(), data);
    stall.Release();
    stream_->Synchronize();
    EXPECT_EQ(pinned.AllocatePinned(100)->data(), data);
  }
}

TEST_F(MemoryTest, MoreThanTheMachineHas) {
  for (const std::size_t bytes :
       {std::size_t{1} << 44, std::size_t{1} << 45, (std::size_t{1} << 45) + 1,
        std::size_t{1} << 63, std::numeric_limits<std::size_t>::max()}) {
    SCOPED_TRACE(bytes);
    try {
      memory_.Allocate(bytes, *stream_);
      ADD_FAILURE() << "no error";
    } catch (const OutOfMemoryError& error) {
      EXPECT_THAT(error.what(), HasSubstr("asked for on cpu:0, which has "));
      EXPECT_THAT(error.what(), HasSubstr(" free; 0 B in use, 0 B in flight"));
    }
  }
  DeviceMemory pinned(CpuBackend(), kCpu0, 0, DeviceMemory::Kind::kPinned,
                      kNoBound);
  try {
    pinned.AllocatePinned(std::size_t{1} << 44);
    ADD_FAILURE() << "no error";
  } catch (const OutOfMemoryError& error) {
    EXPECT_THAT(error.what(), HasSubstr("16.0 TiB asked for on cpu:0 (pinned "
                                        "host memory), which has "));
  }
  EXPECT_EQ(memory_.Stats().allocated, 0);
  memory_.Allocate(100, *stream_);  // allocation works again
}

TEST_F(MemoryTest, OutOfMemorySaysWhatWasAskedAndWhatThereIs) {
  SmallBackend backend(10 << 10);
  DeviceMemory memory(backend, kCpu0, 0, DeviceMemory::Kind::kDevice, kNoBound);
  {
    StorageRef held = memory.Allocate(4096, *stream_);
    StreamStall stall(*stream_);
    for (int i = 0; i < 3; ++i) stream_->HostCallback([] {});
    try {
      // The cache is empty, so there is nothing to wait for.
      memory.Allocate(8192, *stream_);
      ADD_FAILURE() << "no error";
    } catch (const OutOfMemoryError& error) {
      EXPECT_STREQ(
          error.what(),
          "[out of memory] 8.0 KiB asked for on cpu:0, which has 6.0 KiB "
          "free; 4.0 KiB in use, 0 B in flight, 4 operations queued. Use "
          "smaller tensors, or release some.");
    }
    EXPECT_EQ(memory.Stats().allocated, 4096);
    EXPECT_EQ(memory.Stats().allocations, 1);
  }
}

TEST_F(MemoryTest, WhatIsCachedIsGivenBackBeforeItGivesUp) {
  SmallBackend backend(10 << 10);
  DeviceMemory memory(backend, kCpu0, 0, DeviceMemory::Kind::kDevice, kNoBound);
  std::vector<StorageRef> blocks;
  for (int i = 0; i < 10; ++i) {
    blocks.push_back(memory.Allocate(1024, *stream_));
  }
  EXPECT_EQ(backend.FreeMemory(0), 0);
  blocks.clear();
  EXPECT_EQ(backend.FreeMemory(0), 0) << "cached";
  StorageRef large = memory.Allocate(8192, *other_);
  EXPECT_EQ(memory.Stats().reserved, 8192);
  EXPECT_EQ(memory.Stats().allocated, 8192);
  EXPECT_EQ(backend.FreeMemory(0), 2048);
}

TEST_F(MemoryTest, ALargeBlockIsCutAndMerged) {
  StorageRef whole = memory_.Allocate(8 << 20, *stream_);
  auto* const data = static_cast<char*>(whole->data());
  whole.reset();
  // In every order of returning them.
  std::vector<int> order = {0, 1, 2, 3};
  do {
    StorageRef parts[4];
    for (int i = 0; i < 4; ++i) {
      parts[i] = memory_.Allocate(2 << 20, *stream_);
      EXPECT_EQ(parts[i]->data(), data + (i << 21));
    }
    EXPECT_EQ(memory_.Stats().allocated, 8 << 20);
    for (const int i : order) parts[i].reset();
    whole = memory_.Allocate(8 << 20, *stream_);
    EXPECT_EQ(whole->data(), data);
    whole.reset();
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(memory_.Stats().raw_allocations, 1);
  EXPECT_EQ(memory_.Stats().reserved, 8 << 20);
  memory_.EmptyCache();
  EXPECT_EQ(memory_.Stats().reserved, 0);
}

TEST_F(MemoryTest, EmptyCacheLeavesBlocksOfWhichAPartIsHeld) {
  memory_.Allocate(8 << 20, *stream_).reset();
  StorageRef part = memory_.Allocate(2 << 20, *stream_);
  memory_.EmptyCache();
  EXPECT_EQ(memory_.Stats().reserved, 8 << 20);
  std::memset(part->data(), 1, 2 << 20);
  part.reset();
  memory_.EmptyCache();
  EXPECT_EQ(memory_.Stats().reserved, 0);
}

// These programs once reserved the sum of all sizes.
TEST_F(MemoryTest, OneTensorOfManySizesTakesLittleMoreThanTheLargest) {
  for (const bool growing : {true, false}) {
    SCOPED_TRACE(growing);
    SmallBackend backend(kNoBound);
    DeviceMemory memory(backend, kCpu0, 0, DeviceMemory::Kind::kDevice,
                        kNoBound);
    for (int round = 0; round < 3; ++round) {
      for (int i = 1; i <= 40; ++i) {
        const std::size_t size = growing ? i : 41 - i;
        memory.Allocate(size * (5 << 20), *stream_).reset();
        EXPECT_LE(memory.Stats().reserved, 300 << 20);
      }
    }
  }
}

TEST_F(MemoryTest, ASmallExcessLeavesALargePiece) {
  StorageRef large = memory_.Allocate(100 << 20, *stream_);
  StorageRef small = memory_.Allocate(2 << 20, *stream_);
  large.reset();
  small.reset();
  // 101 MiB may be free: one MiB too many is free.
  StorageRef block = memory_.Allocate(202 << 20, *stream_);
  EXPECT_EQ(memory_.Stats().reserved, 302 << 20);
}

struct Load {
  const char* name;
  DeviceMemory::Kind kind;
  bool free_waits;
  int streams;
  int live;
  std::size_t largest;
};

void PrintTo(const Load& load, std::ostream* out) { *out << load.name; }

class MemoryLoadTest : public testing::TestWithParam<Load> {};

TEST_P(MemoryLoadTest, ReservesAtMostHalfMoreThanWasLive) {
  const Load& load = GetParam();
  SmallBackend backend(kNoBound, load.free_waits);
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < load.streams; ++i) {
    streams.push_back(MakeStream(kCpu0, 1 + i));
  }
  DeviceMemory memory(backend, kCpu0, 0, load.kind, kNoBound);
  std::mt19937_64 random(1);
  std::vector<StorageRef> held(load.live);
  std::map<char*, char*> end_of;  // of the blocks held
  std::int64_t asked = 0;
  std::int64_t peak_asked = 0;
  std::int64_t peak_reserved = 0;
  for (int i = 0; i < 4'000; ++i) {
    StorageRef& block = held[random() % held.size()];
    if (block) {
      asked -= static_cast<std::int64_t>(block->bytes());
      end_of.erase(static_cast<char*>(block->data()));
      block.reset();
    }
    // Sometimes few blocks are held for a while.
    if (i / 1000 % 2 == 1 && random() % 4 != 0) continue;
    const std::size_t bytes = 1 + random() % load.largest;
    block = load.kind == DeviceMemory::Kind::kPinned
                ? memory.AllocatePinned(bytes)
                : memory.Allocate(bytes, *streams[random() % streams.size()]);
    auto* const data = static_cast<char*>(block->data());
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0u);
    data[0] = data[bytes - 1] = 1;  // AddressSanitizer looks on
    const auto after = end_of.upper_bound(data);
    if (after != end_of.end()) {
      ASSERT_LE(data + bytes, after->first);
    }
    if (after != end_of.begin()) {
      ASSERT_GE(data, std::prev(after)->second);
    }
    end_of[data] = data + bytes;
    asked += static_cast<std::int64_t>(bytes);
    peak_asked = std::max(peak_asked, asked);
    const MemoryStats stats = memory.Stats();
    ASSERT_GE(stats.allocated, asked);
    ASSERT_LE(stats.allocated, asked + asked / 8 + 64 * load.live);
    ASSERT_LE(stats.allocated, stats.reserved);
    peak_reserved = std::max(peak_reserved, stats.reserved);
  }
  EXPECT_LE(peak_reserved, peak_asked + peak_asked / 2);
  held.clear();
  memory.EmptyCache();
  EXPECT_EQ(memory.Stats().reserved, 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, MemoryLoadTest,
    testing::Values(
        Load{"OneStream", DeviceMemory::Kind::kDevice, false, 1, 20, 20 << 20},
        Load{"ThreeStreams", DeviceMemory::Kind::kDevice, false, 3, 20,
             20 << 20},
        Load{"Pinned", DeviceMemory::Kind::kPinned, false, 1, 20, 20 << 20},
        Load{"Gpu", DeviceMemory::Kind::kDevice, true, 1, 100, 20 << 20},
        Load{"GpuPinned", DeviceMemory::Kind::kPinned, true, 1, 100, 20 << 20},
        Load{"Smaller", DeviceMemory::Kind::kDevice, false, 2, 1000, 300'000}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(MemoryTest, AnIdleStreamsBlockServesAnotherBeyondTheLimit) {
  StorageRef block = memory_.Allocate(100 << 20, *stream_);
  void* const data = block->data();
  block.reset();
  stream_->Synchronize();
  StorageRef second = memory_.Allocate(90 << 20, *other_);
  EXPECT_EQ(second->data(), data);
  EXPECT_EQ(memory_.Stats().raw_allocations, 1);
  EXPECT_EQ(memory_.Stats().reserved, 100 << 20);
}

TEST_F(MemoryTest, WhatQueuedWorkMayUseIsGivenBackWhenItIsDone) {
  StreamStall stall(*stream_);
  StorageRef block = memory_.Allocate(100 << 20, *stream_);
  auto* const data = static_cast<char*>(block->data());
  stream_->HostCallback([data] { data[(100 << 20) - 1] = 1; });
  block.reset();
  StorageRef second = memory_.Allocate(90 << 20, *other_);
  EXPECT_NE(second->data(), data);
  EXPECT_EQ(memory_.Stats().reserved, 190 << 20) << "it is still there";
  EXPECT_EQ(memory_.Stats().in_flight, 0);
  stall.Release();
  stream_->Synchronize();
  memory_.Allocate(8, *stream_).reset();
  EXPECT_LT(memory_.Stats().reserved, 91 << 20);
}

TEST_F(MemoryTest, WhatABusyStreamHasFreeServesItMeanwhile) {
  StreamStall stall(*stream_);
  memory_.Allocate(100 << 20, *stream_).reset();
  StorageRef second = memory_.Allocate(90 << 20, *other_);
  StorageRef third = memory_.Allocate(100 << 20, *stream_);
  EXPECT_EQ(memory_.Stats().raw_allocations, 2);
  EXPECT_EQ(memory_.Stats().reserved, 190 << 20);
}

TEST_F(MemoryTest, AnAllocationWaitsIfTooMuchIsOnItsWayBack) {
  memory_.SetMaxBytesInFlight(150 << 20);
  StreamStall stall(*stream_);
  const auto grow = [this](int mebibytes) {
    StorageRef block = memory_.Allocate(mebibytes << 20, *stream_);
    auto* const data = static_cast<char*>(block->data());
    stream_->HostCallback([data] { data[0] = 1; });
  };
  for (const int mebibytes : {100, 110, 120}) grow(mebibytes);
  std::future<void> waiting =
      std::async(std::launch::async, [grow] { grow(130); });
  EXPECT_EQ(waiting.wait_for(kGrace), std::future_status::timeout);
  stall.Release();
  waiting.get();
}

TEST_F(MemoryTest, AGpuGivesNothingBackWhileItWorks) {
  SmallBackend backend(kNoBound, /*free_waits=*/true);
  DeviceMemory memory(backend, kCpu0, 0, DeviceMemory::Kind::kDevice, kNoBound);
  memory.Allocate(8, *other_).reset();
  memory.Allocate(1200 << 20, *stream_).reset();
  {
    StreamStall stall(*other_);
    StorageRef block = memory.Allocate(100 << 20, *other_);
    EXPECT_EQ(memory.Stats().reserved >> 20, 1300);
  }
  other_->Synchronize();
  StorageRef block = memory.Allocate(200 << 20, *other_);
  EXPECT_EQ(memory.Stats().reserved >> 20, 1300) << "of the idle stream";
}

TEST_F(MemoryTest, WhatIsInFlightIsWaitedForBeforeItGivesUp) {
  SmallBackend backend(10 << 10);
  DeviceMemory memory(backend, kCpu0, 0, DeviceMemory::Kind::kDevice, kNoBound);
  {
    StreamStall stall(*other_);
    StorageRef block = memory.Allocate(8192, *stream_);
    block->RecordStream(*other_);
    block.reset();
    std::future<StorageRef> waiting = std::async(
        std::launch::async, [&] { return memory.Allocate(6144, *stream_); });
    EXPECT_EQ(waiting.wait_for(kGrace), std::future_status::timeout);
    stall.Release();
    StorageRef other = waiting.get();
    EXPECT_EQ(memory.Stats().in_flight, 0);
    EXPECT_EQ(memory.Stats().reserved, 6144);
  }
}

TEST_F(MemoryTest, ManyThreadsNeverShareABlock) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 3000;
  constexpr int kHeld = 16;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int t = 0; t < kThreads; ++t) {
    streams.push_back(MakeStream(kCpu0, 10 + t));
  }
  // Blocks that one thread allocates and another releases.
  std::mutex mutex;
  std::vector<StorageRef> passed_on;
  std::atomic<int> overwritten{0};
  DeviceMemory memory(CpuBackend(), kCpu0, 0, DeviceMemory::Kind::kDevice,
                      kNoBound);
  auto check = [&overwritten](const StorageRef& block) {
    const auto* data = static_cast<const std::uint64_t*>(block->data());
    const std::uint64_t words = block->bytes() / 8;
    if (data[0] != block->id() || data[words - 1] != block->id()) {
      ++overwritten;
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::array<StorageRef, kHeld> held;
      for (int i = 0; i < kRounds; ++i) {
        StorageRef& block = held[random() % kHeld];
        if (block) check(block);
        block = memory.Allocate(8 * (1 + random() % 200),
                                *streams[(t + i % 2) % kThreads]);
        auto* data = static_cast<std::uint64_t*>(block->data());
        data[0] = block->id();
        data[block->bytes() / 8 - 1] = block->id();
        if (i % 7 == 0) {
          block->RecordStream(*streams[(t + 3) % kThreads]);
          std::lock_guard<std::mutex> lock(mutex);
          passed_on.push_back(std::move(block));
          if (passed_on.size() > 50) {
            std::swap(passed_on[random() % 50], passed_on.back());
            check(passed_on.back());
            passed_on.pop_back();
          }
        }
      }
      for (const StorageRef& block : held) {
        if (block) check(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  passed_on.clear();
  EXPECT_EQ(overwritten, 0);
  const MemoryStats stats = memory.Stats();
  EXPECT_EQ(stats.allocated, 0);
  EXPECT_EQ(stats.allocations, kThreads * kRounds);
  EXPECT_LT(stats.raw_allocations, stats.allocations);
  memory.EmptyCache();
  EXPECT_EQ(memory.Stats().reserved, 0);
  EXPECT_EQ(memory.Stats().in_flight, 0);
}

// Beyond the limit, blocks go from stream to stream and to the device, but not
// while queued work uses them.
TEST_F(MemoryTest, ManyThreadsReclaimOnlyWhatNoWorkUses) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 400;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int t = 0; t < kThreads; ++t) {
    streams.push_back(MakeStream(kCpu0, 10 + t));
  }
  std::atomic<int> overwritten{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < kRounds; ++i) {
        StorageRef block =
            memory_.Allocate((1 + random() % 32) << 20, *streams[t]);
        auto* const data = static_cast<std::uint64_t*>(block->data());
        streams[t]->HostCallback([data, id = block->id(), &overwritten] {
          *data = id;
          std::this_thread::yield();
          if (*data != id) ++overwritten;
        });
        if (random() % 4 == 0) streams[t]->Synchronize();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(overwritten, 0);
  EXPECT_EQ(memory_.Stats().allocated, 0);
  memory_.EmptyCache();
  EXPECT_EQ(memory_.Stats().reserved, 0);
}

TEST_F(MemoryTest, IdsAreUniqueAcrossMemories) {
  std::set<std::uint64_t> ids;
  int count = 0;
  for (const DeviceInfo& info : Devices()) {
    for (int i = 0; i < 10; ++i) {
      ids.insert(
          Memory(info.device).Allocate(8, DefaultStream(info.device))->id());
      ids.insert(PinnedMemory(info.device).AllocatePinned(8)->id());
      count += 2;
    }
  }
  EXPECT_EQ(static_cast<int>(ids.size()), count);
}

}  // namespace
}  // namespace d2l
