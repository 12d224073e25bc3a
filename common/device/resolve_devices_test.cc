// ResolveDevices with invented hardware.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/device/backend.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::HasSubstr;

DeviceInventory Machine(int cores) {
  DeviceInventory inventory;
  inventory.devices.push_back({"Abacus", 1000, cores, ""});
  return inventory;
}

DeviceInventory Gpus(int count) {
  DeviceInventory inventory;
  for (int i = 0; i < count; ++i) {
    inventory.devices.push_back(
        {absl::StrCat("GPU model ", i), 2000 + i, 100 + i, "sm_90"});
  }
  if (count == 0) inventory.why_none = "There is no GPU, sorry.";
  return inventory;
}

// "cpu:0 virtual 1, cuda:0 real 0": name, kind, and the cores of a virtual
// device or the GPU of another one.
std::string Summary(const absl::StatusOr<std::vector<DeviceInfo>>& devices) {
  if (!devices.ok()) return std::string(devices.status().message());
  std::vector<std::string> words;
  for (const DeviceInfo& info : *devices) {
    words.push_back(absl::StrCat(
        info.device.ToString(), " ", DeviceKindName(info.kind), " ",
        info.kind == DeviceKind::kVirtual ? info.cores : info.physical_index));
  }
  return absl::StrJoin(words, ", ");
}

std::string Resolve(const std::string& spec, int min_devices, int cores,
                    int gpus) {
  return Summary(ResolveDevices(spec, min_devices, Machine(cores), Gpus(gpus)));
}

// The error of a list, on a machine of 4 cores.
absl::Status Error(const std::string& spec, const DeviceInventory& cuda) {
  return ResolveDevices(spec, 2, Machine(4), cuda).status();
}

TEST(ResolveDevicesTest, AutoWithoutAGpuMakesVirtualDevices) {
  EXPECT_EQ(Resolve("auto", 1, 4, 0), "cpu:0 virtual 4");
  EXPECT_EQ(Resolve("auto", 2, 4, 0), "cpu:0 virtual 2, cpu:1 virtual 2");
  EXPECT_EQ(Resolve("auto", 3, 4, 0),
            "cpu:0 virtual 1, cpu:1 virtual 1, cpu:2 virtual 1");
  EXPECT_EQ(Resolve("auto", 2, 1, 0), "cpu:0 virtual 1, cpu:1 virtual 1")
      << "with fewer cores than devices they take turns";
}

TEST(ResolveDevicesTest, AutoTakesEveryGpuAndSharesThemIfTooFew) {
  EXPECT_EQ(Resolve("auto", 1, 4, 1), "cuda:0 real 0");
  EXPECT_EQ(Resolve("auto", 2, 4, 1), "cuda:0 logical 0, cuda:1 logical 0");
  EXPECT_EQ(Resolve("auto", 2, 4, 2), "cuda:0 real 0, cuda:1 real 1");
  EXPECT_EQ(Resolve("auto", 1, 4, 2), "cuda:0 real 0, cuda:1 real 1");
  EXPECT_EQ(Resolve("auto", 3, 4, 2),
            "cuda:0 logical 0, cuda:1 real 1, cuda:2 logical 0");
}

TEST(ResolveDevicesTest, TakesWhatIsListed) {
  EXPECT_EQ(Resolve("cpu:0", 2, 4, 2), "cpu:0 virtual 4");
  EXPECT_EQ(Resolve("cpu", 2, 4, 0), "cpu:0 virtual 4");
  EXPECT_EQ(Resolve("cpu:0, cpu:1", 2, 4, 0),
            "cpu:0 virtual 2, cpu:1 virtual 2");
  EXPECT_EQ(Resolve("cpu:0,cuda:0", 2, 4, 1), "cpu:0 virtual 4, cuda:0 real 0");
  EXPECT_EQ(Resolve("cuda:0,cpu:0,cuda:1,cpu:1", 2, 4, 2),
            "cuda:0 real 0, cpu:0 virtual 2, cuda:1 real 1, cpu:1 virtual 2");
}

TEST(ResolveDevicesTest, NumbersCudaDevicesInTheOrderOfTheList) {
  EXPECT_EQ(Resolve("cuda:1", 2, 4, 2), "cuda:0 real 1");
  EXPECT_EQ(Resolve("cuda:1,cuda:0", 2, 4, 2), "cuda:0 real 1, cuda:1 real 0");
  EXPECT_EQ(Resolve("cuda:0,cuda:0", 2, 4, 1),
            "cuda:0 logical 0, cuda:1 logical 0");
  EXPECT_EQ(Resolve("cuda:1,cuda:0,cuda:1", 2, 4, 2),
            "cuda:0 logical 1, cuda:1 real 0, cuda:2 logical 1");
}

TEST(ResolveDevicesTest, SaysWhatTheHardwareIs) {
  const auto devices =
      ResolveDevices("cpu:0,cuda:1,cuda:1", 2, Machine(3), Gpus(2)).value();
  EXPECT_EQ(devices[0].Describe(), "cpu:0 (virtual, 3 cores of Abacus)");
  EXPECT_EQ(devices[1].Describe(), "cuda:0 (logical, on GPU 1, GPU model 1)");
  EXPECT_EQ(devices[0].memory_bytes, 1000);
  EXPECT_EQ(devices[1].memory_bytes, 2001);
  EXPECT_EQ(devices[1].cores, 101);
  EXPECT_EQ(devices[1].capability, "sm_90");
  EXPECT_EQ(
      ResolveDevices("cuda:0", 2, Machine(3), Gpus(1)).value()[0].Describe(),
      "cuda:0 (real, GPU model 0)");
}

TEST(ResolveDevicesTest, MalformedLists) {
  for (const char* spec : {"", ",", "cpu:0,", ",cpu:0", "cpu:0,,cpu:1", " "}) {
    SCOPED_TRACE(spec);
    const absl::Status status = Error(spec, Gpus(2));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("names no device in one place"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("cpu:0,cpu:1"));
  }
  for (const char* spec : {"gpu:0", "Auto", "cpu:0 cpu:1", "cpu:0;cpu:1",
                           "cpu:0,auto", "cpu:-1", "cuda:99999999999"}) {
    SCOPED_TRACE(spec);
    const absl::Status status = Error(spec, Gpus(2));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("is not a device"));
  }
}

TEST(ResolveDevicesTest, VirtualDevicesHaveNoGaps) {
  for (const char* spec :
       {"cpu:1", "cpu:0,cpu:2", "cpu:0,cpu:0", "cpu:0,cuda:0,cpu:2"}) {
    SCOPED_TRACE(spec);
    const absl::Status status = Error(spec, Gpus(1));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("without gaps"));
  }
  EXPECT_THAT(std::string(Error("cpu:0,cpu:2", Gpus(0)).message()),
              HasSubstr("cpu:2 asked for where cpu:1 comes next"));
}

TEST(ResolveDevicesTest, AbsentGpusAreNotFoundAndTheVisibleOnesListed) {
  DeviceInventory cuda = Gpus(2);
  absl::Status status = Error("cuda:2", cuda);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(status.message()),
            "cuda:2 asked for; visible: cuda:0 (GPU model 0), cuda:1 (GPU "
            "model 1).");
  cuda.renumbered_by = "CUDA_VISIBLE_DEVICES=4,5";
  status = Error("cpu:0,cuda:4", cuda);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(status.message()),
            "cuda:4 asked for; visible: cuda:0 (GPU model 0), cuda:1 (GPU "
            "model 1) (CUDA_VISIBLE_DEVICES=4,5 renumbers them).");
}

TEST(ResolveDevicesTest, WithoutAnyGpuItSaysWhy) {
  const absl::Status status = Error("cpu:0,cuda:0", Gpus(0));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(status.message()),
            "cuda:0 asked for. There is no GPU, sorry.");
}

TEST(ResolveDevicesTest, ModelsOfGpusAreForWhoNamesThem) {
  DeviceInventory cuda = Gpus(2);
  cuda.modelled = true;
  EXPECT_EQ(Summary(ResolveDevices("auto", 2, Machine(4), cuda)),
            "cpu:0 virtual 2, cpu:1 virtual 2");
  EXPECT_EQ(Summary(ResolveDevices("cuda:1,cuda:1", 2, Machine(4), cuda)),
            "cuda:0 modelled 1, cuda:1 modelled 1");
}

TEST(ResolveDevicesTest, NumberOfDevicesIsBounded) {
  std::vector<std::string> names;
  for (int i = 0; i < 64; ++i) names.push_back(absl::StrCat("cpu:", i));
  const auto most =
      ResolveDevices(absl::StrJoin(names, ","), 2, Machine(4), Gpus(0));
  ASSERT_TRUE(most.ok()) << most.status();
  EXPECT_EQ(most->size(), 64u);
  names.push_back("cpu:64");
  absl::Status status = Error(absl::StrJoin(names, ","), Gpus(0));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("65 devices asked for; there can be 64"));
  status = Error(absl::StrJoin(std::vector<std::string>(65, "cuda:0"), ","),
                 Gpus(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);

  for (const int min_devices : {-1, 0, 65}) {
    status = ResolveDevices("auto", min_devices, Machine(4), Gpus(0)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("1 to 64"));
  }
  EXPECT_EQ(ResolveDevices("auto", 64, Machine(4), Gpus(0)).value().size(),
            64u);
  EXPECT_EQ(ResolveDevices("auto", 2, Machine(4), Gpus(70)).value().size(),
            64u);
}

}  // namespace
}  // namespace d2l
