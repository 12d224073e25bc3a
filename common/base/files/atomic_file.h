// Files: AtomicFile replaces a file atomically, TemporaryDirectory is a
// directory that is removed again, and UserPath is a path as the user typed it.
//
// Readers of the path see the old file until Commit has returned, and the new
// one afterwards.
//
//   absl::StatusOr<AtomicFile> file = AtomicFile::Open("weights.bin");
//   if (!file.ok()) return file.status();  // before the work, not after it
//   for (const std::string& part : parts) file->Write(part);
//   return file->Commit();
//
// The bytes go to a temporary file in the same directory, .d2l-*.tmp, which
// then replaces the target and takes its permissions; a new file gets those of
// the umask. A program that is killed leaves the temporary file behind, unless
// it handles the signal (RemoveTemporaryFiles); the next Open of the path
// removes it. Files that are being written are locked (flock), and stay.
//
// A symbolic link is followed and stays, even if its target does not exist yet.
// Files that are not regular (a pipe, a terminal, /dev/full) and this program's
// stdout and stderr are written to directly.
//
// Errors name the file, the reason and what to do. Thread-safe for different
// objects; if several replace one file, the last Commit wins.

#ifndef D2L_COMMON_BASE_FILES_ATOMIC_FILE_H_
#define D2L_COMMON_BASE_FILES_ATOMIC_FILE_H_

#include <sys/stat.h>

#include <atomic>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace d2l {

class AtomicFile {
 public:
  // Opens the file for writing, and does not change it yet. A named pipe must
  // have a reader within a second.
  static absl::StatusOr<AtomicFile> Open(const std::string& path);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  // Without a Commit the old file stays.
  ~AtomicFile();

  // False after an error, which Commit reports.
  bool Write(std::string_view bytes);
  // Call it once.
  absl::Status Commit();

  // The path that Open was given.
  const std::string& path() const { return path_; }
  // Whether both write to the same file, even under different names.
  bool SameFile(const AtomicFile& other) const;

 private:
  AtomicFile() = default;
  absl::Status OpenDirect(const struct stat& existing);
  absl::Status OpenTemporary(const struct stat* old);

  std::string path_;
  std::string target_;  // path_ without links; "" if written to directly
  dev_t device_ = 0;    // device_ and inode_ identify the file at path_
  ino_t inode_ = 0;     // 0 if there is none
  int descriptor_ = -1;
  int error_ = 0;  // the first errno
  // Holds the temporary file's name while there is one.
  std::atomic<char*>* name_ = nullptr;
};

// Opens, writes and commits.
absl::Status WriteAtomically(const std::string& path, std::string_view text);

// Removes the temporary files, which cannot be committed afterwards. For
// handlers of signals that end the program: async-signal-safe.
void RemoveTemporaryFiles();

// The bytes of the file; "" if it cannot be read.
std::string ReadFile(const std::string& path);

// The path that the user meant: `bazel run` changes directory, and says in
// BUILD_WORKING_DIRECTORY where it was called; a relative path is relative to
// that directory.
std::string UserPath(const std::string& path);

// An empty directory, removed with all that is in it.
class TemporaryDirectory {
 public:
  // Makes it in $TMPDIR, or /tmp. Throws std::runtime_error on failure.
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace d2l

#endif  // D2L_COMMON_BASE_FILES_ATOMIC_FILE_H_
