// A matrix product in four steps, each faster than the one before by one idea.
//
//   MatMulNaive(m, n, k, a, b, c);  // c = a b: (m, n) = (m, k) (k, n)
//
// All matrices are float, row-major and contiguous; c overlaps neither a nor b.
// Sides may be 0. The README beside this file says what each step brings;
// common/kernels/cpu/matmul/gemm.h is the product that tensors use.
//
// Thread-safe. The last two throw std::bad_alloc if there is no memory for the
// copies.

#ifndef D2L_COMMON_KERNELS_LADDER_MATMUL_LADDER_H_
#define D2L_COMMON_KERNELS_LADDER_MATMUL_LADDER_H_

#include <cstdint>

namespace d2l::kernels::ladder {

// Each element of c is a row of a times a column of b.
void MatMulNaive(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                 const float* b, float* c);

// Cache blocking: a block of b serves all rows of a while the cache holds it.
void MatMulTiled(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                 const float* b, float* c);

// Packing: a and b are copied into the order in which they are read, and a
// tile of c stays in registers until it is finished.
void MatMulPacked(std::int64_t m, std::int64_t n, std::int64_t k,
                  const float* a, const float* b, float* c);

// Vectors: the same, with the tile's rows in the machine's widest vectors and
// with fused multiplications and additions.
void MatMulVectorised(std::int64_t m, std::int64_t n, std::int64_t k,
                      const float* a, const float* b, float* c);

}  // namespace d2l::kernels::ladder

#endif  // D2L_COMMON_KERNELS_LADDER_MATMUL_LADDER_H_
