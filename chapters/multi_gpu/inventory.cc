#include "chapters/multi_gpu/inventory.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/console/text.h"
#include "common/device/device_table.h"
#include "common/device/memory/memory.h"
#include "common/device/stream.h"

namespace d2l::multi_gpu {
namespace {

constexpr int kMoments = 100;
// A line between rows, of the columns' widths.
std::string Rule(char fill) {
  std::string rule;
  for (const int width : {9, 40, 17, 7}) {
    absl::StrAppend(&rule, "+", std::string(width, fill));
  }
  return rule + "+\n";
}

std::string Mebibytes(std::int64_t bytes) {
  return bytes < 0 ? "unknown" : absl::StrFormat("%d", bytes >> 20);
}

// Of a process that may be somebody else's.
std::string ProcessName(std::int64_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/comm"));
  std::string name;
  std::getline(file, name);
  return name.empty() ? "?" : PrintableText(name);
}

}  // namespace

std::vector<DeviceState> TableDevices(double seconds) {
  std::vector<int> busy(Devices().size());
  for (int moment = 0; moment < kMoments; ++moment) {
    for (std::size_t i = 0; i < busy.size(); ++i) {
      busy[i] += DefaultStream(Devices()[i].device).Query() ? 0 : 1;
    }
    std::this_thread::sleep_for(
        std::chrono::duration<double>(seconds / kMoments));
  }
  std::vector<DeviceState> states;
  for (std::size_t i = 0; i < busy.size(); ++i) {
    const DeviceInfo& info = Devices()[i];
    GpuState state;
    state.name = absl::StrCat(DeviceKindName(info.kind), ", ", info.name);
    state.used_bytes = Memory(info.device).Stats().reserved;
    state.total_bytes = info.memory_bytes;
    state.utilization = 100 * busy[i] / kMoments;
    state.processes.push_back({getpid(), state.used_bytes});
    states.push_back({info.device.ToString(), state});
  }
  return states;
}

std::vector<DeviceState> MachineGpus(std::string* note) {
  const auto is_real = [](const DeviceInfo& info) {
    return info.device.type() == DeviceType::kCuda &&
           info.kind != DeviceKind::kModelled;
  };
  if (std::none_of(Devices().begin(), Devices().end(), is_real)) return {};
  const absl::StatusOr<std::vector<GpuState>> gpus = NvmlGpus();
  if (!gpus.ok()) {
    *note = absl::StrCat(
        "No figures of all GPUs: ", std::string(gpus.status().message()), ".");
    return {};
  }
  std::vector<DeviceState> states;
  for (const GpuState& gpu : *gpus) {
    states.push_back({absl::StrCat("GPU ", states.size()), gpu});
  }
  return states;
}

std::string InventoryTable(const std::vector<DeviceState>& devices) {
  std::string text =
      absl::StrCat(Rule('-'),
                   absl::StrFormat("| %-7s | %-38s | %15s | %5s |\n", "Device",
                                   "Name", "Memory-Usage", "Util"),
                   Rule('='));
  for (const auto& [device, state] : devices) {
    absl::StrAppendFormat(
        &text, "| %-7s | %-38s | %15s | %5s |\n", device,
        CutText(state.name, 38),
        absl::StrCat(Mebibytes(state.used_bytes), "/",
                     Mebibytes(state.total_bytes), "MiB"),
        state.utilization < 0 ? "?" : absl::StrCat(state.utilization, " %"));
  }
  absl::StrAppend(&text, Rule('-'));
  absl::StrAppendFormat(&text, "| %-7s | %-11s%-27s | %15s |       |\n",
                        "Device", "PID", "Process name", "Memory");
  absl::StrAppend(&text, Rule('='));
  for (const auto& [device, state] : devices) {
    for (const GpuProcess& process : state.processes) {
      absl::StrAppendFormat(
          &text, "| %-7s | %-11d%-27s | %15s |       |\n", device, process.pid,
          CutText(ProcessName(process.pid), 27),
          absl::StrCat(Mebibytes(process.memory_bytes), "MiB"));
    }
  }
  return absl::StrCat(text, Rule('-'));
}

}  // namespace d2l::multi_gpu
