// The CUDA back end of a program that has models of two GPUs.

#include "common/device/cuda/fake/fake_backend.h"

#include <cstdint>

#include "common/device/backend.h"
#include "common/device/cuda/gpu_backend.h"

namespace d2l {
namespace {

FakeCuda::Options TwoGpus() {
  FakeCuda::Options options;
  options.gpus = 2;
  return options;
}

DeviceInventory ListDevices() {
  DeviceInventory inventory;
  inventory.modelled = true;
  inventory.why_none =
      "This program was built for tests: its GPUs are models, on the CPU. "
      "Rebuild with --config=cuda.";
  for (int i = 0; i < TwoGpus().gpus; ++i) {
    PhysicalDevice device;
    device.name = "a model of a GPU, on the CPU";
    device.memory_bytes = static_cast<std::int64_t>(TwoGpus().memory_bytes);
    device.cores = 4;
    device.capability = "sm_90";
    inventory.devices.push_back(device);
  }
  return inventory;
}

}  // namespace

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
