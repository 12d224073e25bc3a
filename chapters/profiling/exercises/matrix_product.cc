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
  // YOUR CODE
  throw NotDone();
}

D2L_ANSWER("matrix_product", Product);

}  // namespace
}  // namespace d2l
