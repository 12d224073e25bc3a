// RunGrid: runs the threads of a grid on the CPU.
//
//   RunGrid({blocks, threads, [=] { Double(x, n); }});
//
// Each thread of a block has its own stack. The threads run one after the
// other, each up to its next __syncthreads() or exchange with its warp; blocks
// run one after the other, too. So it shows what a kernel computes. A
// GridObserver finds races, and counts memory requests (check.h).
//
// Thread-safe: grids may run on several threads at once.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_GRID_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_GRID_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "common/kernels/cuda/fake/words.h"

namespace d2l::kernels::cuda {

struct Grid {
  dim3 blocks;
  dim3 threads;  // of a block: 1024 at most
  std::function<void()> thread;
  // The bytes of `extern __shared__` arrays, kMostDynamicShared at most.
  std::size_t dynamic_shared = 0;
};

inline constexpr std::size_t kMostDynamicShared = 48 << 10;

// The beginning of this thread's `extern __shared__` arrays.
char* DynamicShared();

enum class FindingKind;  // check.h

// Follows how a grid runs, on the thread that runs it. A `site` is the return
// address of a call in the kernel.
class GridObserver {
 public:
  virtual ~GridObserver() = default;
  virtual void BeginBlock(std::uint32_t block) = 0;
  // A thread of the block continues; its stack lies in these bytes.
  virtual void Resume(unsigned thread, const char* stack,
                      std::size_t bytes) = 0;
  // All threads that have not ended have reached a barrier.
  virtual void Barrier() = 0;
  // These lanes, of the warp whose first thread this is, have waited for each
  // other.
  virtual void JoinLanes(unsigned first, unsigned lanes) = 0;
  // The running thread calls __threadfence().
  virtual void Fence() = 0;
  // If kernels are compiled for the check, called for all accesses, also to a
  // thread's own stack; otherwise for the atomic ones.
  virtual void Access(const void* address, std::size_t bytes, bool writes,
                      bool atomic, const void* site) = 0;
  // `other` is a second site that takes part.
  virtual void Fault(FindingKind kind, const void* site,
                     const void* address = nullptr,
                     const void* other = nullptr) = 0;
  virtual void EndBlock() = 0;
};

// The order in which threads, and blocks, run.
enum class TurnOrder { kForward, kBackward, kShuffled };

void RunGrid(const Grid& grid, TurnOrder order = TurnOrder::kForward,
             GridObserver* observer = nullptr);

// The observer of the grid that runs on this thread; null if there is none.
GridObserver* ObserverOfThread();

// In a thread of a grid: ends it.
[[noreturn]] void EndThread();

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_GRID_H_
