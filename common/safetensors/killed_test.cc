// kill -9 while a file is saved, before each call that changes a file: the old
// file, or the new one, is complete, and no other file exists.

#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/child_process.h"
#include "common/base/files/atomic_file.h"
#include "common/ops/ops.h"
#include "common/safetensors/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

// The number of calls before this process is killed; negative: never.
int calls_left = -1;

void Count() {
  if (calls_left < 0) return;
  if (calls_left-- == 0) kill(getpid(), SIGKILL);
}

}  // namespace

// These functions replace the C library's in this program.
extern "C" {
ssize_t write(int file, const void* bytes, size_t size) {
  Count();
  return syscall(SYS_write, file, bytes, size);
}
int fsync(int file) {
  Count();
  return static_cast<int>(syscall(SYS_fsync, file));
}
int rename(const char* from, const char* to) noexcept {
  Count();
  return static_cast<int>(syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to));
}
int close(int file) {
  Count();
  return static_cast<int>(syscall(SYS_close, file));
}
}

namespace d2l::safetensors {
namespace {

constexpr const char* kPath = "D2L_KILLED_TEST_PATH";
constexpr const char* kCalls = "D2L_KILLED_TEST_CALLS";

NamedTensors New() {
  return {{"a", Full({300000}, 2)}, {"b", Full({7}, 3)}, {"c", Ones({})}};
}

// The child's part; it tests nothing by itself.
TEST(KilledTest, DISABLED_Child) {
  const NamedTensors tensors = New();
  for (const auto& [name, tensor] : tensors) WaitToRead(tensor);
  calls_left = std::atoi(std::getenv(kCalls));
  const absl::Status saved = SaveFile(tensors, std::getenv(kPath));
  calls_left = -1;
  ASSERT_TRUE(saved.ok()) << saved;
}

TEST(KilledTest, TheOldFileOrTheNewOneIsWhole) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/x.safetensors";
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  ASSERT_TRUE(SaveFile(New(), path).ok());
  const std::string saved = ReadFile(path);
  ASSERT_TRUE(SaveFile({{"w", Ones({2})}}, path).ok());
  const std::string old = ReadFile(path);
  ProgramOptions options;
  options.time_limit = std::chrono::seconds(60);
  int killed = 0, replaced = 0;
  for (int calls = 0;; ++calls) {
    ASSERT_LT(calls, 100);
    const ProgramResult child = RunProgram(
        self,
        {"--gtest_also_run_disabled_tests",
         "--gtest_filter=KilledTest.DISABLED_Child"},
        {absl::StrCat(kPath, "=", path), absl::StrCat(kCalls, "=", calls),
         "GTEST_OUTPUT", "XML_OUTPUT_FILE", "TEST_PREMATURE_EXIT_FILE",
         "TEST_TOTAL_SHARDS", "GTEST_TOTAL_SHARDS"},
        options);
    const std::string now = ReadFile(path);
    if (child.exit_code == 0) {
      EXPECT_EQ(now, saved);
      break;
    }
    ASSERT_EQ(child.exit_code, 128 + SIGKILL) << child.output;
    ++killed;
    if (now == saved) {
      ++replaced;
    } else {
      EXPECT_EQ(replaced, 0);
      EXPECT_TRUE(now == old) << "after " << calls << " calls";
    }
    for (const auto& entry :
         std::filesystem::directory_iterator(directory.path())) {
      // Killed before the rename, the process leaves a part of the new file,
      // under a name that nobody takes for a file of tensors.
      if (entry.path() == path) continue;
      EXPECT_THAT(entry.path().filename().string(),
                  testing::MatchesRegex("[.]d2l-[0-9a-f]+-[0-9a-f]+[.]tmp"));
      EXPECT_THAT(saved, testing::StartsWith(ReadFile(entry.path())));
      std::filesystem::remove(entry.path());
    }
  }
  // The calls are: the header's size, the header, three tensors, fsync, close,
  // rename, and fsync and close of the directory.
  EXPECT_GE(killed, 8);
  EXPECT_GE(replaced, 1);
}

}  // namespace
}  // namespace d2l::safetensors
