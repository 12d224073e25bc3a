// The device table of a running program. It is made once in a process;
// exit_test.cc tests other ways to start.

#include "common/device/device_table.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/source_location.h"
#include "common/device/backend.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/device.h"
#include "common/device/failure.h"
#include "common/device/stream.h"
#include "common/device/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::HasSubstr;

const Device kCpu0(DeviceType::kCpu, 0);
const Device kCpu1(DeviceType::kCpu, 1);
const Device kAbsent(DeviceType::kCpu, 63);

TEST(InitializeDevicesTest, RefusesBoundsThatMakeNoSense) {
  for (const std::int64_t operations :
       {std::int64_t{0}, std::int64_t{-1}, StreamOptions::kUnbounded + 1,
        std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    DeviceOptions options;
    options.stream.max_queued_operations = operations;
    const absl::Status status = InitializeDevices("auto", options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    const std::string message(status.message());
    EXPECT_THAT(message, HasSubstr(std::to_string(operations)));
    EXPECT_THAT(message, HasSubstr("it must be 1 to 4194304"));
    EXPECT_THAT(message, HasSubstr("the default is 4096"));
  }
  for (const std::int64_t bytes : {0, -1}) {
    DeviceOptions options;
    options.max_bytes_in_flight = bytes;
    const absl::Status status = InitializeDevices("auto", options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("must be at least 1. The default is 1073741824"));
  }
}

TEST(InitializeDevicesTest, TheTableIsMadeOnce) {
  const absl::Status status = InitializeDevices("cpu:0");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("already made"));
  EXPECT_GE(Devices().size(), 3u);
}

TEST(DeviceTableTest, HasWhatWasAskedFor) {
  EXPECT_TRUE(HasDevice(kCpu0));
  EXPECT_TRUE(HasDevice(kCpu1));
  for (const DeviceInfo& info : Devices()) {
    EXPECT_TRUE(HasDevice(info.device));
    EXPECT_EQ(GetDeviceInfo(info.device).Describe(), info.Describe());
    EXPECT_EQ(DefaultStream(info.device).device(), info.device);
    EXPECT_EQ(DefaultStream(info.device).name(), info.device.ToString());
    EXPECT_GT(info.memory_bytes, 0);
    EXPECT_GE(info.cores, 1);
  }
  EXPECT_NE(&DefaultStream(kCpu0), &DefaultStream(kCpu1));
  EXPECT_NE(&Memory(kCpu0), &Memory(kCpu1));
  EXPECT_NE(&Memory(kCpu0), &PinnedMemory(kCpu0));
}

TEST(DeviceTableTest, AbsentDevicesThrowAndThePresentOnesAreListed) {
  const std::vector<std::function<void(Device)>> calls = {
      [](Device d) { GetDeviceInfo(d); }, [](Device d) { DefaultStream(d); },
      [](Device d) { NewStream(d); },     [](Device d) { Memory(d); },
      [](Device d) { PinnedMemory(d); },  [](Device d) { CurrentStream(d); },
      [](Device d) { Synchronize(d); },
  };
  for (const Device device :
       {kAbsent, Device(DeviceType::kCpu, -1), Device(DeviceType::kCpu, 64),
        Device(DeviceType::kCuda, 1'000'000),
        Device(DeviceType::kCuda, std::numeric_limits<int>::min())}) {
    EXPECT_FALSE(HasDevice(device));
    for (const auto& call : calls) {
      try {
        call(device);
        ADD_FAILURE() << "no error for " << device;
      } catch (const std::invalid_argument& error) {
        EXPECT_THAT(error.what(), HasSubstr("[device] " + device.ToString() +
                                            " is not in the device table"));
        EXPECT_THAT(error.what(), HasSubstr("which has "));
        EXPECT_THAT(error.what(), HasSubstr("cpu:0, cpu:1"));
        EXPECT_THAT(error.what(), HasSubstr("--devices"));
        EXPECT_THAT(error.what(), HasSubstr("InitializeDevices"));
      }
    }
  }
}

TEST(DeviceTableTest, FurtherStreamsAreNumberedAndIndependent) {
  Stream& a = NewStream(kCpu1);
  Stream& b = NewStream(kCpu1);
  EXPECT_GE(a.index(), 1);
  EXPECT_EQ(b.index(), a.index() + 1);
  EXPECT_EQ(a.name(), "cpu:1/" + std::to_string(a.index()));
  StreamStall stall(a);
  b.Synchronize();
  DefaultStream(kCpu1).Synchronize();
}

TEST(DeviceTableTest, TheStreamForReadingIsOneAndBehindNoOther) {
  Stream& read = ReadStream(kCpu1);
  EXPECT_EQ(&ReadStream(kCpu1), &read);
  EXPECT_NE(&ReadStream(kCpu0), &read);
  EXPECT_NE(&DefaultStream(kCpu1), &read);
  StreamStall stall(DefaultStream(kCpu1));
  read.Synchronize();
}

TEST(DeviceTableTest, AFurtherStreamMayHaveABoundOfItsOwn) {
  const auto callbacks_fit = [](Stream& stream, int count) {
    const StreamStall stall(stream);
    for (int i = 0; i < count; ++i) stream.HostCallback([] {});
    return stream.QueuedOperations() - 1;
  };
  const auto most = StreamOptions().max_queued_operations;
  EXPECT_EQ(callbacks_fit(NewStream(kCpu1, 2 * most), 2 * most - 1),
            2 * most - 1);

  Stream& narrow = NewStream(kCpu1, 2);
  std::atomic<bool> third{false};
  StreamStall stall(narrow);
  std::thread producer([&] {
    for (int i = 0; i < 2; ++i) narrow.HostCallback([] {});
    third = true;
  });
  while (narrow.QueuedOperations() < 3) std::this_thread::yield();
  EXPECT_FALSE(third) << "there is room for the held-up one and one more";
  stall.Release();
  producer.join();
  narrow.Synchronize();

  for (const std::int64_t wrong :
       {std::int64_t{0}, std::int64_t{-1}, StreamOptions::kUnbounded + 1}) {
    EXPECT_THAT(ThrownText([&] { NewStream(kCpu1, wrong); }),
                HasSubstr(absl::StrCat("bound of ", wrong, " operations")));
  }
}

TEST(StreamGuardTest, Nests) {
  Stream& of_table = DefaultStream(kCpu0);
  Stream& a = NewStream(kCpu0);
  Stream& b = NewStream(kCpu0);
  Stream& of_other = NewStream(kCpu1);
  EXPECT_EQ(&CurrentStream(kCpu0), &of_table);
  {
    StreamGuard outer(a);
    EXPECT_EQ(&CurrentStream(kCpu0), &a);
    EXPECT_EQ(&CurrentStream(kCpu1), &DefaultStream(kCpu1));
    {
      StreamGuard inner(b);
      StreamGuard elsewhere(of_other);
      EXPECT_EQ(&CurrentStream(kCpu0), &b);
      EXPECT_EQ(&CurrentStream(kCpu1), &of_other);
      {
        StreamGuard back(of_table);
        EXPECT_EQ(&CurrentStream(kCpu0), &of_table);
      }
      EXPECT_EQ(&CurrentStream(kCpu0), &b);
    }
    EXPECT_EQ(&CurrentStream(kCpu0), &a);
    EXPECT_EQ(&CurrentStream(kCpu1), &DefaultStream(kCpu1));
  }
  EXPECT_EQ(&CurrentStream(kCpu0), &of_table);
}

TEST(StreamGuardTest, IsOfOneThread) {
  Stream& a = NewStream(kCpu0);
  StreamGuard guard(a);
  Stream* seen = nullptr;
  std::thread([&seen] { seen = &CurrentStream(kCpu0); }).join();
  EXPECT_EQ(seen, &DefaultStream(kCpu0));
  EXPECT_EQ(&CurrentStream(kCpu0), &a);
}

TEST(StreamGuardTest, IsLeftWhenSomethingThrows) {
  Stream& a = NewStream(kCpu0);
  try {
    StreamGuard guard(a);
    throw std::runtime_error("out");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(&CurrentStream(kCpu0), &DefaultStream(kCpu0));
}

TEST(StreamGuardTest, RefusesAStreamOfNoDeviceOfTheTable) {
  for (const int index : {63, 64, 1'000'000, -1}) {
    CpuStream stream(Device(DeviceType::kCpu, index), 0, StreamOptions());
    EXPECT_THROW(StreamGuard guard(stream), std::invalid_argument) << index;
  }
}

TEST(SynchronizeTest, WaitsForEveryStreamOfTheDevice) {
  Stream& a = NewStream(kCpu1);
  Stream& b = NewStream(kCpu1);
  std::vector<int> ran(3);
  StreamStall stall(b);
  DefaultStream(kCpu1).HostCallback([&ran] { ran[0] = 1; });
  a.HostCallback([&ran] { ran[1] = 1; });
  b.HostCallback([&ran] { ran[2] = 1; });
  std::future<void> waiting =
      std::async(std::launch::async, [] { Synchronize(kCpu1); });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(50)),
            std::future_status::timeout);
  stall.Release();
  waiting.get();
  EXPECT_EQ(ran, std::vector<int>({1, 1, 1}));
}

TEST(SynchronizeTest, ThrowsTheFailureOfTheFirstStreamThatHasOne) {
  Stream& a = NewStream(kCpu1);
  Stream& b = NewStream(kCpu1);
  bool ran = false;
  b.HostCallback([] { throw std::runtime_error("of b"); });
  a.HostCallback([] { throw std::runtime_error("of a"); });
  DefaultStream(kCpu1).HostCallback([&ran] { ran = true; });
  int line = 0;
  try {
    line = __LINE__ + 1;
    Synchronize(kCpu1);
    ADD_FAILURE() << "no error";
  } catch (const AsyncError& error) {
    EXPECT_EQ(error.failure().what, "of a");
    EXPECT_EQ(error.failure().stream, a.name());
    EXPECT_EQ(error.noticed_at().line(), line);
  }
  EXPECT_TRUE(ran);
  Synchronize(kCpu1);  // all is reported; nothing is left
  Synchronize(kCpu0);
}

TEST(RequireGpusTest, SaysWhatThereIs) {
  EXPECT_TRUE(RequireGpus(0).ok());
  const Device gpu(DeviceType::kCuda, 0);
  if (HasDevice(gpu) && GetDeviceInfo(gpu).kind != DeviceKind::kModelled) {
    EXPECT_TRUE(RequireGpus(1).ok());
  } else {
    const absl::Status status = RequireGpus(1);
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    const std::string message(status.message());
    EXPECT_THAT(message, HasSubstr(" The devices are "));
    EXPECT_THAT(message, HasSubstr("cpu:0 (virtual"));
    EXPECT_THAT(message, HasSubstr("cpu:2 (virtual"));
    const std::string& why_none = CudaBackend().Inventory().why_none;
    EXPECT_GT(why_none.size(), 20u);
    EXPECT_THAT(message, HasSubstr(why_none));
  }
  EXPECT_THAT(std::string(RequireGpus(1000).message()),
              HasSubstr("1000 GPUs required"));
}

TEST(TryGpuTest, FallsBackToTheCpu) {
  const Device gpu(DeviceType::kCuda, 0);
  EXPECT_EQ(TryGpu(), HasDevice(gpu) ? gpu : kCpu0);
  EXPECT_EQ(TryGpu(1000), kCpu0);
  EXPECT_EQ(TryGpu(-1), kCpu0);
}

}  // namespace
}  // namespace d2l
