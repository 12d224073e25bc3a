#include "common/kernels/cuda/fake/emulation.h"

#include <ucontext.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "common/device/cuda/fake/fake_backend.h"
#include "common/device/cuda/fake/fake_cuda.h"

thread_local dim3 threadIdx;
thread_local dim3 blockIdx;
thread_local dim3 blockDim;
thread_local dim3 gridDim;

namespace d2l {

namespace kernels::cuda {
namespace {

constexpr std::size_t kStackBytes = 64 << 10;
constexpr unsigned kMostThreads = 1024;
constexpr unsigned kMostBlocksInY = 65535;

// What is wrong with the test, or the kernel: there is nothing to go on with.
void Require(bool condition) {
  if (!condition) std::abort();
}

// Where a thread of a block goes on. With the compiler's setjmp: libc's checks
// that a jump stays on its stack, and swapcontext calls the kernel every time.
using Place = void* [5];

// Of functions that do so: registers are not what a caller that looked into
// them would expect.
#define D2L_SWITCHES_STACKS __attribute__((noipa))

// The threads of a block, each with a stack of its own, which serves block
// after block.
class Block {
 public:
  void Run(dim3 threads, const std::function<void()>& thread) {
    const unsigned count = threads.x * threads.y * threads.z;
    while (fibers_.size() < count) fibers_.push_back(NewFiber());
    thread_ = &thread;
    for (unsigned t = 0; t < count; ++t) fibers_[t]->done = false;
    for (bool any = true; any;) {
      any = false;
      for (unsigned t = 0; t < count; ++t) {
        if (fibers_[t]->done) continue;
        any = true;
        threadIdx = dim3(t % threads.x, t / threads.x % threads.y,
                         t / threads.x / threads.y);
        GoOn(*fibers_[t]);
      }
    }
  }

  // In a thread of the block: lets the next one run.
  D2L_SWITCHES_STACKS void Yield() {
    if (__builtin_setjmp(running_->place) == 0) Jump(scheduler_);
  }

 private:
  struct Fiber {
    ucontext_t begin;
    Place place;
    std::unique_ptr<char[]> stack;
    bool begun = false;
    bool done = false;
  };

  static std::unique_ptr<Fiber> NewFiber() {
    auto fiber = std::make_unique<Fiber>();
    fiber->stack.reset(new char[kStackBytes]);
    getcontext(&fiber->begin);
    fiber->begin.uc_stack.ss_sp = fiber->stack.get();
    fiber->begin.uc_stack.ss_size = kStackBytes;
    fiber->begin.uc_link = nullptr;
    makecontext(&fiber->begin, Enter, 0);
    return fiber;
  }

  D2L_SWITCHES_STACKS void GoOn(Fiber& fiber) {
    running_ = &fiber;
    if (__builtin_setjmp(scheduler_) != 0) return;
    if (fiber.begun) Jump(fiber.place);
    fiber.begun = true;
    setcontext(&fiber.begin);
  }

  [[noreturn]] D2L_SWITCHES_STACKS static void Jump(Place& place) {
    __builtin_longjmp(place, 1);
  }

  [[noreturn]] static void Enter();

  const std::function<void()>* thread_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* running_ = nullptr;
  Place scheduler_;
};

Block& BlockOfThread() {
  thread_local Block block;
  return block;
}

void Block::Enter() {
  Block& block = BlockOfThread();
  for (;;) {
    (*block.thread_)();
    block.running_->done = true;
    block.Yield();
  }
}

}  // namespace

namespace internal {

void RequireReachable(const void* data) {
  Require(data == nullptr || FakeCudaOfBackend().IsReachable(data, 1));
}

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
  ReportFromHost(errors, error, position, a, b);
}

}  // namespace kernels::cuda
}  // namespace d2l

void __syncthreads() { d2l::kernels::cuda::BlockOfThread().Yield(); }

int cudaMemcpyAsync(void* dst, const void* src, std::size_t bytes,
                    cudaMemcpyKind, d2l::CudaStreamHandle stream) {
  d2l::kernels::cuda::internal::RequireReachable(dst);
  d2l::kernels::cuda::internal::RequireReachable(src);
  d2l::FakeCudaOfBackend().LaunchKernel(stream,
                                        [=] { std::memcpy(dst, src, bytes); });
  return 0;
}
