// stride: add up columns, in the order in which the memory lies.
//
//   bazel run //:exercises -- stride

#include <algorithm>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

// x has `rows` rows of `columns` numbers, row after row. Puts the sum of each
// column into sums, which has `columns` numbers.
void ColumnSums(const float* x, int rows, int columns, float* sums) {
  // SOLUTION
  std::fill(sums, sums + columns, 0.f);
  for (int i = 0; i < rows; ++i) {
    const float* const row = x + i * columns;
    for (int j = 0; j < columns; ++j) sums[j] += row[j];
  }
  // END
}

D2L_ANSWER("stride", ColumnSums);

}  // namespace
}  // namespace d2l
