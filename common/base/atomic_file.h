// AtomicFile: replaces a file atomically. Readers see the old file until Commit
// has returned, and the new one afterwards.
//
//   absl::StatusOr<AtomicFile> file = AtomicFile::Open("weights.bin");
//   if (!file.ok()) return file.status();  // before the work, not after it
//   for (const std::string& part : parts) file->Write(part);
//   return file->Commit();
//
// The bytes go to a temporary file in the same directory, which then replaces
// the target and takes its permissions; a new file gets those of the umask.
// Where the file system allows it the temporary file has no name, so that
// nothing is left behind however the program ends; elsewhere see
// RemoveTemporaryFiles.
//
// A symbolic link is followed and stays, even if its target does not exist yet.
// Files that are not regular (a pipe, a terminal, /dev/full) and this program's
// stdout and stderr are written to directly.
//
// Errors name the file, the reason and what to do. Thread-safe for different
// objects; of several that replace one file the last Commit wins.

#ifndef D2L_COMMON_BASE_ATOMIC_FILE_H_
#define D2L_COMMON_BASE_ATOMIC_FILE_H_

#include <sys/stat.h>

#include <atomic>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace d2l {

class AtomicFile {
 public:
  enum class Temporary { kNamelessIfPossible, kNamed };

  // Opens the file for writing and leaves it as it is. A named pipe must have a
  // reader within a second.
  static absl::StatusOr<AtomicFile> Open(
      const std::string& path,
      Temporary temporary = Temporary::kNamelessIfPossible);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  // Without a Commit the old file stays.
  ~AtomicFile();

  // False after an error, which Commit reports.
  bool Write(std::string_view bytes);
  // Call it once.
  absl::Status Commit();

  // As given to Open.
  const std::string& path() const { return path_; }
  // Whether both write to one file, under whatever names.
  bool SameFile(const AtomicFile& other) const;

 private:
  AtomicFile() = default;
  absl::Status OpenDirect(const struct stat& there);
  absl::Status OpenTemporary(const struct stat* old, Temporary temporary);

  std::string path_;
  std::string target_;  // path_ without links; "" if written to directly
  dev_t device_ = 0;    // device_ and inode_ identify the file at path_
  ino_t inode_ = 0;     // 0 if there is none
  int descriptor_ = -1;
  int error_ = 0;  // the first errno
  // Holds the temporary file's name while it has one.
  std::atomic<char*>* name_ = nullptr;
};

// Opens, writes and commits.
absl::Status WriteAtomically(const std::string& path, std::string_view text);

// Removes the temporary files that have a name, which cannot be committed
// afterwards. For handlers of signals that end the program: async-signal-safe.
void RemoveTemporaryFiles();

// The bytes of the file; "" if it cannot be read.
std::string ReadFile(const std::string& path);

}  // namespace d2l

#endif  // D2L_COMMON_BASE_ATOMIC_FILE_H_
