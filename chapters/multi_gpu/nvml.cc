#include "chapters/multi_gpu/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace d2l::multi_gpu {
namespace {

// What is used of nvml.h, whose layouts NVIDIA does not change.
using NvmlDevice = void*;
struct NvmlMemory {
  unsigned long long total, free, used;  // NOLINT(google-runtime-int)
};
struct NvmlUtilization {
  unsigned int gpu, memory;
};
struct NvmlProcess {  // nvmlProcessInfo_v2_t
  unsigned int pid;
  unsigned long long memory;  // NOLINT(google-runtime-int)
  unsigned int gpu_instance, compute_instance;
};

constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kInsufficientSize = 7;
constexpr unsigned kMostProcesses = 256;

class Nvml {
 public:
  explicit Nvml(void* library) : library_(library) {}
  ~Nvml() {
    if (initialized_) Call<int (*)()>("nvmlShutdown");
    dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  absl::StatusOr<std::vector<GpuState>> Gpus() {
    initialized_ = Succeeds(Call<int (*)()>("nvmlInit_v2"), "nvmlInit_v2");
    unsigned int count = 0;
    if (initialized_) {
      Succeeds(Call<int (*)(unsigned int*)>("nvmlDeviceGetCount_v2", &count),
               "nvmlDeviceGetCount_v2");
    }
    std::vector<GpuState> gpus;
    for (unsigned int i = 0; i < count; ++i) gpus.push_back(Gpu(i));
    if (!error_.ok()) return error_;
    return gpus;
  }

 private:
  // -1 if the library has no such function.
  template <typename Function, typename... Args>
  int Call(const char* name, Args... args) {
    void* const found = dlsym(library_, name);
    if (found == nullptr) return -1;
    return reinterpret_cast<Function>(found)(args...);
  }

  bool Succeeds(int result, const char* name) {
    if (result == kSuccess) return true;
    if (error_.ok()) {
      error_ = absl::InternalError(
          result == -1
              ? absl::StrCat("the driver's NVML has no ", name)
              : absl::StrFormat("%s of NVML failed with %d; does nvidia-smi "
                                "work?",
                                name, result));
    }
    return false;
  }

  GpuState Gpu(unsigned int index) {
    GpuState gpu;
    NvmlDevice device = nullptr;
    if (!Succeeds(Call<int (*)(unsigned int, NvmlDevice*)>(
                      "nvmlDeviceGetHandleByIndex_v2", index, &device),
                  "nvmlDeviceGetHandleByIndex_v2")) {
      return gpu;
    }
    std::array<char, 96> name = {};
    Succeeds(Call<int (*)(NvmlDevice, char*, unsigned int)>(
                 "nvmlDeviceGetName", device, name.data(),
                 static_cast<unsigned int>(name.size() - 1)),
             "nvmlDeviceGetName");
    gpu.name = name.data();
    NvmlMemory memory = {};
    Succeeds(Call<int (*)(NvmlDevice, NvmlMemory*)>("nvmlDeviceGetMemoryInfo",
                                                    device, &memory),
             "nvmlDeviceGetMemoryInfo");
    gpu.used_bytes = static_cast<std::int64_t>(memory.used);
    gpu.total_bytes = static_cast<std::int64_t>(memory.total);
    NvmlUtilization utilization = {};
    const int known = Call<int (*)(NvmlDevice, NvmlUtilization*)>(
        "nvmlDeviceGetUtilizationRates", device, &utilization);
    // Not supported by a part of a GPU (MIG).
    if (known != kNotSupported &&
        Succeeds(known, "nvmlDeviceGetUtilizationRates")) {
      gpu.utilization = static_cast<int>(utilization.gpu);
    }
    gpu.processes = Processes(device);
    return gpu;
  }

  std::vector<GpuProcess> Processes(NvmlDevice device) {
    std::vector<NvmlProcess> found(kMostProcesses);
    unsigned int count = kMostProcesses;
    constexpr const char* kName = "nvmlDeviceGetComputeRunningProcesses_v3";
    const int result = Call<int (*)(NvmlDevice, unsigned int*, NvmlProcess*)>(
        kName, device, &count, found.data());
    std::vector<GpuProcess> processes;
    if (result == kNotSupported || result == -1) return processes;
    if (result != kInsufficientSize && !Succeeds(result, kName)) {
      return processes;
    }
    count = std::min(count, kMostProcesses);
    for (unsigned int i = 0; i < count; ++i) {
      const auto memory = static_cast<std::int64_t>(found[i].memory);
      processes.push_back({found[i].pid, std::max<std::int64_t>(memory, -1)});
    }
    return processes;
  }

  void* const library_;
  bool initialized_ = false;
  absl::Status error_;  // the first
};

}  // namespace

absl::StatusOr<std::vector<GpuState>> NvmlGpus(const std::string& library) {
  void* const loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        library, ", which comes with NVIDIA's driver, is not ", "there"));
  }
  return Nvml(loaded).Gpus();
}

}  // namespace d2l::multi_gpu
