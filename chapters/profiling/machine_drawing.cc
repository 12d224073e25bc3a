#include "chapters/profiling/machine_drawing.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/machine.h"
#include "common/device/device_table.h"
#include "common/drawing/svg.h"

namespace d2l {
namespace {

// The number in the file; nothing if there is none.
std::optional<std::int64_t> NumberIn(const std::string& file) {
  std::int64_t number = 0;
  if (std::ifstream(file) >> number) return number;
  return std::nullopt;
}

// The names in a directory of /sys, without those that stand for no hardware.
std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry :
       std::filesystem::directory_iterator(directory, none)) {
    const std::string name = entry.path().filename().string();
    if (std::filesystem::exists(entry.path() / "device", none)) {
      names.push_back(PrintableText(name));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<int> CoresOfSockets(const std::string& root) {
  std::map<std::int64_t, std::set<std::int64_t>> sockets;
  for (int cpu = 0;; ++cpu) {
    const std::string topology =
        absl::StrCat(root, "/sys/devices/system/cpu/cpu", cpu, "/topology/");
    const auto socket = NumberIn(topology + "physical_package_id");
    if (!socket) break;
    sockets[*socket].insert(NumberIn(topology + "core_id").value_or(cpu));
  }
  std::vector<int> cores;
  for (const auto& [socket, ids] : sockets) {
    cores.push_back(static_cast<int>(ids.size()));
  }
  return cores.empty() ? std::vector<int>{UsableCores()} : cores;
}

}  // namespace

MachineParts FindMachineParts(const std::string& root) {
  MachineParts parts;
  parts.cores = CoresOfSockets(root);
  for (const int level : {1, 2, 3}) {
    const auto bytes = CacheBytes(level, root);
    if (!bytes) continue;
    const std::string cache =
        absl::StrCat("L", level, " ", FormatBytes(*bytes));
    if (level == 3) {
      parts.last_cache = cache;
    } else {
      parts.caches.push_back(cache);
    }
  }
  std::ifstream meminfo(root + "/proc/meminfo");
  std::string word;
  std::int64_t kilobytes = 0;
  if (meminfo >> word >> kilobytes && word == "MemTotal:") {
    parts.connected.push_back(Say("memory %s", FormatBytes(kilobytes << 10)));
  }
  for (const DeviceInfo& info : Devices()) {
    if (info.device.type() == DeviceType::kCuda) {
      parts.connected.push_back(info.Describe());
    }
  }
  for (const std::string& disk : NamesIn(root + "/sys/block")) {
    parts.connected.push_back(Say("disk %s", disk));
  }
  for (const std::string& network : NamesIn(root + "/sys/class/net")) {
    parts.connected.push_back(Say("network %s", network));
  }
  return parts;
}

Drawing DrawMachine(const MachineParts& parts) {
  constexpr int kMostCores = 4;  // of a socket that are drawn
  constexpr double kLeft = 16, kTop = 40, kCore = 104, kLine = 18, kGap = 8;
  constexpr double kPart = 210, kBus = 40;
  const double core_height =
      kLine * static_cast<double>(1 + parts.caches.size()) + kGap;
  const double socket_height = core_height +
                               (parts.last_cache.empty() ? 0 : kLine + kGap) +
                               2 * kGap + kLine;
  const double socket_width = (kMostCores + 1) * (kCore + kGap) + kGap;
  const double bus = kLeft + socket_width + kBus / 2;
  const double parts_left = bus + kBus / 2, part_row = kLine + 2 * kGap;
  const double height =
      std::max((socket_height + kGap) * static_cast<double>(parts.cores.size()),
               part_row * static_cast<double>(parts.connected.size()));
  const Phrase name = "this machine";
  Svg svg(parts_left + kPart + kLeft, kTop + height + kGap, name.shown);
  svg.Text(kLeft, 24, name.shown, {14, "start", "#111111", true});
  svg.Line(bus, kTop + kLine, bus, kTop + height - kLine, {"#333333", 2});
  std::string text;
  double y = kTop;
  for (std::size_t i = 0; i < parts.cores.size(); ++i) {
    const int cores = parts.cores[i], drawn = std::min(cores, kMostCores);
    const std::string socket = Say("socket %d, cores: %d", i, cores);
    std::vector<std::string> caches = parts.caches;
    if (!parts.last_cache.empty()) caches.push_back(parts.last_cache);
    caches.insert(caches.begin(), socket);
    text += Wrap(absl::StrJoin(caches, ", "));
    svg.Rect(kLeft, y, socket_width, socket_height, {"#f6f7f9", "#333333"});
    svg.Text(kLeft + kGap, y + kLine - 4, socket, {12});
    svg.Line(kLeft + socket_width, y + kLine, bus, y + kLine, {"#333333", 2});
    double x = kLeft + kGap;
    const double top = y + kLine + kGap / 2;
    for (int core = 0; core < drawn; ++core, x += kCore + kGap) {
      svg.Rect(x, top, kCore, core_height, {"#cfe6f7", "#333333"});
      svg.Text(x + kCore / 2, top + kLine - 3, Say("core %d", core),
               {12, "middle"});
      for (std::size_t c = 0; c < parts.caches.size(); ++c) {
        svg.Text(x + kCore / 2, top + kLine * static_cast<double>(c + 2) - 3,
                 parts.caches[c], {12, "middle"});
      }
    }
    if (drawn < cores) {
      svg.Text(x, top + core_height / 2 + 4, Say("and %d more", cores - drawn),
               {12});
    }
    if (!parts.last_cache.empty()) {
      svg.Rect(kLeft + kGap, top + core_height + kGap, socket_width - 2 * kGap,
               kLine + kGap / 2, {"#fbe3bd", "#333333"});
      svg.Text(kLeft + socket_width / 2, top + core_height + kGap + kLine - 3,
               parts.last_cache, {12, "middle"});
    }
    y += socket_height + kGap;
  }
  y = kTop;
  for (const std::string& part : parts.connected) {
    text += Wrap(part);
    svg.Line(bus, y + kLine, parts_left, y + kLine, {"#333333", 2});
    svg.Rect(parts_left, y + 4, kPart, kLine + kGap, {"#ffffff", "#333333"});
    svg.Text(parts_left + kGap, y + kLine + 4, CutText(part, 30), {12});
    y += part_row;
  }
  return {name, text, svg.ToString()};
}

}  // namespace d2l
