#include "common/base/machine.h"

#include <sched.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A directory with the files of a machine's /proc and /sys.
class CgroupTest : public testing::Test {
 protected:
  CgroupTest()
      : root_(testing::TempDir() + "cgroup_" +
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(root_);
  }
  ~CgroupTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const std::string root_;
};

TEST_F(CgroupTest, NoFilesNoLimit) {
  EXPECT_THAT(internal::CgroupValues("cpu", "a", "b", root_), IsEmpty());
  EXPECT_EQ(internal::CpuQuota(root_), 0);
}

TEST_F(CgroupTest, Version2FromTheInnermostUp) {
  Write("/proc/self/cgroup", "0::/a/b/c\n");
  Write("/sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
  Write("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  Write("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_THAT(internal::CgroupValues("cpu", "none", "cpu.max", root_),
              ElementsAre("max 100000", "150000 100000", "400000 100000"));
  EXPECT_EQ(internal::CpuQuota(root_), 1.5);
}

TEST_F(CgroupTest, Version2AtTheRoot) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_THAT(internal::CgroupValues("cpu", "none", "cpu.max", root_),
              ElementsAre("100000 100000"));
  EXPECT_EQ(internal::CpuQuota(root_), 1);
}

// The path is the host's; the container sees its own group at the root.
TEST_F(CgroupTest, Version1InAContainer) {
  Write("/proc/self/cgroup",
        "5:memory:/docker/1f\n4:cpuacct,cpu:/docker/1f\n0::/\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(internal::CpuQuota(root_), 0.5);
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(internal::CpuQuota(root_), 0);
}

TEST_F(CgroupTest, GarbageIsNoLimit) {
  Write("/proc/self/cgroup", "garbage\n\n0::\n0::/x\n:::::\n");
  for (const char* text :
       {"", "\n", "1", "max", "a b", "1 0", "-5 100000", "nan nan", "1 2 3"}) {
    Write("/sys/fs/cgroup/x/cpu.max", text);
    EXPECT_EQ(internal::CpuQuota(root_), 0) << text;
  }
}

TEST(UsableCoresTest, FollowsTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_GE(UsableCores(), 1);
  EXPECT_LE(UsableCores(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(UsableCores(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

// /proc/stat with this text.
CpuTimes Read(const std::string& text, Cpus cpus) {
  const std::filesystem::path root =
      std::filesystem::path(::testing::TempDir()) / "cpu_times";
  std::filesystem::create_directories(root / "proc");
  std::ofstream(root / "proc/stat") << text;
  const CpuTimes times = ReadCpuTimes(root.string(), cpus);
  std::filesystem::remove_all(root);
  return times;
}

constexpr char kLater[] =
    "cpu  400 0 0 100 0 0 0 100 999 999\n"
    "cpu0 200 0 0 100 0 0 0 0 999 999\n"
    "cpu1 200 0 0 0 0 0 0 100 999 999\n"
    "intr 1 2 3\n";

TEST(CpuTimes, AreCountedInCores) {
  const CpuTimes before =
      Read("cpu  0 0 0 0 0 0 0 0\ncpu0 0\ncpu1 0\n", Cpus::kAll);
  EXPECT_EQ(before.cpus, 2);
  const std::optional<CpuUse> use =
      UseBetween(before, Read(kLater, Cpus::kAll));
  ASSERT_TRUE(use.has_value());
  EXPECT_DOUBLE_EQ(use->ticks, 300);
  EXPECT_DOUBLE_EQ(use->busy, 400.0 / 300);
  EXPECT_DOUBLE_EQ(use->stolen, 100.0 / 300);
  // A counter that goes back counts as standing still.
  EXPECT_FALSE(UseBetween(Read(kLater, Cpus::kAll), before).has_value());
}

TEST(CpuTimes, AddsKindsOfWork) {
  const CpuTimes times =
      Read("cpu 1 2 4 8 16 32 64 128 5 5\ncpu0\n", Cpus::kAll);
  EXPECT_EQ(times.busy, 1 + 2 + 4 + 32 + 64);
  EXPECT_EQ(times.idle, 8 + 16);
  EXPECT_EQ(times.steal, 128);
}

TEST(CpuTimes, OfTheUsableCpusOnly) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const std::string name = "cpu" + std::to_string(first);
  const CpuTimes times =
      Read("cpu  9 0 0 9 0 0 0 0\n" + name + " 3 0 0 4 0 0 0 5\ncpu" +
               std::to_string(first + 1) + " 6 0 0 5 0 0 0 0\n",
           Cpus::kUsable);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(times.cpus, 1);
  EXPECT_EQ(times.busy, 3);
  EXPECT_EQ(times.idle, 4);
  EXPECT_EQ(times.steal, 5);
}

TEST(CpuTimes, UnknownIsNotQuiet) {
  const CpuTimes known = Read(kLater, Cpus::kAll);
  for (const char* text : {"", "cpu\n", "cpu  1 2\ncpu0 1 2\n", "cpu  a b\n"}) {
    const CpuTimes times = Read(text, Cpus::kAll);
    EXPECT_FALSE(times.busy.has_value()) << text;
    EXPECT_FALSE(UseBetween(times, known).has_value()) << text;
    EXPECT_FALSE(UseBetween(known, times).has_value()) << text;
  }
  EXPECT_FALSE(UseBetween(known, known).has_value());
}

TEST_F(CgroupTest, CacheBytesAreThoseOfDataCaches) {
  EXPECT_EQ(CacheBytes(1, root_), std::nullopt);
  const auto write = [&](int index, const char* level, const char* type,
                         const char* size) {
    const std::string cache = "/sys/devices/system/cpu/cpu0/cache/index" +
                              std::to_string(index) + "/";
    Write(cache + "level", level);
    Write(cache + "type", type);
    Write(cache + "size", size);
  };
  write(0, "1\n", "Instruction\n", "32K\n");
  write(1, "1\n", "Data\n", "48K\n");
  write(2, "2\n", "Unified\n", "2M\n");
  EXPECT_EQ(CacheBytes(1, root_), 48 * 1024);
  EXPECT_EQ(CacheBytes(2, root_), 2 << 20);
  EXPECT_EQ(CacheBytes(3, root_), std::nullopt);
  for (const char* size :
       {"", "?\n", "-4K\n", "99999999999999999999M\n", "9999999999999M\n"}) {
    write(3, "3\n", "Unified\n", size);
    EXPECT_EQ(CacheBytes(3, root_), std::nullopt) << size;
  }
}

}  // namespace
}  // namespace d2l
