#include "chapters/profiling/machine_drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class MachineDrawingTest : public ::testing::Test {
 protected:
  ~MachineDrawingTest() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  void WriteCpu(int cpu, int socket, int core) {
    const std::string topology =
        absl::StrCat("/sys/devices/system/cpu/cpu", cpu, "/topology/");
    Write(topology + "physical_package_id", absl::StrCat(socket));
    Write(topology + "core_id", absl::StrCat(core));
  }
  void WriteCache(int index, const std::string& level,
                  const std::string& size) {
    const std::string cache =
        absl::StrCat("/sys/devices/system/cpu/cpu0/cache/index", index, "/");
    Write(cache + "level", level);
    Write(cache + "type", "Unified");
    Write(cache + "size", size);
  }

  const std::string root_ = absl::StrCat(::testing::TempDir(), "machine");
};

TEST_F(MachineDrawingTest, ShowsWhatTheSystemNames) {
  // Two sockets of six cores, of two hardware threads each.
  for (int cpu = 0; cpu < 24; ++cpu) WriteCpu(cpu, cpu / 12, cpu % 6);
  WriteCache(0, "1", "48K");
  WriteCache(1, "2", "2M");
  WriteCache(2, "3", "32M");
  Write("/proc/meminfo", "MemTotal:       16777216 kB");
  Write("/sys/block/nvme0n1/device/model", "");
  Write("/sys/block/loop0/size", "0");
  Write("/sys/class/net/eth0/device/vendor", "");
  Write("/sys/class/net/lo/mtu", "1");
  const MachineParts parts = FindMachineParts(root_);
  EXPECT_THAT(parts.cores, ElementsAre(6, 6));
  const Drawing drawing = DrawMachine(parts);
  EXPECT_EQ(drawing.text,
            "socket 0, cores: 6, L1 48.0 KiB, L2 2.0 MiB, L3 32.0 MiB\n"
            "socket 1, cores: 6, L1 48.0 KiB, L2 2.0 MiB, L3 32.0 MiB\n"
            "memory 16.0 GiB\n"
            "disk nvme0n1\n"
            "network eth0\n");
  EXPECT_THAT(drawing.svg, HasSubstr(">core 3<"));
  EXPECT_THAT(drawing.svg, Not(HasSubstr(">core 4<")));
  EXPECT_THAT(drawing.svg, HasSubstr(">and 2 more<"));
}

TEST_F(MachineDrawingTest, LeavesOutWhatItDoesNotName) {
  const MachineParts parts = FindMachineParts(root_);
  ASSERT_EQ(parts.cores.size(), 1u);
  EXPECT_EQ(DrawMachine(parts).text,
            absl::StrCat("socket 0, cores: ", parts.cores[0], "\n"));
}

}  // namespace
}  // namespace d2l
