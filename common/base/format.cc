#include "common/base/format.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace d2l {

std::string FormatBytes(std::int64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (std::abs(static_cast<double>(bytes)) < 1024) {
    return absl::StrCat(bytes, " B");
  }
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  while (std::abs(value) >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string FormatDuration(double seconds) {
  struct Unit {
    double per_second;
    const char* name;
  };
  static constexpr Unit kUnits[] = {{1e9, "ns"}, {1e6, "us"}, {1e3, "ms"}};
  Unit unit{1, "s"};
  for (const Unit& smaller : kUnits) {
    // 999.5 would be printed as 1000: the next unit says it better.
    if (std::abs(seconds) * smaller.per_second < 999.5) {
      unit = smaller;
      break;
    }
  }
  const double value = seconds * unit.per_second;
  const double size = std::abs(value);
  const int digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return absl::StrFormat("%.*f %s", digits, value, unit.name);
}

}  // namespace d2l
