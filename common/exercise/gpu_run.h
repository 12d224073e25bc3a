// GpuRun: one launch of a learner's kernel on a GPU, as nvcc has compiled it,
// on arrays that are in host memory before and after.
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
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace d2l {

struct GpuRun {
  struct Array {
    char* begin;              // on the host
    std::vector<char> bytes;  // before the kernel, then behind it
  };
  // The bytes of a parameter; of a pointer it is an address within an array.
  struct Argument {
    std::uint64_t bits = 0;
    bool is_pointer = false;
  };
  const void* kernel = nullptr;  // as nvcc knows it
  std::array<unsigned, 3> blocks, threads;
  std::vector<Array> arrays;
  std::vector<Argument> arguments;
};

struct GpuKernel {
  const void* kernel = nullptr;
  std::string (*run)(GpuRun& run) = nullptr;
};

// By the file that the kernel stands in; empty in builds without CUDA.
inline std::map<std::string, GpuKernel>& GpuKernels() {
  static auto& kernels = *new std::map<std::string, GpuKernel>;
  return kernels;
}

// Returns the name of the first GPU; "", and runs nothing, if there is none
// for which the kernel is compiled. Throws std::runtime_error if the GPU
// reports an error. In cuda/gpu_run.cc.
std::string RunOnGpu(GpuRun& run);

}  // namespace d2l

#endif  // D2L_COMMON_EXERCISE_GPU_RUN_H_
