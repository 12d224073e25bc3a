// What happens when the host itself has no memory. A program of its own, since
// it replaces operator new.

#include <malloc.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <vector>

#include "common/device/backend.h"
#include "common/device/device.h"
#include "common/device/failure.h"
#include "common/device/memory/host_memory.h"
#include "common/device/memory/memory.h"
#include "common/device/stream.h"
#include "common/device/testing/testing.h"
#include "gtest/gtest.h"

namespace {

// How many allocations of this thread fail from now on.
thread_local int failures_left = 0;

}  // namespace

// Not inline, or the compiler warns that memory of `new` is freed.
[[gnu::noinline]] void* operator new(std::size_t bytes,
                                     const std::nothrow_t&) noexcept {
  if (failures_left > 0 && failures_left-- > 0) return nullptr;
  return std::malloc(bytes);
}
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const data = operator new(bytes, std::nothrow);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
[[gnu::noinline]] void operator delete(void* data) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, std::size_t) noexcept {
  std::free(data);
}

namespace d2l {
namespace {

const Device kCpu0(DeviceType::kCpu, 0);
constexpr int kAll = 1 << 30;

class NoHostMemory {
 public:
  explicit NoHostMemory(int failures) { failures_left = failures; }
  ~NoHostMemory() { failures_left = 0; }
};

class OutOfMemoryTest : public testing::Test {
 protected:
  std::unique_ptr<Stream> stream_ = MakeStream(kCpu0, 1);
  std::unique_ptr<Stream> other_ = MakeStream(kCpu0, 2);
  DeviceMemory memory_{CpuBackend(), kCpu0, 0, DeviceMemory::Kind::kDevice,
                       std::int64_t{1} << 40};
};

TEST_F(OutOfMemoryTest, ABlockThatAnotherStreamUsedIsReturned) {
  StorageRef block = memory_.Allocate(1000, *stream_);
  void* const data = block->data();
  block->RecordStream(*other_);
  {
    const NoHostMemory none(kAll);
    block.reset();
  }
  EXPECT_EQ(memory_.Stats().allocated, 0);
  EXPECT_GE(memory_.Stats().in_flight, 1000);
  memory_.Allocate(8, *stream_).reset();  // records the missing events
  other_->Synchronize();
  EXPECT_EQ(memory_.Allocate(1000, *stream_)->data(), data);
  EXPECT_EQ(memory_.Stats().in_flight, 0);
}

TEST_F(OutOfMemoryTest, ManyUsersAreMarkedAndReturned) {
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 10; ++i) streams.push_back(MakeStream(kCpu0, 3 + i));
  StorageRef block = memory_.Allocate(1000, *stream_);
  {
    const NoHostMemory none(kAll);
    for (const auto& stream : streams) block->RecordStream(*stream);
    block.reset();
  }
  memory_.EmptyCache();
  EXPECT_EQ(memory_.Stats().reserved, 0);
}

TEST_F(OutOfMemoryTest, PartsOfABlockAreReturned) {
  StorageRef whole = memory_.Allocate(8 << 20, *stream_);
  whole.reset();
  StorageRef parts[4];
  for (StorageRef& part : parts) part = memory_.Allocate(2 << 20, *stream_);
  {
    const NoHostMemory none(kAll);
    for (StorageRef& part : parts) part.reset();
    whole = memory_.Allocate(8 << 20, *stream_);
    whole.reset();
    // The block cannot be cut, so all of it is used.
    StorageRef large = memory_.Allocate(3 << 20, *stream_);
  }
  EXPECT_EQ(memory_.Stats().allocated, 0);
  EXPECT_EQ(memory_.Stats().raw_allocations, 1);
}

TEST_F(OutOfMemoryTest, AnAllocationSaysSo) {
  const auto allocate = [this](std::size_t bytes) {
    const NoHostMemory none(1);
    StorageRef block = memory_.Allocate(bytes, *stream_);
  };
  EXPECT_THROW(allocate(100), OutOfMemoryError) << "the first on this stream";
  EXPECT_THROW(allocate(100), OutOfMemoryError);
  EXPECT_THROW(allocate(100 << 20), OutOfMemoryError);
  memory_.Allocate(100, *stream_);  // allocation works again
  EXPECT_EQ(memory_.Stats().allocated, 0);
  memory_.EmptyCache();
  EXPECT_EQ(memory_.Stats().reserved, 0);
}

TEST_F(OutOfMemoryTest, FreeBlocksAreKeptIfTheirStreamCannotBeWaitedFor) {
  StreamStall stall(*stream_);
  memory_.Allocate(100, *stream_).reset();
  {
    const NoHostMemory none(kAll);
    memory_.EmptyCache();
  }
  EXPECT_GE(memory_.Stats().reserved, 100);
  stall.Release();
  memory_.EmptyCache();
  EXPECT_EQ(memory_.Stats().reserved, 0);
}

TEST_F(OutOfMemoryTest, WhatCannotBeKeptUntilPassedIsKeptForEver) {
  // Static, so that LeakSanitizer sees it.
  static std::shared_ptr<int>* const kept =
      new std::shared_ptr<int>(std::make_shared<int>(1));
  const std::weak_ptr<int> seen = *kept;
  std::shared_ptr<int> passed_on = *kept;
  {
    const NoHostMemory none(kAll);
    KeepUntilPassed(std::move(passed_on), {stream_.get()});
  }
  KeepUntilPassed(std::make_shared<int>(2), {});
  EXPECT_EQ(seen.use_count(), 2);
}

// The resident bytes of the process, without files.
std::int64_t ResidentBytes() {
  std::int64_t all = 0, resident = 0, files = 0;
  std::ifstream("/proc/self/statm") >> all >> resident >> files;
  return (resident - files) * sysconf(_SC_PAGESIZE);
}

TEST_F(OutOfMemoryTest, EmptyCacheGivesBackTheBookkeepingToo) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps what is freed";
#endif
  constexpr std::size_t kBlocks = 300'000;
  const std::int64_t before = ResidentBytes();
  std::vector<StorageRef> blocks(kBlocks);
  for (StorageRef& block : blocks) block = memory_.Allocate(4, *stream_);
  // Lies behind the blocks, so that the C library cannot shrink its heap.
  const std::unique_ptr<int> last = std::make_unique<int>(1);
  std::vector<StorageRef>().swap(blocks);
  EXPECT_GT(ResidentBytes() - before, std::int64_t{200} * kBlocks);
  memory_.EmptyCache();
  EXPECT_LT(ResidentBytes() - before, std::int64_t{20} * kBlocks);
}

}  // namespace
}  // namespace d2l
