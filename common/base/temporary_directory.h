// TemporaryDirectory: an empty directory, removed with all that is in it.
//
//   const TemporaryDirectory directory;
//   std::ofstream(directory.path() + "/a.txt") << "a";
//
// Errors: std::runtime_error if none can be made. Thread-safe.

#ifndef D2L_COMMON_BASE_TEMPORARY_DIRECTORY_H_
#define D2L_COMMON_BASE_TEMPORARY_DIRECTORY_H_

#include <string>

namespace d2l {

class TemporaryDirectory {
 public:
  // In $TMPDIR, or /tmp.
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace d2l

#endif  // D2L_COMMON_BASE_TEMPORARY_DIRECTORY_H_
