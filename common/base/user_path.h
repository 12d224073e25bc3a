// UserPath: a path as the user meant it, who typed it in another directory.
//
//   std::ifstream file(UserPath("my_mlp.program"));
//
// `bazel run` changes directory, and says in BUILD_WORKING_DIRECTORY where it
// was called: a relative path is relative to that. Thread-safe.

#ifndef D2L_COMMON_BASE_USER_PATH_H_
#define D2L_COMMON_BASE_USER_PATH_H_

#include <cstdlib>
#include <filesystem>
#include <string>

namespace d2l {

inline std::string UserPath(const std::string& path) {
  const char* typed_in = std::getenv("BUILD_WORKING_DIRECTORY");
  if (path.empty() || typed_in == nullptr) return path;
  return (std::filesystem::path(typed_in) / path).string();
}

}  // namespace d2l

#endif  // D2L_COMMON_BASE_USER_PATH_H_
