#include "common/profiler/memory_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/profiler/profile.h"
#include "common/profiler/text_table.h"

namespace d2l {
namespace {

constexpr std::size_t kNameColumns = 38;
constexpr std::size_t kColumns = 12;

MemoryOfDevice MemoryOf(const Profile& profile, int device, bool pinned) {
  MemoryOfDevice memory;
  memory.device = device;
  memory.pinned = pinned;
  for (const MemoryPoint& point : profile.memory) {
    if (point.device != device || point.pinned != pinned) continue;
    if (!memory.changed) {
      memory.changed = true;
      memory.in_use_at_start = point.allocated - point.change;
      // A return to queued work makes pending what was allocated.
      memory.peak =
          memory.in_use_at_start +
          std::max<std::int64_t>(
              0, point.pending + std::min<std::int64_t>(0, point.change));
      memory.peak_time = profile.begin;
    }
    const std::int64_t needed = point.allocated + point.pending;
    if (needed > memory.peak) {
      memory.peak = needed;
      memory.peak_time = point.time;
      memory.peak_span = point.span;
    }
    memory.reserved = std::max(memory.reserved, point.reserved);
  }
  return memory;
}

std::string NameOf(const OperationMemory& operation) {
  if (operation.name.empty()) return Translated("(no recorded operation)");
  return CutText(PrintableText(operation.name), kNameColumns);
}

// "matmul (lesson.cc:40)".
std::string SpanText(const Profile& profile, int span) {
  if (span < 0) return Translated("no recorded operation");
  const ProfiledSpan& found = profile.spans[span];
  const std::string name = PrintableText(found.name);
  if (!found.line().known()) return name;
  return absl::StrCat(name, " (", found.line().ToString(), ")");
}

std::string DeviceText(const Profile& profile, const MemoryOfDevice& memory) {
  const ProfiledDevice& device = profile.devices[memory.device];
  const std::string title = PrintableText(
      memory.pinned ? Say("pinned host memory of %s", device.device.ToString())
                    : device.description);
  if (!memory.changed) {
    return absl::StrCat(title, "\n  ",
                        Translated("nothing was taken or returned"), "\n");
  }
  std::string text =
      absl::StrCat(title, "\n  ", Padded("in use at the start", 21),
                   FormatBytes(memory.in_use_at_start), "\n  ",
                   Padded("peak", 21), FormatBytes(memory.peak), ", ");
  if (memory.peak_time == profile.begin) {
    absl::StrAppend(&text, Translated("at the start"), "\n");
  } else {
    absl::StrAppend(
        &text,
        Say("%s after the start",
            FormatDuration(
                static_cast<double>(memory.peak_time - profile.begin) / 1e9)),
        "\n", std::string(23, ' '), SpanText(profile, memory.peak_span), "\n");
  }
  return absl::StrCat(text, "  ", Padded("reserved at most", 21),
                      FormatBytes(memory.reserved), "\n");
}

}  // namespace

std::vector<OperationMemory> MemoryByOperation(const Profile& profile) {
  std::vector<OperationMemory> operations;
  absl::flat_hash_map<absl::string_view, std::size_t> numbers;
  const auto add = [&](absl::string_view name, std::int64_t bytes) {
    const auto [found, is_new] = numbers.try_emplace(name, operations.size());
    if (is_new) operations.push_back({std::string(name)});
    OperationMemory& operation = operations[found->second];
    ++operation.calls;
    operation.bytes += bytes;
    operation.largest = std::max(operation.largest, bytes);
  };
  for (const ProfiledSpan& span : profile.spans) {
    if (span.allocated_bytes > 0) add(span.name, span.allocated_bytes);
  }
  for (const MemoryPoint& point : profile.memory) {
    if (point.span < 0 && !point.pinned && point.change > 0) {
      add("", point.change);
    }
  }
  std::stable_sort(operations.begin(), operations.end(),
                   [](const OperationMemory& a, const OperationMemory& b) {
                     return a.bytes > b.bytes;
                   });
  return operations;
}

std::vector<MemoryOfDevice> MemoryByDevice(const Profile& profile) {
  std::vector<MemoryOfDevice> devices;
  for (std::size_t i = 0; i < profile.devices.size(); ++i) {
    const int device = static_cast<int>(i);
    devices.push_back(MemoryOf(profile, device, /*pinned=*/false));
    const MemoryOfDevice pinned = MemoryOf(profile, device, /*pinned=*/true);
    if (pinned.changed) devices.push_back(pinned);
  }
  return devices;
}

std::string MemoryTable(const Profile& profile, int row_limit) {
  const std::vector<OperationMemory> operations = MemoryByOperation(profile);
  std::string text;
  if (operations.empty()) {
    text = Translated("No operation took memory.\n");
  } else {
    const std::size_t shown =
        row_limit < 0
            ? operations.size()
            : std::min(operations.size(), static_cast<std::size_t>(row_limit));
    TextTable table;
    table.AddColumn("Name", kNameColumns);
    table.AddColumn("# of Calls", kColumns);
    table.AddColumn(Translated("Bytes taken"), kColumns);
    table.AddColumn(Translated("Largest"), kColumns);
    for (std::size_t i = 0; i < shown; ++i) {
      const OperationMemory& operation = operations[i];
      table.AddRow({NameOf(operation), absl::StrCat(operation.calls),
                    FormatBytes(operation.bytes),
                    FormatBytes(operation.largest)});
    }
    table.SetRowsLeftOut(operations.size() - shown, row_limit);
    text = table.ToString();
  }
  for (const MemoryOfDevice& memory : MemoryByDevice(profile)) {
    absl::StrAppend(&text, DeviceText(profile, memory));
  }
  for (const std::string& note : profile.notes) text += WrapText(note);
  return text;
}

}  // namespace d2l
