
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/ops/read.h"

namespace d2l {
namespace {

// PyTorch's defaults (torch.set_printoptions).
constexpr int kPrecision = 4;
constexpr std::int64_t kThreshold = 1000;
constexpr std::int64_t kEdgeItems = 3;
constexpr std::int64_t kLineWidth = 80;
constexpr char kPrefix[] = "tensor(";
constexpr std::int64_t kIndent = sizeof(kPrefix) - 1;

// With a decimal point, whatever the locale's mark is.
std::string FormatFloat(double value, std::chars_format format, int precision) {
  // Python prints no sign before nan; C++ may.
  if (std::isnan(value)) return "nan";
  char text[512];  // 1e308 in fixed notation has 309 digits
  const auto result =
      std::to_chars(std::begin(text), std::end(text), value, format, precision);
  return {text, result.ptr};
}

// Decides once how all elements shown are written, and how wide.
class Formatter {
 public:
  explicit Formatter(const std::vector<double>& shown) {
    double smallest = 0;
    double largest = 0;
    bool any = false;
    for (const double value : shown) {
      if (!std::isfinite(value) || value == 0) continue;
      const double size = std::abs(value);
      smallest = any ? std::min(smallest, size) : size;
      largest = any ? std::max(largest, size) : size;
      any = true;
      if (value != std::ceil(value)) integers_ = false;
    }
    if (!any) return;
    scientific_ = largest / smallest > 1000 || largest > 1e8 ||
                  (!integers_ && smallest < 1e-4);
    for (const double value : shown) {
      if (!std::isfinite(value) || value == 0) continue;
      width_ = std::max(width_, Write(value).size());
    }
  }
  explicit Formatter(const std::vector<std::int64_t>& shown) {
    for (const std::int64_t value : shown) {
      width_ = std::max(width_, absl::StrCat(value).size());
    }
  }

  std::size_t width() const { return width_; }

  template <typename V>
  std::string Format(V value) const {
    const std::string text = Write(value);
    const std::size_t padding = text.size() < width_ ? width_ - text.size() : 0;
    return std::string(padding, ' ') + text;
  }

 private:
  std::string Write(std::int64_t value) const { return absl::StrCat(value); }
  std::string Write(double value) const {
    if (scientific_) {
      return FormatFloat(value, std::chars_format::scientific, kPrecision);
    }
    if (!integers_ || !std::isfinite(value)) {
      return FormatFloat(value, std::chars_format::fixed, kPrecision);
    }
    // The point tells that these are floating-point numbers.
    return FormatFloat(value, std::chars_format::fixed, 0) + ".";
  }

  bool integers_ = true;
  bool scientific_ = false;
  std::size_t width_ = 1;
};

bool IsSummarized(const Shape& shape) { return shape.numel() > kThreshold; }

// The shape of the elements that are shown.
Shape ShownShape(Shape shape) {
  if (!IsSummarized(shape)) return shape;
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  for (std::int64_t& size : sizes) size = std::min(size, 2 * kEdgeItems);
  return Shape(sizes);
}

// Writes the elements that are shown, as numbers of one of two types, row by
// row; `shape` is the whole tensor's.
template <typename V>
class Printer {
 public:
  Printer(std::vector<V> shown, const Shape& shape)
      : values_(std::move(shown)),
        shape_(shape),
        shown_(ShownShape(shape)),
        strides_(ContiguousStrides(shown_)),
        formatter_(values_) {}

  std::string Text() const {
    if (shape_.empty()) return formatter_.Format(values_[0]);
    return Block(0, 0, kIndent);
  }

 private:
  bool Cut(int dim) const { return shown_[dim] < shape_[dim]; }

  std::string Row(int dim, std::int64_t offset, std::int64_t indent) const {
    std::vector<std::string> items;
    for (std::int64_t i = 0; i < shown_[dim]; ++i) {
      items.push_back(formatter_.Format(values_[offset + i]));
      if (Cut(dim) && items.size() == kEdgeItems) items.push_back(" ...");
    }
    const std::int64_t per_line = std::max<std::int64_t>(
        1, (kLineWidth - indent) /
               static_cast<std::int64_t>(formatter_.width() + 2));
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < items.size(); i += per_line) {
      const std::size_t end = std::min<std::size_t>(items.size(), i + per_line);
      lines.push_back(
          absl::StrJoin(items.begin() + i, items.begin() + end, ", "));
    }
    return absl::StrCat(
        "[", absl::StrJoin(lines, ",\n" + std::string(indent + 1, ' ')), "]");
  }

  std::string Block(int dim, std::int64_t offset, std::int64_t indent) const {
    const int below = shape_.rank() - dim - 1;
    if (below == 0) return Row(dim, offset, indent);
    std::vector<std::string> blocks;
    for (std::int64_t i = 0; i < shown_[dim]; ++i) {
      blocks.push_back(Block(dim + 1, offset + i * strides_[dim], indent + 1));
      if (Cut(dim) && blocks.size() == kEdgeItems) blocks.push_back("...");
    }
    const std::string separator =
        "," + std::string(below, '\n') + std::string(indent + 1, ' ');
    return absl::StrCat("[", absl::StrJoin(blocks, separator), "]");
  }

  const std::vector<V> values_;
  const Shape shape_;
  const Shape shown_;
  const Shape strides_;  // of values_
  const Formatter formatter_;
};

// Adds ", device=…" and the like, each on the last line if it fits.
std::string WithSuffixes(std::string text,
                         const std::vector<std::string>& suffixes) {
  // Counts as PyTorch does: one too many after a newline, two too many without
  // one.
  const std::size_t newline = text.rfind('\n');
  std::int64_t line =
      newline == std::string::npos
          ? static_cast<std::int64_t>(text.size()) + 2
          : static_cast<std::int64_t>(text.size() - newline) + 1;
  for (const std::string& suffix : suffixes) {
    const auto length = static_cast<std::int64_t>(suffix.size());
    if (line + length + 2 > kLineWidth) {
      absl::StrAppend(&text, ",\n", std::string(kIndent, ' '), suffix);
      line = kIndent + length;
    } else {
      absl::StrAppend(&text, ", ", suffix);
      line += length + 2;
    }
  }
  return text + ")";
}

std::string ElementsToString(const Tensor& x, SourceLocation at) {
  return VisitDType(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using V =
        std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>;
    const std::vector<T> values = IsSummarized(x.shape())
                                      ? EdgesToVector<T>(x, kEdgeItems, at)
                                      : ToVector<T>(x, at);
    return Printer<V>(std::vector<V>(values.begin(), values.end()), x.shape())
        .Text();
  });
}

}  // namespace

std::string ToString(const Tensor& x, SourceLocation at) {
  if (!x.defined()) return "tensor(undefined)";
  std::vector<std::string> suffixes = {
      absl::StrCat("device='", x.device().ToString(), "'")};
  const std::string dtype = absl::StrCat("dtype=torch.", DTypeName(x.dtype()));
  std::string text;
  if (x.numel() == 0) {
    if (x.dim() != 1) {
      suffixes.push_back(absl::StrCat("size=", x.shape().ToString()));
    }
    if (x.dtype() != DType::kFloat32) suffixes.push_back(dtype);
    text = "[]";
  } else {
    if (x.dtype() == DType::kFloat64 || x.dtype() == DType::kUInt8) {
      suffixes.push_back(dtype);
    }
    text = ElementsToString(x, at);
  }
  return WithSuffixes(kPrefix + text, suffixes);
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) {
  return out << ToString(x, SourceLocation());
}

}  // namespace d2l
