// matrix_product: a product of matrices, faster rung by rung.
//
//   bazel run //:exercises -- matrix_product

#include <algorithm>
#include <vector>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

using Vec =
    float __attribute__((vector_size(16)));  // four at a time: x += y * z

// c = a b, on this thread; a is (m, k), b (k, n) and c (m, n), row by row.
void Product(const float* a, const float* b, float* c, int m, int k, int n) {
  // SOLUTION
  // Packed: four columns of b side by side, eight rows of a; at the edges
  // zeros.
  std::vector<Vec> columns((n + 3) / 4 * k);
  for (int i = 0; i < (n + 3) / 4 * k * 4; ++i) {
    const int p = i / 4 % k, j = i / 4 / k * 4 + i % 4;
    columns[i / 4][i % 4] = j < n ? b[p * n + j] : 0;
  }
  std::vector<float> rows(8 * k);
  for (int i = 0; i < m; i += 8) {
    for (int p = 0; p < 8 * k; ++p) {
      rows[p] = i + p % 8 < m ? a[(i + p % 8) * k + p / 8] : 0;
    }
    for (int j = 0; j < n; j += 4) {
      Vec sums[8] = {};  // of a tile, in registers
      for (int p = 0; p < k; ++p) {
#pragma GCC unroll 8
        for (int r = 0; r < 8; ++r) {
          sums[r] += rows[8 * p + r] * columns[j / 4 * k + p];
        }
      }
      for (int r = 0; r < std::min(8, m - i); ++r) {
        for (int q = 0; q < std::min(4, n - j); ++q) {
          c[(i + r) * n + j + q] = sums[r][q];
        }
      }
    }
  }
  // END
}

D2L_ANSWER("matrix_product", Product);

}  // namespace
}  // namespace d2l
