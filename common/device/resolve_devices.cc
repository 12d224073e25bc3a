// Makes the list of devices from the user's request and the hardware.

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/console/language.h"
#include "common/device/device_table.h"

namespace d2l {
namespace {

std::string Visible(const DeviceInventory& cuda) {
  std::vector<std::string> names;
  for (int i = 0; i < static_cast<int>(cuda.devices.size()); ++i) {
    names.push_back(absl::StrFormat("cuda:%d (%s)", i, cuda.devices[i].name));
  }
  std::string text = absl::StrCat("visible: ", absl::StrJoin(names, ", "));
  if (!cuda.renumbered_by.empty()) {
    absl::StrAppend(&text, " (", cuda.renumbered_by, " renumbers them)");
  }
  return text;
}

DeviceInfo MakeVirtual(int index, const PhysicalDevice& machine) {
  DeviceInfo info;
  info.device = Device(DeviceType::kCpu, index);
  info.kind = DeviceKind::kVirtual;
  info.name = machine.name;
  info.memory_bytes = machine.memory_bytes;
  return info;
}

DeviceInfo MakeCuda(int index, int physical, const DeviceInventory& cuda) {
  const PhysicalDevice& gpu = cuda.devices[physical];
  DeviceInfo info;
  info.device = Device(DeviceType::kCuda, index);
  info.kind = cuda.modelled ? DeviceKind::kModelled : DeviceKind::kReal;
  info.physical_index = physical;
  info.name = gpu.name;
  info.memory_bytes = gpu.memory_bytes;
  info.cores = gpu.cores;
  info.capability = gpu.capability;
  return info;
}

// Marks the devices that share a GPU, and gives each virtual device its cores.
void Share(const PhysicalDevice& machine, std::vector<DeviceInfo>* devices) {
  const auto virtual_devices = static_cast<int>(std::count_if(
      devices->begin(), devices->end(),
      [](const auto& d) { return d.kind == DeviceKind::kVirtual; }));
  for (DeviceInfo& info : *devices) {
    if (info.kind == DeviceKind::kVirtual) {
      info.cores = std::max(1, machine.cores / virtual_devices);
    }
    if (info.kind != DeviceKind::kReal) continue;
    const auto sharing = std::count_if(
        devices->begin(), devices->end(), [&info](const DeviceInfo& other) {
          return other.device.type() == DeviceType::kCuda &&
                 other.physical_index == info.physical_index;
        });
    if (sharing > 1) info.kind = DeviceKind::kLogical;
  }
}

std::vector<DeviceInfo> Automatic(int min_devices, const DeviceInventory& cpu,
                                  const DeviceInventory& cuda) {
  std::vector<DeviceInfo> devices;
  const int gpus =
      cuda.modelled
          ? 0
          : std::min(static_cast<int>(cuda.devices.size()), kMaxDevices);
  if (gpus == 0) {
    for (int i = 0; i < min_devices; ++i) {
      devices.push_back(MakeVirtual(i, cpu.devices[0]));
    }
    return devices;
  }
  for (int i = 0; i < std::max(gpus, min_devices); ++i) {
    devices.push_back(MakeCuda(i, i % gpus, cuda));
  }
  return devices;
}

absl::StatusOr<std::vector<DeviceInfo>> FromList(absl::string_view spec,
                                                 const DeviceInventory& cpu,
                                                 const DeviceInventory& cuda) {
  std::vector<DeviceInfo> devices;
  int next_cpu = 0;
  int next_cuda = 0;
  for (absl::string_view item : absl::StrSplit(spec, ',')) {
    item = absl::StripAsciiWhitespace(item);
    if (item.empty()) {
      return absl::InvalidArgumentError(
          Say("--devices=%s names no device in one place. Write a list such as "
              "cpu:0,cpu:1 or cuda:0,cuda:0, or auto.",
              spec));
    }
    Device device;
    try {
      device = Device::Parse(item);
    } catch (const std::invalid_argument& error) {
      return absl::InvalidArgumentError(error.what());
    }
    if (device.type() == DeviceType::kCpu) {
      if (device.index() != next_cpu) {
        return absl::InvalidArgumentError(
            Say("%s asked for where cpu:%d comes next: virtual devices are "
                "numbered without gaps, as in --devices=cpu:0,cpu:1,cpu:2.",
                device.ToString(), next_cpu));
      }
      devices.push_back(MakeVirtual(next_cpu++, cpu.devices[0]));
      continue;
    }
    if (cuda.devices.empty()) {
      return absl::NotFoundError(
          Say("%s asked for. %s", device.ToString(), cuda.why_none));
    }
    if (device.index() >= static_cast<int>(cuda.devices.size())) {
      return absl::NotFoundError(
          Say("%s asked for; %s.", device.ToString(), Visible(cuda)));
    }
    devices.push_back(MakeCuda(next_cuda++, device.index(), cuda));
  }
  if (devices.size() > kMaxDevices) {
    return absl::InvalidArgumentError(Say(
        "%d devices asked for; there can be %d.", devices.size(), kMaxDevices));
  }
  return devices;
}

}  // namespace

absl::StatusOr<std::vector<DeviceInfo>> ResolveDevices(
    absl::string_view spec, int min_devices, const DeviceInventory& cpu,
    const DeviceInventory& cuda) {
  if (min_devices < 1 || min_devices > kMaxDevices) {
    return absl::InvalidArgumentError(
        Say("%d devices asked for; there can be 1 to %d.", min_devices,
            kMaxDevices));
  }
  std::vector<DeviceInfo> devices;
  if (spec == "auto") {
    devices = Automatic(min_devices, cpu, cuda);
  } else {
    absl::StatusOr<std::vector<DeviceInfo>> listed = FromList(spec, cpu, cuda);
    if (!listed.ok()) return listed.status();
    devices = *std::move(listed);
  }
  Share(cpu.devices[0], &devices);
  return devices;
}

}  // namespace d2l
