#include "common/base/text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/language.h"
#include "common/base/statistics.h"
#include "common/base/wrap.h"

namespace d2l {
namespace {

// A unit that is a multiple of another.
struct Scale {
  double size;
  std::string name;
};

Scale ScaleFor(double value, const std::string& unit) {
  const double size = std::abs(value);
  if (unit == "s") {
    // From 999.5 on, three digits would round to 1000 of the smaller unit.
    if (size < 999.5e-9) return {1e-9, "ns"};
    if (size < 999.5e-6) return {1e-6, "us"};
    if (size < 999.5e-3) return {1e-3, "ms"};
  }
  if (unit == "B") {
    const double kib = 1024;
    if (size >= kib * kib * kib) return {kib * kib * kib, "GiB"};
    if (size >= kib * kib) return {kib * kib, "MiB"};
    if (size >= kib) return {kib, "KiB"};
  }
  return {1, unit};
}

// Three significant digits, without an exponent where that is readable.
std::string Number(double value) {
  const double size = std::abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-3)) {
    return absl::StrFormat("%.2e", value);
  }
  int digits = 2;
  // The limits are where rounding would give a digit too many.
  if (size >= 9.995) digits = 1;
  if (size >= 99.95) digits = 0;
  for (double limit = 0.9995; size > 0 && size < limit; limit /= 10) ++digits;
  std::string text = absl::StrFormat("%.*f", digits, value);
  if (digits > 0) return text;
  const std::size_t sign = value < 0 ? 1 : 0;
  for (std::size_t i = text.size(); i > 3 + sign; i -= 3) {
    text.insert(i - 3, ",");
  }
  return text;
}

// As in Number, but a count is a whole number.
std::string NumberIn(double value, const Scale& scale) {
  const bool count = scale.size == 1 && scale.name != "s" && scale.name != "x";
  if (count && value == std::floor(value) && std::abs(value) < 100) {
    return absl::StrFormat("%.0f", value);
  }
  return Number(value / scale.size);
}

}  // namespace

int TextWidth() {
  static const int width = [] {
    winsize size = {};
    const bool known = isatty(STDOUT_FILENO) == 1 &&
                       ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
                       size.ws_col > 0;
    return known ? std::clamp<int>(size.ws_col, 40, kTextWidth) : kTextWidth;
  }();
  return width;
}

std::string Wrap(const std::string& text, const std::string& first, int width) {
  return WrapWords(text, first, std::string(TextColumns(first), ' '),
                   static_cast<std::size_t>(width));
}

std::string FormatMedian(const Summary& summary, const std::string& unit) {
  const Scale scale = ScaleFor(summary.median, unit);
  const std::string number = NumberIn(summary.median, scale);
  if (scale.name.empty()) return number;
  return absl::StrCat(number, scale.name == "x" ? "" : " ", scale.name);
}

std::string FormatSummary(const Summary& summary, const std::string& unit) {
  const std::string median = FormatMedian(summary, unit);
  if (summary.low == summary.high) return median;
  return absl::StrCat(median, " [", FormatInterval(summary, unit, ", "), "]");
}

std::string FormatInterval(const Summary& summary, const std::string& unit,
                           const std::string& between) {
  const Scale scale = ScaleFor(summary.median, unit);
  return absl::StrCat(NumberIn(summary.low, scale), between,
                      NumberIn(summary.high, scale));
}

std::string FormatFactor(double factor) {
  return Measured(Number(factor) + "x");
}

}  // namespace d2l
