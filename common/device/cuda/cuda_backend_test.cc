// The CUDA back end on whatever machine this is, with or without a GPU.

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "common/device/backend.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/stream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::MatchesRegex;

TEST(CudaBackendTest, ListsItsDevicesOrSaysWhyThereAreNone) {
  const DeviceInventory& inventory = CudaBackend().Inventory();
  EXPECT_EQ(&inventory, &CudaBackend().Inventory()) << "found out once";
  EXPECT_EQ(inventory.devices.empty(), !inventory.why_none.empty());
  if (inventory.devices.empty()) {
    EXPECT_THAT(inventory.why_none, MatchesRegex("[A-Z].*\\."));
  }
  for (const PhysicalDevice& device : inventory.devices) {
    EXPECT_NE(device.name, "");
    EXPECT_GT(device.memory_bytes, 0);
    EXPECT_GT(device.cores, 0);
    EXPECT_THAT(device.capability, MatchesRegex("sm_[0-9]+"));
  }
}

TEST(CudaBackendTest, LoadsKernelsBeforeTheyAreNeeded) {
  CudaBackend();
  EXPECT_STREQ(std::getenv("CUDA_MODULE_LOADING"), "EAGER");
  EXPECT_STREQ(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
}

TEST(CudaBackendTest, MakesStreamsWhereThereIsAGpu) {
  const Device cuda0(DeviceType::kCuda, 0);
  if (CudaBackend().Inventory().devices.empty()) {
    EXPECT_THROW(CudaBackend().NewStream(cuda0, 0, 0, StreamOptions()),
                 std::invalid_argument);
    EXPECT_THROW(CudaBackend().Allocate(0, 100), std::runtime_error);
    EXPECT_EQ(CudaBackend().FreeMemory(0), 0);
    return;
  }
  std::unique_ptr<Stream> stream =
      CudaBackend().NewStream(cuda0, 0, 0, StreamOptions());
  bool ran = false;
  stream->HostCallback([&ran] { ran = true; });
  stream->Synchronize();
  EXPECT_TRUE(ran);
}

TEST(CudaBackendTest, TheDeviceTableFallsBackToTheCpu) {
  const DeviceInventory& inventory = CudaBackend().Inventory();
  if (!inventory.devices.empty()) GTEST_SKIP() << "there is a GPU";
  const absl::Status asked = InitializeDevices("cuda:0");
  ASSERT_FALSE(asked.ok());
  EXPECT_EQ(std::string(asked.message()),
            "cuda:0 asked for. " + inventory.why_none);
  const absl::Status status = InitializeDevices("auto");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_FALSE(HasDevice(Device(DeviceType::kCuda, 0)));
  EXPECT_TRUE(HasDevice(Device(DeviceType::kCpu, 1)));
}

}  // namespace
}  // namespace d2l
