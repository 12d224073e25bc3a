// Layout of plain-text output: 80 columns, or fewer on a narrower terminal.
//
//   std::cout << Wrap("A long sentence …", "  ");
//   FormatSummary(summary, "s");  // "12.3 ms [11.9, 13.0]"
//
// All functions are thread-safe and own nothing.

#ifndef D2L_COMMON_BASE_TEXT_H_
#define D2L_COMMON_BASE_TEXT_H_

#include <string>

#include "common/base/statistics.h"

namespace d2l {

inline constexpr int kTextWidth = 80;

// The columns of this run's output: kTextWidth, or fewer, down to 40, if stdout
// is a narrower terminal. Determined once.
int TextWidth();

// The text in lines of at most `width` columns, broken at spaces besides
// its own line ends, each ended by a newline. `first` stands before the first
// line, spaces of the same width before the others. A word that is too long
// gets a line of its own.
std::string Wrap(const std::string& text, const std::string& first = "",
                 int width = TextWidth());

// The median in its unit, and the interval in the same. "s" and "B" are scaled
// to what reads well (ms, MiB). The unit "" is a bare number.
std::string FormatSummary(const Summary& summary, const std::string& unit);

// The median alone.
std::string FormatMedian(const Summary& summary, const std::string& unit);

// The interval alone, in the median's unit, which is not said: "11.9, 13.0".
std::string FormatInterval(const Summary& summary, const std::string& unit,
                           const std::string& between);

// A factor: "1.62x", "13,000x", as the language writes it.
std::string FormatFactor(double factor);

}  // namespace d2l

#endif  // D2L_COMMON_BASE_TEXT_H_
