// GpuRun: one launch of a learner's kernel on a GPU, as compiled by nvcc, on
// arrays that are in host memory before and after.
//
//   GpuRun run;
//   run.blocks = {4, 1, 1};
//   …
//   const std::string gpu = GpuKernels().at(file).run(run);
//
// In builds with --config=cuda each file of a kernel is compiled twice: for the
// check of kernels, and by nvcc (exercise.bzl), whose object registers itself
// here. No CUDA headers. For one thread.

#ifndef D2L_COMMON_EXERCISE_GPU_RUN_H_
#define D2L_COMMON_EXERCISE_GPU_RUN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace d2l {

// The bytes of a launch's `extern __shared__` arrays.
inline constexpr std::size_t kDynamicShared = 16 << 10;

struct GpuRun {
  struct Array {
    char* begin;              // on the host
    std::vector<char> bytes;  // before the kernel, then after it
  };
  // The bytes of a parameter; a pointer is an address within an array.
  struct Argument {
    std::uint64_t bits = 0;
    bool is_pointer = false;
  };
  const void* kernel = nullptr;  // nvcc's address of it
  std::array<unsigned, 3> blocks, threads;
  std::vector<Array> arrays;
  std::vector<Argument> arguments;
};

struct GpuKernel {
  const void* kernel = nullptr;
  std::string (*run)(GpuRun& run) = nullptr;
};

// The kernels by their files; empty in builds without CUDA.
inline std::map<std::string, GpuKernel>& GpuKernels() {
  static auto& kernels = *new std::map<std::string, GpuKernel>;
  return kernels;
}

// Runs the kernel and returns the name of the first GPU. Returns "", and runs
// nothing, if the kernel is compiled for none of the GPUs. Throws
// std::runtime_error if the GPU reports an error. In cuda/gpu_run.cc.
std::string RunOnGpu(GpuRun& run);

}  // namespace d2l

#endif  // D2L_COMMON_EXERCISE_GPU_RUN_H_
