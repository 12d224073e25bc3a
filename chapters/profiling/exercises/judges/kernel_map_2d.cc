// Judges kernel_map_2d: the numbers, also of narrow matrices, and a warp's
// memory requests.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/base/console/language.h"
#include "common/exercise/exercise.h"
#include "common/exercise/kernel_run.h"
#include "common/exercise/probes.h"

namespace d2l {
namespace {

using Scale = void(float* y, const float* x, int rows, int columns);

void JudgeOne(Judging& judging, Scale* answer, int rows, int columns,
              NumberKind kind) {
  constexpr int kSide = 16;
  const unsigned blocks = (std::max(rows, columns) + kSide - 1) / kSide;
  const std::size_t n = std::size_t{1} * rows * columns;
  CheckedArray<float> x(n), y(n);
  Fill(x, RandomNumbers(n, 1, kind));
  std::vector<float> expected(x.begin(), x.end());
  for (float& number : expected) number *= 2;
  KernelRun run(judging, Say("%d rows, %d columns, %d x %d blocks of %d x %d",
                             rows, columns, blocks, blocks, kSide, kSide));
  run.Launch(answer, dim3(blocks, blocks), dim3(kSide, kSide), y.data(),
             x.data(), rows, columns);
  const bool right = AllClose({y.begin(), y.end()}, expected, 0);
  run.ExpectRight(
      y, expected, 0,
      "Element (row, column) has the index row * columns + "
      "column.",
      [right](const Finding& finding) {
        if (finding.kind == FindingKind::kOutOfBounds) {
          return "Both coordinates can be too large: a grid of blocks covers "
                 "more than the matrix in x and in y.";
        }
        return right ? "A column that is too large gives an index of the next "
                       "row, which is another thread's element. Test the row "
                       "and the column, not the index."
                     : "A row begins `columns` numbers behind the one before, "
                       "not `rows`.";
      });
  run.ExpectShortThreads(
      8,
      "A GPU is fast because thousands of threads work. One number for each "
      "thread, and no loop.");
  // Rows of other lengths begin within a sector.
  if (columns % 8 != 0) return;
  run.ExpectCoalesced(
      "threadIdx.x runs from thread to thread of a warp, and what lies side "
      "by side in memory is a row: so x is the column.");
  run.NoteFigures({4, 4, 0, 2});
}

void JudgeScale(Judging& judging, Scale* answer) {
  JudgeOne(judging, answer, 40, 48, NumberKind::kMixed);
  for (const NumberKind kind : kNumberKinds) {
    JudgeOne(judging, answer, 20, 37, kind);
  }
  JudgeOne(judging, answer, 1, 5, NumberKind::kMixed);
  JudgeOne(judging, answer, 33, 1, NumberKind::kMixed);
}

D2L_JUDGE("kernel_map_2d", JudgeScale);

}  // namespace
}  // namespace d2l
