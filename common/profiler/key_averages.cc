#include "common/profiler/key_averages.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/device/device.h"
#include "common/profiler/profile.h"

namespace d2l {
namespace {

// The sums over a span and all calls within it.
struct Subtree {
  std::int64_t device_nanos = 0;
  std::int64_t measured = 0;
  std::int64_t missing = 0;
  std::int64_t children_host_nanos = 0;  // of its direct children only
};

bool IsMissing(DeviceTime time) {
  return time == DeviceTime::kNotRun || time == DeviceTime::kUnmeasured;
}

std::vector<Subtree> SubtreesOf(const std::vector<ProfiledSpan>& spans) {
  std::vector<Subtree> subtrees(spans.size());
  // Parents stand before their children: in reverse order, a subtree is
  // complete when it is added to its parent's.
  for (std::size_t i = spans.size(); i-- > 0;) {
    const ProfiledSpan& span = spans[i];
    Subtree& subtree = subtrees[i];
    subtree.device_nanos += span.device_nanos();
    subtree.measured += span.device_time == DeviceTime::kMeasured ? 1 : 0;
    subtree.missing += IsMissing(span.device_time) ? 1 : 0;
    if (span.parent < 0) continue;
    if (static_cast<std::size_t>(span.parent) >= i) {
      throw std::invalid_argument(absl::StrCat("[key_averages] span ", i,
                                               " stands before its parent, ",
                                               span.parent));
    }
    Subtree& parent = subtrees[span.parent];
    parent.device_nanos += subtree.device_nanos;
    parent.measured += subtree.measured;
    parent.missing += subtree.missing;
    parent.children_host_nanos += span.host_nanos();
  }
  return subtrees;
}

void AddCost(const Profile& profile, const ProfiledSpan& span,
             KeyAverage& row) {
  if (span.device_time != DeviceTime::kMeasured) return;
  const Bound bound = BoundOf(profile, span);
  row.cost += span.cost;
  row.bound_nanos += 1e9 * bound.seconds;
  ++row.bounds[static_cast<int>(bound.kind)];
}

void AddCall(const ProfiledSpan& span, const Subtree& subtree, bool outermost,
             KeyAverage& row) {
  ++row.calls;
  row.self_host_nanos += span.host_nanos() - subtree.children_host_nanos;
  row.self_device_nanos += span.device_nanos();
  row.measured_calls += span.device_time == DeviceTime::kMeasured ? 1 : 0;
  row.not_run_calls += span.device_time == DeviceTime::kNotRun ? 1 : 0;
  row.unmeasured_calls += span.device_time == DeviceTime::kUnmeasured ? 1 : 0;
  row.known_calls += subtree.measured > 0 || subtree.missing == 0 ? 1 : 0;
  if (!outermost) return;
  row.host_nanos += span.host_nanos();
  row.device_nanos += subtree.device_nanos;
  row.measured_within += subtree.measured;
  row.missing_within += subtree.missing;
}

// Returns the rows, and adds all calls to *total.
std::vector<KeyAverage> RowsOf(const Profile& profile, KeyAverage* total) {
  const std::vector<ProfiledSpan>& spans = profile.spans;
  const std::vector<Subtree> subtrees = SubtreesOf(spans);
  std::vector<KeyAverage> rows;
  // A view and an operation may share a name (a reshape that has to copy), and
  // then share a row; a user's range has a row of its own.
  absl::flat_hash_map<std::pair<bool, absl::string_view>, std::size_t> numbers;
  std::vector<std::size_t> row_of(spans.size());
  std::vector<int> around;       // the spans around the next one
  std::vector<int> open_in_row;  // how many of them are in each row
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const ProfiledSpan& span = spans[i];
    const bool is_range = span.kind == ProfiledKind::kRange;
    const auto [found, is_new] =
        numbers.try_emplace({is_range, span.name}, rows.size());
    row_of[i] = found->second;
    if (is_new) {
      rows.emplace_back();
      rows.back().name = span.name;
      open_in_row.push_back(0);
    }
    while (!around.empty() && around.back() != span.parent) {
      --open_in_row[row_of[around.back()]];
      around.pop_back();
    }
    const bool outermost = open_in_row[row_of[i]]++ == 0;
    around.push_back(static_cast<int>(i));
    AddCall(span, subtrees[i], outermost, rows[row_of[i]]);
    AddCost(profile, span, rows[row_of[i]]);
    AddCall(span, subtrees[i], /*outermost=*/span.parent < 0, *total);
    AddCost(profile, span, *total);
  }
  return rows;
}

// The table: its columns, their order and the forms of figures are those of
// PyTorch's torch/autograd/profiler_util.py.

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

// How much of a sum of device times is known.
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
  if (known == Known::kNone) return "n/a";
  if (known == Known::kNothingToKnow) return "-";
  return known == Known::kPart ? value + "*" : value;
}

// Rows with a smaller key come first: those with figures, the largest first;
// then those that launch nothing, then those that are not known.
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

// A row of the table: right-aligned cells, two spaces between them, and no
// spaces at the end.
std::string Line(const std::vector<std::string>& cells,
                 const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    absl::StrAppend(&line, i == 0 ? "" : "  ",
                    Padded({"", cells[i]}, -static_cast<int>(widths[i])));
  }
  return absl::StrCat(absl::StripTrailingAsciiWhitespace(line), "\n");
}

// The sum of the device times, and how much of it is known.
std::string DeviceTotal(const KeyAverage& total) {
  const Known known = SelfKnown(total);
  if (known == Known::kNone) return "n/a";
  const std::string time =
      FormatTime(static_cast<double>(total.self_device_nanos));
  if (known != Known::kPart) return time;
  return Say("%s* (no device time for %d of %d operations)", time,
             MissingCalls(total), total.measured_calls + MissingCalls(total));
}

}  // namespace

double KeyAverage::host_nanos_avg() const {
  return calls == 0 ? 0 : static_cast<double>(host_nanos) / calls;
}

double KeyAverage::device_nanos_avg() const {
  return known_calls == 0 ? 0 : static_cast<double>(device_nanos) / known_calls;
}

BoundKind KeyAverage::bound() const {
  const auto most = std::max_element(bounds.begin(), bounds.end());
  return static_cast<BoundKind>(most - bounds.begin());
}

KeyAverages::KeyAverages(const Profile& profile) : notes_(profile.notes) {
  rows_ = RowsOf(profile, &total_);
  devices_ = profile.devices;
  several_threads_ = profile.threads.size() > 1;
  const bool all_cuda =
      !profile.devices.empty() &&
      std::all_of(profile.devices.begin(), profile.devices.end(),
                  [](const ProfiledDevice& device) {
                    return device.device.type() == DeviceType::kCuda;
                  });
  device_label_ = all_cuda ? "CUDA" : "Device";
  device_names_ = absl::StrJoin(profile.devices, ", ",
                                [](std::string* out, const ProfiledDevice& d) {
                                  absl::StrAppend(out, d.device.ToString());
                                });
}

const KeyAverage* KeyAverages::Find(absl::string_view name) const {
  for (const KeyAverage& row : rows_) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

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

std::string KeyAverages::BoundTable() const {
  const auto line = [](const std::array<Phrase, 7>& cells) {
    constexpr int kWidths[] = {16, -6, -10, -9, -9, -8, -10};
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      text += Padded(cells[i], kWidths[i]);
    }
    return text;
  };
  std::string table = absl::StrCat(line({"operation", "calls", "total", "each",
                                         "GFLOP/s", "GB/s", "of bound"}),
                                   "\n");
  for (const KeyAverage& row : rows_) {
    if (row.measured_calls == 0) continue;
    const double nanos = static_cast<double>(row.self_device_nanos);
    const BoundKind kind = row.bound();
    // For operations that enqueueing bounds, rates say nothing.
    const auto rate = [&](std::int64_t units, bool shown) {
      if (units == 0 || nanos == 0 || !shown) return std::string("-");
      return FormatNumber(static_cast<double>(units) / nanos);
    };
    const bool rates = kind != BoundKind::kEnqueueing;
    const bool known = kind != BoundKind::kNone && nanos > 0;
    absl::StrAppend(
        &table,
        line({Phrase("", CutText(PrintableText(row.name), 16)),
              absl::StrCat(row.measured_calls), FormatDuration(1e-9 * nanos),
              FormatDuration(1e-9 * nanos / row.measured_calls),
              rate(row.cost.flop, rates),
              rate(row.cost.bytes, rates && kind != BoundKind::kArithmetic),
              known ? absl::StrFormat("%.0f %%", 100 * row.bound_nanos / nanos)
                    : "-"}),
        known ? "  " : "",
        known ? Translated(kBoundNames[static_cast<int>(kind)]) : "", "\n");
  }
  for (const ProfiledDevice& device : devices_) {
    table += WrapText(device.peaks.ToText(device.device.ToString()));
  }
  return table;
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

  std::set<Known> known;
  std::vector<std::string> footnotes;
  for (const KeyAverage* const row : shown) {
    known.insert({SelfKnown(*row), TotalKnown(*row)});
    if (MissingCalls(*row) > 0) footnotes.push_back(Footnote(*row));
  }
  if (known.count(Known::kNothingToKnow) > 0) {
    footer += Translated(
        "-: launches nothing on a device (a view, a read, a wait, a "
        "range itself).\n");
  }
  if (known.count(Known::kNone) > 0) {
    footer += Translated("n/a: no device time is known.\n");
  }
  if (known.count(Known::kPart) > 0) {
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
