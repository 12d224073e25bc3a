// Products of few rows with many: what a matrix product is if one side is
// hardly more than a vector, and both lie in memory along k.
//
//   // y = W x, W (n, k): torch.mv
//   Dots<float>({1, n, k, x, 0, w, k, y, 0, 1}, 0, n);
//
// c[i * c_row + j * c_column] = sum over p of a[i * lda + p] * b[j * ldb + p].
// A general product (gemm.h) would copy b to bring its rows side by side,
// which costs more than these products do.
//
// The order of additions is fixed: kDotParts<T> partial sums, each of every
// kDotParts-th product, are added up as a tree of halves. It does not depend
// on the vectors of the machine nor on which columns are asked for.
// A multiplication and the addition that follows round once where the machine
// has an instruction for it, else twice.
//
// Thread-safe; nothing fails.

#ifndef D2L_COMMON_KERNELS_CPU_MATMUL_DOTS_H_
#define D2L_COMMON_KERNELS_CPU_MATMUL_DOTS_H_

#include <cstdint>

namespace d2l::kernels::cpu {

template <typename T>
inline constexpr int kDotParts = 128 / static_cast<int>(sizeof(T));

template <typename T>
struct DotsArgs {
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
void Dots(const DotsArgs<T>& args, std::int64_t begin, std::int64_t end);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_MATMUL_DOTS_H_
