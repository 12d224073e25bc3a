// The CUDA back end on any machine, with or without a GPU.

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "common/device/backend.h"
#include "common/device/cuda/cuda_errors.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/stream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::MatchesRegex;

// The numbers of cuda_errors.h.
static_assert(kCudaSuccess == cudaSuccess);
static_assert(kCudaInvalidValue == cudaErrorInvalidValue);
static_assert(kCudaMemoryAllocation == cudaErrorMemoryAllocation);
static_assert(kCudaCudartUnloading == cudaErrorCudartUnloading);
static_assert(kCudaEccUncorrectable == cudaErrorECCUncorrectable);
static_assert(kCudaInsufficientDriver == cudaErrorInsufficientDriver);
static_assert(kCudaNoDevice == cudaErrorNoDevice);
static_assert(kCudaNoKernelImageForDevice == cudaErrorNoKernelImageForDevice);
static_assert(kCudaNvlinkUncorrectable == cudaErrorNvlinkUncorrectable);
static_assert(kCudaUnsupportedPtxVersion == cudaErrorUnsupportedPtxVersion);
static_assert(kCudaInvalidResourceHandle == cudaErrorInvalidResourceHandle);
static_assert(kCudaIllegalState == cudaErrorIllegalState);
static_assert(kCudaNotReady == cudaErrorNotReady);
static_assert(kCudaIllegalAddress == cudaErrorIllegalAddress);
static_assert(kCudaLaunchOutOfResources == cudaErrorLaunchOutOfResources);
static_assert(kCudaLaunchTimeout == cudaErrorLaunchTimeout);
static_assert(kCudaContextIsDestroyed == cudaErrorContextIsDestroyed);
static_assert(kCudaAssert == cudaErrorAssert);
static_assert(kCudaHardwareStackError == cudaErrorHardwareStackError);
static_assert(kCudaIllegalInstruction == cudaErrorIllegalInstruction);
static_assert(kCudaMisalignedAddress == cudaErrorMisalignedAddress);
static_assert(kCudaInvalidAddressSpace == cudaErrorInvalidAddressSpace);
static_assert(kCudaInvalidPc == cudaErrorInvalidPc);
static_assert(kCudaLaunchFailure == cudaErrorLaunchFailure);
static_assert(kCudaNotPermitted == cudaErrorNotPermitted);
static_assert(kCudaMpsClientTerminated == cudaErrorMpsClientTerminated);
static_assert(kCudaStreamCaptureUnsupported ==
              cudaErrorStreamCaptureUnsupported);
static_assert(kCudaStreamCaptureInvalidated ==
              cudaErrorStreamCaptureInvalidated);
static_assert(kCudaStreamCaptureIsolation == cudaErrorStreamCaptureIsolation);
static_assert(kCudaCapturedEvent == cudaErrorCapturedEvent);
static_assert(kCudaExternalDevice == cudaErrorExternalDevice);
#if CUDART_VERSION >= 13000
static_assert(kCudaContained == cudaErrorContained);
static_assert(kCudaTensorMemoryLeak == cudaErrorTensorMemoryLeak);
#endif
static_assert(kCudaUnknown == cudaErrorUnknown);

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
