#include "common/device/testing/testing.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/device/backend.h"
#include "common/device/device_table.h"

namespace d2l {
namespace {

constexpr char kCpuDevices[] = "cpu:0,cpu:1,cpu:2";
constexpr int kLeastCudaDevices = 2;

std::string AskedFor() {
  const char* asked = std::getenv("D2L_TEST_DEVICES");
  return asked == nullptr ? "" : asked;
}

bool OnlyGpusAskedFor() {
  const std::string asked = AskedFor();
  return !asked.empty() && !absl::StrContains(asked, "cpu");
}

}  // namespace

std::string TestDeviceSpec() {
  if (OnlyGpusAskedFor()) return absl::StrCat(AskedFor(), ",", kCpuDevices);
  if (!AskedFor().empty()) return AskedFor();
  std::string spec = kCpuDevices;
  const DeviceInventory& cuda = CudaBackend().Inventory();
  const int gpus = static_cast<int>(cuda.devices.size());
  if (gpus == 0) return spec;
  for (int i = 0; i < std::max(gpus, kLeastCudaDevices); ++i) {
    absl::StrAppend(&spec, ",cuda:", i % gpus);
  }
  return spec;
}

std::vector<Device> AllDevices() {
  std::vector<Device> devices;
  for (const DeviceInfo& info : Devices()) {
    if (info.device.type() == DeviceType::kCpu && OnlyGpusAskedFor()) continue;
    devices.push_back(info.device);
  }
  return devices;
}

std::string DeviceName(Device device) {
  return absl::StrCat(DeviceTypeName(device.type()), "_", device.index());
}

std::string DeviceTestName(const testing::TestParamInfo<Device>& info) {
  return DeviceName(info.param);
}

std::string ThrownText(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing thrown";
}

std::unique_ptr<Stream> MakeStream(Device device, int index) {
  if (device.type() == DeviceType::kCpu) {
    return CpuBackend().NewStream(device, /*physical_index=*/0, index,
                                  StreamOptions());
  }
  return CudaBackend().NewStream(device, GetDeviceInfo(device).physical_index,
                                 index, StreamOptions());
}

}  // namespace d2l
