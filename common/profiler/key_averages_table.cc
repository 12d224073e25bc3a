// KeyAverages::Table. Columns, their order and the forms of figures are those
// of PyTorch's torch/autograd/profiler_util.py.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/profiler/key_averages.h"

namespace d2l {
namespace {

constexpr std::size_t kColumns = 12;
constexpr std::size_t kMaxNameColumns = 55;
constexpr std::size_t kLineColumns = 80;
// Lines below the table on rows whose calls have no device time.
constexpr std::size_t kMaxFootnotes = 10;

// "12.345us", "875.584ms", "1.207s".
std::string FormatTime(double nanos) {
  if (nanos >= 1e9) return absl::StrFormat("%.3fs", nanos / 1e9);
  if (nanos >= 1e6) return absl::StrFormat("%.3fms", nanos / 1e6);
  return absl::StrFormat("%.3fus", nanos / 1e3);
}

std::string FormatShare(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return "n/a";
  return absl::StrFormat(
      "%.2f%%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

// The text, made printable, in lines of at most 80 columns, those after the
// first indented. A word that is too long gets a line of its own.
std::string WrapText(absl::string_view text) {
  return WrapWords(PrintableText(text), "", "  ", kLineColumns);
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

// Rows with a smaller key come first: those with figures, the largest first;
// then what launches nothing, then what is not known.
std::pair<int, std::int64_t> SortKeyOf(const KeyAverage& row, SortBy sort_by) {
  if (sort_by == SortBy::kNone) return {};
  if (sort_by == SortBy::kSelfCpuTime) return {0, -row.self_host_nanos};
  if (SelfKnown(row) == Known::kNothingToKnow) return {1, 0};
  if (SelfKnown(row) == Known::kNone) return {2, 0};
  return {0, -row.self_device_nanos};
}

bool HasDeviceTimes(const KeyAverage& total) {
  return total.measured_within + total.missing_within > 0;
}

// "mm: no device time for 3 of 10 calls (…).".
std::string Footnote(const KeyAverage& row) {
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
  return Say("%s: no device time for %d of %d calls (%s).", row.name,
             MissingCalls(row), row.calls, absl::StrJoin(reasons, ", "));
}

std::vector<std::string> Headers(const KeyAverage& total,
                                 const std::string& device) {
  std::vector<std::string> headers = {"Name",      "Self CPU %",
                                      "Self CPU",  "CPU total %",
                                      "CPU total", "CPU time avg"};
  if (HasDeviceTimes(total)) {
    headers.push_back(absl::StrCat("Self ", device));
    headers.push_back(absl::StrCat("Self ", device, " %"));
    headers.push_back(absl::StrCat(device, " total"));
    headers.push_back(absl::StrCat(device, " time avg"));
  }
  headers.push_back("# of Calls");
  return headers;
}

std::vector<std::string> Cells(const KeyAverage& row, const KeyAverage& total) {
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
  cells.push_back(absl::StrCat(row.calls));
  return cells;
}

// A row of the table, two spaces between the cells, which stand at the right;
// without spaces at its end.
std::string Line(const std::vector<std::string>& cells,
                 const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t columns = TextColumns(cells[i]);
    absl::StrAppend(&line, i == 0 ? "" : "  ",
                    std::string(widths[i] - columns, ' '), cells[i]);
  }
  return absl::StrCat(absl::StripTrailingAsciiWhitespace(line), "\n");
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

  std::vector<const KeyAverage*> shown;
  std::size_t name_columns = 0;
  for (const KeyAverage& row : rows_) {
    shown.push_back(&row);
    name_columns = std::max(name_columns, TextColumns(PrintableText(row.name)));
  }
  std::stable_sort(shown.begin(), shown.end(),
                   [&](const KeyAverage* a, const KeyAverage* b) {
                     return SortKeyOf(*a, options.sort_by) <
                            SortKeyOf(*b, options.sort_by);
                   });
  std::size_t more = 0;
  if (options.row_limit >= 0 &&
      shown.size() > static_cast<std::size_t>(options.row_limit)) {
    more = shown.size() - options.row_limit;
    shown.resize(options.row_limit);
  }

  // The headers first. A column is as wide as its widest cell, or more.
  std::vector<std::vector<std::string>> lines = {
      Headers(total_, device_label_)};
  for (const KeyAverage* row : shown) lines.push_back(Cells(*row, total_));
  std::vector<std::size_t> widths(lines[0].size(), kColumns);
  widths[0] = std::min(name_columns + 4, kMaxNameColumns);
  for (const std::vector<std::string>& cells : lines) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], TextColumns(cells[i]));
    }
  }
  std::vector<std::string> dashes;
  for (const std::size_t width : widths) dashes.emplace_back(width, '-');
  const std::string rule = Line(dashes, widths);
  std::string table = absl::StrCat(rule, Line(lines[0], widths), rule);
  for (std::size_t i = 1; i < lines.size(); ++i)
    table += Line(lines[i], widths);
  if (more == 1) {
    table += Say("(%d row more; row_limit is %d)\n", more, options.row_limit);
  } else if (more > 1) {
    table += Say("(%d rows more; row_limit is %d)\n", more, options.row_limit);
  }
  return absl::StrCat(table, rule, Footer(shown), notes);
}

std::string KeyAverages::Footer(
    const std::vector<const KeyAverage*>& shown) const {
  const bool has_device_times = HasDeviceTimes(total_);
  std::string footer = absl::StrCat(
      "Self CPU time total: ",
      FormatTime(static_cast<double>(total_.self_host_nanos)), "\n");
  if (has_device_times) {
    absl::StrAppend(&footer, "Self ", device_label_,
                    " time total: ", DeviceTotal(total_), "\n");
  }
  if (device_label_ == "Device" && has_device_times) {
    footer += WrapText(
        several_threads_
            ? Say("CPU is the front end, whose threads enqueue; Device is the "
                  "work on %s.",
                  device_names_)
            : Say("CPU is the front end, which enqueues; Device is the work on "
                  "%s.",
                  device_names_));
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
    if (MissingCalls(*row) > 0) footnotes.push_back(Footnote(*row));
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
