// The CUDA back end of a binary that has one: finds the GPUs, and describes
// them or says why there are none. The work on them is in gpu_backend.h.

#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/device/backend.h"
#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/cuda_errors.h"
#include "common/device/cuda/gpu_backend.h"
#include "common/device/nvtx_range.h"

namespace d2l {
namespace {

// CUDA keeps an error in the thread until it is cleared; later calls must not
// find it.
bool Succeeded(cudaError_t error) {
  if (error == cudaSuccess) return true;
  cudaGetLastError();
  return false;
}

// The number of entries in the folder; negative if it cannot be read.
int CountEntries(const char* folder) {
  std::error_code error;
  int count = 0;
  for (std::filesystem::directory_iterator it(folder, error), end;
       !error && it != end; it.increment(error)) {
    ++count;
  }
  return error ? -1 : count;
}

// Sets variables that CUDA reads at its start; the user's values are kept.
void ConfigureCuda() {
  // By default a kernel is loaded at its first launch. That may wait for all of
  // the GPU's streams, so for ever if one is stalled (StreamStall), and its
  // time would count as the operation's. Loading all at once costs a longer
  // start, and memory for every kernel, including cuBLAS's once that is loaded.
  setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
  // Streams beyond this number share a hardware queue, and wait for each other
  // though nothing orders them. The default is 8, the maximum 32.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
}

CudaProbe ProbeCuda() {
  CudaProbe probe;
  const cudaError_t error = cudaGetDeviceCount(&probe.device_count);
  probe.error = static_cast<int>(error);
  if (!Succeeded(error)) {
    probe.device_count = 0;
    probe.error_text =
        absl::StrCat(cudaGetErrorName(error), ": ", cudaGetErrorString(error));
  }
  // Without a driver both versions are 0, and there is no error.
  if (!Succeeded(cudaDriverGetVersion(&probe.driver_version))) {
    probe.driver_version = 0;
  }
  if (!Succeeded(cudaRuntimeGetVersion(&probe.runtime_version))) {
    probe.runtime_version = CUDART_VERSION;
  }
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr) probe.visible_devices = visible;
  probe.gpus_in_proc = CountEntries("/proc/driver/nvidia/gpus");
  std::string kernel;
  std::getline(std::ifstream("/proc/sys/kernel/osrelease"), kernel);
  probe.wsl = kernel.find("icrosoft") != std::string::npos;
  std::error_code ignored;
  probe.wsl_has_driver =
      std::filesystem::exists("/usr/lib/wsl/lib/libcuda.so.1", ignored);
  return probe;
}

DeviceInventory ListDevices() {
  DeviceInventory inventory;
  ConfigureCuda();
  const CudaProbe probe = ProbeCuda();
  inventory.why_none = WhyNoCuda(probe);
  inventory.renumbered_by = RenumberedBy(probe.visible_devices);
  for (int i = 0; i < probe.device_count; ++i) {
    cudaDeviceProp properties;
    PhysicalDevice device;
    if (Succeeded(cudaGetDeviceProperties(&properties, i))) {
      device.name = properties.name;
      device.memory_bytes =
          static_cast<std::int64_t>(properties.totalGlobalMem);
      device.cores = properties.multiProcessorCount;
      device.capability =
          absl::StrFormat("sm_%d%d", properties.major, properties.minor);
    } else {
      // This GPU keeps its number, so that those after it keep theirs.
      device.name = "a GPU that does not answer";
    }
    inventory.devices.push_back(device);
  }
  return inventory;
}

// NVTX is header-only; it calls a tool that has been injected into the program.
class NvtxMarker final : public RangeMarker {
 public:
  explicit NvtxMarker(nvtxDomainHandle_t domain) : domain_(domain) {}

  void Push(const char* name) override {
    nvtxEventAttributes_t range = {};
    range.version = NVTX_VERSION;
    range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    range.messageType = NVTX_MESSAGE_TYPE_ASCII;
    range.message.ascii = name;
    nvtxDomainRangePushEx(domain_, &range);
  }
  void Pop() override { nvtxDomainRangePop(domain_); }

 private:
  const nvtxDomainHandle_t domain_;
};

}  // namespace

bool MarkRangesForNvtx() {
  // The domain is null without a tool.
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("d2l");
  if (domain == nullptr) return false;
  SetRangeMarker(new NvtxMarker(domain));  // as long as the process
  return true;
}

Backend& CudaBackend() {
  static GpuBackend& backend = [&]() -> GpuBackend& {
    MarkRangesForNvtx();
    return *new GpuBackend(RealCudaApi(), ListDevices(), BuiltArchs());
  }();
  return backend;
}

}  // namespace d2l
