#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "common/base/machine.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// A tree of files in place of /proc and /sys.
class FreeMemoryTest : public testing::Test {
 protected:
  FreeMemoryTest() { std::filesystem::remove_all(root_); }
  ~FreeMemoryTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = root_ + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void WriteGroup(const std::string& folder, const std::string& max,
                  std::int64_t current) {
    Write(folder + "/memory.max", max + "\n");
    Write(folder + "/memory.current", std::to_string(current) + "\n");
  }
  std::int64_t Free(std::int64_t promised = 0) {
    return FreeHostMemory(promised, root_);
  }

  const std::string root_ =
      testing::TempDir() + "/free_memory_test." + std::to_string(getpid());
};

TEST_F(FreeMemoryTest, NoFilesAreNoLimit) { EXPECT_EQ(Free(), kNoLimit); }

TEST_F(FreeMemoryTest, AvailableOfMeminfo) {
  Write("/proc/meminfo",
        "MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:    2048 kB\n");
  EXPECT_EQ(Free(), 2 * kMiB);
}

TEST_F(FreeMemoryTest, GarbageIsNoLimit) {
  for (const char* text :
       {"", "\n", "MemAvailable", "MemAvailable:", "MemAvailable: kB",
        "MemAvailable: -5 kB", "MemAvailable: 99999999999999999999999 kB",
        "MemAvailable: 9223372036854775807 kB", "MemAvailableX: 1 kB"}) {
    SCOPED_TRACE(text);
    Write("/proc/meminfo", text);
    Write("/proc/self/statm", text);
    Write("/proc/self/cgroup", std::string("0::\n:\n::\n1:x\n") + text);
    Write("/sys/fs/cgroup/memory.max", text);
    Write("/sys/fs/cgroup/memory.current", text);
    EXPECT_EQ(Free(), kNoLimit);
  }
}

TEST_F(FreeMemoryTest, TheTightestGroupUpToTheRootCounts) {
  Write("/proc/self/cgroup", "0::/a/b\n");
  WriteGroup("/sys/fs/cgroup/a/b", "max", 5);
  EXPECT_EQ(Free(), kNoLimit);
  // A sixteenth of the limit is left alone.
  WriteGroup("/sys/fs/cgroup/a", std::to_string(1600 * kMiB), 200 * kMiB);
  EXPECT_EQ(Free(), 1300 * kMiB);
  WriteGroup("/sys/fs/cgroup/a/b", std::to_string(320 * kMiB), 100 * kMiB);
  EXPECT_EQ(Free(), 200 * kMiB);
  Write("/sys/fs/cgroup/a/b/memory.high", std::to_string(160 * kMiB));
  EXPECT_EQ(Free(), 50 * kMiB);
  Write("/sys/fs/cgroup/a/b/memory.stat",
        "anon 1\ninactive_file 1048576\nactive_file 2097152\n");
  EXPECT_EQ(Free(), 53 * kMiB) << "files give way";
  WriteGroup("/sys/fs/cgroup/a/b", "max", 500 * kMiB);
  EXPECT_EQ(Free(), 0) << "more than the limit is used";
}

TEST_F(FreeMemoryTest, Version1) {
  Write("/proc/self/cgroup",
        "5:cpu:/elsewhere\n4:hugetlb,memory:/docker/x/y\n0::/\n");
  const std::string memory = "/sys/fs/cgroup/memory";
  Write(memory + "/docker/x/y/memory.limit_in_bytes", "9223372036854771712\n");
  Write(memory + "/docker/x/y/memory.usage_in_bytes", "100\n");
  EXPECT_EQ(Free(), kNoLimit);
  // A container may see its own group as the root.
  Write(memory + "/memory.limit_in_bytes", std::to_string(160 * kMiB));
  Write(memory + "/memory.usage_in_bytes", std::to_string(100 * kMiB));
  Write(memory + "/memory.stat",
        "inactive_file 1\ntotal_inactive_file 1048576\n");
  EXPECT_EQ(Free(), 51 * kMiB);
}

TEST_F(FreeMemoryTest, WhatIsPromisedAndNotTouchedIsNotFree) {
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  Write("/proc/meminfo", "MemAvailable: 102400 kB\n");
  Write("/proc/self/statm", "900 300 100 0 0 0 0\n");
  EXPECT_EQ(Free(200 * page), 100 * kMiB);
  EXPECT_EQ(Free(200 * page + 30 * kMiB), 70 * kMiB);
  EXPECT_EQ(Free(kNoLimit), 0);
}

TEST(FreeMemory, OfThisMachine) {
  EXPECT_GT(FreeHostMemory(0), 0);
  EXPECT_LT(FreeHostMemory(0), std::int64_t{1} << 50);
}

}  // namespace
}  // namespace d2l
