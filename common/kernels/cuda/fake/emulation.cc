#include "common/kernels/cuda/fake/emulation.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "common/device/cuda/fake/fake_backend.h"
#include "common/device/cuda/fake/fake_cuda.h"
#include "common/kernels/cuda/fake/check.h"
#include "common/kernels/cuda/fake/grid.h"

namespace d2l {

namespace kernels::cuda {
namespace {

constexpr unsigned kMostThreads = 1024;
constexpr unsigned kMostBlocksInY = 65535;

// Aborts if it does not hold: the test, or the kernel, is wrong.
void Require(bool condition) {
  if (!condition) std::abort();
}

Memory MemoryOfGpu(const void* address) {
  constexpr std::ptrdiff_t kNear = 256;
  for (const std::ptrdiff_t offset : {std::ptrdiff_t{0}, -kNear, kNear}) {
    const auto [begin, bytes] =
        FakeCudaOfBackend().BlockOf(static_cast<const char*>(address) + offset);
    if (begin != nullptr) return {begin, bytes};
  }
  return {};
}

}  // namespace

namespace internal {

void RequireReachable(const void* data) {
  Require(data == nullptr || FakeCudaOfBackend().IsReachable(data, 1));
}

void EnqueueGrid(const void* kernel, dim3 blocks, dim3 threads,
                 CudaStreamHandle stream, std::function<void()> thread) {
  Require(blocks.x >= 1 && blocks.y >= 1 && blocks.y <= kMostBlocksInY);
  Require(threads.x * threads.y * threads.z <= kMostThreads);
  if (ChecksKernels()) ReportAtExit();
  FakeCudaOfBackend().LaunchKernel(
      stream, [kernel, grid = Grid{blocks, threads, std::move(thread)}] {
        if (ChecksKernels()) {
          CheckedRun(kernel, grid, MemoryOfGpu);
        } else {
          RunGrid(grid);
        }
      });
}

}  // namespace internal

void ReportError(const ErrorReporter& errors, DeviceError error,
                 std::int64_t position, std::int64_t a, std::int64_t b) {
  // A checked grid runs three times.
  if (!IsRepeated()) ReportFromHost(errors, error, position, a, b);
}

}  // namespace kernels::cuda
}  // namespace d2l

int cudaMemcpyAsync(void* dst, const void* src, std::size_t bytes,
                    cudaMemcpyKind, d2l::CudaStreamHandle stream) {
  d2l::kernels::cuda::internal::RequireReachable(dst);
  d2l::kernels::cuda::internal::RequireReachable(src);
  d2l::FakeCudaOfBackend().LaunchKernel(stream,
                                        [=] { std::memcpy(dst, src, bytes); });
  return 0;
}
