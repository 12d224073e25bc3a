// What the rules and the tape do to shapes.

#include <algorithm>
#include <cstdint>

#include "common/autograd/gradient_rules.h"
#include "common/ops/ops.h"

namespace d2l {

Tensor SumToShape(const Tensor& x, const Shape& shape, SourceLocation at) {
  if (x.shape() == shape) return x;
  const int missing = x.dim() - shape.rank();
  Dims dims;
  for (int i = 0; i < x.dim(); ++i) {
    const bool repeated = i < missing || shape[i - missing] == 1;
    if (repeated && x.size(i) != 1) dims.Add(i);
  }
  return Reshape(dims.empty() ? x : Sum(x, dims, /*keepdim=*/true, at), shape,
                 at);
}

Tensor PutInZeros(const Tensor& x, const Shape& shape, int dim,
                  std::int64_t start, std::int64_t step, SourceLocation at) {
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != dim) (i < dim ? outer : inner) *= shape[i];
  }
  const auto zeros = [&](const Shape& of) {
    return Zeros(of, x.device(), x.dtype(), at);
  };
  const std::int64_t count = x.size(dim);
  Tensor y = Reshape(x, {outer, count, inner}, at);
  if (count > 1 && step > 1) {
    // Each with the gap behind it; the last gap may reach beyond the end.
    const Tensor gaps = zeros({outer, count, step - 1, inner});
    y = Reshape(Cat({Unsqueeze(y, 2, at), gaps}, 2, at),
                {outer, count * step, inner}, at);
    y = Slice(y, 1, 0, (count - 1) * step + 1, 1, at);
  }
  const std::int64_t size = shape[dim];
  start = std::clamp<std::int64_t>(start < 0 ? start + size : start, 0, size);
  const std::int64_t rest = size - start - y.size(1);
  y = Cat({zeros({outer, start, inner}), y, zeros({outer, rest, inner})}, 1,
          at);
  return Reshape(y, shape, at);
}

}  // namespace d2l
