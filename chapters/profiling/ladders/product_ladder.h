// The steps of the cell d2l/product-ladder: a matrix product on the CPU, each
// step faster than the one before by one idea.
//
//   for (const ProductStep& step : ProductSteps()) {
//     step.multiply(m, n, k, a, b, c);  // c = a b: (m, n) = (m, k) (k, n)
//   }
//
// Matrices are float, row-major and contiguous; c overlaps neither a nor b.
// Sides may be 0. Thread-safe; works on the calling thread.

#ifndef D2L_CHAPTERS_PROFILING_LADDERS_PRODUCT_LADDER_H_
#define D2L_CHAPTERS_PROFILING_LADDERS_PRODUCT_LADDER_H_

#include <cstdint>
#include <vector>

namespace d2l::profiling {

struct ProductStep {
  const char* name;
  void (*multiply)(std::int64_t m, std::int64_t n, std::int64_t k,
                   const float* a, const float* b, float* c);
};
const std::vector<ProductStep>& ProductSteps();

}  // namespace d2l::profiling

#endif  // D2L_CHAPTERS_PROFILING_LADDERS_PRODUCT_LADDER_H_
