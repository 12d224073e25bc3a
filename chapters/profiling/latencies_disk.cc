#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/profiling/latencies_io.h"
#include "chapters/profiling/latencies_sampling.h"
#include "chapters/profiling/machine_files.h"
#include "common/base/format.h"
#include "common/base/timer.h"

namespace d2l {
namespace {

constexpr std::int64_t kBlock = 4096;
constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kSmallestFile = 8 * kMiB;

[[noreturn]] void ThrowErrno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// What holds the directory: "file system ext4 on vda".
std::string DescribeFileSystem(int fd) {
  struct statfs system = {};
  struct stat file = {};
  if (fstatfs(fd, &system) != 0 || fstat(fd, &file) != 0) {
    return "unknown file system";
  }
  const struct {
    std::int64_t magic;
    const char* name;
  } kKnown[] = {{EXT4_SUPER_MAGIC, "ext4 (or ext3, ext2)"},
                {XFS_SUPER_MAGIC, "XFS"},
                {BTRFS_SUPER_MAGIC, "Btrfs"},
                {OVERLAYFS_SUPER_MAGIC, "overlayfs, of a container"},
                {NFS_SUPER_MAGIC, "NFS: over the network"},
                {TMPFS_MAGIC, "tmpfs: this is memory, not a disk"},
                {RAMFS_MAGIC, "ramfs: this is memory, not a disk"}};
  std::string name = absl::StrFormat("unknown, 0x%x", system.f_type);
  for (const auto& known : kKnown) {
    if (known.magic == static_cast<std::int64_t>(system.f_type)) {
      name = known.name;
    }
  }
  const std::optional<std::string> event = ReadTextFile(absl::StrFormat(
      "/sys/dev/block/%d:%d/uevent", major(file.st_dev), minor(file.st_dev)));
  const std::string key = "DEVNAME=";
  const std::size_t at = event ? event->find(key) : std::string::npos;
  if (at == std::string::npos) return absl::StrCat("file system ", name);
  const std::size_t begin = at + key.size();
  return absl::StrCat("file system ", name, ", device ",
                      event->substr(begin, event->find('\n', begin) - begin));
}

// An open file without a name, and memory to read and write it with. Its
// functions throw std::system_error.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& directory, std::int64_t bytes)
      : memory_(std::aligned_alloc(kBlock, kMiB), &std::free) {
    if (memory_ == nullptr) throw std::bad_alloc();
    struct statvfs room = {};
    if (statvfs(directory.c_str(), &room) != 0) {
      ThrowErrno(absl::StrCat(directory, " cannot be used"));
    }
    const double free =
        static_cast<double>(room.f_bavail) * static_cast<double>(room.f_frsize);
    // As much again stays free for others.
    if (free < 2 * static_cast<double>(bytes)) {
      throw std::runtime_error(absl::StrFormat(
          "%s has %s free; a file of %s is not written there", directory,
          FormatBytes(static_cast<std::int64_t>(free)), FormatBytes(bytes)));
    }
    std::string path = directory + "/d2l_latencies_XXXXXX";
    fd_ = mkstemp(&path[0]);
    if (fd_ < 0) ThrowErrno(absl::StrCat("no file in ", directory));
    unlink(path.c_str());
    const int flags = fcntl(fd_, F_GETFL);
    direct_ = fcntl(fd_, F_SETFL, flags | O_DIRECT) == 0;
    std::mt19937 generator(1);
    std::uint32_t* const words = static_cast<std::uint32_t*>(memory_.get());
    // Nothing that a disk could compress.
    for (std::size_t i = 0; i < kMiB / sizeof(*words); ++i) {
      words[i] = static_cast<std::uint32_t>(generator());
    }
  }
  ~TemporaryFile() { close(fd_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void Write(std::int64_t offset, std::int64_t bytes) {
    Check(pwrite(fd_, memory_.get(), static_cast<std::size_t>(bytes), offset),
          bytes, "writing");
  }
  void Read(std::int64_t offset, std::int64_t bytes) {
    Check(pread(fd_, memory_.get(), static_cast<std::size_t>(bytes), offset),
          bytes, "reading");
  }
  // Until the disk says that it has the data.
  void Sync() {
    if (fdatasync(fd_) != 0) ThrowErrno("fdatasync of the temporary file");
  }
  std::string Describe() const {
    return absl::StrCat(
        direct_ ? "past the page cache (O_DIRECT), "
                : "through the page cache (O_DIRECT was refused), which may "
                  "answer instead of the disk, ",
        DescribeFileSystem(fd_));
  }

 private:
  static void Check(std::int64_t done, std::int64_t bytes, const char* what) {
    if (done < 0) ThrowErrno(absl::StrCat(what, " the temporary file"));
    if (done != bytes) {
      throw std::runtime_error(absl::StrFormat(
          "%s the temporary file: %d of %d bytes", what, done, bytes));
    }
  }

  const std::unique_ptr<void, void (*)(void*)> memory_;
  int fd_ = -1;
  bool direct_ = false;
};

// Each call of `operation` is one sample.
std::vector<double> SampleEach(const Budget& budget,
                               const std::function<void()>& operation) {
  const std::int64_t kBatch = 1;
  return SampleNanos(
      budget,
      [&](std::int64_t) {
        const Timer timer;
        operation();
        return timer.Nanos();
      },
      kBatch);
}

}  // namespace

std::string TemporaryDirectory() {
  const char* const directory = std::getenv("TMPDIR");
  return directory != nullptr && *directory != 0 ? directory : "/tmp";
}

DiskLatencies MeasureDisk(const std::string& directory, std::int64_t file_bytes,
                          const Budget& budget) try {
  const std::int64_t bytes = std::max(file_bytes, kSmallestFile) / kMiB * kMiB;
  TemporaryFile file(directory, bytes);
  DiskLatencies disk;

  // Writing the file is the measurement of sequential writes: so it ends with
  // the file or with the time for it.
  const Timer timer;
  std::int64_t size = 0;
  while (size < bytes &&
         (size < kSmallestFile || timer.Seconds() < budget.seconds)) {
    const Timer one;
    file.Write(size, kMiB);
    disk.sequential_write.nanos.push_back(static_cast<double>(one.Nanos()));
    size += kMiB;
  }
  file.Sync();

  std::int64_t next = 0;
  disk.sequential_read.nanos = SampleEach(budget, [&] {
    file.Read(next, kMiB);
    next = (next + kMiB) % size;
  });
  std::mt19937_64 generator(2);
  std::uniform_int_distribution<std::int64_t> block(0, size / kBlock - 1);
  disk.random_read.nanos =
      SampleEach(budget, [&] { file.Read(block(generator) * kBlock, kBlock); });
  disk.random_write.nanos = SampleEach(budget, [&] {
    file.Write(block(generator) * kBlock, kBlock);
    file.Sync();
  });

  const std::string where = absl::StrFormat(" of a file of %s, %s.",
                                            FormatBytes(size), file.Describe());
  disk.random_read.how = absl::StrCat("4 KiB at a random place", where);
  disk.random_write.how = absl::StrCat(
      "4 KiB at a random place and fdatasync: until the disk has them;", where);
  disk.sequential_read.how = absl::StrCat("1 MiB after the other", where);
  disk.sequential_write.how =
      absl::StrCat("1 MiB after the other, without fdatasync,", where);
  return disk;
} catch (const std::exception& error) {
  const Measurement none = NotMeasured(absl::StrCat(error.what(), "."));
  return {none, none, none, none};
}

}  // namespace d2l
