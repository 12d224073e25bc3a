// Judges stride: the sums, then the time; and how fast memory is in other
// orders.

#include <algorithm>
#include <cmath>
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

using ColumnSums = void(const float* x, int rows, int columns, float* sums);

void ByRows(const float* x, int rows, int columns, float* sums) {
  std::fill(sums, sums + columns, 0.f);
  for (int i = 0; i < rows; ++i) {
    const float* const row = x + i * columns;
    for (int j = 0; j < columns; ++j) sums[j] += row[j];
  }
}

void JudgeOne(const Judging& judging, ColumnSums* answer, int rows, int columns,
              NumberKind kind) {
  constexpr float kBefore = 1000;
  // One row more than the answer may read.
  const std::vector<float> x = RandomNumbers((rows + 1) * columns, 1, kind);
  const std::string input = Say("%d rows, %d columns", rows, columns);
  Fenced sums(columns, kBefore);
  answer(x.data(), rows, columns, sums.data());
  if (!sums.Whole()) {
    judging.Wrong(
        {input, "a write beside the array", "none",
         "An index is below 0, or too large for the last row or tile."});
  }
  const float* const got = sums.data();
  for (int j = 0; j < columns; ++j) {
    double sum = 0, size = 0;  // of the addends together
    for (int i = 0; i < rows; ++i) {
      sum += x[i * columns + j];
      if (std::isfinite(x[i * columns + j])) {
        size += std::abs(x[i * columns + j]);
      }
    }
    if (AllClose({got[j]}, {static_cast<float>(sum)}, 0)) continue;
    if (std::abs(got[j] - sum) <= 1e-5 * size) continue;
    const char* look =
        "The rows lie one after the other: row i, column j is "
        "x[i * columns + j].";
    if (!std::isfinite(sum)) {
      look =
          "A NaN, or an infinity, counts as any number does: the sum that it "
          "is in is NaN, or infinite, too.";
    } else if (rows == 0) {
      look = "Without rows each sum is 0, and nothing of x may be read.";
    } else if (std::abs(got[j] - sum - kBefore) <= 1e-5 * size + 1e-3) {
      look = "sums has old values: begin with 0.";
    } else if (std::abs(got[j] - sum - x[rows * columns + j]) <= 1e-5 * size) {
      look = "That is a row too many: the rows are 0 to rows - 1.";
    }
    judging.Wrong({input, Say("%.7g in column %d", got[j], j),
                   absl::StrFormat("%.7g", sum), look});
  }
}

// How many GB per second `order` reads; order(i) is the i-th number's offset in
// bytes.
template <typename Order>
std::string Rate(const std::vector<float>& x, std::size_t count, Order order) {
  const char* const bytes = reinterpret_cast<const char*>(x.data());
  double best = 0;
  float total = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const Timer timer;
    float sums[4] = {};  // four, so that no sum waits for the one before
    for (std::size_t i = 0; i + 4 <= count; i += 4) {
      for (std::size_t k = 0; k < 4; ++k) {
        float number;
        std::memcpy(&number, bytes + order(i + k), sizeof number);
        sums[k] += number;
      }
    }
    total += sums[0] + sums[1] + sums[2] + sums[3];
    best = std::max(best, count * sizeof(float) / timer.Seconds() / 1e9);
  }
  // The result uses the total, so that it is computed.
  return absl::StrFormat("%5.2f GB/s%s", best, std::isnan(total) ? " " : "");
}

void JudgeColumnSums(Judging& judging, ColumnSums* answer) {
  for (const int rows : {7, 64, 1, 0}) {
    for (const int columns : {5, 33, 1}) {
      JudgeOne(judging, answer, rows, columns, NumberKind::kMixed);
    }
  }
  for (const NumberKind kind : kNumberKinds) {
    JudgeOne(judging, answer, 9, 6, kind);
  }
  if (!judging.timed()) return;

  constexpr int kRows = 4096, kColumns = 1024;
  constexpr std::size_t kCount = std::size_t{kRows} * kColumns;
  const std::vector<float> x = RandomNumbers(kCount + 1, 1);
  std::vector<float> sums(kColumns);
  const auto run = [&](ColumnSums* function) {
    return [&x, &sums, function] {
      function(x.data(), kRows, kColumns, sums.data());
    };
  };
  judging.Race(
      {"yours, 4096 x 1024", {}, run(answer)},
      {{"row by row", {}, run(ByRows)},
       2,
       "Down a column each number is 4 KB from the last: a cache line "
       "of 64 bytes is fetched for 4 of them. Go through memory in its "
       "order, and keep all sums at hand."});
  judging.Note(Say("The same 16 MB, each number read once, by one thread:"));
  const auto note = [&](const char* order, const std::string& rate) {
    judging.Note(Say("  %s %s", Padded(Translated(order), 26), rate));
  };
  note("forward", Rate(x, kCount, [](std::size_t i) { return 4 * i; }));
  note("backward",
       Rate(x, kCount, [](std::size_t i) { return 4 * (kCount - 1 - i); }));
  note("forward, misaligned",
       Rate(x, kCount, [](std::size_t i) { return 4 * i + 1; }));
  note("column by column", Rate(x, kCount, [](std::size_t i) {
         return 4 * (i % kRows * kColumns + i / kRows);
       }));
}

D2L_JUDGE("stride", JudgeColumnSums);

}  // namespace
}  // namespace d2l
