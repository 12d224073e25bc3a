// From an element's number to its place in memory that is not contiguous.
//
//   const StridedDims<2> dims = MakeStridedDims<2>(shape, {&out, &in});
//   std::int64_t offset[2];
//   dims.Offsets(i, offset);     // of element i in each operand, in elements
//
// A value of a kernel's parameters: no address in it. Thread-safe.

#ifndef D2L_COMMON_KERNELS_CUDA_INDEX_STRIDED_H_
#define D2L_COMMON_KERNELS_CUDA_INDEX_STRIDED_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "common/kernels/cuda/index/divider.h"
#include "common/kernels/host_device.h"
#include "common/kernels/layout.h"
#include "common/tensor/shape.h"

namespace d2l::kernels::cuda {

template <int kOperands>
struct StridedDims {
  int rank = 0;
  // As many elements that a Divider cannot count them.
  bool wide = false;
  // The outermost dimension's is not used.
  Divider divider[kMaxRank];
  std::int64_t stride[kMaxRank][kOperands] = {};

  D2L_HOST_DEVICE void Offsets(std::int64_t index,
                               std::int64_t (&offset)[kOperands]) const {
    for (int k = 0; k < kOperands; ++k) offset[k] = 0;
    if (rank == 0) return;
    if (wide) {
      for (int d = rank - 1; d > 0; --d) {
        const std::int64_t size = divider[d].divisor();
        Step(d, index % size, offset);
        index /= size;
      }
    } else {
      std::uint32_t rest = static_cast<std::uint32_t>(index);
      for (int d = rank - 1; d > 0; --d) {
        const std::uint32_t quotient = divider[d].Quotient(rest);
        Step(d, rest - quotient * divider[d].divisor(), offset);
        rest = quotient;
      }
      index = rest;
    }
    Step(0, index, offset);
  }

 private:
  D2L_HOST_DEVICE void Step(int d, std::int64_t steps,
                            std::int64_t (&offset)[kOperands]) const {
    for (int k = 0; k < kOperands; ++k) offset[k] += steps * stride[d][k];
  }
};

// shape: what is walked through, each dimension but the outermost below 2^31;
// else std::invalid_argument is thrown. strides: of each operand.
template <int kOperands>
StridedDims<kOperands> MakeStridedDims(
    const Shape& shape, const Shape* const (&strides)[kOperands]);

// An operand that is an array, for SplitRows.
struct StridedArray {
  Shape* strides;
  const void* data;
  std::size_t element_size;
  // Set: the elements of each vector are one element.
  bool repeated;
};

// Cuts the rows, the last dimension, into vectors of so many elements: then
// shape and strides are those of the vectors. Possible if the elements of a
// vector lie side by side in every array, from a multiple of the vector's size
// on, or, but for the first array, which is the output, are one element.
// Otherwise returns false and changes no stride.
bool SplitRows(int vector, Shape& shape, absl::Span<StridedArray> arrays);

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_INDEX_STRIDED_H_
