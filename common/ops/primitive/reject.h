// Reject, RejectAt: throw std::invalid_argument, for arguments that are wrong.
//
//   Reject("[matmul] inner sizes differ: %s @ %s", a.shape(), b.shape());
//   RejectAt(at, "[item] one element wanted; got %s", x);
//
// The second names the line of the request: "…; requested at lesson.cc:12". %s
// takes tensors, which are described, dtypes, and values with a ToString.

#ifndef D2L_COMMON_OPS_PRIMITIVE_REJECT_H_
#define D2L_COMMON_OPS_PRIMITIVE_REJECT_H_

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/source_location.h"
#include "common/tensor/dtype.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace internal {

inline std::string Shown(const Tensor& x, int) { return x.Describe(); }
inline const char* Shown(DType dtype, int) { return DTypeName(dtype); }
// For other values; the second is for those without a ToString.
template <typename T>
auto Shown(const T& x, int) -> decltype(x.ToString()) {
  return x.ToString();
}
template <typename T>
std::decay_t<const T&> Shown(const T& x, long) {
  return x;
}

template <typename... Args>
using RejectionFormat =
    absl::FormatSpec<decltype(Shown(std::declval<const Args&>(), 0))...>;

}  // namespace internal

template <typename... Args>
[[noreturn]] void Reject(const internal::RejectionFormat<Args...>& format,
                         const Args&... args) {
  throw std::invalid_argument(
      absl::StrFormat(format, internal::Shown(args, 0)...));
}

template <typename... Args>
[[noreturn]] void RejectAt(SourceLocation at,
                           const internal::RejectionFormat<Args...>& format,
                           const Args&... args) {
  throw std::invalid_argument(
      absl::StrCat(absl::StrFormat(format, internal::Shown(args, 0)...),
                   "; requested at ", at.ToString()));
}

}  // namespace d2l

#endif  // D2L_COMMON_OPS_PRIMITIVE_REJECT_H_
