// For any text after --devices=, the result is a usable list or a clear error.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/device/device_table.h"

namespace {

void Check(bool right) {
  if (!right) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  d2l::DeviceInventory cpu;
  cpu.devices = {{"CPU", 1 << 30, 2, ""}};
  d2l::DeviceInventory cuda;
  cuda.devices = {{"GPU", 1 << 30, 80, "sm_80"}, {"GPU", 1 << 30, 80, "sm_80"}};
  const absl::string_view spec(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<std::vector<d2l::DeviceInfo>> devices =
      d2l::ResolveDevices(spec, 2, cpu, cuda);
  if (!devices.ok()) {
    Check(!devices.status().message().empty());
    return 0;
  }
  std::set<std::string> names;
  for (const d2l::DeviceInfo& info : *devices) {
    Check(names.insert(info.device.ToString()).second);
    Check(d2l::Device::Parse(info.device.ToString()) == info.device);
    Check(info.cores > 0);
    Check(info.physical_index >= 0 && info.physical_index < 2);
  }
  Check(!devices->empty() && devices->size() <= 64);
  return 0;
}
