#include "common/base/files/atomic_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/console/language.h"
#include "common/base/files/fnv1a.h"

namespace d2l {
namespace {

namespace fs = std::filesystem;

absl::Status Unwritable(const std::string& path, int error) {
  std::string advice = Say("Name a file in a directory that you may write to.");
  if (error == ENOENT) {
    const std::string parent = fs::path(path).parent_path().string();
    advice = Say("Make the directory first: mkdir -p %s",
                 parent.empty() ? "." : parent);
  } else if (error == ENOSPC) {
    advice = Say("The disk is full.");
  } else if (error == EFBIG) {
    advice = Say("ulimit -f limits the size of files.");
  } else if (error == ENXIO) {
    advice =
        Say("The pipe has no reader; start the reader first: cat %s", path);
  }
  return absl::UnavailableError(Say("cannot write %s: %s. %s", path,
                                    std::string(std::strerror(error)), advice));
}

// Follows links of the last component: a rename must replace what a symbolic
// link points at, not the link. Returns 0 or an errno.
int Resolve(const std::string& path, std::string* target) {
  fs::path at = path;
  std::error_code error;
  for (int links = 0; links < 40; ++links) {
    const fs::path parent =
        fs::canonical(at.has_parent_path() ? at.parent_path() : ".", error);
    if (error) return error.value();
    at = parent / at.filename();
    *target = at.string();
    const fs::path link = fs::read_symlink(at, error);
    if (error) return 0;
    at = parent / link;
  }
  return ELOOP;
}

// The names that RemoveTemporaryFiles removes; null: free. The thread that
// takes a name out owns it.
std::atomic<char*> names[64];

std::atomic<char*>* Register(const std::string& name) {
  char* copy = strdup(name.c_str());
  for (std::atomic<char*>& slot : names) {
    char* unused = nullptr;
    if (slot.compare_exchange_strong(unused, copy)) return &slot;
  }
  std::free(copy);
  return nullptr;
}

void RemoveAndRelease(std::atomic<char*>* slot) {
  char* name = slot->exchange(nullptr);
  if (name == nullptr) return;
  unlink(name);
  std::free(name);
}

// The beginning of the names of the target's temporary files.
std::string TemporaryPrefix(const fs::path& target) {
  Fnv1a hash;
  hash.Update(target.filename().string());
  return absl::StrCat(".d2l-", hash.Hex(), "-");
}

// Removes what killed programs have left of the target: its temporary files
// that nobody has locked.
void RemoveLeftovers(const fs::path& target) {
  const std::string prefix = TemporaryPrefix(target);
  std::error_code ignored;
  for (fs::directory_iterator at(target.parent_path(), ignored), end; at != end;
       at.increment(ignored)) {
    if (!absl::StartsWith(at->path().filename().string(), prefix)) continue;
    const int file =
        open(at->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) continue;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) unlink(at->path().c_str());
    close(file);
  }
}

// Locks a file that was just made, so that RemoveLeftovers leaves it. False if
// that was faster.
bool LockNew(int file) {
  struct stat made;
  // Without locks nothing is removed, either.
  return flock(file, LOCK_EX) != 0 || fstat(file, &made) != 0 ||
         made.st_nlink > 0;
}

// Makes a file with a new name in the directory of the target. Returns its
// descriptor, and where its name is registered; or -1, and sets errno.
int OpenBeside(const std::string& target, mode_t mode,
               std::atomic<char*>** registered) {
  RemoveLeftovers(target);
  std::random_device random;
  for (int i = 0; i < 100; ++i) {
    const std::string name =
        fs::path(target)
            .replace_filename(absl::StrFormat(
                "%s%08x.tmp", TemporaryPrefix(target), random()))
            .string();
    std::atomic<char*>* slot = Register(name);
    if (slot == nullptr) {
      errno = EMFILE;
      return -1;
    }
    const int file =
        open(name.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL, mode);
    if (file >= 0 && LockNew(file)) {
      *registered = slot;
      return file;
    }
    // If the file exists, another process has made it.
    const bool again = file >= 0 || errno == EEXIST;
    if (file >= 0) close(file);
    std::free(slot->exchange(nullptr));
    if (!again) return -1;
  }
  return -1;
}

// For files that are not regular. A pipe without a reader would block.
int OpenWithoutBlocking(const std::string& path, bool is_pipe) {
  int file = -1;
  // A reader that was started at the same time may not have opened it yet.
  for (int i = 0; i < 100; ++i) {
    file = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (file >= 0 || !is_pipe || errno != ENXIO) break;
    poll(nullptr, 0, 10);
  }
  if (file >= 0) fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK);
  return file;
}

}  // namespace

absl::Status AtomicFile::OpenDirect(const struct stat& existing) {
  if (S_ISREG(existing.st_mode)) {
    for (const int standard : {STDOUT_FILENO, STDERR_FILENO}) {
      struct stat opened;
      if (fstat(standard, &opened) == 0 && opened.st_dev == existing.st_dev &&
          opened.st_ino == existing.st_ino) {
        // If opened again, it would be written from its beginning.
        descriptor_ = fcntl(standard, F_DUPFD_CLOEXEC, 3);
        if (descriptor_ < 0) return Unwritable(path_, errno);
      }
    }
    return absl::OkStatus();
  }
  descriptor_ = OpenWithoutBlocking(path_, S_ISFIFO(existing.st_mode));
  return descriptor_ < 0 ? Unwritable(path_, errno) : absl::OkStatus();
}

absl::Status AtomicFile::OpenTemporary(const struct stat* old) {
  if (const int error = Resolve(path_, &target_)) {
    return Unwritable(path_, error);
  }
  descriptor_ = OpenBeside(target_, old == nullptr ? 0666 : 0600, &name_);
  if (descriptor_ < 0) return Unwritable(path_, errno);
  if (old != nullptr) {
    // Only root may give a file to another user; anyone else owns the new one.
    if (fchown(descriptor_, old->st_uid, old->st_gid) != 0) errno = 0;
    if (fchmod(descriptor_, old->st_mode & 0777) != 0) {
      return Unwritable(path_, errno);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<AtomicFile> AtomicFile::Open(const std::string& path) {
  if (path.empty()) {
    return absl::InvalidArgumentError("the name of the file is empty");
  }
  AtomicFile file;
  file.path_ = path;
  struct stat existing;
  const bool exists = stat(path.c_str(), &existing) == 0;
  if (!exists && errno != ENOENT) return Unwritable(path, errno);
  if (exists) {
    if (S_ISDIR(existing.st_mode)) return Unwritable(path, EISDIR);
    file.device_ = existing.st_dev;
    file.inode_ = existing.st_ino;
    const absl::Status direct = file.OpenDirect(existing);
    if (!direct.ok()) return direct;
    if (file.descriptor_ >= 0) return file;
    // A rename would replace a file that is protected against writing.
    if (access(path.c_str(), W_OK) != 0) return Unwritable(path, errno);
  }
  const absl::Status opened = file.OpenTemporary(exists ? &existing : nullptr);
  if (!opened.ok()) return opened;
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept {
  *this = std::move(other);
}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(target_, other.target_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(error_, other.error_);
  std::swap(name_, other.name_);
  return *this;
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (name_ != nullptr) RemoveAndRelease(name_);
}

bool AtomicFile::Write(std::string_view bytes) {
  while (error_ == 0 && !bytes.empty()) {
    const ssize_t n = write(descriptor_, bytes.data(), bytes.size());
    if (n >= 0) bytes.remove_prefix(static_cast<std::size_t>(n));
    if (n < 0 && errno != EINTR) error_ = errno;
  }
  return error_ == 0;
}

absl::Status AtomicFile::Commit() {
  const auto check = [&](bool done) {
    if (error_ == 0 && !done) error_ = errno;
    return error_ == 0;
  };
  const bool replaces = !target_.empty();
  // Otherwise a crash soon after the rename may leave an empty file.
  if (replaces && error_ == 0) check(fsync(descriptor_) == 0);
  // Closing a copy reports late errors, and keeps the lock.
  const int copy = error_ == 0 ? dup(descriptor_) : -1;
  if (error_ == 0) check(copy >= 0 && close(copy) == 0);
  if (replaces && error_ == 0) {
    char* name = name_->load();
    errno = EINTR;  // RemoveTemporaryFiles took it
    if (check(name != nullptr && rename(name, target_.c_str()) == 0)) {
      std::free(std::exchange(name_, nullptr)->exchange(nullptr));
      // The new name is on the disk once its directory is.
      const int directory =
          open(fs::path(target_).parent_path().c_str(), O_RDONLY | O_CLOEXEC);
      if (directory >= 0) {
        fsync(directory);
        close(directory);
      }
    }
  }
  close(std::exchange(descriptor_, -1));
  return error_ == 0 ? absl::OkStatus() : Unwritable(path_, error_);
}

bool AtomicFile::SameFile(const AtomicFile& other) const {
  return (!target_.empty() && target_ == other.target_) ||
         (inode_ != 0 && inode_ == other.inode_ && device_ == other.device_);
}

absl::Status WriteAtomically(const std::string& path, std::string_view text) {
  absl::StatusOr<AtomicFile> file = AtomicFile::Open(path);
  if (!file.ok()) return file.status();
  file->Write(text);
  return file->Commit();
}

void RemoveTemporaryFiles() {
  for (std::atomic<char*>& slot : names) {
    // Not freed: free is not async-signal-safe.
    const char* name = slot.exchange(nullptr);
    if (name != nullptr) unlink(name);
  }
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  // Reading a folder, or /proc of a process that has ended, throws from an
  // iterator; << only sets a bit.
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string UserPath(const std::string& path) {
  const char* typed_in = std::getenv("BUILD_WORKING_DIRECTORY");
  if (path.empty() || typed_in == nullptr) return path;
  return (fs::path(typed_in) / path).string();
}

TemporaryDirectory::TemporaryDirectory() {
  path_ = (fs::temp_directory_path() / "d2l_XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) {
    throw std::runtime_error("Cannot make a directory in " +
                             fs::temp_directory_path().string() +
                             ". Set TMPDIR to a folder that can be written.");
  }
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace d2l
