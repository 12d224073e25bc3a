// KeyAverages::Table. Columns, their order and the forms of figures are those
// of PyTorch's torch/autograd/profiler_util.py.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/profiler/key_averages.h"
#include "common/profiler/text_table.h"
#include "common/tensor/shape.h"

namespace d2l {
namespace {

constexpr std::size_t kColumns = 12;
constexpr std::size_t kMaxNameColumns = 55;
constexpr std::size_t kMaxShapesColumns = 80;
// Lines below the table on rows whose calls have no device time.
constexpr std::size_t kMaxFootnotes = 10;

// "12.345us", "875.584ms", "1.207s".
std::string FormatTime(double nanos) {
  if (nanos >= 1e9) return absl::StrFormat("%.3fs", nanos / 1e9);
  if (nanos >= 1e6) return absl::StrFormat("%.3fms", nanos / 1e6);
  return absl::StrFormat("%.3fus", nanos / 1e3);
}

// "512 B", "39.06 KB".
std::string FormatMemory(std::int64_t bytes) {
  const double size = static_cast<double>(bytes);
  constexpr double kKilo = 1024;
  if (size >= kKilo * kKilo * kKilo) {
    return absl::StrFormat("%.2f GB", size / (kKilo * kKilo * kKilo));
  }
  if (size >= kKilo * kKilo) {
    return absl::StrFormat("%.2f MB", size / (kKilo * kKilo));
  }
  if (size >= kKilo) return absl::StrFormat("%.2f KB", size / kKilo);
  return absl::StrCat(bytes, " B");
}

std::string FormatShare(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return "n/a";
  return absl::StrFormat(
      "%.2f%%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

// "[[3, 3], [3, 3]]".
std::string FormatShapes(const std::vector<Shape>& shapes) {
  return absl::StrCat("[",
                      absl::StrJoin(shapes, ", ",
                                    [](std::string* out, const Shape& shape) {
                                      absl::StrAppend(
                                          out, "[", absl::StrJoin(shape, ", "),
                                          "]");
                                    }),
                      "]");
}

// What is known of a sum of device times.
enum class Known { kAll, kPart, kNothingToKnow, kNone };

Known KnownOf(std::int64_t measured, std::int64_t missing) {
  if (measured > 0) return missing > 0 ? Known::kPart : Known::kAll;
  return missing > 0 ? Known::kNone : Known::kNothingToKnow;
}

std::int64_t MissingCalls(const KeyAverage& row) {
  return row.not_run_calls + row.unmeasured_calls;
}

Known SelfKnown(const KeyAverage& row) {
  return KnownOf(row.measured_calls, MissingCalls(row));
}

Known TotalKnown(const KeyAverage& row) {
  return KnownOf(row.measured_within, row.missing_within);
}

std::string DeviceCell(Known known, const std::string& value) {
  switch (known) {
    case Known::kAll:
      return value;
    case Known::kPart:
      return value + "*";
    case Known::kNothingToKnow:
      return "-";
    case Known::kNone:
      break;
  }
  return "n/a";
}

struct SortKey {
  // 0 for figures; after them what launches nothing, then what is not known.
  int group = 0;
  double value = 0;

  friend bool operator<(const SortKey& a, const SortKey& b) {
    if (a.group != b.group) return a.group < b.group;
    return a.value > b.value;
  }
};

SortKey DeviceKey(Known known, double value) {
  if (known == Known::kNothingToKnow) return {1, 0};
  if (known == Known::kNone) return {2, 0};
  return {0, value};
}

SortKey SortKeyOf(const KeyAverage& row, SortBy sort_by) {
  switch (sort_by) {
    case SortBy::kNone:
      break;
    case SortBy::kSelfCpuTime:
      return {0, static_cast<double>(row.self_host_nanos)};
    case SortBy::kCpuTime:
      return {0, static_cast<double>(row.host_nanos)};
    case SortBy::kCpuTimeAvg:
      return {0, row.host_nanos_avg()};
    case SortBy::kSelfDeviceTime:
      return DeviceKey(SelfKnown(row),
                       static_cast<double>(row.self_device_nanos));
    case SortBy::kDeviceTime:
      return DeviceKey(TotalKnown(row), static_cast<double>(row.device_nanos));
    case SortBy::kDeviceTimeAvg:
      return DeviceKey(TotalKnown(row), row.device_nanos_avg());
    case SortBy::kSelfMemory:
      return {0, static_cast<double>(row.self_bytes)};
    case SortBy::kMemory:
      return {0, static_cast<double>(row.bytes)};
    case SortBy::kCalls:
      return {0, static_cast<double>(row.calls)};
  }
  return {};
}

bool HasDeviceTimes(const KeyAverage& total) {
  return total.measured_within + total.missing_within > 0;
}

// "mm", or "mm [[3, 3], [3, 3]]" by shape.
std::string Label(const KeyAverage& row, bool by_shape) {
  if (!by_shape) return row.name;
  return absl::StrCat(row.name, " ", FormatShapes(row.input_shapes));
}

// "mm: no device time for 3 of 10 calls (…).".
std::string Footnote(const KeyAverage& row, bool by_shape) {
  std::vector<std::string> reasons;
  if (row.not_run_calls > 0) {
    reasons.push_back(
        Say("%d failed or came after a failure", row.not_run_calls));
  }
  if (row.unmeasured_calls > 0) {
    reasons.push_back(row.unmeasured_calls == 1
                          ? Say("%d was not timed", row.unmeasured_calls)
                          : Say("%d were not timed", row.unmeasured_calls));
  }
  return Say("%s: no device time for %d of %d calls (%s).",
             Label(row, by_shape), MissingCalls(row), row.calls,
             absl::StrJoin(reasons, ", "));
}

std::vector<std::string> Headers(const TableOptions& options,
                                 const KeyAverage& total,
                                 const std::string& device) {
  std::vector<std::string> headers = {"Self CPU %", "Self CPU", "CPU total %",
                                      "CPU total", "CPU time avg"};
  if (HasDeviceTimes(total)) {
    headers.push_back(absl::StrCat("Self ", device));
    headers.push_back(absl::StrCat("Self ", device, " %"));
    headers.push_back(absl::StrCat(device, " total"));
    headers.push_back(absl::StrCat(device, " time avg"));
  }
  if (options.show_memory) {
    headers.push_back(absl::StrCat(device, " Mem"));
    headers.push_back(absl::StrCat("Self ", device, " Mem"));
  }
  headers.push_back("# of Calls");
  return headers;
}

std::vector<std::string> Cells(const KeyAverage& row,
                               const TableOptions& options, bool by_shape,
                               const KeyAverage& total) {
  std::vector<std::string> cells = {
      CutText(PrintableText(row.name), kMaxNameColumns),
      FormatShare(row.self_host_nanos, total.self_host_nanos),
      FormatTime(static_cast<double>(row.self_host_nanos)),
      FormatShare(row.host_nanos, total.self_host_nanos),
      FormatTime(static_cast<double>(row.host_nanos)),
      FormatTime(row.host_nanos_avg())};
  if (HasDeviceTimes(total)) {
    const Known self = SelfKnown(row);
    const Known within = TotalKnown(row);
    cells.push_back(DeviceCell(
        self, FormatTime(static_cast<double>(row.self_device_nanos))));
    cells.push_back(DeviceCell(
        self, FormatShare(row.self_device_nanos, total.self_device_nanos)));
    cells.push_back(
        DeviceCell(within, FormatTime(static_cast<double>(row.device_nanos))));
    cells.push_back(DeviceCell(within, FormatTime(row.device_nanos_avg())));
  }
  if (options.show_memory) {
    cells.push_back(FormatMemory(row.bytes));
    cells.push_back(FormatMemory(row.self_bytes));
  }
  cells.push_back(absl::StrCat(row.calls));
  if (by_shape) {
    cells.push_back(CutText(FormatShapes(row.input_shapes), kMaxShapesColumns));
  }
  return cells;
}

// The sum of the device times, and how much of it is known.
std::string DeviceTotal(const KeyAverage& total) {
  switch (SelfKnown(total)) {
    case Known::kAll:
    case Known::kNothingToKnow:
      break;
    case Known::kPart:
      return Say("%s* (no device time for %d of %d operations)",
                 FormatTime(static_cast<double>(total.self_device_nanos)),
                 MissingCalls(total),
                 total.measured_calls + MissingCalls(total));
    case Known::kNone:
      return "n/a";
  }
  return FormatTime(static_cast<double>(total.self_device_nanos));
}

}  // namespace

std::string KeyAverages::Table(const TableOptions& options) const {
  std::string notes;
  for (const std::string& note : notes_) notes += WrapText(note);
  if (total_.calls == 0) return "Nothing was recorded.\n" + notes;

  std::vector<std::pair<SortKey, const KeyAverage*>> sorted;
  std::size_t name_columns = 0;
  std::size_t shapes_columns = 0;
  for (const KeyAverage& row : rows_) {
    sorted.emplace_back(SortKeyOf(row, options.sort_by), &row);
    name_columns = std::max(name_columns, TextColumns(PrintableText(row.name)));
    if (by_shape_) {
      shapes_columns =
          std::max(shapes_columns, FormatShapes(row.input_shapes).size());
    }
  }
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  const std::size_t limit = options.row_limit < 0
                                ? sorted.size()
                                : static_cast<std::size_t>(options.row_limit);

  TextTable table;
  table.AddColumn("Name", std::min(name_columns + 4, kMaxNameColumns));
  for (std::string& header : Headers(options, total_, device_label_)) {
    table.AddColumn(std::move(header), kColumns);
  }
  if (by_shape_) {
    table.AddColumn("Input Shapes",
                    std::min(shapes_columns + 4, kMaxShapesColumns));
  }
  std::vector<const KeyAverage*> shown;
  for (const auto& [key, row] : sorted) {
    if (shown.size() == limit) break;
    shown.push_back(row);
    table.AddRow(Cells(*row, options, by_shape_, total_));
  }
  table.SetRowsLeftOut(sorted.size() - shown.size(), options.row_limit);
  return absl::StrCat(table.ToString(), Footer(shown, options), notes);
}

std::string KeyAverages::Footer(const std::vector<const KeyAverage*>& shown,
                                const TableOptions& options) const {
  const bool has_device_times = HasDeviceTimes(total_);
  std::string footer = absl::StrCat(
      "Self CPU time total: ",
      FormatTime(static_cast<double>(total_.self_host_nanos)), "\n");
  if (has_device_times) {
    absl::StrAppend(&footer, "Self ", device_label_,
                    " time total: ", DeviceTotal(total_), "\n");
  }
  if (device_label_ == "Device" && (has_device_times || options.show_memory)) {
    footer += WrapText(
        several_threads_
            ? Say("CPU is the front end, whose threads enqueue; Device is the "
                  "work on %s.",
                  device_names_)
            : Say("CPU is the front end, which enqueues; Device is the work on "
                  "%s.",
                  device_names_));
  }
  if (options.show_memory) {
    footer += WrapText(
        Say("%s Mem is what was taken, whether returned since or not; 1 KB is "
            "1,024 bytes.",
            device_label_));
  }
  if (!has_device_times) return footer;

  bool dashes = false;
  bool unknown = false;
  bool parts = false;
  std::vector<std::string> footnotes;
  for (const KeyAverage* const row : shown) {
    for (const Known known : {SelfKnown(*row), TotalKnown(*row)}) {
      dashes = dashes || known == Known::kNothingToKnow;
      unknown = unknown || known == Known::kNone;
      parts = parts || known == Known::kPart;
    }
    if (MissingCalls(*row) > 0) {
      footnotes.push_back(Footnote(*row, by_shape_));
    }
  }
  if (dashes) {
    footer += Translated(
        "-: launches nothing on a device (a view, a read, a wait, a "
        "range itself).\n");
  }
  if (unknown) footer += Translated("n/a: no device time is known.\n");
  if (parts) {
    footer +=
        Translated("*: of the device times that are known; some are not.\n");
  }
  for (std::size_t i = 0; i < footnotes.size() && i < kMaxFootnotes; ++i) {
    footer += WrapText(footnotes[i]);
  }
  if (footnotes.size() > kMaxFootnotes) {
    footer += Say("The same holds for calls of more rows: %d.\n",
                  footnotes.size() - kMaxFootnotes);
  }
  return footer;
}

}  // namespace d2l
