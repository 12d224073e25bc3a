#include "common/base/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"

namespace d2l {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public ::testing::Test {
 protected:
  AtomicFileTest()
      : directory_(fs::path(::testing::TempDir()) / "atomic_file_test") {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  ~AtomicFileTest() override { fs::remove_all(directory_); }

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
  EXPECT_TRUE(CheckWritable(path).ok());
  EXPECT_EQ(FilesThere(), 0);
  EXPECT_TRUE(WriteAtomically(path, "old and long").ok());
  EXPECT_TRUE(WriteAtomically(path, "new").ok());
  EXPECT_EQ(ReadFile(path), "new");
  EXPECT_EQ(FilesThere(), 1);
}

TEST_F(AtomicFileTest, CheckingLeavesTheOldFileAlone) {
  std::ofstream(Path("a.json")) << "old";
  EXPECT_TRUE(CheckWritable(Path("a.json")).ok());
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
       {CheckWritable(path), WriteAtomically(path, "x")}) {
    ASSERT_FALSE(status.ok());
    const std::string text(status.message());
    EXPECT_NE(text.find("cannot write " + path), std::string::npos) << text;
    EXPECT_NE(text.find("mkdir -p " + Path("missing")), std::string::npos);
  }
}

TEST_F(AtomicFileTest, DirectoryAndEmptyNameAreRefused) {
  EXPECT_FALSE(CheckWritable(directory_.string()).ok());
  EXPECT_FALSE(WriteAtomically(directory_.string(), "x").ok());
  EXPECT_FALSE(CheckWritable("").ok());
  std::ofstream(Path("file")) << "x";
  EXPECT_FALSE(CheckWritable(Path("file/a.json")).ok());
}

TEST_F(AtomicFileTest, AFullDiskLeavesTheOldFile) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  EXPECT_TRUE(CheckWritable("/dev/full").ok());
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
  EXPECT_FALSE(CheckWritable(Path("read_only.json")).ok());
  ASSERT_EQ(chmod(directory_.c_str(), 0555), 0);
  EXPECT_FALSE(CheckWritable(Path("new.json")).ok());
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
  EXPECT_TRUE(CheckWritable("/dev/null").ok());
  EXPECT_TRUE(WriteAtomically("/dev/null", "x").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace d2l
