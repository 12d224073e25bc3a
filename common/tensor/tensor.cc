#include "common/tensor/tensor.h"

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"

namespace d2l {
namespace internal {

void TakeValueIds() {
  constexpr std::uint64_t kBlock = std::uint64_t{1} << 20;
  static std::atomic<std::uint64_t> next_block{1};  // 0 names no value
  value_ids.next = next_block.fetch_add(1, std::memory_order_relaxed) * kBlock;
  value_ids.end = value_ids.next + kBlock;
}

}  // namespace internal

Tensor Tensor::View(const Tensor& base, std::int64_t offset, const Shape& shape,
                    const Shape& strides) {
  Tensor view = base;
  view.id_ = NextValueId();
  view.offset_ = offset;
  view.shape_ = shape;
  view.strides_ = strides;
  view.contiguous_ = true;
  if (shape.numel() == 0) return view;
  // A stride says nothing where there is at most one step.
  std::int64_t expected = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] > 1 && strides[i] != expected) view.contiguous_ = false;
    expected *= shape[i];
  }
  return view;
}

std::string Tensor::Describe() const {
  if (!defined()) return "undefined tensor";
  return absl::StrFormat("%s tensor of shape %s on %s", DTypeName(dtype_),
                         shape_.ToString(), device_.ToString());
}

}  // namespace d2l
