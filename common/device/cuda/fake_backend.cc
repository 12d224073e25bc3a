// The CUDA back end of a test program that has a model of two GPUs.

#include <cstdint>

#include "common/device/backend.h"
#include "common/device/cuda/fake_cuda.h"
#include "common/device/cuda/gpu_backend.h"

namespace d2l {
namespace {

FakeCuda::Options TwoGpus() {
  FakeCuda::Options options;
  options.gpus = 2;
  // The tests of the contract hold up several streams at a time, with host
  // callbacks that wait.
  options.serial_host_functions = false;
  return options;
}

DeviceInventory ListDevices() {
  DeviceInventory inventory;
  for (int i = 0; i < TwoGpus().gpus; ++i) {
    PhysicalDevice device;
    device.name = "a model of a GPU";
    device.memory_bytes = static_cast<std::int64_t>(TwoGpus().memory_bytes);
    device.cores = 4;
    device.capability = "sm_90";
    inventory.devices.push_back(device);
  }
  return inventory;
}

}  // namespace

// For kernels/cuda's emulated kernels.
FakeCuda& FakeCudaOfBackend() {
  static FakeCuda& cuda = *new FakeCuda(TwoGpus());
  return cuda;
}

Backend& CudaBackend() {
  static GpuBackend& backend =
      *new GpuBackend(FakeCudaOfBackend(), ListDevices(), {900});
  return backend;
}

}  // namespace d2l
