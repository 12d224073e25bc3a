#include <algorithm>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace adds_to_old_values {
void Product(const float* a, const float* b, float* c, int m, int k, int n) {
  for (int i = 0; i < m; ++i) {
    for (int p = 0; p < k; ++p) {
      for (int j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
    }
  }
}
}  // namespace adds_to_old_values

namespace whole_tiles_only {
void Product(const float* a, const float* b, float* c, int m, int k, int n) {
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j + 4 <= n; j += 4) {
      float sums[4] = {};
      for (int p = 0; p < k; ++p) {
        for (int q = 0; q < 4; ++q) sums[q] += a[i * k + p] * b[p * n + j + q];
      }
      std::copy(sums, sums + 4, c + i * n + j);
    }
  }
}
}  // namespace whole_tiles_only

namespace transposed {
void Product(const float* a, const float* b, float* c, int m, int k, int n) {
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int p = 0; p < k; ++p) sum += a[i * k + p] * b[j * k + p];
      c[i * n + j] = sum;
    }
  }
}
}  // namespace transposed

namespace past_the_edge {
void Product(const float* a, const float* b, float* c, int m, int k, int n) {
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; j += 4) {
      float sums[4] = {};
      for (int p = 0; p < k; ++p) {
        for (int q = 0; q < 4 && j + q < n; ++q) {
          sums[q] += a[i * k + p] * b[p * n + j + q];
        }
      }
      std::copy(sums, sums + 4, c + i * n + j);
    }
  }
}
}  // namespace past_the_edge

namespace begins_with_the_first_product {
void Product(const float* a, const float* b, float* c, int m, int k, int n) {
  for (int i = 0; i < m; ++i) {
    for (int p = 0; p < k; ++p) {
      for (int j = 0; j < n; ++j) {
        const float product = a[i * k + p] * b[p * n + j];
        c[i * n + j] = p == 0 ? product : c[i * n + j] + product;
      }
    }
  }
}
}  // namespace begins_with_the_first_product

namespace skips_nan {
void Product(const float* a, const float* b, float* c, int m, int k, int n) {
  std::fill(c, c + m * n, 0.f);
  for (int i = 0; i < m; ++i) {
    for (int p = 0; p < k; ++p) {
      const float factor = a[i * k + p];
      if (factor != factor) continue;
      for (int j = 0; j < n; ++j) c[i * n + j] += factor * b[p * n + j];
    }
  }
}
}  // namespace skips_nan

D2L_MISTAKE("matrix_product", adds_to_old_values, Product, "has old values");
D2L_MISTAKE("matrix_product", whole_tiles_only, Product, "Nobody wrote this");
D2L_MISTAKE("matrix_product", transposed, Product, "one after the other");
D2L_MISTAKE("matrix_product", past_the_edge, Product,
            "a write beside the array");
D2L_MISTAKE("matrix_product", begins_with_the_first_product, Product,
            "and each sum is 0");
D2L_MISTAKE("matrix_product", skips_nan, Product, "A NaN, or an infinity,");

}  // namespace
}  // namespace d2l
