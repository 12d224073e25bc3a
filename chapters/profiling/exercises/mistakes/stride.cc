#include <algorithm>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace adds_to_old_values {
void ColumnSums(const float* x, int rows, int columns, float* sums) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) sums[j] += x[i * columns + j];
  }
}
}  // namespace adds_to_old_values

namespace begins_with_the_first_row {
void ColumnSums(const float* x, int rows, int columns, float* sums) {
  if (rows == 0) return;
  std::copy(x, x + columns, sums);
  for (int i = 1; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) sums[j] += x[i * columns + j];
  }
}
}  // namespace begins_with_the_first_row

namespace columns_lie_together {
void ColumnSums(const float* x, int rows, int columns, float* sums) {
  for (int j = 0; j < columns; ++j) {
    sums[j] = 0;
    for (int i = 0; i < rows; ++i) sums[j] += x[j * rows + i];
  }
}
}  // namespace columns_lie_together

namespace a_row_too_many {
void ColumnSums(const float* x, int rows, int columns, float* sums) {
  std::fill(sums, sums + columns, 0.f);
  for (int i = 0; i <= rows; ++i) {
    for (int j = 0; j < columns; ++j) sums[j] += x[i * columns + j];
  }
}
}  // namespace a_row_too_many

namespace a_column_too_many {
void ColumnSums(const float* x, int rows, int columns, float* sums) {
  for (int j = 0; j <= columns; ++j) {
    sums[j] = 0;
    for (int i = 0; i < rows; ++i) sums[j] += x[i * columns + j];
  }
}
}  // namespace a_column_too_many

namespace skips_nan {
void ColumnSums(const float* x, int rows, int columns, float* sums) {
  std::fill(sums, sums + columns, 0.f);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const float number = x[i * columns + j];
      if (number == number) sums[j] += number;
    }
  }
}
}  // namespace skips_nan

D2L_MISTAKE("stride", adds_to_old_values, ColumnSums, "has old values");
D2L_MISTAKE("stride", begins_with_the_first_row, ColumnSums, "Without rows");
D2L_MISTAKE("stride", columns_lie_together, ColumnSums, "one after the other");
D2L_MISTAKE("stride", a_row_too_many, ColumnSums, "a row too many");
D2L_MISTAKE("stride", a_column_too_many, ColumnSums,
            "a write beside the array");
D2L_MISTAKE("stride", skips_nan, ColumnSums, "A NaN, or an infinity,");

}  // namespace
}  // namespace d2l
