#include "common/exercise/kernel.h"

namespace d2l {
namespace {

namespace no_guard {
__global__ void Axpy(float a, const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = a * x[i] + y[i];
}
}  // namespace no_guard

namespace one_too_many {
__global__ void Axpy(float a, const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) y[i] = a * x[i] + y[i];
}
}  // namespace one_too_many

namespace last_number_missing {
__global__ void Axpy(float a, const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n - 1) y[i] = a * x[i] + y[i];
}
}  // namespace last_number_missing

namespace whole_blocks_only {
__global__ void Axpy(float a, const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int end = (blockIdx.x + 1) * blockDim.x;
  if (end <= n) y[i] = a * x[i] + y[i];
}
}  // namespace whole_blocks_only

namespace always_the_same_a {
__global__ void Axpy(float, const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = -0.5f * x[i] + y[i];
}
}  // namespace always_the_same_a

namespace one_thread {
__global__ void Axpy(float a, const float* x, float* y, int n) {
  if (blockIdx.x > 0 || threadIdx.x > 0) return;
  for (int i = 0; i < n; ++i) y[i] += a * x[i];
}
}  // namespace one_thread

D2L_MISTAKE("kernel_guard", no_guard, Axpy, "without a number of their own");
D2L_MISTAKE("kernel_guard", one_too_many, Axpy, "The last index is n - 1");
D2L_MISTAKE("kernel_guard", last_number_missing, Axpy,
            "The last number is left as it was");
D2L_MISTAKE("kernel_guard", whole_blocks_only, Axpy, "must not be left out");
D2L_MISTAKE("kernel_guard", always_the_same_a, Axpy, "With another a,");
D2L_MISTAKE("kernel_guard", one_thread, Axpy, "thousands of threads");

}  // namespace
}  // namespace d2l
