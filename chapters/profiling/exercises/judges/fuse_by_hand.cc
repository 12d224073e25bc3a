// Judges fuse_by_hand: the numbers, also where y is an input, then the time
// beside one pass and beside three.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/timer.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/lesson/cell/cell.h"

namespace d2l {
namespace {

using Fused = void(const float* x, const float* bias, const float* residual,
                   float scale, float* y, int rows, int columns);

// In three passes, as in the exercise.
void InPasses(const float* x, const float* bias, const float* residual,
              float scale, float* y, int rows, int columns) {
  const int count = rows * columns;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      y[i * columns + j] = x[i * columns + j] + bias[j];
    }
  }
  for (int i = 0; i < count; ++i) y[i] *= scale;
  for (int i = 0; i < count; ++i) y[i] += residual[i];
}

void InOnePass(const float* x, const float* bias, const float* residual,
               float scale, float* y, int rows, int columns) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const int at = i * columns + j;
      y[at] = (x[at] + bias[j]) * scale + residual[at];
    }
  }
}

// The time of memcpy, which reads and writes 8 bytes for each number.
double CopySeconds(const std::vector<float>& from, std::vector<float>& to) {
  double best = 1;
  for (int repeat = 0; repeat < 9; ++repeat) {
    const Timer timer;
    std::memcpy(to.data(), from.data(), from.size() * sizeof(float));
    best = std::min(best, timer.Seconds());
  }
  return best;
}

void JudgeOne(const Judging& judging, Fused* answer, int rows, int columns,
              float scale, NumberKind kind, bool first) {
  const std::size_t count = std::size_t{1} * rows * columns;
  const std::vector<float> x = RandomNumbers(count, 1, kind);
  const std::vector<float> bias = RandomNumbers(columns, 2);
  const std::vector<float> residual = RandomNumbers(count, 3, kind);
  std::vector<float> expected(count), y;
  Fenced memory(count, 1000);
  const std::string input =
      Say("%d rows, %d columns, scale = %g", rows, columns, scale);
  InPasses(x.data(), bias.data(), residual.data(), scale, expected.data(), rows,
           columns);
  const Allocations allocations;
  answer(x.data(), bias.data(), residual.data(), scale, memory.data(), rows,
         columns);
  const int allocated = allocations.count();
  y.assign(memory.data(), memory.data() + count);
  if (!memory.Whole()) {
    judging.Wrong(
        {input, "a write beside the array", "none",
         "An index is below 0, or too large for the last row or tile."});
  }
  std::vector<float> by_row = residual;  // with the bias of the row
  for (std::size_t i = 0; i < count; ++i) {
    by_row[i] += (x[i] + bias[i / columns % columns]) * scale;
  }
  judging.ExpectClose(
      input, y, expected, 1e-6,
      AllClose(y, by_row, 1e-6)
          ? "This adds the bias of the row. There is one for each column: "
            "bias[j]."
      : !first
          ? "With another scale, or other numbers, these are wrong: scale is "
            "what the caller gives, and there are NaNs, infinities and zeros."
          : "Each column has its bias; the residual is added last, unscaled.");
  if (allocated > 0) {
    judging.Wrong({input, Say("%d allocations", allocated), "none",
                   "Memory of its own costs the passes that this is to save: y "
                   "is all that is written."});
  }
  y = x;
  answer(y.data(), bias.data(), residual.data(), scale, y.data(), rows,
         columns);
  judging.ExpectClose(
      Say("%d rows, %d columns; y is the array of x", rows, columns), y,
      expected, 1e-6,
      "Read an element of x before you write that of y, and once only.");
  y = residual;
  answer(x.data(), bias.data(), y.data(), scale, y.data(), rows, columns);
  judging.ExpectClose(
      Say("%d rows, %d columns; y is the array of residual", rows, columns), y,
      expected, 1e-6,
      "What is kept in y between two passes has overwritten the residual. "
      "Keep it in a variable, in one pass.");
}

void JudgeFused(Judging& judging, Fused* answer) {
  constexpr std::array<int, 2> kSizes[] = {
      {3, 5}, {64, 33}, {1, 1}, {0, 4}, {4, 0}};
  for (const auto& [rows, columns] : kSizes) {
    JudgeOne(judging, answer, rows, columns, 1.7f, NumberKind::kMixed, true);
  }
  for (const float scale : DrawnNumbers()) {
    for (const NumberKind kind : kNumberKinds) {
      JudgeOne(judging, answer, 7, 9, scale, kind, false);
    }
  }

  constexpr int kRows = 2048, kColumns = 2048;
  const std::vector<float> x(kRows * kColumns, 1), bias(kColumns, 2);
  const std::vector<float> residual(kRows * kColumns, 3);
  std::vector<float> y(kRows * kColumns);
  const auto run = [&](Fused* function) {
    return [&x, &bias, &residual, &y, function] {
      function(x.data(), bias.data(), residual.data(), 1.7f, y.data(), kRows,
               kColumns);
    };
  };
  // More than a stack or a static array would have room for.
  run(answer)();
  if (std::count(y.begin(), y.end(), 3 * 1.7f + 3) != kRows * kColumns) {
    judging.Wrong({Say("%d rows, %d columns, scale = %g", kRows, kColumns, 1.7),
                   "other numbers", absl::StrFormat("%g", 3 * 1.7f + 3),
                   "Memory of its own costs the passes that this is to save: y "
                   "is all that is written."});
  }
  if (!judging.timed()) return;

  const Alternative yours = {"yours, 2048 x 2048", {}, run(answer)};
  judging.Race(yours, {{"one pass", {}, run(InOnePass)},
                       1.5,
                       "One pass reads x and residual and writes y: 12 bytes "
                       "for each number. Each further pass adds 8.",
                       1.5 * CopySeconds(x, y),
                       "bound: 12 bytes, as memcpy"});
  judging.Race(yours, {{"three passes", {}, run(InPasses)},
                       1.1,
                       "Three passes are as fast as this."});
}

D2L_JUDGE("fuse_by_hand", JudgeFused);

}  // namespace
}  // namespace d2l
