#include "common/lesson/report.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/device/backend.h"
#include "common/device/device_table.h"
#include "common/lesson/cell.h"
#include "common/lesson/judge.h"
#include "common/lesson/text.h"
#include "nlohmann/json.hpp"

namespace d2l {
namespace {

// Keeps the order in which members are added, so that a file reads as the
// header says.
using Json = nlohmann::ordered_json;

constexpr int kNameWidth = 32;
constexpr int kColumnWidth = 24;

Json ToJson(const CellResult& cell) {
  Json figures = Json::array();
  for (const Figure& figure : cell.figures) {
    Json object;
    object["name"] = figure.Name();
    object["unit"] = figure.unit;
    object["median"] = figure.value.median;
    object["low"] = figure.value.low;
    object["high"] = figure.value.high;
    figures.push_back(object);
  }
  Json claims = Json::array();
  for (const Claimed& claim : cell.claims) {
    Json object;
    object["text"] = claim.text;
    object["verdict"] = VerdictName(claim.judgement.verdict);
    object["reason"] = claim.judgement.reason;
    claims.push_back(object);
  }
  Json object;
  object["id"] = cell.id;
  object["also"] = cell.also;
  object["figures"] = figures;
  object["claims"] = claims;
  return object;
}

Json ToJson(const LessonResult& lesson) {
  Json devices = Json::array();
  for (const DeviceInfo& info : lesson.devices) {
    Json object;
    object["name"] = info.device.ToString();
    object["kind"] = DeviceKindName(info.kind);
    devices.push_back(object);
  }
  Json cells = Json::array();
  for (const CellResult& cell : lesson.cells) cells.push_back(ToJson(cell));
  Json object;
  object["lesson"] = lesson.lesson;
  object["devices"] = devices;
  object["cells"] = cells;
  return object;
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
  Json object;
  object["lessons"] = list;
  return Dump(object);
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
  std::string text =
      RowText({"median [95 % interval]", "enqueue", "completion"});
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

std::string VerdictTable(const std::vector<LessonResult>& lessons) {
  std::string text =
      absl::StrFormat("%-16s%-14s%s\n", "Cell", "Verdict", "Claim");
  for (const LessonResult& lesson : lessons) {
    for (const CellResult& cell : lesson.cells) {
      for (const Claimed& claim : cell.claims) {
        const std::string first =
            absl::StrFormat("%-16s%-14s", cell.id,
                            std::string(VerdictName(claim.judgement.verdict)));
        absl::StrAppend(&text, Wrap(claim.text, first));
      }
    }
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

std::vector<std::string> Circumstances(bool launch_blocking,
                                       const StreamOptions& stream_options,
                                       const std::vector<DeviceInfo>& devices,
                                       int cores) {
  std::vector<std::string> sentences;
  if (launch_blocking) {
    sentences.push_back("Launch blocking is on: every call waits.");
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
    if (info.device.type() == DeviceType::kCuda) {
      used.insert(info.physical_index);
    }
  }
  if (static_cast<int>(used.size()) >= wanted) return "";

  std::vector<std::string> found;
  for (std::size_t i = 0; i < cuda.devices.size(); ++i) {
    found.push_back(absl::StrCat("cuda:", i, ", ", cuda.devices[i].name));
  }
  std::vector<std::string> running_on;
  std::set<std::string> kinds;
  for (const DeviceInfo& info : devices) {
    running_on.push_back(info.device.ToString());
    kinds.insert(absl::StrCat("\"", DeviceKindName(info.kind), "\""));
  }
  const bool enough = static_cast<int>(found.size()) >= wanted;
  const std::string advice = !cuda.why_unusable.empty() ? cuda.why_unusable
                             : enough ? "To run on GPUs leave out --devices."
                                      : absl::StrCat(
                                            "To insist on hardware: "
                                            "--require_gpus=",
                                            wanted, ".");
  return absl::StrFormat(
      "This lesson uses %d %s; found %d%s. Running on %s; times are marked %s. "
      "%s",
      wanted, wanted == 1 ? "GPU" : "GPUs", found.size(),
      found.empty() ? "" : absl::StrCat(" (", absl::StrJoin(found, "; "), ")"),
      AndList(running_on),
      AndList(std::vector<std::string>(kinds.begin(), kinds.end())), advice);
}

}  // namespace d2l
