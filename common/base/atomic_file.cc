#include "common/base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace d2l {
namespace {

namespace fs = std::filesystem;

absl::Status Unwritable(const std::string& path, int error) {
  std::string advice = "Name a file in a directory that you may write to.";
  if (error == ENOENT) {
    const std::string parent = fs::path(path).parent_path().string();
    advice = absl::StrCat("Make the directory first: mkdir -p ",
                          parent.empty() ? "." : parent);
  } else if (error == ENOSPC) {
    advice = "The disk is full.";
  }
  return absl::UnavailableError(absl::StrFormat("cannot write %s: %s. %s", path,
                                                std::strerror(error), advice));
}

// What stands at the path, through symbolic links.
enum class Target { kRegularOrNew, kDirectory, kOther };

Target Classify(const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) return Target::kDirectory;
  if (fs::exists(status) && !fs::is_regular_file(status)) return Target::kOther;
  return Target::kRegularOrNew;
}

// Where the bytes will lie: a rename must replace what a symbolic link points
// at, not the link.
std::string Resolve(const std::string& path) {
  std::error_code error;
  const fs::path resolved = fs::canonical(path, error);
  return error ? path : resolved.string();
}

std::string TemporaryFor(const std::string& path) {
  return absl::StrCat(path, ".tmp.", getpid());
}

// 0, or errno.
int WriteAll(int file, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(file, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    done += static_cast<std::size_t>(n);
  }
  return 0;
}

// Writes the text to a new file, or to one that is not regular.
int WriteTo(const std::string& path, int flags, const std::string& text,
            bool sync) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
  if (file < 0) return errno;
  int error = WriteAll(file, text);
  // Else a crash soon after the rename may leave an empty file.
  if (error == 0 && sync && fsync(file) != 0) error = errno;
  if (close(file) != 0 && error == 0) error = errno;
  return error;
}

}  // namespace

absl::Status CheckWritable(const std::string& path) {
  if (path.empty()) {
    return absl::InvalidArgumentError("the name of the file is empty");
  }
  switch (Classify(path)) {
    case Target::kDirectory:
      return Unwritable(path, EISDIR);
    case Target::kOther:
      return access(path.c_str(), W_OK) == 0 ? absl::OkStatus()
                                             : Unwritable(path, errno);
    case Target::kRegularOrNew:
      // A rename would replace a file that is protected against writing.
      if (access(path.c_str(), W_OK) != 0 && errno != ENOENT) {
        return Unwritable(path, errno);
      }
      break;
  }
  const std::string temporary = TemporaryFor(Resolve(path));
  const int error = WriteTo(temporary, O_CREAT | O_TRUNC, "", false);
  if (error != 0) return Unwritable(path, error);
  unlink(temporary.c_str());
  return absl::OkStatus();
}

absl::Status WriteAtomically(const std::string& path, const std::string& text) {
  if (Classify(path) == Target::kOther) {
    const int error = WriteTo(path, 0, text, false);
    return error == 0 ? absl::OkStatus() : Unwritable(path, error);
  }
  const std::string target = Resolve(path);
  const std::string temporary = TemporaryFor(target);
  int error = WriteTo(temporary, O_CREAT | O_TRUNC, text, true);
  if (error == 0 && std::rename(temporary.c_str(), target.c_str()) != 0) {
    error = errno;
  }
  if (error == 0) return absl::OkStatus();
  unlink(temporary.c_str());
  return Unwritable(path, error);
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace d2l
