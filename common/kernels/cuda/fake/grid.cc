#include "common/kernels/cuda/fake/grid.h"

#include <ucontext.h>

#include <algorithm>
#include <chrono>
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

// Kernels declare arrays of any name that begin with this one: see
// exercise.bzl.
extern "C" {
alignas(16) thread_local char d2l_dynamic_shared
    [d2l::kernels::cuda::kMostDynamicShared];
}

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
  enum class State {
    kReady,
    kAtBarrier,
    kInWarp,
    kInActiveMask,
    kDone,
    kFaulted,  // ended by a fault; that it is missing at barriers is no other
  };

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
  void Wait(State state, const void* site) {
    Fiber& fiber = *fibers_[running_];
    fiber.state = state;
    fiber.site = site;
    Yield();
  }

  // Waits for the block; returns for how many threads the predicate holds.
  int Barrier(bool predicate, const void* site) {
    fibers_[running_]->given = predicate;
    Wait(State::kAtBarrier, site);
    return holds_;
  }

  const internal::Handed& Exchange(internal::WarpWord word, unsigned mask,
                                   std::uint64_t value, int from,
                                   const void* site) {
    Fiber& fiber = *fibers_[running_];
    const unsigned lane = running_ % warpSize;
    fiber.handed = {};
    if ((mask >> lane & 1) == 0) {
      Fault(FindingKind::kOutsideMask, site);
      return fiber.handed;
    }
    fiber.word = word;
    fiber.mask = mask;
    fiber.given = value;
    Wait(State::kInWarp, site);
    const unsigned wanted = from < 0 ? 0 : 1u << from & mask & Existing(lane);
    if ((wanted & ~fiber.handed.lanes) != 0 && !fiber.stranded) {
      Fault(FindingKind::kStrandedLane, site);  // that lane has ended
    }
    return fiber.handed;
  }

  unsigned ActiveMask(const void* site) {
    Wait(State::kInActiveMask, site);
    return fibers_[running_]->mask;
  }

  [[noreturn]] D2L_SWITCHES_STACKS void EndThread() {
    fibers_[running_]->state = State::kFaulted;
    Prepare(*fibers_[running_]);
    Jump(scheduler_);
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
    std::uint64_t given = 0;     // what it hands to others
    // In a warp: for which lanes it waits, in which word, and what it gets.
    unsigned mask = 0;
    internal::WarpWord word = internal::WarpWord::kSync;
    internal::Handed handed;
    bool stranded = false;  // it waited in vain
  };

  static std::unique_ptr<Fiber> NewFiber() {
    auto fiber = std::make_unique<Fiber>();
    fiber->stack.reset(new char[kStackBytes]);
    Prepare(*fiber);
    return fiber;
  }

  // It runs from its beginning when it goes on.
  static void Prepare(Fiber& fiber) {
    getcontext(&fiber.begin);
    fiber.begin.uc_stack.ss_sp = fiber.stack.get();
    fiber.begin.uc_stack.ss_size = kStackBytes;
    fiber.begin.uc_link = nullptr;
    makecontext(&fiber.begin, Enter, 0);
    fiber.begun = false;
  }

  void Fault(FindingKind kind, const void* site, const void* other = nullptr) {
    if (observer_ != nullptr) observer_->Fault(kind, site, nullptr, other);
  }

  // The lanes of the running thread's warp that have a thread.
  unsigned Existing(unsigned lane) const {
    const unsigned threads = count_ - (running_ - lane);
    return threads >= warpSize ? ~0u : (1u << threads) - 1;
  }

  static bool HasEnded(const Fiber& fiber) {
    return fiber.state == State::kDone || fiber.state == State::kFaulted;
  }

  // Makes the threads ready whose wait is over. False if all have ended.
  bool Release() {
    bool any = false, all_ended = true;
    for (unsigned first = 0; first < count_; first += warpSize) {
      any |= ReleaseLanes(first, /*stranded=*/false);
    }
    if (any) return true;
    const Fiber* waiting = nullptr;
    bool ended = false, in_warp = false;
    holds_ = 0;
    for (unsigned t = 0; t < count_; ++t) {
      const Fiber& fiber = *fibers_[t];
      ended |= fiber.state == State::kDone;
      all_ended &= HasEnded(fiber);
      in_warp |= fiber.state == State::kInWarp;
      if (fiber.state != State::kAtBarrier) continue;
      if (waiting != nullptr && waiting->site != fiber.site) {
        Fault(FindingKind::kTwoBarriers, fiber.site, waiting->site);
      }
      waiting = &fiber;
      holds_ += fiber.given != 0;
    }
    if (all_ended) return false;
    if (in_warp) {
      for (unsigned first = 0; first < count_; first += warpSize) {
        ReleaseLanes(first, /*stranded=*/true);
      }
      return true;
    }
    if (ended) Fault(FindingKind::kBarrier, waiting->site);
    if (observer_ != nullptr) observer_->Barrier();
    for (unsigned t = 0; t < count_; ++t) {
      if (fibers_[t]->state == State::kAtBarrier) {
        fibers_[t]->state = State::kReady;
      }
    }
    return true;
  }

  // Of the warp with this first thread, releases lanes that wait for no other;
  // if stranded, all that wait.
  bool ReleaseLanes(unsigned first, bool stranded) {
    bool any = false;
    const unsigned lanes = std::min<unsigned>(warpSize, count_ - first);
    const auto fiber = [&](unsigned lane) -> Fiber& {
      return *fibers_[first + lane];
    };
    const auto lanes_with = [&](const auto& holds) {
      unsigned with = 0;
      for (unsigned lane = 0; lane < lanes; ++lane) {
        if (holds(fiber(lane))) with |= 1u << lane;
      }
      return with;
    };
    const unsigned ended =
        lanes_with([](const Fiber& f) { return HasEnded(f); });
    for (unsigned turn = 0; turn < 2 * lanes; ++turn) {
      const Fiber& leader = fiber(turn % lanes);
      const State state = turn < lanes ? State::kInWarp : State::kInActiveMask;
      unsigned released = 0;
      if (leader.state != state) continue;
      if (state == State::kInWarp) {
        const internal::WarpWord word = leader.word;
        const unsigned mask = leader.mask;
        const auto alike = [&](const Fiber& f) {
          return f.state == State::kInWarp && f.mask == mask && f.word == word;
        };
        released = lanes_with(alike);
        const unsigned exist = lanes == warpSize ? ~0u : (1u << lanes) - 1;
        const unsigned missing = mask & exist & ~ended & ~released;
        if (missing != 0 && !stranded) continue;
        if (missing != 0) {
          const unsigned elsewhere = lanes_with(
              [](const Fiber& f) { return f.state == State::kInWarp; });
          const unsigned other = missing & elsewhere;
          Fault(other != 0 ? FindingKind::kDifferentMasks
                           : FindingKind::kStrandedLane,
                leader.site,
                other != 0 ? fiber(__builtin_ctz(other)).site : nullptr);
        }
        HandOver(first, released, missing != 0);
      } else if (!any) {
        // No other lane of the warp goes on, so that no more will come.
        const void* const site = leader.site;
        released = lanes_with([site](const Fiber& f) {
          return f.state == State::kInActiveMask && f.site == site;
        });
        for (unsigned l = 0; l < lanes; ++l) fiber(l).mask = released;
      }
      for (unsigned l = 0; l < lanes; ++l) {
        if ((released >> l & 1) != 0) fiber(l).state = State::kReady;
      }
      any |= released != 0;
    }
    return any;
  }

  // Gives the lanes what they hand to each other.
  void HandOver(unsigned first, unsigned lanes, bool stranded) {
    if (observer_ != nullptr) observer_->JoinLanes(first, lanes);
    internal::Handed handed;
    handed.lanes = lanes;
    for (unsigned lane = 0; lane < warpSize; ++lane) {
      if ((lanes >> lane & 1) != 0) {
        handed.values[lane] = fibers_[first + lane]->given;
      }
    }
    for (unsigned lane = 0; lane < warpSize; ++lane) {
      if ((lanes >> lane & 1) == 0) continue;
      fibers_[first + lane]->handed = handed;
      fibers_[first + lane]->stranded = stranded;
    }
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
  int holds_ = 0;  // at the last barrier
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

void EndThread() { BlockOfThread().EndThread(); }

char* DynamicShared() { return d2l_dynamic_shared; }

namespace internal {

const Handed& Exchange(WarpWord word, unsigned mask, std::uint64_t value,
                       int from) {
  return BlockOfThread().Exchange(word, mask, value, from,
                                  __builtin_return_address(0));
}

unsigned ActiveMask() {
  return BlockOfThread().ActiveMask(__builtin_return_address(0));
}

int LaneOfThread() {
  return static_cast<int>(BlockOfThread().running() % warpSize);
}

}  // namespace internal
}  // namespace d2l::kernels::cuda

using d2l::kernels::cuda::BlockOfThread;

void __syncthreads() {
  BlockOfThread().Barrier(false, __builtin_return_address(0));
}
int __syncthreads_count(int predicate) {
  return BlockOfThread().Barrier(predicate != 0, __builtin_return_address(0));
}
int __syncthreads_and(int predicate) {
  return BlockOfThread().Barrier(predicate == 0, __builtin_return_address(0)) ==
         0;
}
int __syncthreads_or(int predicate) {
  return BlockOfThread().Barrier(predicate != 0, __builtin_return_address(0)) >
         0;
}

void __threadfence() {
  using d2l::kernels::cuda::GridObserver;
  GridObserver* const observer = BlockOfThread().observer();
  if (observer != nullptr) observer->Fence();
}
void __threadfence_block() { __threadfence(); }
void __threadfence_system() { __threadfence(); }

long long clock64() {  // NOLINT(google-runtime-int): as CUDA's
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

void __trap() { std::abort(); }
