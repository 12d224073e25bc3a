#include "common/base/files/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace d2l {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class AtomicFileTest : public ::testing::Test {
 protected:
  AtomicFileTest()
      : directory_(fs::path(::testing::TempDir()) / "atomic_file_test") {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  ~AtomicFileTest() override { fs::remove_all(directory_); }

  mode_t Mode(const std::string& name) const {
    struct stat file = {};
    EXPECT_EQ(stat(Path(name).c_str(), &file), 0);
    return file.st_mode & 07777;
  }
  std::string Path(const std::string& name) const {
    return (directory_ / name).string();
  }
  int FilesThere() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      static_cast<void>(entry);
      ++count;
    }
    return count;
  }

  const fs::path directory_;
};

TEST_F(AtomicFileTest, WritesAndReplacesAndLeavesNothingElse) {
  const std::string path = Path("a.json");
  EXPECT_TRUE(AtomicFile::Open(path).ok());
  EXPECT_EQ(FilesThere(), 0);
  EXPECT_TRUE(WriteAtomically(path, "old and long").ok());
  EXPECT_TRUE(WriteAtomically(path, "new").ok());
  EXPECT_EQ(ReadFile(path), "new");
  EXPECT_EQ(FilesThere(), 1);
}

TEST_F(AtomicFileTest, WhatCannotBeReadIsEmpty) {
  EXPECT_EQ(ReadFile(Path("none")), "");
  EXPECT_EQ(ReadFile(::testing::TempDir()), "") << "a folder";
}

TEST_F(AtomicFileTest, OpeningLeavesTheOldFileAlone) {
  std::ofstream(Path("a.json")) << "old";
  EXPECT_TRUE(AtomicFile::Open(Path("a.json")).ok());
  EXPECT_EQ(ReadFile(Path("a.json")), "old");
  EXPECT_EQ(FilesThere(), 1);
}

// A reader that opened the file before keeps what it opened.
TEST_F(AtomicFileTest, TheOldFileStaysWholeForWhoeverReadsIt) {
  std::ofstream(Path("a.json")) << "old";
  std::ifstream reader(Path("a.json"));
  ASSERT_TRUE(WriteAtomically(Path("a.json"), "something else").ok());
  std::string text;
  reader >> text;
  EXPECT_EQ(text, "old");
}

TEST_F(AtomicFileTest, MissingDirectoryIsRefusedWithAdvice) {
  const std::string path = Path("missing/a.json");
  for (const absl::Status& status :
       {AtomicFile::Open(path).status(), WriteAtomically(path, "x")}) {
    ASSERT_FALSE(status.ok());
    const std::string text(status.message());
    EXPECT_NE(text.find("cannot write " + path), std::string::npos) << text;
    EXPECT_NE(text.find("mkdir -p " + Path("missing")), std::string::npos);
  }
}

TEST_F(AtomicFileTest, DirectoryAndEmptyNameAreRefused) {
  EXPECT_FALSE(AtomicFile::Open(directory_.string()).ok());
  EXPECT_FALSE(WriteAtomically(directory_.string(), "x").ok());
  EXPECT_FALSE(AtomicFile::Open("").ok());
  std::ofstream(Path("file")) << "x";
  EXPECT_FALSE(AtomicFile::Open(Path("file/a.json")).ok());
}

TEST_F(AtomicFileTest, AFullDiskLeavesTheOldFile) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  EXPECT_TRUE(AtomicFile::Open("/dev/full").ok());
  const absl::Status status = WriteAtomically("/dev/full", "x");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(std::string(status.message()).find("disk is full"),
            std::string::npos)
      << status;
}

TEST_F(AtomicFileTest, ProtectedPlacesAreRefused) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  std::ofstream(Path("read_only.json")) << "old";
  ASSERT_EQ(chmod(Path("read_only.json").c_str(), 0444), 0);
  EXPECT_FALSE(AtomicFile::Open(Path("read_only.json")).ok());
  ASSERT_EQ(chmod(directory_.c_str(), 0555), 0);
  EXPECT_FALSE(AtomicFile::Open(Path("new.json")).ok());
  ASSERT_EQ(chmod(directory_.c_str(), 0755), 0);
}

TEST_F(AtomicFileTest, ASymbolicLinkStaysOne) {
  std::ofstream(Path("target.json")) << "old";
  fs::create_symlink("target.json", Path("link.json"));
  ASSERT_TRUE(WriteAtomically(Path("link.json"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(Path("link.json")));
  EXPECT_EQ(ReadFile(Path("target.json")), "new");
}

TEST_F(AtomicFileTest, ADeviceIsWrittenToNotReplaced) {
  EXPECT_TRUE(AtomicFile::Open("/dev/null").ok());
  EXPECT_TRUE(WriteAtomically("/dev/null", "x").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(AtomicFileTest, ALinkWithoutATargetMakesTheTarget) {
  fs::create_directory(Path("there"));
  fs::create_symlink("there/second.json", Path("first.json"));
  fs::create_symlink("../target.json", Path("there/second.json"));
  ASSERT_TRUE(WriteAtomically(Path("first.json"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(Path("first.json")));
  EXPECT_TRUE(fs::is_symlink(Path("there/second.json")));
  EXPECT_EQ(ReadFile(Path("target.json")), "new");
  fs::create_symlink("missing/target.json", Path("lost.json"));
  EXPECT_FALSE(AtomicFile::Open(Path("lost.json")).ok());
  fs::create_symlink("circle.json", Path("circle.json"));
  EXPECT_FALSE(AtomicFile::Open(Path("circle.json")).ok());
}

TEST_F(AtomicFileTest, NamesAreNotGuessedByOthers) {
  std::ofstream(Path("victim")) << "precious";
  fs::create_symlink("victim", Path(absl::StrCat("a.json.tmp.", getpid())));
  EXPECT_TRUE(AtomicFile::Open(Path("a.json")).ok());
  EXPECT_TRUE(WriteAtomically(Path("a.json"), "new").ok());
  EXPECT_EQ(ReadFile(Path("victim")), "precious");
}

TEST_F(AtomicFileTest, ALongNameIsNoHindrance) {
  const std::string path = Path(std::string(255, 'a'));
  ASSERT_TRUE(WriteAtomically(path, "new").ok());
  EXPECT_EQ(ReadFile(path), "new");
}

TEST_F(AtomicFileTest, TheErrorOfAWriteIsReported) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  absl::StatusOr<AtomicFile> file = AtomicFile::Open("/dev/full");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(file->Write("x"));
  EXPECT_FALSE(file->Write("y"));
  EXPECT_THAT(std::string(file->Commit().message()), HasSubstr("disk is full"));
}

TEST_F(AtomicFileTest, ANamedPipeNeedsAReader) {
  const std::string path = Path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(std::string(AtomicFile::Open(path).status().message()),
              HasSubstr("start the reader first: cat " + path));
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  absl::StatusOr<AtomicFile> file = AtomicFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->Write("text"));
  EXPECT_TRUE(file->Commit().ok());
  char text[8] = {};
  EXPECT_EQ(read(reader, text, sizeof(text)), 4);
  EXPECT_STREQ(text, "text");
  close(reader);
  EXPECT_TRUE(fs::is_fifo(path));
}

// The text is larger than a pipe: the writer waits for the reader.
TEST_F(AtomicFileTest, ASlowReaderOfAPipeGetsEverything) {
  const std::string path = Path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = ReadFile(path); });
  const std::string sent(1'000'000, 'x');
  EXPECT_TRUE(WriteAtomically(path, sent).ok());
  reader.join();
  EXPECT_EQ(got, sent);
}

TEST_F(AtomicFileTest, KnowsThatTwoNamesMeanOneFile) {
  std::ofstream(Path("a")) << "old";
  fs::create_symlink("a", Path("link"));
  fs::create_hard_link(Path("a"), Path("hard"));
  fs::create_symlink("new", Path("dangling"));
  fs::create_directory_symlink(directory_, Path("here"));
  const auto same = [&](const std::string& a, const std::string& b) {
    absl::StatusOr<AtomicFile> first = AtomicFile::Open(a);
    absl::StatusOr<AtomicFile> second = AtomicFile::Open(b);
    EXPECT_TRUE(first.ok() && second.ok());
    return first->SameFile(*second);
  };
  for (const char* other : {"a", "./a", "link", "hard", "here/here/a"}) {
    EXPECT_TRUE(same(Path("a"), Path(other))) << other;
  }
  EXPECT_TRUE(same(Path("new"), Path("dangling")));
  EXPECT_TRUE(same(Path("new"), Path("here/new")));
  EXPECT_TRUE(same("/dev/null", "/dev/../dev/null"));
  EXPECT_FALSE(same(Path("a"), Path("new")));
  EXPECT_FALSE(same(Path("new"), Path("newer")));
  EXPECT_FALSE(same("/dev/null", Path("new")));
}

// Runs in a process of its own whose stdout is the file.
void WriteBehindStdout(const std::string& stdout_file,
                       const std::string& path) {
  ASSERT_NE(std::freopen(stdout_file.c_str(), "a", stdout), nullptr);
  std::printf("before\n");
  std::fflush(stdout);
  const bool written = WriteAtomically(path, "text\n").ok();
  std::printf("after\n");
  std::fflush(stdout);
  _exit(written ? 0 : 1);
}

TEST_F(AtomicFileTest, StdoutIsContinuedAndNotReplaced) {
  for (const std::string& path :
       {std::string("/dev/stdout"), Path("out"), std::string("/dev/fd/1")}) {
    fs::remove(Path("out"));
    std::ofstream(Path("out")) << "old\n";
    EXPECT_EXIT(WriteBehindStdout(Path("out"), path),
                ::testing::ExitedWithCode(0), "");
    EXPECT_EQ(ReadFile(Path("out")), "old\nbefore\ntext\nafter\n") << path;
  }
}

TEST_F(AtomicFileTest, PartsMakeUpTheFile) {
  std::ofstream(Path("a")) << "old";
  absl::StatusOr<AtomicFile> opened = AtomicFile::Open(Path("a"));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->path(), Path("a"));
  AtomicFile file = *std::move(opened);
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    const std::string part(i, static_cast<char>('a' + i % 26));
    EXPECT_TRUE(file.Write(part));
    expected += part;
  }
  EXPECT_EQ(ReadFile(Path("a")), "old");
  EXPECT_TRUE(file.Commit().ok());
  EXPECT_EQ(ReadFile(Path("a")), expected);
  EXPECT_EQ(FilesThere(), 1);
}

TEST_F(AtomicFileTest, WithoutACommitTheOldFileStays) {
  std::ofstream(Path("a")) << "old";
  for (const char* name : {"a", "new"}) {
    absl::StatusOr<AtomicFile> file = AtomicFile::Open(Path(name));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE(file->Write("half"));
  }
  EXPECT_EQ(ReadFile(Path("a")), "old");
  EXPECT_EQ(FilesThere(), 1);
}

TEST_F(AtomicFileTest, OfTwoWritersTheLastWins) {
  absl::StatusOr<AtomicFile> first = AtomicFile::Open(Path("a"));
  absl::StatusOr<AtomicFile> second = AtomicFile::Open(Path("a"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(first->Write("one") && second->Write("two"));
  EXPECT_TRUE(second->Commit().ok());
  EXPECT_EQ(ReadFile(Path("a")), "two");
  EXPECT_TRUE(first->Commit().ok());
  EXPECT_EQ(ReadFile(Path("a")), "one");
  EXPECT_EQ(FilesThere(), 1);
}

TEST_F(AtomicFileTest, PermissionsAreKept) {
  const mode_t before = umask(027);
  EXPECT_TRUE(WriteAtomically(Path("new"), "x").ok());
  EXPECT_EQ(Mode("new"), 0640u);
  for (const mode_t mode : {0600, 0666, 0755}) {
    ASSERT_EQ(chmod(Path("new").c_str(), mode), 0);
    EXPECT_TRUE(WriteAtomically(Path("new"), "y").ok());
    EXPECT_EQ(Mode("new"), mode);
  }
  umask(before);
}

TEST_F(AtomicFileTest, ADirectoryThatHasGoneIsAnError) {
  fs::create_directory(Path("d"));
  absl::StatusOr<AtomicFile> file = AtomicFile::Open(Path("d/a"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->Write("x"));
  fs::rename(Path("d"), Path("e"));
  EXPECT_THAT(std::string(file->Commit().message()),
              HasSubstr("cannot write " + Path("d/a")));
  EXPECT_FALSE(fs::exists(Path("e/a")));
}

void DieWhileWriting(const std::string& path, int signal_number) {
  signal(SIGTERM, [](int number) {
    RemoveTemporaryFiles();
    signal(number, SIG_DFL);
    raise(number);
  });
  absl::StatusOr<AtomicFile> file = AtomicFile::Open(path);
  if (!file.ok() || !file->Write(std::string(1'000'000, 'x'))) _exit(1);
  raise(signal_number);
}

TEST_F(AtomicFileTest, ASignalInTheMiddleLeavesNothing) {
  std::ofstream(Path("a")) << "old";
  EXPECT_EXIT(DieWhileWriting(Path("a"), SIGTERM),
              ::testing::KilledBySignal(SIGTERM), "");
  EXPECT_EQ(ReadFile(Path("a")), "old");
  EXPECT_EQ(FilesThere(), 1);
}

TEST_F(AtomicFileTest, SigkillLeavesTheOldFileWholeAndOneThatSaysWhatItIs) {
  std::ofstream(Path("a")) << "old";
  EXPECT_EXIT(DieWhileWriting(Path("a"), SIGKILL),
              ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(ReadFile(Path("a")), "old");
  EXPECT_EQ(FilesThere(), 2);
  for (const auto& entry : fs::directory_iterator(directory_)) {
    EXPECT_THAT(entry.path().filename().string(),
                ::testing::AnyOf("a", ::testing::MatchesRegex(
                                          "[.]d2l-[0-9a-f]+-[0-9a-f]+[.]tmp")));
  }
  // Another file's write leaves it, the next write of this file removes it.
  EXPECT_TRUE(WriteAtomically(Path("b"), "new").ok());
  EXPECT_EQ(FilesThere(), 3);
  EXPECT_TRUE(WriteAtomically(Path("a"), "new").ok());
  EXPECT_EQ(ReadFile(Path("a")), "new");
  EXPECT_EQ(FilesThere(), 2);
}

TEST_F(AtomicFileTest, SeveralWritersLeaveEachOthersTemporaryFiles) {
  absl::StatusOr<AtomicFile> first = AtomicFile::Open(Path("a"));
  absl::StatusOr<AtomicFile> second = AtomicFile::Open(Path("a"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(FilesThere(), 2);
  second->Write("second");
  EXPECT_TRUE(second->Commit().ok());
  first->Write("first");
  EXPECT_TRUE(first->Commit().ok());
  EXPECT_EQ(ReadFile(Path("a")), "first");
  EXPECT_EQ(FilesThere(), 1);

  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&] {
      for (int n = 0; n < 50; ++n) {
        EXPECT_EQ(WriteAtomically(Path("a"), "whole"), absl::OkStatus());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(ReadFile(Path("a")), "whole");
  EXPECT_EQ(FilesThere(), 1);
}

TEST(TemporaryDirectory, GoesWithAllThatIsInIt) {
  std::string path;
  {
    const TemporaryDirectory directory;
    path = directory.path();
    std::ofstream(path + "/a.txt") << "a";
    EXPECT_EQ(ReadFile(path + "/a.txt"), "a");
    EXPECT_NE(TemporaryDirectory().path(), path);
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(UserPath, IsRelativeToWhereTheUserTypedIt) {
  ::setenv("BUILD_WORKING_DIRECTORY", "/typed/here", 1);
  EXPECT_EQ(UserPath("a.txt"), "/typed/here/a.txt");
  EXPECT_EQ(UserPath("/a.txt"), "/a.txt");
  EXPECT_EQ(UserPath(""), "");
  ::unsetenv("BUILD_WORKING_DIRECTORY");
  EXPECT_EQ(UserPath("a.txt"), "a.txt");
}

}  // namespace
}  // namespace d2l
