// Judges softmax_row: the numbers, also of large ones and narrow rows, and the
// sectors.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/console/language.h"
#include "common/exercise/exercise.h"
#include "common/exercise/kernel_run.h"
#include "common/exercise/probes.h"

namespace d2l {
namespace {

using SoftmaxRow = void(float* y, const float* x, int columns);

void JudgeOne(Judging& judging, SoftmaxRow* answer, int rows, int columns,
              float plus) {
  const std::size_t n = std::size_t{1} * rows * columns;
  CheckedArray<float> x(n), y(n);
  const std::vector<float> random = RandomNumbers(n, 1);
  std::vector<float> expected(n);
  for (int row = 0; row < rows; ++row) {
    float largest = -INFINITY;
    double sum = 0;
    for (int i = row * columns; i < (row + 1) * columns; ++i) {
      // The numbers are near each other, so that all of them count; but not
      // the first, which is far below the largest, nor what is masked, nor, in
      // some rows, one that is far above the others.
      x.data()[i] = plus + 3 * std::sin(random[i]);
      if (columns > 2 && i % columns == 0) x.data()[i] -= 500;
      if (columns > 2 && i % columns == 2) x.data()[i] = -INFINITY;
      if (plus > 0 && row == 1 && i % columns == std::min(columns - 1, 40)) {
        x.data()[i] += 300;
      }
      largest = std::max(largest, x.data()[i]);
    }
    for (int i = row * columns; i < (row + 1) * columns; ++i) {
      sum += std::exp(double{x.data()[i]} - largest);
    }
    for (int i = row * columns; i < (row + 1) * columns; ++i) {
      expected[i] =
          static_cast<float>(std::exp(double{x.data()[i]} - largest) / sum);
    }
  }
  KernelRun run(judging, Say("%d rows, %d columns, numbers near %g", rows,
                             columns, plus));
  run.Launch(answer, rows, 32, y.data(), x.data(), columns);
  const bool overflows = std::any_of(
      y.begin(), y.end(), [](float number) { return std::isnan(number); });
  const int of_thread_0 = columns > 32 ? 32 : 0;
  const bool first_is_right =
      std::abs(y.begin()[of_thread_0] - expected[of_thread_0]) < 1e-4;
  run.ExpectRight(
      y, expected, 1e-5,
      overflows && plus == 0
          ? "What is subtracted has to be the row's largest, not any one of "
            "its numbers: exp of those that are far above it overflows."
      : overflows && plus < 0
          ? "The numbers of a row may all be negative: the search for the "
            "largest begins with -INFINITY."
      : overflows
          ? "exp of a large number overflows, and infinity over infinity "
            "is no number. Subtract the row's largest first: the result "
            "is the same."
      : first_is_right
          ? "Only thread 0 has the sum of all. Every thread needs it: "
            "__shfl_xor_sync gives it to all, __shfl_down_sync does not."
          : "Each thread divides by the sum of its own numbers. The warp has "
            "to add up its 32 sums.",
      [](const Finding& finding) {
        return finding.kind == FindingKind::kStrandedLane
                   ? "A row has fewer numbers than the warp has threads. Those "
                     "without a number still hand theirs on: -INFINITY for the "
                     "largest, 0 for the sum."
                   : "";
      });
  // For the largest, for the sum, and for the result.
  const std::int64_t loads = run.GlobalAccesses(/*writes=*/false);
  const auto enough = static_cast<std::int64_t>(4 * n);
  if (loads > enough) {
    run.Wrong(Say("the right values, with %d loads of global memory", loads),
              Say("%d at most", enough),
              "Each thread goes through the whole row. With a part for each "
              "thread it is done 32 times as fast, and shuffles join the "
              "parts.");
  }
  if (columns % 32 == 0) {
    run.ExpectBusyLanes("Each of the 32 threads takes a part of the row.");
    run.ExpectCoalesced(
        "In each turn of the loop the 32 threads should take 32 numbers that "
        "lie side by side: i begins at the thread, and grows by 32.");
  }
  if (columns == 128) run.NoteFigures({4, 4, 0, 16});
}

void JudgeSoftmax(Judging& judging, SoftmaxRow* answer) {
  JudgeOne(judging, answer, 3, 128, 0);
  JudgeOne(judging, answer, 2, 70, 1000);
  JudgeOne(judging, answer, 4, 5, -3);
  JudgeOne(judging, answer, 1, 1, 0);
  for (const float plus : DrawnNumbers()) {
    JudgeOne(judging, answer, 3, 40, plus);
    JudgeOne(judging, answer, 2, 33, -plus);
  }
}

D2L_JUDGE("softmax_row", JudgeSoftmax);

}  // namespace
}  // namespace d2l
