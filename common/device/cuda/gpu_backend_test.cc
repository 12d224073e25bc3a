// The back end on a model of three GPUs.

#include "common/device/cuda/gpu_backend.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "common/base/timer.h"
#include "common/device/cuda/cuda_stream.h"
#include "common/device/cuda/cupti_timer.h"
#include "common/device/cuda/fake_cuda.h"
#include "common/device/cuda/fake_cupti.h"
#include "common/device/device_times.h"
#include "common/device/memory.h"
#include "common/device/op_label.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::IsEmpty;

constexpr int kGpus = 3;
constexpr std::size_t kMemory = std::size_t{1} << 20;

FakeCuda::Options ThreeGpus() {
  FakeCuda::Options options;
  options.gpus = kGpus;
  options.memory_bytes = kMemory;
  return options;
}

DeviceInventory ListDevices() {
  DeviceInventory inventory;
  for (int i = 0; i < kGpus; ++i) {
    inventory.devices.push_back({"a model of a GPU", kMemory, 4, "sm_90"});
  }
  return inventory;
}

class GpuBackendTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_THAT(cuda_.violations(), IsEmpty()); }

  std::unique_ptr<Stream> Make(int device, int gpu) {
    return backend_.NewStream(Device(DeviceType::kCuda, device), gpu, 0,
                              StreamOptions());
  }
  std::unique_ptr<DeviceMemory> MemoryOf(
      int device, int gpu,
      DeviceMemory::Kind kind = DeviceMemory::Kind::kDevice) {
    return std::make_unique<DeviceMemory>(backend_,
                                          Device(DeviceType::kCuda, device),
                                          gpu, kind, std::int64_t{1} << 30);
  }

  FakeCuda cuda_{ThreeGpus()};
  GpuBackend backend_{cuda_, ListDevices(), {900}};
};

TEST_F(GpuBackendTest, GpusInUseSeeEachOthersMemory) {
  using Pairs = std::set<std::pair<int, int>>;
  std::vector<std::unique_ptr<Stream>> streams;
  streams.push_back(Make(0, 0));
  EXPECT_THAT(cuda_.peers(), IsEmpty());
  streams.push_back(Make(1, 2));
  streams.push_back(Make(2, 2));
  streams.push_back(Make(0, 0));
  EXPECT_EQ(cuda_.peers(), Pairs({{0, 2}, {2, 0}})) << "each once";
  streams.push_back(Make(3, 1));
  EXPECT_EQ(cuda_.peers(),
            Pairs({{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}}));
}

TEST_F(GpuBackendTest, ThereIsNoSuchGpu) {
  EXPECT_THROW(Make(0, -1), std::invalid_argument);
  EXPECT_THROW(Make(0, kGpus), std::invalid_argument);
}

// From pinned memory to one GPU, to another, to a logical device on the first,
// and back, in the order of events.
TEST_F(GpuBackendTest, CopiesBetweenGpusComeInTheOrderOfTheirEvents) {
  constexpr std::size_t kBytes = 999;
  std::unique_ptr<Stream> streams[] = {Make(0, 0), Make(1, 1), Make(2, 0)};
  std::unique_ptr<DeviceMemory> pinned =
      MemoryOf(0, 0, DeviceMemory::Kind::kPinned);
  std::unique_ptr<DeviceMemory> memories[] = {MemoryOf(0, 0), MemoryOf(1, 1),
                                              MemoryOf(2, 0)};
  {
    StorageRef in = pinned->AllocatePinned(kBytes);
    StorageRef out = pinned->AllocatePinned(kBytes);
    StorageRef blocks[3];
    for (int i = 0; i < 3; ++i) {
      blocks[i] = memories[i]->Allocate(kBytes, *streams[i]);
    }
    for (int round = 0; round < 50; ++round) {
      std::memset(in->data(), round, kBytes);
      std::memset(out->data(), 255, kBytes);
      streams[0]->CopyAsync(blocks[0]->data(), in->data(), kBytes,
                            CopyKind::kHostToDevice);
      for (int i = 1; i < 3; ++i) {
        streams[i]->Wait(streams[i - 1]->Record());
        streams[i]->CopyAsync(blocks[i]->data(), blocks[i - 1]->data(), kBytes,
                              CopyKind::kDeviceToDevice);
      }
      streams[2]->CopyAsync(out->data(), blocks[2]->data(), kBytes,
                            CopyKind::kDeviceToHost);
      streams[0]->Wait(streams[2]->Record());
      streams[0]->Synchronize();
      EXPECT_EQ(std::memcmp(in->data(), out->data(), kBytes), 0) << round;
    }
  }
}

TEST_F(GpuBackendTest, OutOfMemoryGivesBackWhatIsCachedAndTriesAgain) {
  std::unique_ptr<Stream> stream = Make(0, 0);
  std::unique_ptr<DeviceMemory> memory = MemoryOf(0, 0);
  for (int i = 0; i < 3; ++i) {
    memory->Allocate(kMemory / 2, *stream).reset();
    memory->Allocate(kMemory / 4 * 3, *stream).reset();  // both do not fit
  }
  EXPECT_EQ(backend_.FreeMemory(0),
            static_cast<std::int64_t>(kMemory - kMemory / 4 * 3));
  EXPECT_EQ(backend_.FreeMemory(1), static_cast<std::int64_t>(kMemory));
  EXPECT_THROW(memory->Allocate(2 * kMemory, *stream), OutOfMemoryError);
}

// Of the model: a test that touches a GPU's memory must fail here, too.
TEST_F(GpuBackendTest, TheHostCannotTouchAGpusMemory) {
  if (!FakeCuda::GuardsMemory()) {
    GTEST_SKIP() << "this processor has no protection keys";
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::unique_ptr<Stream> stream = Make(0, 0);
  std::unique_ptr<DeviceMemory> memory = MemoryOf(0, 0);
  StorageRef block = memory->Allocate(4, *stream);
  auto* const data = static_cast<volatile char*>(block->data());
  EXPECT_DEATH(*data = 1, "");
  EXPECT_DEATH(
      {
        stream->HostCallback([data] { *data = 1; });
        stream->Synchronize();
      },
      "");
  EXPECT_FALSE(cuda_.IsReachable("on the host", 1));
  EXPECT_TRUE(cuda_.IsReachable(block->data(), 4));
}

TEST_F(GpuBackendTest, MemoryCanBeAskedForInAHostCallback) {
  std::unique_ptr<Stream> stream = Make(0, 0);
  std::unique_ptr<DeviceMemory> memory = MemoryOf(0, 0);
  void* data = nullptr;
  std::int64_t free = 0;
  stream->HostCallback([&] {
    data = memory->Allocate(1000, *stream)->data();
    free = backend_.FreeMemory(0);
  });
  stream->Synchronize();
  EXPECT_NE(data, nullptr);
  EXPECT_LT(free, static_cast<std::int64_t>(kMemory));
}

TEST_F(GpuBackendTest, TakesTimesWithCuptiIfThereIsOne) {
  EXPECT_EQ(backend_.BeginTiming(), nullptr);
  FakeCupti cupti;
  GpuBackend none(cuda_, DeviceInventory(), {900}, &cupti);
  EXPECT_EQ(none.BeginTiming(), nullptr) << "no GPU, so CUDA is left alone";
  EXPECT_EQ(cupti.loads(), 0);

  GpuBackend with(cuda_, ListDevices(), {900}, &cupti);
  const std::unique_ptr<Stream> stream =
      with.NewStream(Device(DeviceType::kCuda, 0), 2, 0, StreamOptions());
  const std::shared_ptr<DeviceTimes> times = with.BeginTiming();
  ASSERT_NE(times, nullptr);
  OpStamps stamps;
  stamps.begin = OpStamps::kOptional;
  OpLabel label("op");
  label.set_stamps(&stamps);
  const std::int64_t launched = NowNanos();
  const EnqueuedOp op = {stream.get(),
                         static_cast<CudaStream&>(*stream).Launch(
                             label, [&](const CudaLaunch& to) {
                               const std::uint32_t call = cupti.Call();
                               cuda_.LaunchKernel(to.stream, [&cupti, call] {
                                 const std::int64_t now = NowNanos();
                                 cupti.Work(call, now, now);
                               });
                             })};
  stream->WaitFor(op.number);
  const std::int64_t done = NowNanos();
  times->Collect({&op, 1});
  const FoundTime time = times->Find(op);
  EXPECT_EQ(time.why_not, "");
  EXPECT_GE(time.begin, launched - CuptiTimer::kSlackNanos);
  EXPECT_LE(time.end, done + CuptiTimer::kSlackNanos);
}

}  // namespace
}  // namespace d2l
