#include "chapters/multi_gpu/inventory.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/child_process.h"
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

// The name of a process, which may be another user's.
std::string ProcessName(std::int64_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/comm"));
  std::string name;
  std::getline(file, name);
  return name.empty() ? "?" : PrintableText(name);
}

// The fields of each line of nvidia-smi's answer.
using Rows = std::vector<std::vector<std::string>>;

absl::StatusOr<Rows> Query(const std::string& what) {
  ProgramOptions options;
  options.time_limit = std::chrono::seconds(20);  // a driver may hang
  const ProgramResult smi = RunProgram(
      "nvidia-smi", {"--query-" + what, "--format=csv,noheader,nounits"}, {},
      options);
  if (!smi.failure.empty()) {
    const std::string message =
        PrintableText(absl::StripAsciiWhitespace(smi.output));
    return absl::InternalError(absl::StrCat(
        "nvidia-smi ", smi.failure, message.empty() ? "" : ": ", message));
  }
  Rows rows;
  for (const absl::string_view line : absl::StrSplit(smi.output, '\n')) {
    rows.push_back(absl::StrSplit(line, ", "));
  }
  return rows;
}

// -1 for "[N/A]", which some drivers, and parts of a GPU (MIG), report.
std::int64_t Number(const std::string& field) {
  std::int64_t number = -1;
  return absl::SimpleAtoi(field, &number) ? number : -1;
}

std::int64_t BytesOfMebibytes(const std::string& field) {
  const std::int64_t mebibytes = Number(field);
  return mebibytes < 0 ? -1 : mebibytes << 20;
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
    DeviceState state;
    state.device = info.device.ToString();
    state.name = absl::StrCat(DeviceKindName(info.kind), ", ", info.name);
    state.used_bytes = Memory(info.device).Stats().reserved;
    state.total_bytes = info.memory_bytes;
    state.utilization = 100 * busy[i] / kMoments;
    state.processes.push_back({getpid(), state.used_bytes});
    states.push_back(std::move(state));
  }
  return states;
}

absl::StatusOr<std::vector<DeviceState>> NvidiaSmiGpus() {
  const absl::StatusOr<Rows> gpus =
      Query("gpu=uuid,name,memory.used,memory.total,utilization.gpu");
  if (!gpus.ok()) return gpus.status();
  const absl::StatusOr<Rows> users =
      Query("compute-apps=gpu_uuid,pid,used_memory");
  if (!users.ok()) return users.status();
  std::vector<DeviceState> states;
  for (const std::vector<std::string>& gpu : *gpus) {
    if (gpu.size() != 5) continue;
    DeviceState state = {absl::StrCat("GPU ", states.size()),
                         PrintableText(gpu[1]),
                         BytesOfMebibytes(gpu[2]),
                         BytesOfMebibytes(gpu[3]),
                         static_cast<int>(Number(gpu[4])),
                         {}};
    for (const std::vector<std::string>& user : *users) {
      if (user.size() != 3 || user[0] != gpu[0] || Number(user[1]) < 0)
        continue;
      state.processes.push_back({Number(user[1]), BytesOfMebibytes(user[2])});
    }
    states.push_back(std::move(state));
  }
  return states;
}

std::vector<DeviceState> MachineGpus(std::string* note) {
  const auto is_real = [](const DeviceInfo& info) {
    return info.device.type() == DeviceType::kCuda &&
           info.kind != DeviceKind::kModelled;
  };
  if (std::none_of(Devices().begin(), Devices().end(), is_real)) return {};
  absl::StatusOr<std::vector<DeviceState>> gpus = NvidiaSmiGpus();
  if (gpus.ok()) return *std::move(gpus);
  *note = absl::StrCat(
      "No figures of all GPUs: ", std::string(gpus.status().message()), ".");
  return {};
}

std::string InventoryTable(const std::vector<DeviceState>& devices) {
  std::string text =
      absl::StrCat(Rule('-'),
                   absl::StrFormat("| %-7s | %-38s | %15s | %5s |\n", "Device",
                                   "Name", "Memory-Usage", "Util"),
                   Rule('='));
  for (const DeviceState& state : devices) {
    absl::StrAppendFormat(
        &text, "| %-7s | %-38s | %15s | %5s |\n", state.device,
        CutText(state.name, 38),
        absl::StrCat(Mebibytes(state.used_bytes), "/",
                     Mebibytes(state.total_bytes), "MiB"),
        state.utilization < 0 ? "?" : absl::StrCat(state.utilization, " %"));
  }
  absl::StrAppend(&text, Rule('-'));
  absl::StrAppendFormat(&text, "| %-7s | %-11s%-27s | %15s |       |\n",
                        "Device", "PID", "Process name", "Memory");
  absl::StrAppend(&text, Rule('='));
  for (const DeviceState& state : devices) {
    for (const DeviceProcess& process : state.processes) {
      absl::StrAppendFormat(
          &text, "| %-7s | %-11d%-27s | %15s |       |\n", state.device,
          process.pid, CutText(ProcessName(process.pid), 27),
          absl::StrCat(Mebibytes(process.memory_bytes), "MiB"));
    }
  }
  return absl::StrCat(text, Rule('-'));
}

}  // namespace d2l::multi_gpu
