#include "common/ops/compare.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/ops/elementwise.h"
#include "common/ops/primitive/reject.h"
#include "common/ops/read.h"
#include "common/ops/reduction.h"
#include "common/tensor/dtype.h"

namespace d2l {
namespace {

void CheckPair(const char* operation, const Tensor& a, const Tensor& b,
               SourceLocation at) {
  std::string problem;
  if (!a.defined() || !b.defined()) {
    problem = "an operand is an undefined tensor";
  } else if (a.dtype() != b.dtype() || a.device() != b.device()) {
    problem = absl::StrFormat("%s and %s: convert or copy one of them",
                              a.Describe(), b.Describe());
  } else {
    return;
  }
  RejectAt(at, "[%s] %s", operation, problem);
}

// Subtracting equal infinities would give NaN.
bool IsClose(double a, double b, const Tolerance& tolerance) {
  if (a == b) return true;
  if (std::isnan(a) && std::isnan(b)) return tolerance.equal_nan;
  const double difference = std::abs(a - b);
  return std::isfinite(difference) &&
         difference <= tolerance.absolute + tolerance.relative * std::abs(b);
}

}  // namespace

bool Equal(const Tensor& a, const Tensor& b, SourceLocation at) {
  CheckPair("equal", a, b, at);
  if (a.shape() != b.shape()) return false;
  if (a.numel() == 0) {
    WaitToRead(a, at);
    WaitToRead(b, at);
    return true;
  }
  const Tensor same = Operand(a, at) == Operand(b, at);
  return Item(Min(same, {}, /*keepdim=*/false, at), at) != 0;
}

bool AllClose(const Tensor& a, const Tensor& b, const Tolerance& tolerance,
              SourceLocation at) {
  CheckPair("allclose", a, b, at);
  if (a.shape() != b.shape()) {
    RejectAt(at, "[allclose] the shapes differ: %s and %s", a.shape(),
             b.shape());
  }
  return VisitDType(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::vector<T> x = ToVector<T>(a, at), y = ToVector<T>(b, at);
    return std::equal(x.begin(), x.end(), y.begin(), [&](T got, T expected) {
      return IsClose(static_cast<double>(got), static_cast<double>(expected),
                     tolerance);
    });
  });
}

}  // namespace d2l
