#include "common/exercise/kernel.h"

namespace d2l {
namespace {

namespace first_block_only {
__global__ void Axpy(float a, const float* x, float* y) {
  const int i = threadIdx.x;
  y[i] = a * x[i] + y[i];
}
}  // namespace first_block_only

namespace one_thread_for_all {
__global__ void Axpy(float a, const float* x, float* y) {
  if (blockIdx.x > 0 || threadIdx.x > 0) return;
  for (int i = 0; i < static_cast<int>(gridDim.x * blockDim.x); ++i) {
    y[i] = a * x[i] + y[i];
  }
}
}  // namespace one_thread_for_all

namespace neighbours_apart {
__global__ void Axpy(float a, const float* x, float* y) {
  const int i = threadIdx.x * gridDim.x + blockIdx.x;
  y[i] = a * x[i] + y[i];
}
}  // namespace neighbours_apart

namespace counts_from_1 {
__global__ void Axpy(float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x + 1;
  y[i] = a * x[i] + y[i];
}
}  // namespace counts_from_1

namespace loses_y {
__global__ void Axpy(float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = a * x[i];
}
}  // namespace loses_y

namespace always_the_same_a {
__global__ void Axpy(float, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = 1.5f * x[i] + y[i];
}
}  // namespace always_the_same_a

D2L_MISTAKE("kernel_map", first_block_only, Axpy, "blockIdx.x says which");
D2L_MISTAKE("kernel_map", one_thread_for_all, Axpy, "1.0 of the 32 threads");
D2L_MISTAKE("kernel_map", neighbours_apart, Axpy,
            "Threads that are neighbours");
D2L_MISTAKE("kernel_map", counts_from_1, Axpy, "begin at 0");
D2L_MISTAKE("kernel_map", loses_y, Axpy, "what was there");
D2L_MISTAKE("kernel_map", always_the_same_a, Axpy, "With another a,");

}  // namespace
}  // namespace d2l
