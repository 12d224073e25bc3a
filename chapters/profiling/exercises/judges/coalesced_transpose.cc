// Judges coalesced_transpose: the numbers, and the sectors of loads and stores.

#include <cstddef>
#include <vector>

#include "common/base/console/language.h"
#include "common/exercise/exercise.h"
#include "common/exercise/kernel_run.h"
#include "common/exercise/probes.h"

namespace d2l {
namespace {

using Transpose = void(float* out, const float* in, int n);

void JudgeOne(Judging& judging, Transpose* answer, int n) {
  constexpr int kTile = 32;
  const unsigned blocks = n / kTile;
  CheckedArray<float> in(std::size_t{1} * n * n), out(std::size_t{1} * n * n);
  Fill(in, RandomNumbers(n * n, 1));
  std::vector<float> expected(n * n);
  for (int i = 0; i < n * n; ++i) expected[i % n * n + i / n] = in.data()[i];
  KernelRun run(judging,
                Say("%d x %d, blocks of %d x %d threads", n, n, kTile, kTile));
  run.Launch(answer, dim3(blocks, blocks), dim3(kTile, kTile), out.data(),
             in.data(), n);
  run.ExpectRight(
      out, expected, 0,
      "Turning a tile is half of it: the tile itself goes to another place, "
      "from (top, left) to (left, top).",
      [](const Finding& finding) {
        return finding.kind == FindingKind::kRace && finding.shared
                   ? "A thread uses what another has put into the tile: all "
                     "must have put theirs first."
                   : "";
      });
  run.ExpectShortThreads(
      16,
      "A GPU is fast because thousands of threads work. One number for each "
      "thread, and no loop.");
  run.ExpectCoalesced([](bool writes) {
    return writes ? "Which of x and y changes from thread to thread of a warp? "
                    "The stores should be side by side as the loads are: turn "
                    "the tile in shared memory between."
                  : "The stores are side by side, the loads are not, which "
                    "only moves the problem. Load a tile row by row, and turn "
                    "it in shared memory.";
  });
  if (n == 64) run.NoteFigures({4, 4, 0, 4});
}

void JudgeTranspose(Judging& judging, Transpose* answer) {
  JudgeOne(judging, answer, 64);
  JudgeOne(judging, answer, 32);
}

D2L_JUDGE("coalesced_transpose", JudgeTranspose);

}  // namespace
}  // namespace d2l
