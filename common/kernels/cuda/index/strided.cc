#include "common/kernels/cuda/index/strided.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace d2l::kernels::cuda {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

}  // namespace

template <int kOperands>
StridedDims<kOperands> MakeStridedDims(
    const Shape& shape, const Shape* const (&strides)[kOperands]) {
  StridedDims<kOperands> dims;
  dims.rank = shape.rank();
  dims.wide = shape.numel() > kMost;
  for (int d = 0; d < shape.rank(); ++d) {
    if (d > 0) {
      if (shape[d] > kMost) {
        throw std::invalid_argument(
            absl::StrCat("[kernels] a dimension of ", shape[d],
                         " elements behind another one is too long for CUDA; "
                         "the most is ",
                         kMost));
      }
      // Nothing is walked through if a size is 0.
      dims.divider[d] =
          Divider(shape[d] == 0 ? 1 : static_cast<std::uint32_t>(shape[d]));
    }
    for (int k = 0; k < kOperands; ++k) dims.stride[d][k] = (*strides[k])[d];
  }
  return dims;
}

template StridedDims<1> MakeStridedDims(const Shape&,
                                        const Shape* const (&)[1]);
template StridedDims<2> MakeStridedDims(const Shape&,
                                        const Shape* const (&)[2]);
template StridedDims<3> MakeStridedDims(const Shape&,
                                        const Shape* const (&)[3]);
template StridedDims<4> MakeStridedDims(const Shape&,
                                        const Shape* const (&)[4]);

bool SplitRows(int vector, Shape& shape, absl::Span<StridedArray> arrays) {
  const int last = shape.rank() - 1;
  if (shape[last] % vector != 0) return false;
  for (StridedArray& array : arrays) {
    const Shape& strides = *array.strides;
    array.repeated = strides[last] == 0 && &array != &arrays[0];
    if (array.repeated) continue;
    const std::size_t bytes =
        array.element_size * static_cast<std::size_t>(vector);
    if (strides[last] != 1) return false;
    if (reinterpret_cast<std::uintptr_t>(array.data) % bytes != 0) return false;
    for (int d = 0; d < last; ++d) {
      if (strides[d] % vector != 0) return false;
    }
  }
  shape[last] /= vector;
  for (const StridedArray& array : arrays) {
    if (!array.repeated) (*array.strides)[last] = vector;
  }
  return true;
}

}  // namespace d2l::kernels::cuda
