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

bool Tensor::AreContiguous(const Shape& shape, const Shape& strides) {
  // The stride of a dimension of size 0 or 1 does not matter.
  std::uint64_t expected = 1;
  bool contiguous = true;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] == 0) return true;
    if (shape[i] > 1 && strides[i] != static_cast<std::int64_t>(expected)) {
      contiguous = false;
    }
    expected *= shape[i];
  }
  return contiguous;
}

std::int64_t Tensor::span() const {
  if (numel() == 0) return 0;
  std::int64_t span = 1;
  for (int i = 0; i < dim(); ++i) span += (size(i) - 1) * strides_[i];
  return span;
}

std::string Tensor::Describe() const {
  if (!defined()) return "an undefined tensor";
  return absl::StrFormat(
      "%s %s tensor of shape %s on %s", dtype_ == DType::kInt64 ? "an" : "a",
      DTypeName(dtype_), shape_.ToString(), device_.ToString());
}

}  // namespace d2l
