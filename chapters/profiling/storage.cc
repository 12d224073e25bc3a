// The cell d2l/hw-storage: a disk reads one block at a time, and then several.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/profiling/hardware.h"
#include "common/base/undisturbed_timer.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"

namespace d2l::profiling {
namespace {

// A file in the folder for temporary files, whose name is already removed.
struct TemporaryFile {
  std::int64_t bytes;
  Descriptor cached;  // reads through the page cache
  Descriptor direct;  // reads past it; -1 if that is refused
};

// bytes is a multiple of 1 MiB. Throws std::system_error.
TemporaryFile MakeTemporaryFile(std::int64_t bytes) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  const std::string folder = std::filesystem::temp_directory_path();
  const auto fail = [&](const char* what) {
    throw std::system_error(errno, std::generic_category(),
                            absl::StrCat(what, " in ", folder));
  };
  std::string path = folder + "/d2l_storage_XXXXXX";
  Descriptor file(mkostemp(&path[0], O_CLOEXEC));
  if (file.get() < 0) fail("no file");
  Descriptor direct(open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  unlink(path.c_str());
  // Random numbers, which a disk cannot compress.
  std::vector<std::uint32_t> words(kMiB / sizeof(std::uint32_t));
  std::mt19937 generator(1);
  for (std::int64_t at = 0; at < bytes; at += kMiB) {
    std::generate(words.begin(), words.end(), std::ref(generator));
    if (write(file.get(), words.data(), kMiB) != kMiB) fail("writing a file");
  }
  if (fdatasync(file.get()) != 0) fail("writing a file");
  return {bytes, std::move(file), std::move(direct)};
}

// %% d2l/hw-storage
// Reads 4 KiB at random places of the file, `at_a_time` of them at the same
// time: each by a thread, which waits for it.
void ReadBlocks(int file, std::int64_t bytes, int reads, int at_a_time) {
  constexpr int kBlock = 4096;
  std::atomic<int> failed{0};
  const auto read = [&](int thread) {
    alignas(kBlock) char block[kBlock];
    std::minstd_rand generator(std::random_device{}());
    for (int i = thread; i < reads; i += at_a_time) {
      const std::int64_t place = generator() % (bytes / kBlock);
      if (pread(file, block, kBlock, place * kBlock) != kBlock) ++failed;
    }
    if (thread > 0) KeepWaits();  // of this thread, for the clock
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < at_a_time; ++i) threads.emplace_back(read, i);
  read(0);
  for (std::thread& thread : threads) thread.join();
  if (failed > 0) throw std::runtime_error("a block could not be read");
}
// %%

// So many that starting the threads takes a small part of the time.
constexpr int kReads = 256;

void ClaimFaster(Cell& cell, const Judgement& judgement,
                 const std::string& why) {
  cell.Claim("With eight reads at a time a disk is faster than with one: {}.",
             judgement, why);
}

std::string WhyNotFaster(const Timing& one, const Timing& eight,
                         const Timing& cached) {
  return Say(
      "A read takes %s alone, %s of eight at a time, and %s from the page "
      "cache. Some disks, and what stands between a virtual machine and its "
      "disk, do one after the other; a file in memory, or where O_DIRECT is "
      "refused, asks no disk.",
      Each(one.completion, kReads), Each(eight.completion, kReads),
      Each(cached.completion, kReads));
}

// %% d2l/hw-storage, measured
void StorageQueue(Cell& cell) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  try {
    const TemporaryFile file =
        MakeTemporaryFile(cell.BySize(8 * kMiB, 64 * kMiB, 64 * kMiB));
    // If the file system refuses direct reads, the page cache answers instead
    // of the disk, and the control below says so.
    const int cache = file.cached.get();
    const int disk = file.direct.get() < 0 ? cache : file.direct.get();
    std::vector<Timings> sweep;
    for (const int queue : {1, 2, 4, 8}) {
      const auto read = [&, queue](int from) {
        return [=, &file] { ReadBlocks(from, file.bytes, kReads, queue); };
      };
      cell.At("reads at a time", queue);
      sweep.push_back(cell.TimeInterleaved(
          {{"disk", {}, read(disk)}, {"page cache", {}, read(cache)}}));
    }
    cell.AtNoPlace();
    PrintSweep(sweep, kReads, "time of a read");
    const Timing &one = sweep.front()["disk"], &eight = sweep.back()["disk"];
    const Timing& cached = sweep.front()["page cache"];
    ClaimFaster(cell,
                Given(Faster(cached, one, 2), Faster(eight, one, kClearly),
                      "disk / page cache"),
                WhyNotFaster(one, eight, cached));
  } catch (const std::runtime_error& error) {  // and std::system_error
    ClaimFaster(
        cell, {Verdict::kInconclusive, "?", Say("not measured")},
        Say("There is no file to read: %s. Set TMPDIR to a folder on a disk, "
            "with 64 MiB free.",
            std::string(error.what())));
  }
}
// %%
D2L_CELL("d2l/hw-storage", StorageQueue);

// ---- Benchmarks, at the course's size.

MakeHostWork Reads(int at_a_time) {
  return [at_a_time] {
    return [at_a_time, file = std::make_shared<TemporaryFile>(
                           MakeTemporaryFile(std::int64_t{64} << 20))] {
      const bool direct = file->direct.get() >= 0;
      ReadBlocks((direct ? file->direct : file->cached).get(), file->bytes, 64,
                 at_a_time);
    };
  };
}

[[maybe_unused]] const bool benchmarks[] = {
    BenchmarkHost("BM_d2l_hw_storage_One_Host", 64, Reads(1)),
    BenchmarkHost("BM_d2l_hw_storage_Eight_Host", 64, Reads(8)),
};

}  // namespace
}  // namespace d2l::profiling
