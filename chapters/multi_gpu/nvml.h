// The machine's GPUs as nvidia-smi shows them, asked of NVIDIA's management
// library (NVML), which comes with the driver.
//
//   absl::StatusOr<std::vector<GpuState>> gpus = NvmlGpus();
//   if (!gpus.ok()) std::cerr << gpus.status().message() << "\n";
//
// The first call loads the library, so a program starts without it. NVML shows
// all GPUs, with numbers of its own: CUDA_VISIBLE_DEVICES does not hide
// or renumber them. Thread-safe.

#ifndef D2L_CHAPTERS_MULTI_GPU_NVML_H_
#define D2L_CHAPTERS_MULTI_GPU_NVML_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace d2l::multi_gpu {

struct GpuProcess {
  std::int64_t pid = 0;
  std::int64_t memory_bytes = -1;  // -1: the driver does not tell
};

struct GpuState {
  std::string name;
  std::int64_t used_bytes = 0;
  std::int64_t total_bytes = 0;
  int utilization = -1;  // percent of the last moments; -1: not known
  std::vector<GpuProcess> processes;
};

// In NVML's order. NotFound if there is no such library; Internal, with its
// number, for an error of its functions.
absl::StatusOr<std::vector<GpuState>> NvmlGpus(
    const std::string& library = "libnvidia-ml.so.1");

}  // namespace d2l::multi_gpu

#endif  // D2L_CHAPTERS_MULTI_GPU_NVML_H_
