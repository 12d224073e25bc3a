#include "common/device/testing.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/device/backend.h"
#include "common/device/device_table.h"

namespace d2l {
namespace {

constexpr int kCpuDevices = 3;
constexpr int kLeastCudaDevices = 2;

}  // namespace

std::string TestDeviceSpec() {
  const char* asked = std::getenv("D2L_TEST_DEVICES");
  if (asked != nullptr && *asked != '\0') return asked;
  std::string spec = "cpu:0";
  for (int i = 1; i < kCpuDevices; ++i) absl::StrAppend(&spec, ",cpu:", i);
  const DeviceInventory& cuda = CudaBackend().Inventory();
  if (!cuda.why_unusable.empty()) return spec;
  const int gpus = static_cast<int>(cuda.devices.size());
  if (gpus == 0) return spec;
  for (int i = 0; i < std::max(gpus, kLeastCudaDevices); ++i) {
    absl::StrAppend(&spec, ",cuda:", i % gpus);
  }
  return spec;
}

std::vector<Device> AllDevices() {
  std::vector<Device> devices;
  for (const DeviceInfo& info : Devices()) devices.push_back(info.device);
  return devices;
}

std::string DeviceTestName(const testing::TestParamInfo<Device>& info) {
  return absl::StrCat(DeviceTypeName(info.param.type()), "_",
                      info.param.index());
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
  Backend& backend =
      device.type() == DeviceType::kCpu ? CpuBackend() : CudaBackend();
  return backend.NewStream(device, GetDeviceInfo(device).physical_index, index,
                           StreamOptions());
}

}  // namespace d2l
