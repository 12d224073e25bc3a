// One matrix product, computed by the cores of the device whose operation calls
// it (common/device/cpu/parallel_for.h), on other threads by the caller alone.
//
//   Gemm<float>({false, false, 2, 3, 4, a, 4, b, 3, c, 3});
//
// The arguments are as in MatMulArgs (kernels.h), without the batch.
//
// An element of c depends on its row of a and its column of b, and on nothing
// else: any block of c, computed alone, has the same bits as in the whole. The
// products of each kGemmDepth elements are added up from the first to the
// last, and then these sums. A multiplication and the addition that follows
// round once where the machine has an instruction for it, else twice.
//
// Thread-safety: any thread may call these functions. For Gemm, each thread
// keeps about a megabyte for its next call; Gemm throws std::bad_alloc if it
// cannot get that.

#ifndef D2L_COMMON_KERNELS_CPU_MATMUL_GEMM_H_
#define D2L_COMMON_KERNELS_CPU_MATMUL_GEMM_H_

#include <cstdint>

namespace d2l::kernels::cpu {

inline constexpr std::int64_t kGemmDepth = 384;

// The number of multiplications for which another core is worth its cost: half
// of a 100 x 100 product.
inline constexpr std::int64_t kGemmGrain = 500'000;

template <typename T>
struct GemmArgs {
  bool transpose_a;
  bool transpose_b;
  std::int64_t m, n, k;
  const T* a;
  std::int64_t lda;
  const T* b;
  std::int64_t ldb;
  T* c;
  std::int64_t ldc;
  bool accumulate = false;  // adds the product to what is in c
};

// T is float or double.
template <typename T>
void Gemm(const GemmArgs<T>& args);

// ---- Products of few rows with many: a matrix product in which one side is
// hardly more than a vector, and both sides lie in memory along k.
//
//   // y = W x, W (n, k): torch.mv
//   Gemv<float>({1, n, k, x, 0, w, k, y, 0, 1}, 0, n);
//
// c[i * c_row + j * c_column] = sum over p of a[i * lda + p] * b[j * ldb + p].
// A general product would copy b to bring its rows side by side,
// which costs more than these products do.
//
// The order of additions is fixed: kGemvParts<T> partial sums, each of every
// kGemvParts-th product, are added up as a tree of halves. It depends neither
// on the machine's vectors nor on which columns are computed.
// A multiplication and the addition that follows round once where the machine
// has an instruction for it, else twice.

template <typename T>
inline constexpr int kGemvParts = 128 / static_cast<int>(sizeof(T));

template <typename T>
struct GemvArgs {
  std::int64_t rows, columns, k;
  const T* a;
  std::int64_t lda;
  const T* b;
  std::int64_t ldb;
  T* c;
  std::int64_t c_row, c_column;
};

// All rows, columns [begin, end). T is float or double.
template <typename T>
void Gemv(const GemvArgs<T>& args, std::int64_t begin, std::int64_t end);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_MATMUL_GEMM_H_
