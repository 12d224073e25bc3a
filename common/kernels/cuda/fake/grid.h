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

// Told how a grid runs, on the thread that runs it.
class GridObserver {
 public:
  virtual ~GridObserver() = default;
  virtual void BeginBlock(std::uint32_t block) = 0;
  // A thread of the block goes on; its stack lies in these bytes.
  virtual void Resume(unsigned thread, const char* stack,
                      std::size_t bytes) = 0;
  virtual void Pause() = 0;
  // All threads that have not ended wait, one of them at `site`; `absent` of
  // them have ended before.
  virtual void Barrier(const void* site, unsigned absent) = 0;
  // A lane waits at `site` for others of its warp that do not come.
  virtual void StrandedLane(const void* site) = 0;
  virtual void Atomic(const void* address, std::size_t bytes,
                      const void* site) = 0;
  virtual void EndBlock() = 0;
};

// In which order threads, and blocks, have their turns.
enum class TurnOrder { kForward, kBackward, kShuffled };

void RunGrid(const Grid& grid, TurnOrder order = TurnOrder::kForward,
             GridObserver* observer = nullptr);

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_GRID_H_
