// FormatError: what is wrong with the contents of a file. It is thrown where it
// is found; who knows the file makes an absl::Status of it, with its name.

#ifndef D2L_COMMON_BASE_FILES_FORMAT_ERROR_H_
#define D2L_COMMON_BASE_FILES_FORMAT_ERROR_H_

#include <string>

#include "absl/strings/str_format.h"

namespace d2l {

struct FormatError {
  std::string what;
};

// Throws it, with what absl::StrFormat makes of the arguments.
template <typename... Args>
[[noreturn]] void Refuse(const absl::FormatSpec<Args...>& format,
                         const Args&... args) {
  throw FormatError{absl::StrFormat(format, args...)};
}

}  // namespace d2l

#endif  // D2L_COMMON_BASE_FILES_FORMAT_ERROR_H_
