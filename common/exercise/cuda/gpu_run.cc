#include "common/exercise/gpu_run.h"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace d2l {
namespace {

dim3 AsDim3(const std::array<unsigned, 3>& size) {
  return {size[0], size[1], size[2]};
}

// CUDA keeps an error in the thread until it is cleared; later calls must not
// find it.
struct ErrorCleared {
  ~ErrorCleared() { cudaGetLastError(); }
};

}  // namespace

std::string RunOnGpu(GpuRun& run) {
  const ErrorCleared at_the_end;
  cudaFuncAttributes attributes;
  cudaDeviceProp gpu;
  if (cudaFuncGetAttributes(&attributes, run.kernel) != cudaSuccess ||
      cudaGetDeviceProperties(&gpu, 0) != cudaSuccess) {
    return "";
  }
  const auto require = [&gpu](cudaError_t error) {
    if (error == cudaSuccess) return;
    throw std::runtime_error(std::string(gpu.name) + ": " +
                             cudaGetErrorString(error));
  };
  std::vector<std::unique_ptr<char, cudaError_t (*)(void*)>> memory;
  for (const GpuRun::Array& array : run.arrays) {
    void* data = nullptr;
    require(cudaMalloc(&data, array.bytes.size()));
    memory.emplace_back(static_cast<char*>(data), cudaFree);
    require(cudaMemcpy(data, array.bytes.data(), array.bytes.size(),
                       cudaMemcpyHostToDevice));
  }
  std::vector<void*> arguments;
  for (GpuRun::Argument& argument : run.arguments) {
    const auto* const at = reinterpret_cast<const char*>(argument.bits);
    for (std::size_t i = 0; argument.is_pointer && i < memory.size(); ++i) {
      const GpuRun::Array& array = run.arrays[i];
      if (at < array.begin || at > array.begin + array.bytes.size()) continue;
      argument.bits =
          reinterpret_cast<std::uint64_t>(memory[i].get() + (at - array.begin));
      break;
    }
    arguments.push_back(&argument.bits);
  }
  require(cudaLaunchKernel(run.kernel, AsDim3(run.blocks), AsDim3(run.threads),
                           arguments.data(), kDynamicShared,
                           /*stream=*/nullptr));
  require(cudaDeviceSynchronize());
  for (std::size_t i = 0; i < memory.size(); ++i) {
    std::vector<char>& bytes = run.arrays[i].bytes;
    require(cudaMemcpy(bytes.data(), memory[i].get(), bytes.size(),
                       cudaMemcpyDeviceToHost));
  }
  return gpu.name;
}

}  // namespace d2l
