#include "chapters/multi_gpu/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "chapters/multi_gpu/nvml.h"
#include "common/device/device_table.h"
#include "common/device/stream_stall.h"
#include "common/ops/ops.h"

namespace d2l::multi_gpu {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(Nvml, ReadsWhatTheLibrarySays) {
  const auto gpus = NvmlGpus("chapters/multi_gpu/libfake_nvml.so");
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  ASSERT_THAT(*gpus, SizeIs(2));
  const GpuState& first = (*gpus)[0];
  EXPECT_EQ(first.name, "Tesla K80");
  EXPECT_EQ(first.used_bytes, std::int64_t{7695} << 20);
  EXPECT_EQ(first.total_bytes, std::int64_t{11441} << 20);
  EXPECT_EQ(first.utilization, 61);
  ASSERT_THAT(first.processes, SizeIs(2));
  EXPECT_EQ(first.processes[0].pid, 44683);
  EXPECT_EQ(first.processes[0].memory_bytes, std::int64_t{3289} << 20);
  EXPECT_EQ(first.processes[1].memory_bytes, -1);
  const GpuState& second = (*gpus)[1];
  EXPECT_EQ(second.utilization, -1);
  EXPECT_THAT(second.processes, SizeIs(0));
}

TEST(Nvml, SaysThatThereIsNoLibrary) {
  const auto gpus = NvmlGpus("libthere-is-no-nvml.so.1");
  EXPECT_EQ(gpus.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(gpus.status().message()),
              HasSubstr("libthere-is-no-nvml.so.1"));
}

TEST(Nvml, SaysThatALibraryHasNoSuchFunctions) {
  const auto gpus = NvmlGpus("libm.so.6");
  EXPECT_EQ(gpus.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(gpus.status().message()), HasSubstr("nvmlInit_v2"));
}

TEST(Inventory, ShowsWhatIsBusyAndWhatIsTaken) {
  const Device device = Devices()[0].device;
  const Tensor held = Zeros({1 << 20}, device);
  Synchronize(device);
  const std::vector<DeviceState> idle = TableDevices(0.01);
  ASSERT_EQ(idle.size(), Devices().size());
  EXPECT_EQ(idle[0].state.utilization, 0);
  EXPECT_GE(idle[0].state.used_bytes, 4 << 20);
  {
    StreamStall stall(DefaultStream(device));
    const Tensor waits = held + 1;
    EXPECT_EQ(TableDevices(0.01)[0].state.utilization, 100);
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
  GpuState gpu;
  gpu.name = std::string(100, 'x');
  gpu.used_bytes = std::int64_t{200} << 30;
  gpu.total_bytes = std::int64_t{256} << 30;
  gpu.processes = {{4'000'000, -1}};
  const std::string table = InventoryTable({{"GPU 15", gpu}});
  for (const auto& line : absl::StrSplit(table, '\n')) {
    EXPECT_LE(line.size(), 80u) << line;
  }
  EXPECT_THAT(table, HasSubstr("unknown"));
}

}  // namespace
}  // namespace d2l::multi_gpu
