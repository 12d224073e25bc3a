// RunGrid: runs the threads of a grid on the CPU.
//
//   RunGrid({blocks, threads, [=] { Double(x, n); }});
//
// Each thread of a block has a stack of its own and runs up to its next
// __syncthreads(), or exchange with its warp, one after the other; blocks run
// one after the other, too. So it shows what a kernel computes. Races, and what
// a warp asks of memory, are for a GridObserver to find (check.h).
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
};

enum class FindingKind;  // check.h

// Told how a grid runs, on the thread that runs it. A `site` is where a call in
// the kernel returns to.
class GridObserver {
 public:
  virtual ~GridObserver() = default;
  virtual void BeginBlock(std::uint32_t block) = 0;
  // A thread of the block goes on; its stack lies in these bytes.
  virtual void Resume(unsigned thread, const char* stack,
                      std::size_t bytes) = 0;
  // All threads that have not ended have reached a barrier.
  virtual void Barrier() = 0;
  // Of kernels that are compiled for the check: all accesses, also of a
  // thread's own stack; otherwise the atomic ones.
  virtual void Access(const void* address, std::size_t bytes, bool writes,
                      bool atomic, const void* site) = 0;
  virtual void Fault(FindingKind kind, const void* site,
                     const void* address = nullptr) = 0;
  virtual void EndBlock() = 0;
};

// In which order threads, and blocks, have their turns.
enum class TurnOrder { kForward, kBackward, kShuffled };

void RunGrid(const Grid& grid, TurnOrder order = TurnOrder::kForward,
             GridObserver* observer = nullptr);

// Of the grid that runs on this thread; null if none does.
GridObserver* ObserverOfThread();

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_GRID_H_
