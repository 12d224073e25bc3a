// Copies of strided elements, and copies with non-temporal stores.
//
//   // The transpose of a (rows, cols) matrix of floats.
//   CopyTile(4, cols, rows, {out, rows, 1}, {in, 1, cols}, /*stream=*/false);
//
// "To stream" is to use non-temporal stores, which do not read a line before
// overwriting it: for results that are too large to stay in a cache.
//
// Thread-safe; nothing fails.

#ifndef D2L_COMMON_KERNELS_CPU_STRIDED_COPY_H_
#define D2L_COMMON_KERNELS_CPU_STRIDED_COPY_H_

#include <cstddef>
#include <cstdint>

namespace d2l::kernels::cpu {

// Where the elements of a matrix are; strides count elements. Byte is char or
// const char.
template <typename Byte>
struct Matrix {
  Byte* data;
  std::int64_t row_stride;
  std::int64_t col_stride;
};

// Copies a matrix of elements of 1, 4 or 8 bytes, which do not overlap.
// `stream` lets it stream a transposed matrix.
void CopyTile(int element_size, std::int64_t rows, std::int64_t cols,
              const Matrix<char>& to, const Matrix<const char>& from,
              bool stream);

// Streams `bytes` bytes. Before FinishStream() the stores are not ordered with
// any others.
void StreamBytes(void* to, const void* from, std::size_t bytes);
void FinishStream();

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_STRIDED_COPY_H_
