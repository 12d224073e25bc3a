#include "common/ops/compare.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
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

struct Differences {
  std::int64_t count = 0;
  std::int64_t first = 0;
  double got = 0;
  double expected = 0;
};

Differences FindDifferences(const Tensor& got, const Tensor& expected,
                            const Tolerance& tolerance, SourceLocation at) {
  return VisitDType(got.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::vector<T> a = ToVector<T>(got, at);
    const std::vector<T> b = ToVector<T>(expected, at);
    Differences found;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double x = static_cast<double>(a[i]);
      const double y = static_cast<double>(b[i]);
      if (IsClose(x, y, tolerance)) continue;
      if (found.count++ == 0) {
        found.first = static_cast<std::int64_t>(i);
        found.got = x;
        found.expected = y;
      }
    }
    return found;
  });
}

// "[3, 0]": where element i is, counted row by row.
std::string Position(std::int64_t i, const Shape& shape) {
  std::vector<std::int64_t> position(shape.rank());
  for (int d = shape.rank() - 1; d >= 0; --d) {
    position[d] = i % shape[d];
    i /= shape[d];
  }
  return absl::StrCat("[", absl::StrJoin(position, ", "), "]");
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
  return FindDifferences(a, b, tolerance, at).count == 0;
}

std::string DescribeDifference(const Tensor& got, const Tensor& expected,
                               const Tolerance& tolerance, SourceLocation at) {
  CheckPair("describe_difference", got, expected, at);
  if (got.shape() != expected.shape()) {
    return absl::StrFormat("the shape is %s; expected %s",
                           got.shape().ToString(), expected.shape().ToString());
  }
  const Differences found = FindDifferences(got, expected, tolerance, at);
  if (found.count == 0) return "";
  return absl::StrFormat(
      "element %s is %.9g; expected %.9g within %g absolutely and %g "
      "relatively; %d of %d elements differ by more",
      Position(found.first, got.shape()), found.got, found.expected,
      tolerance.absolute, tolerance.relative, found.count, got.numel());
}

}  // namespace d2l
