// FormatError: what is wrong with the contents of a file. The reader throws it;
// the caller that knows the file's name makes an absl::Status of both.

#ifndef D2L_COMMON_BASE_FILES_FORMAT_ERROR_H_
#define D2L_COMMON_BASE_FILES_FORMAT_ERROR_H_

#include <string>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace d2l {

struct FormatError {
  std::string what;
};

// Throws a FormatError with the formatted text.
template <typename... Args>
[[noreturn]] void Refuse(const absl::FormatSpec<Args...>& format,
                         const Args&... args) {
  throw FormatError{absl::StrFormat(format, args...)};
}

// What a file that is not of the expected format seems to be, by its first
// bytes (32 are enough): "gzip data"; "" if that is not known. For messages:
// "it is %s".
const char* KindOfFile(absl::string_view first_bytes);

}  // namespace d2l

#endif  // D2L_COMMON_BASE_FILES_FORMAT_ERROR_H_
