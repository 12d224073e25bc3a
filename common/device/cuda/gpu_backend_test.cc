// The back end on a model of three GPUs.

#include "common/device/cuda/gpu_backend.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <ostream>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/device/cuda/cuda_errors.h"
#include "common/device/cuda/fake/fake_cuda.h"
#include "common/device/cuda/stream/cuda_stream.h"
#include "common/device/failure.h"
#include "common/device/memory/host_memory.h"
#include "common/device/memory/memory.h"
#include "common/device/op_label.h"
#include "common/device/stream_stall.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::HasSubstr;
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

// Ends the program if a test hangs.
class Watchdog {
 public:
  Watchdog() { alarm(60); }
  ~Watchdog() { alarm(0); }
};

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

// Copies from pinned memory to one GPU, to another, to a logical device on the
// first, and back, in the order of events.
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

// Tests the model: a host access to a GPU's memory must fail here, too.
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

TEST_F(GpuBackendTest, DevicesOnOneGpuEmptyEachOthersCache) {
  std::unique_ptr<Stream> streams[] = {Make(0, 0), Make(1, 0)};
  std::unique_ptr<DeviceMemory> memories[] = {MemoryOf(0, 0), MemoryOf(1, 0)};
  for (int i = 0; i < 4; ++i) {
    memories[i % 2]->Allocate(kMemory / 4 * 3, *streams[i % 2]).reset();
  }
  StorageRef kept = memories[0]->Allocate(kMemory / 4 * 3, *streams[0]);
  EXPECT_THROW(memories[1]->Allocate(kMemory / 2, *streams[1]),
               OutOfMemoryError);
}

TEST_F(GpuBackendTest, ALostGpuIsNotOutOfMemory) {
  std::unique_ptr<Stream> stream = Make(0, 0);
  std::unique_ptr<DeviceMemory> memory = MemoryOf(0, 0);
  std::unique_ptr<DeviceMemory> pinned =
      MemoryOf(0, 0, DeviceMemory::Kind::kPinned);
  const auto failure_of = [](const std::function<void()>& allocate) {
    try {
      allocate();
    } catch (const OutOfMemoryError& error) {
      return absl::StrCat("out of memory: ", error.what());
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("nothing thrown");
  };
  cuda_.FailNext("Allocate", kCudaIllegalAddress);
  EXPECT_EQ(
      failure_of([&] { memory->Allocate(100, *stream); }),
      "[memory] CUDA could not allocate memory: cudaErrorIllegalAddress: an "
      "illegal memory access was encountered");
  cuda_.FailNext("AllocatePinned", kCudaIllegalAddress);
  EXPECT_THAT(failure_of([&] { pinned->AllocatePinned(100); }),
              HasSubstr("[memory] CUDA could not allocate memory"));
  // If the stream knows which work was in flight, the error names it.
  std::promise<void> open;
  static_cast<CudaStream&>(*stream).Launch(
      OpLabel("scatter"), [&](const CudaLaunch& to) {
        cuda_.LaunchKernel(to.stream, [this, &open] {
          open.get_future().wait();
          cuda_.Crash(0, kCudaIllegalAddress);
        });
      });
  open.set_value();
  const std::string lost = failure_of([&] {
    for (int i = 0; i < 1000; ++i) memory->Allocate(100 + 64 * i, *stream);
  });
  EXPECT_THAT(lost, HasSubstr("scatter (operation 0"));
}

// How the loss of a GPU is noticed. `user` runs a kernel that loses it.
struct Finding {
  const char* name;
  std::function<void(Stream& home, Stream& user, DeviceMemory& memory)> find;
};

void PrintTo(const Finding& finding, std::ostream* out) {
  *out << finding.name;
}

class LostGpuTest : public testing::TestWithParam<Finding> {};

INSTANTIATE_TEST_SUITE_P(
    FoundBy, LostGpuTest,
    testing::Values(
        Finding{"Allocate",
                [](Stream& home, Stream&, DeviceMemory& memory) {
                  memory.Allocate(100, home);
                }},
        Finding{"EmptyCache",
                [](Stream&, Stream&, DeviceMemory& memory) {
                  memory.EmptyCache();
                }},
        Finding{"Query", [](Stream&, Stream& user,
                            DeviceMemory&) { EXPECT_TRUE(user.Query()); }},
        Finding{"Enqueue",
                [](Stream&, Stream& user, DeviceMemory&) {
                  EXPECT_THROW(user.HostCallback([] {}), AsyncError);
                }},
        Finding{"Record",
                [](Stream&, Stream& user, DeviceMemory&) { user.Record(); }},
        Finding{"WaitFor",
                [](Stream&, Stream& user, DeviceMemory&) { user.WaitFor(0); }},
        Finding{"Synchronize",
                [](Stream&, Stream& user, DeviceMemory&) {
                  EXPECT_THROW(user.Synchronize(), AsyncError);
                }},
        Finding{"KeepUntilPassed",
                [](Stream&, Stream&, DeviceMemory&) {
                  KeepUntilPassed(std::make_shared<int>(), {});
                }}),
    [](const testing::TestParamInfo<Finding>& info) {
      return std::string(info.param.name);
    });

// A queued callback holds the last handle of a block, and an object whose
// destructor calls KeepUntilPassed. The GPU is lost, so the thread that notices
// this destroys the callback: it must hold no lock then.
TEST_P(LostGpuTest, CallbacksGoWithoutLocks) {
  const Watchdog watchdog;
  FakeCuda cuda(ThreeGpus());
  GpuBackend backend(cuda, ListDevices(), {900});
  const Device device(DeviceType::kCuda, 0);
  const auto home = backend.NewStream(device, 0, 1, StreamOptions());
  const auto user = backend.NewStream(device, 0, 2, StreamOptions());
  DeviceMemory memory(backend, device, 0, DeviceMemory::Kind::kDevice,
                      std::int64_t{1} << 30);
  StorageRef in_flight = memory.Allocate(100, *home);
  StorageRef held = memory.Allocate(1000, *home);
  in_flight->RecordStream(*user);
  held->RecordStream(*user);
  std::promise<void> open, lost;
  static_cast<CudaStream&>(*user).Launch(OpLabel("scatter"),
                                         [&](const CudaLaunch& to) {
                                           cuda.LaunchKernel(to.stream, [&] {
                                             open.get_future().wait();
                                             cuda.Crash(0, kCudaIllegalAddress);
                                             lost.set_value();
                                           });
                                         });
  in_flight.reset();
  KeepUntilPassed(std::make_shared<int>(), {user.get()});
  bool gone = false;
  std::shared_ptr<void> kept(nullptr, [&gone](void*) {
    KeepUntilPassed(std::make_shared<int>(), {});
    gone = true;
  });
  user->HostCallback([held = std::move(held), kept = std::move(kept)] {});
  EXPECT_FALSE(gone);
  open.set_value();
  lost.get_future().wait();
  GetParam().find(*home, *user, memory);
  EXPECT_TRUE(gone);
  EXPECT_EQ(memory.Stats().allocated, 0);
  EXPECT_THROW(user->Synchronize(), AsyncError);
  // Nothing is kept for this GPU's events any more.
  KeepUntilPassed(std::make_shared<int>(), {});
  EXPECT_THAT(cuda.violations(), IsEmpty());
}

TEST_F(GpuBackendTest, ACallbackThatIsNotTakenMayHoldMemory) {
  const Watchdog watchdog;
  std::unique_ptr<Stream> home = Make(0, 0), user = Make(1, 0);
  std::unique_ptr<DeviceMemory> memory = MemoryOf(0, 0);
  StorageRef held = memory->Allocate(1000, *home);
  held->RecordStream(*user);
  cuda_.FailNext("LaunchHostFunction", kCudaMemoryAllocation);
  EXPECT_THROW(user->HostCallback([held = std::move(held)] {}), AsyncError);
  EXPECT_EQ(memory->Stats().allocated, 0);
  user->Synchronize();
}

// The message says what is queued, so it queries a stream in use by a thread.
TEST_F(GpuBackendTest, OutOfMemoryHoldsUpNobodyElse) {
  const Watchdog watchdog;
  StreamOptions options;
  options.max_queued_launches = 1 << 20;  // so that the call waits within CUDA
  std::unique_ptr<Stream> stream =
      backend_.NewStream(Device(DeviceType::kCuda, 0), 0, 0, options);
  std::unique_ptr<DeviceMemory> memory = MemoryOf(0, 0);
  memory->Allocate(1000, *stream).reset();
  StreamStall stall(*stream);
  std::future<void> producer = std::async(std::launch::async, [&] {
    for (std::size_t i = 0; i < FakeCuda::Options().most_queued; ++i) {
      static_cast<CudaStream&>(*stream).Launch(
          OpLabel("kernel"),
          [&](const CudaLaunch& to) { cuda_.LaunchKernel(to.stream, [] {}); });
    }
  });
  while (cuda_.waits_for_room() == 0) std::this_thread::yield();
  std::future<void> asked = std::async(std::launch::async, [&] {
    EXPECT_THROW(memory->Allocate(~std::size_t{0}, *stream), OutOfMemoryError);
  });
  // Time for the call to reach its query of the stream.
  EXPECT_EQ(asked.wait_for(std::chrono::milliseconds(50)),
            std::future_status::timeout);
  EXPECT_EQ(memory->Stats().allocated, 0);
  memory->Allocate(1000, *stream).reset();
  stall.Release();
  asked.get();
  producer.get();
}

TEST_F(GpuBackendTest, AThreadTakesPinnedMemoryOnAGpuInUse) {
  std::unique_ptr<Stream> stream = Make(0, 2);
  std::unique_ptr<DeviceMemory> pinned =
      MemoryOf(0, 2, DeviceMemory::Kind::kPinned);
  std::thread([&] {  // which has no current device
    pinned->AllocatePinned(100).reset();
    pinned->EmptyCache();
  })
      .join();
  EXPECT_THAT(cuda_.violations(), IsEmpty());
}

TEST_F(GpuBackendTest, AHostCallbackGetsWhatIsFreeAndNoMore) {
  std::unique_ptr<Stream> stream = Make(0, 0);
  std::unique_ptr<DeviceMemory> memory = MemoryOf(0, 0);
  memory->Allocate(1000, *stream).reset();
  bool given = false;
  stream->HostCallback([&] {
    given = memory->Allocate(1000, *stream)->data() != nullptr;
    EXPECT_EQ(backend_.FreeMemory(0), 0) << "CUDA cannot be asked";
  });
  stream->Synchronize();
  EXPECT_TRUE(given);
  stream->HostCallback([&] { memory->Allocate(5000, *stream); });
  try {
    stream->Synchronize();
    ADD_FAILURE() << "nothing thrown";
  } catch (const AsyncError& error) {
    EXPECT_THAT(error.what(), HasSubstr("so allocate before it"));
  }
}

}  // namespace
}  // namespace d2l
