#include "chapters/multi_gpu/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/device/device_table.h"
#include "common/device/stream_stall.h"
#include "common/ops/ops.h"

namespace d2l::multi_gpu {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// Replaces the machine's nvidia-smi while it lives.
class FakeNvidiaSmi {
 public:
  explicit FakeNvidiaSmi(const std::string& script) {
    const std::string folder = testing::TempDir() + "/fake_nvidia_smi";
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/nvidia-smi") << "#!/bin/sh\n" << script;
    chmod((folder + "/nvidia-smi").c_str(), 0755);
    setenv("PATH", (folder + ":" + path_).c_str(), /*overwrite=*/1);
  }
  ~FakeNvidiaSmi() { setenv("PATH", path_.c_str(), /*overwrite=*/1); }
  FakeNvidiaSmi(const FakeNvidiaSmi&) = delete;
  FakeNvidiaSmi& operator=(const FakeNvidiaSmi&) = delete;

 private:
  const std::string path_ = std::getenv("PATH");
};

// The second line is a part of a GPU (MIG), whose load is not known.
TEST(NvidiaSmi, IsReadWithItsProcesses) {
  const FakeNvidiaSmi smi(R"(
[ "$2" = --format=csv,noheader,nounits ] || exit 2
case "$1" in
  --query-gpu=uuid,name,memory.used,memory.total,utilization.gpu)
    echo "GPU-1a, Tesla K80, 7695, 11441, 61"
    echo "GPU-2b, Tesla K81, 7220, 11441, [N/A]" ;;
  --query-compute-apps=gpu_uuid,pid,used_memory)
    echo "GPU-1a, 44683, 3289"
    echo "GPU-1a, 1, [N/A]" ;;
  *) exit 2 ;;
esac
)");
  const auto gpus = NvidiaSmiGpus();
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  ASSERT_THAT(*gpus, SizeIs(2));
  const DeviceState& first = (*gpus)[0];
  EXPECT_EQ(first.device, "GPU 0");
  EXPECT_EQ(first.name, "Tesla K80");
  EXPECT_EQ(first.used_bytes, std::int64_t{7695} << 20);
  EXPECT_EQ(first.total_bytes, std::int64_t{11441} << 20);
  EXPECT_EQ(first.utilization, 61);
  ASSERT_THAT(first.processes, SizeIs(2));
  EXPECT_EQ(first.processes[0].pid, 44683);
  EXPECT_EQ(first.processes[0].memory_bytes, std::int64_t{3289} << 20);
  EXPECT_EQ(first.processes[1].memory_bytes, -1);
  const DeviceState& second = (*gpus)[1];
  EXPECT_EQ(second.name, "Tesla K81");
  EXPECT_EQ(second.utilization, -1);
  EXPECT_THAT(second.processes, SizeIs(0));
}

TEST(NvidiaSmi, SaysWhatItSays) {
  const FakeNvidiaSmi smi("echo No devices were found; exit 6\n");
  EXPECT_EQ(NvidiaSmiGpus().status(),
            absl::InternalError("nvidia-smi ended with exit code 6: No devices "
                                "were found"));
}

TEST(NvidiaSmi, MayNotBeThere) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nowhere", /*overwrite=*/1);
  const absl::Status status = NvidiaSmiGpus().status();
  setenv("PATH", path.c_str(), /*overwrite=*/1);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("nvidia-smi cannot be run: No such file"));
}

TEST(Inventory, ShowsWhatIsBusyAndWhatIsTaken) {
  const Device device = Devices()[0].device;
  const Tensor held = Zeros({1 << 20}, device);
  Synchronize(device);
  const std::vector<DeviceState> idle = TableDevices(0.01);
  ASSERT_EQ(idle.size(), Devices().size());
  EXPECT_EQ(idle[0].utilization, 0);
  EXPECT_GE(idle[0].used_bytes, 4 << 20);
  {
    StreamStall stall(DefaultStream(device));
    const Tensor waits = held + 1;
    EXPECT_EQ(TableDevices(0.01)[0].utilization, 100);
    stall.Release();
    WaitToRead(waits);
  }
  const std::string table = InventoryTable(idle);
  for (const auto& line : absl::StrSplit(table, '\n')) {
    EXPECT_TRUE(line.empty() || line.size() == 78) << line;
  }
  EXPECT_THAT(table, HasSubstr(absl::StrCat("| ", device.ToString())));
}

TEST(Inventory, TakesNamesAndNumbersOfAnyLength) {
  DeviceState gpu;
  gpu.device = "GPU 15";
  gpu.name = std::string(100, 'x');
  gpu.used_bytes = std::int64_t{200} << 30;
  gpu.total_bytes = std::int64_t{256} << 30;
  gpu.processes = {{4'000'000, -1}};
  const std::string table = InventoryTable({gpu});
  for (const auto& line : absl::StrSplit(table, '\n')) {
    EXPECT_LE(line.size(), 80u) << line;
  }
  EXPECT_THAT(table, HasSubstr("unknown"));
}

}  // namespace
}  // namespace d2l::multi_gpu
