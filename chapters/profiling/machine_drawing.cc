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

constexpr int kMostCores = 4;  // of a socket that are drawn
constexpr double kLeft = 16, kTop = 40, kCore = 104, kLine = 18, kGap = 8;
constexpr double kSocketWidth = (kMostCores + 1) * (kCore + kGap) + kGap;
constexpr double kPartWidth = 210, kPartHeight = kLine + 2 * kGap;
constexpr double kBus = kLeft + kSocketWidth + 20;

// A box with lines of text in its middle.
void DrawBox(double x, double y, double width, const char* colour,
             const std::vector<std::string>& lines, Svg* svg) {
  const auto count = static_cast<double>(lines.size());
  svg->Rect(x, y, width, kLine * count + kGap / 2, {colour, "#333333"});
  for (const std::string& line : lines) {
    svg->Text(x + width / 2, y + kLine - 3, line, {12, "middle"});
    y += kLine;
  }
}

double SocketHeight(const MachineParts& parts) {
  const auto lines = static_cast<double>(1 + parts.caches.size());
  return kLine * (1 + lines) + 2 * kGap +
         (parts.last_cache.empty() ? 0 : kLine + kGap);
}

void DrawSocket(const MachineParts& parts, const std::string& title, int cores,
                double y, Svg* svg) {
  svg->Rect(kLeft, y, kSocketWidth, SocketHeight(parts),
            {"#f6f7f9", "#333333"});
  svg->Text(kLeft + kGap, y + kLine - 4, title, {12});
  svg->Line(kLeft + kSocketWidth, y + kLine, kBus, y + kLine, {"#333333", 2});
  double x = kLeft + kGap;
  y += kLine + kGap / 2;
  for (int core = 0; core < std::min(cores, kMostCores); ++core) {
    std::vector<std::string> lines = parts.caches;
    lines.insert(lines.begin(), Say("core %d", core));
    DrawBox(x, y, kCore, "#cfe6f7", lines, svg);
    x += kCore + kGap;
  }
  if (cores > kMostCores) {
    svg->Text(x, y + kLine, Say("and %d more", cores - kMostCores), {12});
  }
  if (parts.last_cache.empty()) return;
  y += kLine * static_cast<double>(1 + parts.caches.size()) + kGap;
  DrawBox(kLeft + kGap, y, kSocketWidth - 2 * kGap, "#fbe3bd",
          {parts.last_cache}, svg);
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
  const double socket = SocketHeight(parts) + kGap, part_left = kBus + 20;
  const auto sockets = static_cast<double>(parts.cores.size());
  const auto others = static_cast<double>(parts.connected.size());
  const Phrase name = "this machine";
  Svg svg(part_left + kPartWidth + kLeft,
          kTop + std::max(socket * sockets, kPartHeight * others) + kGap,
          name.shown);
  svg.Text(kLeft, 24, name.shown, {14, "start", "#111111", true});
  svg.Line(kBus, kTop + kLine, kBus,
           kTop + kLine +
               std::max(socket * (sockets - 1), kPartHeight * (others - 1)),
           {"#333333", 2});
  std::string text;
  double y = kTop;
  for (std::size_t i = 0; i < parts.cores.size(); ++i) {
    const std::string title = Say("socket %d, cores: %d", i, parts.cores[i]);
    std::vector<std::string> words = {title};
    words.insert(words.end(), parts.caches.begin(), parts.caches.end());
    if (!parts.last_cache.empty()) words.push_back(parts.last_cache);
    text += Wrap(absl::StrJoin(words, ", "));
    DrawSocket(parts, title, parts.cores[i], y, &svg);
    y += socket;
  }
  y = kTop;
  for (const std::string& part : parts.connected) {
    text += Wrap(part);
    svg.Line(kBus, y + kLine, part_left, y + kLine, {"#333333", 2});
    DrawBox(part_left, y + 6, kPartWidth, "#ffffff", {CutText(part, 30)}, &svg);
    y += kPartHeight;
  }
  return {name, text, svg.ToString()};
}

}  // namespace d2l
