#include "common/kernels/cuda/emulation.h"

#include <ucontext.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "common/device/cuda/fake_cuda.h"

thread_local dim3 threadIdx;
thread_local dim3 blockIdx;
thread_local dim3 blockDim;
thread_local dim3 gridDim;

namespace d2l {

FakeCuda& FakeCudaOfBackend();  // common/device/cuda/fake_backend.cc

namespace kernels::cuda {
namespace {

constexpr std::size_t kStackBytes = 64 << 10;
constexpr unsigned kMostThreads = 1024;
constexpr unsigned kMostBlocksInY = 65535;

// What is wrong with the test, or the kernel: there is nothing to go on with.
void Require(bool condition) {
  if (!condition) std::abort();
}

// The threads of a block, each with a stack of its own.
class Block {
 public:
  void Run(dim3 threads, const std::function<void()>& thread) {
    const unsigned count = threads.x * threads.y * threads.z;
    while (fibers_.size() < count) fibers_.push_back(NewFiber());
    thread_ = &thread;
    for (unsigned t = 0; t < count; ++t) Prepare(*fibers_[t]);
    for (bool any = true; any;) {
      any = false;
      for (unsigned t = 0; t < count; ++t) {
        if (fibers_[t]->done) continue;
        any = true;
        threadIdx = dim3(t % threads.x, t / threads.x % threads.y,
                         t / threads.x / threads.y);
        running_ = fibers_[t].get();
        swapcontext(&scheduler_, &running_->context);
      }
    }
  }

  void Yield() { swapcontext(&running_->context, &scheduler_); }

 private:
  struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool done;
  };

  static std::unique_ptr<Fiber> NewFiber() {
    auto fiber = std::make_unique<Fiber>();
    fiber->stack.reset(new char[kStackBytes]);
    return fiber;
  }

  void Prepare(Fiber& fiber) {
    fiber.done = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = &scheduler_;
    makecontext(&fiber.context, Enter, 0);
  }

  static void Enter();

  const std::function<void()>* thread_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* running_ = nullptr;
  ucontext_t scheduler_;
};

Block& BlockOfThread() {
  thread_local Block block;
  return block;
}

void Block::Enter() {
  Block& block = BlockOfThread();
  (*block.thread_)();
  block.running_->done = true;
}

}  // namespace

namespace internal {

void EnqueueGrid(dim3 blocks, dim3 threads, CudaStreamHandle stream,
                 std::function<void()> thread) {
  Require(blocks.x >= 1 && blocks.y >= 1 && blocks.y <= kMostBlocksInY);
  Require(threads.x * threads.y * threads.z <= kMostThreads);
  FakeCudaOfBackend().LaunchKernel(stream, [=] {
    gridDim = blocks;
    blockDim = threads;
    for (unsigned y = 0; y < blocks.y; ++y) {
      for (unsigned x = 0; x < blocks.x; ++x) {
        blockIdx = dim3(x, y);
        BlockOfThread().Run(threads, thread);
      }
    }
  });
}

}  // namespace internal

void ReportError(const ErrorReporter& errors, DeviceError error,
                 std::int64_t position, std::int64_t a, std::int64_t b) {
  FakeCuda::Report(errors, error, position, a, b);
}

}  // namespace kernels::cuda
}  // namespace d2l

void __syncthreads() { d2l::kernels::cuda::BlockOfThread().Yield(); }

int cudaMemcpyAsync(void* dst, const void* src, std::size_t bytes,
                    cudaMemcpyKind, d2l::CudaStreamHandle stream) {
  d2l::FakeCudaOfBackend().LaunchKernel(stream,
                                        [=] { std::memcpy(dst, src, bytes); });
  return 0;
}
