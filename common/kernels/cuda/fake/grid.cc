#include "common/kernels/cuda/fake/grid.h"

#include <ucontext.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "common/kernels/cuda/fake/check.h"
#include "common/kernels/cuda/fake/words.h"

thread_local dim3 threadIdx;
thread_local dim3 blockIdx;
thread_local dim3 blockDim;
thread_local dim3 gridDim;

namespace d2l::kernels::cuda {
namespace {

constexpr std::size_t kStackBytes = 64 << 10;

// Where a thread of a block continues, for the compiler's setjmp: libc's checks
// that a jump stays on its stack, and swapcontext makes a system call.
using JumpBuffer = void* [5];

// For functions that switch stacks. Their callers must not be optimised by
// their code: it does not show which registers change.
#define D2L_SWITCHES_STACKS __attribute__((noipa))

// The numbers below `count`, in this order.
std::vector<unsigned> Turns(unsigned count, TurnOrder order,
                            std::mt19937& random) {
  std::vector<unsigned> turns(count);
  std::iota(turns.begin(), turns.end(), 0u);
  if (order == TurnOrder::kBackward) std::reverse(turns.begin(), turns.end());
  if (order == TurnOrder::kShuffled) {
    std::shuffle(turns.begin(), turns.end(), random);
  }
  return turns;
}

// The threads of a block. Each has its own stack, which is used for block after
// block.
class Block {
 public:
  enum class State { kReady, kAtBarrier, kInWarp, kDone };

  void Run(const Grid& grid, const std::vector<unsigned>& turns,
           GridObserver* observer) {
    const dim3& threads = grid.threads;
    count_ = threads.x * threads.y * threads.z;
    while (fibers_.size() < count_) fibers_.push_back(NewFiber());
    thread_ = &grid.thread;
    observer_ = observer;
    for (unsigned t = 0; t < count_; ++t) fibers_[t]->state = State::kReady;
    do {
      for (const unsigned t : turns) {
        if (fibers_[t]->state != State::kReady) continue;
        threadIdx = dim3(t % threads.x, t / threads.x % threads.y,
                         t / threads.x / threads.y);
        running_ = t;
        if (observer != nullptr) {
          observer->Resume(t, fibers_[t]->stack.get(), kStackBytes);
        }
        GoOn(*fibers_[t]);
      }
    } while (Release());
    observer_ = nullptr;
  }

  // In a thread of the block: lets the next one run.
  void Wait(State state, const void* site, unsigned mask = 0) {
    Fiber& fiber = *fibers_[running_];
    fiber.state = state;
    fiber.site = site;
    fiber.mask = mask;
    Yield();
  }

  std::uint64_t Exchange(unsigned mask, std::uint64_t value, int from,
                         const void* site) {
    const unsigned first = running_ / warpSize * warpSize;
    fibers_[running_]->handed = value;
    Wait(State::kInWarp, site, mask);
    const unsigned other = first + static_cast<unsigned>(from);
    const bool has = other < count_ && (mask >> from & 1) != 0;
    const std::uint64_t got = has ? fibers_[other]->handed : value;
    Wait(State::kInWarp, site, mask);  // until the others have read
    return got;
  }

  unsigned running() const { return running_; }
  GridObserver* observer() const { return observer_; }

 private:
  struct Fiber {
    ucontext_t begin;
    JumpBuffer resume;
    std::unique_ptr<char[]> stack;
    bool begun = false;
    State state = State::kReady;
    const void* site = nullptr;  // where it waits
    unsigned mask = 0;           // for which lanes
    std::uint64_t handed = 0;
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

  // Makes the threads ready whose wait is over. False if all have ended.
  bool Release() {
    if (ReleaseWarps(/*stranded=*/false)) return true;
    unsigned done = 0, waiting = 0;
    const void* site = nullptr;
    for (unsigned t = 0; t < count_; ++t) {
      done += fibers_[t]->state == State::kDone;
      if (fibers_[t]->state != State::kAtBarrier) continue;
      ++waiting;
      site = fibers_[t]->site;
    }
    if (done == count_) return false;
    if (done + waiting < count_) return ReleaseWarps(/*stranded=*/true);
    if (observer_ != nullptr) {
      if (done > 0) observer_->Fault(FindingKind::kBarrier, site);
      observer_->Barrier();
    }
    for (unsigned t = 0; t < count_; ++t) {
      if (fibers_[t]->state == State::kAtBarrier) {
        fibers_[t]->state = State::kReady;
      }
    }
    return true;
  }

  // Releases lanes that wait for no other; if stranded, all that wait.
  bool ReleaseWarps(bool stranded) {
    bool any = false;
    for (unsigned first = 0; first < count_; first += warpSize) {
      unsigned waiting = 0;
      const unsigned last = std::min(first + warpSize, count_);
      for (unsigned t = first; t < last; ++t) {
        if (fibers_[t]->state == State::kInWarp) waiting |= 1u << (t - first);
      }
      for (unsigned t = first; t < last; ++t) {
        Fiber& fiber = *fibers_[t];
        if ((waiting >> (t - first) & 1) == 0) continue;
        const bool whole = last - first == warpSize;
        const unsigned wanted =
            whole ? fiber.mask : fiber.mask & ((1u << (last - first)) - 1);
        if (!stranded && (wanted & ~waiting) != 0) continue;
        if (stranded && observer_ != nullptr) {
          observer_->Fault(FindingKind::kStrandedLane, fiber.site);
        }
        fiber.state = State::kReady;
        any = true;
      }
    }
    return any;
  }

  D2L_SWITCHES_STACKS void Yield() {
    if (__builtin_setjmp(fibers_[running_]->resume) == 0) Jump(scheduler_);
  }

  D2L_SWITCHES_STACKS void GoOn(Fiber& fiber) {
    if (__builtin_setjmp(scheduler_) != 0) return;
    if (fiber.begun) Jump(fiber.resume);
    fiber.begun = true;
    setcontext(&fiber.begin);
  }

  [[noreturn]] D2L_SWITCHES_STACKS static void Jump(JumpBuffer& buffer) {
    __builtin_longjmp(buffer, 1);
  }

  [[noreturn]] static void Enter();

  const std::function<void()>* thread_ = nullptr;
  GridObserver* observer_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  unsigned count_ = 0;
  unsigned running_ = 0;
  JumpBuffer scheduler_;
};

Block& BlockOfThread() {
  thread_local Block block;
  return block;
}

void Block::Enter() {
  Block& block = BlockOfThread();
  for (;;) {
    (*block.thread_)();
    block.Wait(State::kDone, nullptr);
  }
}

// Reports one atomic access to the block's observer.
template <typename T>
T Add(T* to, T value, const void* site) {
  if (GridObserver* const observer = ObserverOfThread()) {
    observer->Access(to, sizeof(T), /*writes=*/true, /*atomic=*/true, site);
  }
  const T before = *to;
  *to = before + value;
  return before;
}

}  // namespace

void RunGrid(const Grid& grid, TurnOrder order, GridObserver* observer) {
  gridDim = grid.blocks;
  blockDim = grid.threads;
  std::mt19937 random(1);
  const unsigned threads = grid.threads.x * grid.threads.y * grid.threads.z;
  const dim3& blocks = grid.blocks;
  for (const unsigned block :
       Turns(blocks.x * blocks.y * blocks.z, order, random)) {
    blockIdx = dim3(block % blocks.x, block / blocks.x % blocks.y,
                    block / blocks.x / blocks.y);
    if (observer != nullptr) observer->BeginBlock(block);
    BlockOfThread().Run(grid, Turns(threads, order, random), observer);
    if (observer != nullptr) observer->EndBlock();
  }
}

GridObserver* ObserverOfThread() { return BlockOfThread().observer(); }

namespace internal {

std::uint64_t Exchange(unsigned mask, std::uint64_t value, int from) {
  return BlockOfThread().Exchange(mask, value, from,
                                  __builtin_return_address(0));
}

unsigned Ballot(unsigned mask, bool predicate) {
  unsigned lanes = 0;
  for (int lane = 0; lane < warpSize; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    const bool held =
        BlockOfThread().Exchange(mask, predicate, lane,
                                 __builtin_return_address(0)) != 0;
    // For a lane without a thread, Exchange returns the caller's own value.
    const unsigned first = BlockOfThread().running() / warpSize * warpSize;
    const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    if (held && first + lane < threads) lanes |= 1u << lane;
  }
  return lanes;
}

int LaneOfThread() {
  return static_cast<int>(BlockOfThread().running() % warpSize);
}

int AtomicAdd(int* to, int value) {
  return Add(to, value, __builtin_return_address(0));
}
unsigned AtomicAdd(unsigned* to, unsigned value) {
  return Add(to, value, __builtin_return_address(0));
}
float AtomicAdd(float* to, float value) {
  return Add(to, value, __builtin_return_address(0));
}

}  // namespace internal
}  // namespace d2l::kernels::cuda

void __syncthreads() {
  using d2l::kernels::cuda::Block;
  d2l::kernels::cuda::BlockOfThread().Wait(Block::State::kAtBarrier,
                                           __builtin_return_address(0));
}
