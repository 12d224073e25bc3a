// Judges padded_transpose: the numbers at odd sizes, the sectors, and the
// banks.

#include <cstddef>
#include <vector>

#include "common/base/console/language.h"
#include "common/exercise/exercise.h"
#include "common/exercise/kernel_run.h"
#include "common/exercise/probes.h"

namespace d2l {
namespace {

using Transpose = void(float* out, const float* in, int rows, int columns);

void JudgeOne(Judging& judging, Transpose* answer, int rows, int columns) {
  constexpr int kTile = 32;
  const std::size_t n = std::size_t{1} * rows * columns;
  CheckedArray<float> in(n), out(n);
  Fill(in, RandomNumbers(n, 1));
  std::vector<float> expected(n);
  for (int i = 0; i < rows * columns; ++i) {
    expected[i % columns * rows + i / columns] = in.data()[i];
  }
  const dim3 blocks((columns + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
  KernelRun run(judging, Say("%d rows, %d columns, %d x %d blocks of %d x %d",
                             rows, columns, blocks.x, blocks.y, kTile, kTile));
  run.Launch(answer, blocks, dim3(kTile, kTile), out.data(), in.data(), rows,
             columns);
  run.ExpectRight(
      out, expected, 0,
      "out is (columns, rows): its rows begin `rows` numbers behind each "
      "other, and the tile goes from (top, left) to (left, top).",
      [](const Finding& finding) {
        if (finding.kind == FindingKind::kBarrier) {
          return "A thread that has nothing to load may have something to "
                 "store. Put both into an `if`, with the barrier between.";
        }
        return finding.kind == FindingKind::kOutOfBounds ||
                       finding.kind == FindingKind::kUninitialised
                   ? "The store has other coordinates than the load: its row "
                     "is left + y, its column top + x."
                   : "";
      });
  run.ExpectShortThreads(
      16,
      "A GPU is fast because thousands of threads work. One number for each "
      "thread, and no loop.");
  if (rows % 8 == 0 && columns % 8 == 0) {
    run.ExpectCoalesced(
        "Through shared memory a warp can read a row of the matrix, and write "
        "a row of the other, 4 sectors each.");
  }
  run.ExpectNoConflicts([](double repeats) {
    return repeats > 20
               ? "A column of the tile has its words 32 apart: all in one "
                 "bank, and 32 threads wait for it in turn. What if a row were "
                 "a little longer?"
               : "The words of a column still meet in a bank. A row that has "
                 "an odd number of words puts 32 of them into 32 banks.";
  });
  if (rows == 64) run.NoteFigures({4, 4, 0, 4});
}

void JudgeTranspose(Judging& judging, Transpose* answer) {
  JudgeOne(judging, answer, 64, 96);
  JudgeOne(judging, answer, 40, 70);
  JudgeOne(judging, answer, 33, 1);
  JudgeOne(judging, answer, 3, 31);
}

D2L_JUDGE("padded_transpose", JudgeTranspose);

}  // namespace
}  // namespace d2l
