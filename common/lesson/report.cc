#include "common/lesson/report.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/text.h"
#include "common/base/wrap.h"
#include "common/device/backend.h"
#include "common/device/device_table.h"
#include "common/lesson/cell.h"
#include "common/lesson/judge.h"
#include "nlohmann/json.hpp"

namespace d2l {
namespace {

// Keeps the order in which members are added, so that a file reads as the
// header says.
using Json = nlohmann::ordered_json;

constexpr int kNameWidth = 32;
constexpr int kColumnWidth = 24;
// Below this width a table has no room for its columns.
constexpr int kNarrow = 76;

Json ToJson(const CellResult& cell) {
  Json figures = Json::array();
  for (const Figure& figure : cell.figures) {
    figures.push_back({{"name", figure.Name()},
                       {"unit", figure.unit},
                       {"median", figure.value.median},
                       {"low", figure.value.low},
                       {"high", figure.value.high}});
  }
  Json claims = Json::array();
  for (const Claimed& claim : cell.claims) {
    claims.push_back({{"text", claim.text},
                      {"verdict", VerdictName(claim.judgement.verdict)},
                      {"reason", claim.judgement.reason}});
  }
  Json drawings = Json::array();
  for (const Shown& drawing : cell.drawings) {
    drawings.push_back({{"name", drawing.name}, {"file", drawing.file}});
  }
  return {{"id", cell.id},
          {"also", cell.also},
          {"figures", figures},
          {"claims", claims},
          {"drawings", drawings}};
}

Json ToJson(const LessonResult& lesson) {
  Json devices = Json::array();
  for (const DeviceInfo& info : lesson.devices) {
    devices.push_back({{"name", info.device.ToString()},
                       {"kind", DeviceKindName(info.kind)}});
  }
  Json cells = Json::array();
  for (const CellResult& cell : lesson.cells) cells.push_back(ToJson(cell));
  return {{"lesson", lesson.lesson},
          {"notes", lesson.notes},
          {"devices", devices},
          {"cells", cells}};
}

std::string Dump(const Json& json) {
  // `replace`: a reason may quote what is not UTF-8; that must not throw.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// One row: what was measured, and where, with its values by column.
struct Row {
  std::string name;
  std::string enqueue;
  std::string completion;
};

std::string RowText(const Row& row) {
  if (TextWidth() < kNarrow) {
    std::string text = Wrap(row.name);
    if (!row.enqueue.empty()) {
      absl::StrAppend(&text, "  enqueue     ", row.enqueue, "\n");
    }
    if (!row.completion.empty()) {
      absl::StrAppend(&text, "  completion  ", row.completion, "\n");
    }
    return text;
  }
  std::string name = row.name;
  std::string text;
  if (name.size() > kNameWidth - 1) {
    text = Wrap(name);
    name.clear();
  }
  std::string values =
      absl::StrFormat("%-*s%*s%*s", kNameWidth, name, kColumnWidth, row.enqueue,
                      kColumnWidth, row.completion);
  return absl::StrCat(text, values, "\n");
}

// What the course printed may be a page; its beginning says which it is.
constexpr std::size_t kCoursePrinted = 60;

// The lines, joined and cut short.
std::string OneLine(const std::string& text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view stripped = absl::StripAsciiWhitespace(line);
    if (!stripped.empty()) lines.push_back(std::string(stripped));
  }
  std::string joined = absl::StrJoin(lines, "; ");
  if (joined.size() <= kCoursePrinted) return joined;
  std::size_t end = joined.rfind(' ', kCoursePrinted - 4);
  if (end == std::string::npos) end = kCoursePrinted - 4;
  return absl::StrCat(joined.substr(0, end), " ...");
}

// "virtual", "logical real".
std::string Kinds(const std::vector<DeviceInfo>& devices) {
  std::set<std::string> kinds;
  for (const DeviceInfo& info : devices) {
    kinds.insert(DeviceKindName(info.kind));
  }
  return absl::StrJoin(kinds, " ");
}

// The text in lines of at most `width` columns; words that are longer are cut,
// behind a hyphen if they have one.
std::vector<std::string> Column(const std::string& text, int width) {
  std::vector<std::string> lines;
  const std::string wrapped = Wrap(text, "", width);
  for (absl::string_view line :
       absl::StrSplit(wrapped, '\n', absl::SkipEmpty())) {
    while (TextColumns(line) > static_cast<std::size_t>(width)) {
      // "000/launch-blocking" is read more easily as "000/launch-", "blocking".
      const std::size_t hyphen = line.rfind('-', width - 1);
      const std::size_t cut =
          hyphen == absl::string_view::npos ? width : hyphen + 1;
      lines.push_back(std::string(line.substr(0, cut)));
      line.remove_prefix(cut);
    }
    lines.push_back(std::string(line));
  }
  return lines;
}

// One row of a table, in as many lines as its longest column needs.
std::string TableRow(const std::vector<std::string>& values,
                     const std::vector<int>& widths) {
  std::vector<std::vector<std::string>> columns;
  std::size_t lines = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    columns.push_back(Column(values[i], widths[i]));
    lines = std::max(lines, columns.back().size());
  }
  std::string text;
  for (std::size_t line = 0; line < lines; ++line) {
    std::string row;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      absl::StrAppendFormat(&row, "%-*s%s", widths[i],
                            line < columns[i].size() ? columns[i][line] : "",
                            i + 1 < columns.size() ? " " : "");
    }
    row.resize(row.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, row, "\n");
  }
  return text;
}

// Lists names as prose: "cpu:0", "cpu:0 and cpu:1", "a, b and c".
std::string AndList(const std::vector<std::string>& names) {
  if (names.size() < 2) return absl::StrJoin(names, "");
  const std::vector<std::string> most(names.begin(), names.end() - 1);
  return absl::StrCat(absl::StrJoin(most, ", "), " and ", names.back());
}

}  // namespace

std::string LessonJson(const LessonResult& lesson) {
  return Dump(ToJson(lesson));
}

std::string CourseJson(const std::vector<LessonResult>& lessons) {
  Json list = Json::array();
  for (const LessonResult& lesson : lessons) list.push_back(ToJson(lesson));
  return Dump({{"lessons", list}});
}

std::string FiguresText(const CellResult& cell) {
  std::vector<Row> rows;
  for (const Figure& figure : cell.figures) {
    const std::string value = FormatSummary(figure.value, figure.unit);
    Figure bare = figure;
    bare.column = "";
    const std::string name = bare.Name();
    // Enqueue and completion of one Timing come one after the other.
    if (figure.column == "completion" && !rows.empty() &&
        rows.back().name == name && rows.back().completion.empty()) {
      rows.back().completion = value;
    } else if (figure.column == "enqueue") {
      rows.push_back({name, value, ""});
    } else {
      rows.push_back({name, "", value});
    }
  }
  if (rows.empty()) return "";
  const std::string head = "median [95 % interval]";
  std::string text = TextWidth() < kNarrow
                         ? head + "\n"
                         : RowText({head, "enqueue", "completion"});
  for (const Row& row : rows) absl::StrAppend(&text, RowText(row));
  return text;
}

std::string ClaimsText(const CellResult& cell) {
  std::string text;
  for (const Claimed& claim : cell.claims) {
    const std::string verdict = absl::StrFormat(
        "%-14s", std::string(VerdictName(claim.judgement.verdict)));
    absl::StrAppend(&text, Wrap(claim.text, verdict),
                    Wrap(claim.judgement.reason, std::string(14, ' ')));
  }
  return text;
}

std::string VerdictTable(const std::vector<LessonResult>& lessons, int width) {
  const std::vector<std::string> heads = {"Cell", "Claim",   "The course",
                                          "Here", "Verdict", "Device"};
  std::vector<std::vector<std::string>> rows;
  for (const LessonResult& lesson : lessons) {
    const std::string kind = Kinds(lesson.devices);
    for (const CellResult& cell : lesson.cells) {
      for (const Claimed& claim : cell.claims) {
        rows.push_back({cell.id, claim.text, OneLine(cell.course_printed),
                        claim.judgement.figures,
                        VerdictName(claim.judgement.verdict), kind});
      }
    }
  }
  std::string text;
  if (width < kNarrow) {
    for (const std::vector<std::string>& row : rows) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (row[i].empty()) continue;
        absl::StrAppend(
            &text, Wrap(row[i], absl::StrFormat("%-12s", heads[i]), width));
      }
      text += "\n";
    }
    return text;
  }
  // What is left of the line goes to the claim.
  std::vector<int> widths = {4, 0, 16, 8, 12, 7};
  for (const std::vector<std::string>& row : rows) {
    widths[0] = std::clamp(static_cast<int>(row[0].size()), widths[0], 12);
  }
  widths[1] = width - 5;
  for (const std::size_t i : {0, 2, 3, 4, 5}) widths[1] -= widths[i];
  text = TableRow(heads, widths);
  const std::vector<std::string>* previous = nullptr;
  for (const std::vector<std::string>& row : rows) {
    absl::StrAppend(&text, std::string(width, '-'), "\n");
    std::vector<std::string> shown = row;
    // A cell's further claims do not say again what it is and what it printed.
    if (previous != nullptr && (*previous)[0] == row[0]) {
      shown[0].clear();
      shown[2].clear();
    }
    absl::StrAppend(&text, TableRow(shown, widths));
    previous = &row;
  }
  return text;
}

std::string CountsText(const std::vector<LessonResult>& lessons) {
  int cells = 0;
  int claims = 0;
  int verdicts[3] = {};
  for (const LessonResult& lesson : lessons) {
    for (const CellResult& cell : lesson.cells) {
      ++cells;
      for (const Claimed& claim : cell.claims) {
        ++claims;
        ++verdicts[static_cast<int>(claim.judgement.verdict)];
      }
    }
  }
  return absl::StrFormat("%d %s, %d %s: %d HOLDS, %d FAILS, %d INCONCLUSIVE.",
                         cells, cells == 1 ? "cell" : "cells", claims,
                         claims == 1 ? "claim" : "claims",
                         verdicts[static_cast<int>(Verdict::kHolds)],
                         verdicts[static_cast<int>(Verdict::kFails)],
                         verdicts[static_cast<int>(Verdict::kInconclusive)]);
}

std::vector<std::string> Circumstances(bool launch_blocking, bool allow_tf32,
                                       bool profiled,
                                       const StreamOptions& stream_options,
                                       const std::vector<DeviceInfo>& devices,
                                       int cores) {
  std::vector<std::string> sentences;
  if (launch_blocking) {
    sentences.push_back("Launch blocking is on: every call waits.");
  }
  const bool cuda =
      std::any_of(devices.begin(), devices.end(), [](const DeviceInfo& info) {
        return info.device.type() == DeviceType::kCuda;
      });
  if (allow_tf32 && cuda) {
    sentences.push_back(
        "TF32 is allowed (--allow_tf32): a GPU may compute float32 products "
        "with 10 bits of each factor.");
  }
  if (profiled) {
    sentences.push_back(
        "The profiler records (--trace or --html): each request takes longer, "
        "and so does each time that memory is taken or returned.");
  }
  const std::int64_t bound = stream_options.max_queued_operations;
  if (bound < StreamOptions().max_queued_operations) {
    sentences.push_back(absl::StrFormat(
        "A queue holds %d %s (--max_queued_operations): a call waits until "
        "there is room.",
        bound, bound == 1 ? "operation" : "operations"));
  }
  int workers = 0;
  for (const DeviceInfo& info : devices) {
    if (info.kind == DeviceKind::kVirtual) ++workers;
  }
  if (workers > 0 && workers >= cores) {
    sentences.push_back(
        absl::StrFormat("%d virtual %s and the program share %d %s.", workers,
                        workers == 1 ? "device" : "devices", cores,
                        cores == 1 ? "core" : "cores"));
  }
  return sentences;
}

std::string DevicesNote(int wanted, const std::vector<DeviceInfo>& devices,
                        const DeviceInventory& cuda) {
  std::set<int> used;
  for (const DeviceInfo& info : devices) {
    if (info.device.type() == DeviceType::kCuda &&
        info.kind != DeviceKind::kModelled) {
      used.insert(info.physical_index);
    }
  }
  if (static_cast<int>(used.size()) >= wanted) return "";

  std::vector<std::string> found;
  for (std::size_t i = 0; !cuda.modelled && i < cuda.devices.size(); ++i) {
    found.push_back(absl::StrCat("cuda:", i, ", ", cuda.devices[i].name));
  }
  std::vector<std::string> running_on;
  std::set<std::string> kinds;
  for (const DeviceInfo& info : devices) {
    running_on.push_back(info.device.ToString());
    kinds.insert(absl::StrCat("\"", DeviceKindName(info.kind), "\""));
  }
  const bool enough = static_cast<int>(found.size()) >= wanted;
  const std::string advice =
      enough
          ? "To run on GPUs leave out --devices."
          : absl::StrCat("To insist on hardware: --require_gpus=", wanted, ".");
  return absl::StrFormat(
      "This lesson uses %d %s; found %d%s. Running on %s; times are marked %s. "
      "%s",
      wanted, wanted == 1 ? "GPU" : "GPUs", found.size(),
      found.empty() ? "" : absl::StrCat(" (", absl::StrJoin(found, "; "), ")"),
      AndList(running_on),
      AndList(std::vector<std::string>(kinds.begin(), kinds.end())), advice);
}

}  // namespace d2l
