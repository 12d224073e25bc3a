// tiled_product: each number is loaded once for sixteen.
//
//   bazel run //:exercises -- tiled_product

#include "common/exercise/kernel.h"

namespace d2l {
namespace {

constexpr int kTile = 16;

// c = a b: a is (m, k), b (k, n), c (m, n), of any size. Blocks are 16 x 16
// threads; the grid covers the columns of c in x, its rows in y. A block goes
// through tiles of a and b: each thread loads one number of each into shared
// memory, and all use them 16 times.
__global__ void Product(float* c, const float* a, const float* b, int m, int k,
                        int n) {
  // YOUR CODE
  KernelIsNotDone();
}

D2L_ANSWER("tiled_product", Product);

}  // namespace
}  // namespace d2l
