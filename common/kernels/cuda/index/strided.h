// From an element's number to its offset in memory that is not contiguous.
//
//   const StridedDims<2> dims = MakeStridedDims<2>(shape, {&out, &in});
//   std::int64_t offset[2];
//   dims.Offsets(i, offset);     // of element i in each operand, in elements
//
// A value to pass as a kernel's parameter: it holds no address. Thread-safe.

#ifndef D2L_COMMON_KERNELS_CUDA_INDEX_STRIDED_H_
#define D2L_COMMON_KERNELS_CUDA_INDEX_STRIDED_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "absl/types/span.h"
#include "common/kernels/cuda/index/divider.h"
#include "common/kernels/host_device.h"
#include "common/kernels/layout.h"
#include "common/tensor/shape.h"

namespace d2l::kernels::cuda {

template <int kOperands>
struct StridedDims {
  int rank = 0;
  // Whether there are more elements than a Divider can count.
  bool wide = false;
  // The outermost dimension's divider is not used.
  Divider divider[kMaxRank];
  std::int64_t stride[kMaxRank][kOperands] = {};

  D2L_HOST_DEVICE void Offsets(std::int64_t index,
                               std::int64_t (&offset)[kOperands]) const {
    for (int k = 0; k < kOperands; ++k) offset[k] = 0;
    if (rank == 0) return;
    if (wide) {
      for (int d = rank - 1; d > 0; --d) {
        const std::int64_t size = divider[d].divisor();
        AddSteps(d, index % size, offset);
        index /= size;
      }
    } else {
      std::uint32_t rest = static_cast<std::uint32_t>(index);
      for (int d = rank - 1; d > 0; --d) {
        const std::uint32_t quotient = divider[d].Quotient(rest);
        AddSteps(d, rest - quotient * divider[d].divisor(), offset);
        rest = quotient;
      }
      index = rest;
    }
    AddSteps(0, index, offset);
  }

 private:
  D2L_HOST_DEVICE void AddSteps(int d, std::int64_t steps,
                                std::int64_t (&offset)[kOperands]) const {
    for (int k = 0; k < kOperands; ++k) offset[k] += steps * stride[d][k];
  }
};

// `shape` is iterated over; each dimension but the outermost is below 2^31,
// else std::invalid_argument is thrown. `strides` are those of each operand.
template <int kOperands>
StridedDims<kOperands> MakeStridedDims(
    const Shape& shape, const Shape* const (&strides)[kOperands]) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  StridedDims<kOperands> dims;
  dims.rank = shape.rank();
  dims.wide = shape.numel() > kMost;
  for (int d = 0; d < shape.rank(); ++d) {
    if (d > 0) {
      if (shape[d] > kMost) {
        throw std::invalid_argument(
            "[kernels] a dimension of " + std::to_string(shape[d]) +
            " elements behind another one is too long for CUDA; the most is " +
            std::to_string(kMost));
      }
      // There is nothing to iterate over if a size is 0.
      dims.divider[d] =
          Divider(shape[d] == 0 ? 1 : static_cast<std::uint32_t>(shape[d]));
    }
    for (int k = 0; k < kOperands; ++k) dims.stride[d][k] = (*strides[k])[d];
  }
  return dims;
}

// An operand, for SplitRows.
struct StridedOperand {
  Shape* strides;
  const void* data;  // null for a number
  std::size_t element_size;
  // Set by SplitRows: a vector is one element, repeated.
  bool repeated;
};

// Cuts the rows, the last dimension, into vectors of `vector` elements: then
// shape and strides count vectors. In every array, a vector's elements must lie
// side by side, from a multiple of the vector's size on; in an array other than
// the first, the output, they may also be one repeated element. Otherwise
// returns false and changes no stride. Numbers fit any vector.
inline bool SplitRows(int vector, Shape& shape,
                      absl::Span<StridedOperand> operands) {
  const int last = shape.rank() - 1;
  if (shape[last] % vector != 0) return false;
  for (StridedOperand& operand : operands) {
    if (operand.data == nullptr) continue;
    const Shape& strides = *operand.strides;
    operand.repeated = strides[last] == 0 && &operand != &operands[0];
    if (operand.repeated) continue;
    const std::size_t bytes =
        operand.element_size * static_cast<std::size_t>(vector);
    if (strides[last] != 1) return false;
    if (reinterpret_cast<std::uintptr_t>(operand.data) % bytes != 0) {
      return false;
    }
    for (int d = 0; d < last; ++d) {
      if (strides[d] % vector != 0) return false;
    }
  }
  shape[last] /= vector;
  for (const StridedOperand& operand : operands) {
    const bool in_memory = operand.data != nullptr && !operand.repeated;
    if (in_memory) (*operand.strides)[last] = vector;
  }
  return true;
}

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_INDEX_STRIDED_H_
