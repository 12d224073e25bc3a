// A product in the terms of BLAS, whose matrices are column-major.
//
//   const GemmCall call = MakeGemmCall(args);  // of kernels.h
//   // cublasSgemm(handle, call.transpose_first ? T : N, …, call.m, call.n, …)
//
// A row-major matrix is the column-major form of its transpose; c = a b becomes
// c' = b' a'. So the operands change places, and so do m and n.
//
// Pure functions; thread-safe.

#ifndef D2L_COMMON_KERNELS_CUDA_INDEX_GEMM_CALL_H_
#define D2L_COMMON_KERNELS_CUDA_INDEX_GEMM_CALL_H_

#include <algorithm>
#include <cstdint>

#include "common/kernels/kernels.h"

namespace d2l::kernels::cuda {

// c, (m, n), is first times second, (m, k) and (k, n); each is stored
// column-major, and transposed if `transpose_…` is set.
struct GemmCall {
  bool transpose_first;
  bool transpose_second;
  std::int64_t m, n, k;
  const void* first;
  std::int64_t ld_first;
  const void* second;
  std::int64_t ld_second;
  void* c;
  std::int64_t ld_c;
  std::int64_t batch;
  std::int64_t stride_first, stride_second, stride_c;
  bool accumulate = false;  // adds to the content of c
};

// Makes a batch with one b for all, as in a layer of a network, a single
// product with more rows, if the memory's layout allows it.
inline MatMulArgs Unbatched(MatMulArgs args) {
  if (args.batch > 1 && !args.transpose_a && args.b_stride == 0 &&
      args.a_stride == args.m * args.lda &&
      args.c_stride == args.m * args.ldc) {
    args.m *= args.batch;
    args.batch = 1;
  }
  return args;
}

inline GemmCall MakeGemmCall(const MatMulArgs& args) {
  // BLAS wants rows of at least one element even for an empty matrix.
  const auto at_least_one = [](std::int64_t ld) {
    return std::max<std::int64_t>(ld, 1);
  };
  return {args.transpose_b,
          args.transpose_a,
          args.n,
          args.m,
          args.k,
          args.b,
          at_least_one(args.ldb),
          args.a,
          at_least_one(args.lda),
          args.c,
          at_least_one(args.ldc),
          args.batch,
          args.b_stride,
          args.a_stride,
          args.c_stride};
}

// ---- Products for which cuBLAS takes longer to choose and launch a kernel
// than the arithmetic takes.

// The sides of the tile of c that a block of threads computes.
inline constexpr int kSmallTile = 16;

inline std::int64_t SmallTiles(const MatMulArgs& args) {
  return (args.m + kSmallTile - 1) / kSmallTile *
         ((args.n + kSmallTile - 1) / kSmallTile) * args.batch;
}

// Whether matmul.cu computes the product. The bounds have not been measured on
// a GPU: they keep each thread's sum short, and all tiles of a (100, 100)
// product on different multiprocessors.
inline bool IsSmallProduct(const MatMulArgs& args) {
  constexpr std::int64_t kDepth = 128;
  constexpr std::int64_t kTiles = 64;
  constexpr std::int64_t kTinyDepth = 32;
  // c is 0 then; BLAS is not needed.
  if (args.k == 0) return true;
  // Each matrix of a batch fits one block, whatever the size of the batch.
  if (args.m <= kSmallTile && args.n <= kSmallTile && args.k <= kTinyDepth) {
    return true;
  }
  return args.k <= kDepth && SmallTiles(args) <= kTiles;
}

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_INDEX_GEMM_CALL_H_
