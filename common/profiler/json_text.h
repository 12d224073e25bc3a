// Writing JSON straight into a string: for files of many megabytes, of which a
// tree in memory would take gigabytes.
//
//   AppendJsonString("say \"hi\"", &out);  // "say \"hi\"", with the quotes
//   AppendMicros(12345, &out);             // 12.345
//
// Pure functions.

#ifndef D2L_COMMON_PROFILER_JSON_TEXT_H_
#define D2L_COMMON_PROFILER_JSON_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace d2l {

// A JSON string. Bytes that are no UTF-8 become U+FFFD. '<' is written as an
// escape too, so that the text may stand in an HTML <script>.
void AppendJsonString(absl::string_view text, std::string* out);

// A JSON array of strings.
void AppendJsonStrings(const std::vector<std::string>& texts, std::string* out);

// Nanoseconds as microseconds, with three decimals: exact.
void AppendMicros(std::int64_t nanos, std::string* out);

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_JSON_TEXT_H_
