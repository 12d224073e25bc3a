// Writing a file so that at any moment it is whole: the old one or the new one.
//
//   if (absl::Status s = CheckWritable("out.json"); !s.ok()) …  // before
//   absl::Status written = WriteAtomically("out.json", text);   // after
//
// The text goes to a temporary file beside the target, which is then renamed.
// A target that is not a regular file (/dev/stdout, a pipe) is written to
// directly. Errors name the file, the reason and what to do. Thread-safe for
// different files.

#ifndef D2L_COMMON_BASE_ATOMIC_FILE_H_
#define D2L_COMMON_BASE_ATOMIC_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace d2l {

// Whether WriteAtomically could write the file now; leaves nothing behind.
absl::Status CheckWritable(const std::string& path);

absl::Status WriteAtomically(const std::string& path, const std::string& text);

// The bytes of the file; "" if it cannot be read.
std::string ReadFile(const std::string& path);

}  // namespace d2l

#endif  // D2L_COMMON_BASE_ATOMIC_FILE_H_
