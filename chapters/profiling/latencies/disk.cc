#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/profiling/latencies/measure.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/timer.h"

namespace d2l {
namespace {

constexpr std::int64_t kBlock = 4096;
constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kSmallestFile = 8 * kMiB;

[[noreturn]] void ThrowErrno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// An open file without a name, and memory to read and write it with. Its
// functions throw std::system_error.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& directory, std::int64_t bytes)
      : memory_(std::aligned_alloc(kBlock, kMiB), &std::free) {
    if (memory_ == nullptr) throw std::bad_alloc();
    const std::uintmax_t free = std::filesystem::space(directory).available;
    // As much again stays free for others.
    if (free / 2 < static_cast<std::uintmax_t>(bytes)) {
      throw std::runtime_error(absl::StrFormat(
          "%s has %s free; a file of %s is not written there", directory,
          FormatBytes(static_cast<std::int64_t>(free)), FormatBytes(bytes)));
    }
    std::string path = directory + "/d2l_latencies_XXXXXX";
    fd_ = mkostemp(&path[0], O_CLOEXEC);
    if (fd_ < 0) ThrowErrno(absl::StrCat("no file in ", directory));
    unlink(path.c_str());
    direct_ = fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_DIRECT) == 0;
    // Nothing that a disk could compress.
    std::mt19937 generator(1);
    std::uint32_t* const words = static_cast<std::uint32_t*>(memory_.get());
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
  // Returns when the disk says that it has the data.
  void Sync() {
    if (fdatasync(fd_) != 0) ThrowErrno("fdatasync of the temporary file");
  }
  std::string Describe() const {
    struct statfs system = {};
    if (fstatfs(fd_, &system) == 0 &&
        (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC)) {
      return Say("which is in memory (tmpfs), not on a disk");
    }
    return direct_ ? Say("past the page cache (O_DIRECT)")
                   : Say("through the page cache, which may answer instead of "
                         "the disk (O_DIRECT was refused)");
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

}  // namespace

DiskLatencies MeasureDisk(const std::string& directory, std::int64_t file_bytes,
                          const Budget& budget) {
  const std::int64_t bytes = std::max(file_bytes, kSmallestFile) / kMiB * kMiB;
  TemporaryFile file(directory, bytes);
  DiskLatencies disk;

  // Writing the file is the measurement of sequential writes, so it ends with
  // the file or with the time for it.
  const Timer timer;
  std::int64_t size = 0;
  while (size < bytes &&
         (size < kSmallestFile || timer.Seconds() < budget.seconds)) {
    const Timer one;
    file.Write(size, kMiB);
    disk.sequential_write.seconds.push_back(one.Seconds());
    size += kMiB;
  }
  file.Sync();

  // Each call is one sample.
  const auto sample = [&](auto operation) {
    return SampleEach(budget, operation, /*max_batch=*/1);
  };
  std::int64_t next = 0;
  disk.sequential_read.seconds = sample([&] {
    file.Read(next, kMiB);
    next = (next + kMiB) % size;
  });
  std::mt19937_64 generator(2);
  std::uniform_int_distribution<std::int64_t> block(0, size / kBlock - 1);
  disk.random_read.seconds =
      sample([&] { file.Read(block(generator) * kBlock, kBlock); });
  disk.random_write.seconds = sample([&] {
    file.Write(block(generator) * kBlock, kBlock);
    file.Sync();
  });

  const std::string of = FormatBytes(size);
  const std::string path = file.Describe();
  disk.random_read.how =
      Say("4 KiB at a random place of a file of %s; %s.", of, path);
  disk.random_write.how = Say(
      "4 KiB at a random place and fdatasync, until the disk has them; of a "
      "file of %s; %s.",
      of, path);
  disk.sequential_read.how =
      Say("1 MiB after the other of a file of %s; %s.", of, path);
  disk.sequential_write.how =
      Say("1 MiB after the other, without fdatasync, of a file of %s; %s.", of,
          path);
  return disk;
}

}  // namespace d2l
