#include "common/base/console/format.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

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
  Scale scale = {1, unit};
  if (unit == "B") {
    for (const char* name : {"KiB", "MiB", "GiB", "TiB", "PiB"}) {
      if (size < 1024 * scale.size) break;
      scale = {1024 * scale.size, name};
    }
  }
  return scale;
}

// The digits after the point that make three in all. The limits are where
// rounding would give a digit too many.
int Digits(double size) { return size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2; }

// As in FormatNumber, but a count is a whole number.
std::string NumberIn(double value, const Scale& scale) {
  const bool count = scale.size == 1 && scale.name != "s" && scale.name != "x";
  if (count && value == std::floor(value) && std::abs(value) < 100) {
    return absl::StrFormat("%.0f", value);
  }
  return FormatNumber(value / scale.size);
}

}  // namespace

std::string FormatNumber(double value) {
  const double size = std::abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-3)) {
    // StrFormat would write 1e-30 with the decimal mark of the locale.
    char text[32];
    char* const end = std::to_chars(std::begin(text), std::end(text), value,
                                    std::chars_format::scientific, 2)
                          .ptr;
    return std::string(text, end);
  }
  int digits = Digits(size);
  for (double limit = 0.9995; size > 0 && size < limit; limit /= 10) ++digits;
  std::string text = absl::StrFormat("%.*f", digits, value);
  if (digits > 0) return text;
  const std::size_t sign = value < 0 ? 1 : 0;
  for (std::size_t i = text.size(); i > 3 + sign; i -= 3) {
    text.insert(i - 3, ",");
  }
  return text;
}

std::string FormatBytes(std::int64_t bytes) {
  const Scale scale = ScaleFor(static_cast<double>(bytes), "B");
  if (scale.size == 1) return absl::StrCat(bytes, " B");
  return absl::StrFormat("%.1f %s", static_cast<double>(bytes) / scale.size,
                         scale.name);
}

std::string FormatDuration(double seconds) {
  const Scale scale = ScaleFor(seconds, "s");
  const double value = seconds / scale.size;
  return absl::StrFormat("%.*f %s", Digits(std::abs(value)), value, scale.name);
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

}  // namespace d2l
