// Formats quantities for people.

#ifndef D2L_COMMON_BASE_FORMAT_H_
#define D2L_COMMON_BASE_FORMAT_H_

#include <cstdint>
#include <string>

namespace d2l {

// "12 B", "1.5 KiB", "3.0 GiB".
std::string FormatBytes(std::int64_t bytes);

// "85 ns", "1.25 us", "12.3 ms", "2.41 s", for a duration in seconds.
std::string FormatDuration(double seconds);

}  // namespace d2l

#endif  // D2L_COMMON_BASE_FORMAT_H_
