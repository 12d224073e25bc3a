#include "chapters/hybrid_programming/other_program.h"

#include <filesystem>
#include <map>
#include <system_error>

#include "absl/strings/str_format.h"
#include "common/base/console/format.h"

namespace d2l {

namespace fs = std::filesystem;

std::string ListFiles(const std::string& directory) {
  std::map<std::string, std::string> sizes;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    sizes[entry.path().filename().string()] =
        FormatBytes(static_cast<std::int64_t>(entry.file_size()));
  }
  std::string text;
  for (const auto& [name, size] : sizes) {
    text += absl::StrFormat("  %10s  %s\n", size, name);
  }
  return text;
}

std::string OtherProgram() {
  const std::string name = "tools/run_program";
  std::error_code error;
  // The runfiles of `bazel run` and `bazel test`.
  if (fs::exists(name, error)) return fs::absolute(name).string();
  // Beside the lesson in bazel-bin.
  for (fs::path at = fs::read_symlink("/proc/self/exe", error);
       at.has_relative_path(); at = at.parent_path()) {
    if (fs::exists(at.parent_path() / name, error)) {
      return (at.parent_path() / name).string();
    }
  }
  return "run_program";
}

}  // namespace d2l
