// Formats quantities for people.
//
//   FormatDuration(0.0123);       // "12.3 ms"
//   FormatSummary(summary, "s");  // "12.3 ms [11.9, 13.0]"
//
// All functions are thread-safe and own nothing.

#ifndef D2L_COMMON_BASE_CONSOLE_FORMAT_H_
#define D2L_COMMON_BASE_CONSOLE_FORMAT_H_

#include <cstdint>
#include <string>

#include "common/base/statistics.h"

namespace d2l {

// Three significant digits, without an exponent where that is readable: "1.62",
// "13,000", "2.00e-05".
std::string FormatNumber(double value);

// "12 B", "1.5 KiB", "3.0 GiB".
std::string FormatBytes(std::int64_t bytes);

// "85.0 ns", "1.25 us", "12.3 ms", "2.41 s", for a duration in seconds.
std::string FormatDuration(double seconds);

// The median in its unit, and the interval in the same. "s" and "B" are scaled
// to what reads well (ms, MiB). The unit "" is a bare number.
std::string FormatSummary(const Summary& summary, const std::string& unit);

// The median alone.
std::string FormatMedian(const Summary& summary, const std::string& unit);

// The interval alone, in the median's unit, which is not printed: "11.9, 13.0".
std::string FormatInterval(const Summary& summary, const std::string& unit,
                           const std::string& between);

}  // namespace d2l

#endif  // D2L_COMMON_BASE_CONSOLE_FORMAT_H_
