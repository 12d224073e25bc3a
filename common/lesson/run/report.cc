#include "common/lesson/run/report.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/device/backend.h"
#include "common/device/device_table.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/cell/judge.h"
#include "common/lesson/cell/other_load.h"
#include "common/lesson/text/lesson.h"
#include "nlohmann/json.hpp"

namespace d2l {
namespace {

// Keeps the order in which members are added, the order in the header's
// comment.
using Json = nlohmann::ordered_json;

Json ToJson(const SourceExcerpt& code) {
  return {{"file", code.file}, {"line", code.line}, {"text", code.text}};
}

Json ToJson(const CellResult& cell) {
  Json figures = Json::array();
  for (const Figure& figure : cell.figures) {
    figures.push_back({{"name", figure.Name().english},
                       {"label", figure.Name().shown},
                       {"unit", figure.unit},
                       {"median", figure.value.median},
                       {"low", figure.value.low},
                       {"high", figure.value.high}});
  }
  Json claims = Json::array();
  for (const Claimed& claim : cell.claims) {
    claims.push_back({{"text", claim.text.english},
                      {"verdict", VerdictName(claim.judgement.verdict)},
                      {"meaning", claim.Meaning()},
                      {"number", claim.judgement.number},
                      {"evidence", claim.judgement.evidence},
                      {"reason", claim.judgement.reason},
                      {"because", claim.because}});
  }
  Json drawings = Json::array();
  for (const Shown& drawing : cell.drawings) {
    drawings.push_back({{"name", drawing.name.english},
                        {"label", drawing.name.shown},
                        {"file", drawing.file},
                        {"text", drawing.text}});
  }
  const CellText& text = cell.text;
  return {{"id", text.id},
          {"number", cell.number},
          {"also", text.also},
          {"title", text.title},
          {"section", text.section},
          {"exercises", text.exercises},
          {"context", text.context},
          {"picture", text.picture},
          {"python", absl::StripAsciiWhitespace(text.python)},
          {"course_printed", absl::StripAsciiWhitespace(text.course_printed)},
          {"predict", text.predict},
          {"choices", text.choices},
          {"right", text.right},
          {"predicted", cell.predicted},
          {"learn", text.learn},
          {"source", ToJson(cell.source)},
          {"measured", ToJson(cell.measured)},
          {"output", cell.output},
          {"error", cell.error},
          {"seconds", cell.seconds},
          {"figures", figures},
          {"claims", claims},
          {"not_asked", cell.not_asked},
          {"drawings", drawings},
          {"load",
           cell.load ? Json{{"cores", cell.load->cores}, {"of", cell.load->of}}
                     : Json()}};
}

Json ToJson(const LessonResult& lesson) {
  Json devices = Json::array();
  for (const DeviceInfo& info : lesson.devices) {
    devices.push_back({{"name", info.device.ToString()},
                       {"kind", DeviceKindName(info.kind)},
                       {"description", info.Describe()}});
  }
  Json cells = Json::array();
  for (const CellResult& cell : lesson.cells) cells.push_back(ToJson(cell));
  return {{"lesson", lesson.lesson}, {"number", lesson.number},
          {"title", lesson.title},   {"section", lesson.section},
          {"lang", Language()},      {"size", SizeName(lesson.size)},
          {"notes", lesson.notes},   {"devices", devices},
          {"cells", cells}};
}

std::string Dump(const Json& json) {
  // `replace`: a reason may quote text that is not UTF-8, which must not throw.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Claims that a cell shows without --verbose.
constexpr std::size_t kShownClaims = 2;

// Of what a notebook printed, in the course's table.
constexpr std::size_t kPrintedColumns = 17;

// "(needs 1.10x or more; 95 %: 1.88-1.91)", with the number unless the claim's
// text has it.
std::string Evidence(const Claimed& claim, bool only_number) {
  const Judgement& judgement = claim.judgement;
  std::vector<std::string> parts;
  if (!absl::StrContains(claim.text.shown, "{}") && !judgement.number.empty()) {
    parts.push_back(judgement.number);
  }
  if (!only_number && !judgement.evidence.empty()) {
    parts.push_back(judgement.evidence);
  }
  if (parts.empty()) return "";
  return Say(" (%s)", absl::StrJoin(parts, Translated("; ")));
}

// "HOLDS  Two devices are …", wrapped.
std::string ClaimText(const Claimed& claim, bool only_number) {
  const Judgement& judgement = claim.judgement;
  const std::string indent(7, ' ');
  const auto width = static_cast<std::size_t>(TextWidth());
  std::string text =
      WrapWords(absl::StrCat(claim.Meaning(), Evidence(claim, only_number)),
                absl::StrCat(Translated(VerdictName(judgement.verdict)), "  "),
                indent, width);
  if (judgement.verdict != Verdict::kHolds && !judgement.reason.empty()) {
    absl::StrAppend(&text, WrapWords(judgement.reason, indent, indent, width));
  }
  return text;
}

// "1.64 s, 1.65 s": the times of a notebook's output, "Done: 1.6357 sec"; the
// output if it has none; "" if that is too long for a column.
std::string PrintedFigures(const std::string& printed) {
  const std::vector<std::string> words =
      absl::StrSplit(printed, absl::ByAnyChar(" ;\n"), absl::SkipEmpty());
  std::vector<std::string> times;
  double number = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    absl::string_view word = words[i];
    const double scale = absl::ConsumeSuffix(&word, "ms") ? 1e-3 : 1;
    const bool has_unit = absl::ConsumeSuffix(&word, "s") || scale < 1 ||
                          (i + 1 < words.size() && words[i + 1] == "sec");
    if (has_unit && absl::SimpleAtod(word, &number)) {
      times.push_back(FormatDuration(number * scale));
    }
  }
  if (!times.empty()) return absl::StrJoin(times, ", ");
  const std::string line = OneLine(printed);
  return TextColumns(line) > kPrintedColumns ? "" : line;
}

// "Two devices are faster": a claim's text without ": {}." at its end.
std::string WithoutNumber(std::string text) {
  for (const char* end : {": {}.", "：{}。"}) {
    if (absl::EndsWith(text, end)) text.resize(text.size() - strlen(end));
  }
  return absl::StrReplaceAll(text, {{"{}", "..."}});
}

// A line of the course's table.
std::string TableLine(const std::string& cell, const std::string& claim,
                      const std::string& printed, const std::string& number,
                      const std::string& verdict) {
  const auto column = [](const std::string& text, std::size_t columns) {
    const std::string cut = CutText(text, columns);
    return absl::StrCat(cut, std::string(columns - TextColumns(cut), ' '));
  };
  constexpr std::size_t kClaim = 34;
  // Where nothing was printed, the claim has that column as well.
  const std::string left = printed.empty()
                               ? column(claim, kClaim + 1 + kPrintedColumns)
                               : absl::StrCat(column(claim, kClaim), " ",
                                              column(printed, kPrintedColumns));
  return absl::StrCat(column(cell, 5), left, " ", column(number, 9), " ",
                      verdict, "\n");
}

// Lists names as prose: "cpu:0", "cpu:0 and cpu:1", "a, b and c".
std::string AndList(const std::vector<std::string>& names) {
  if (names.size() < 2) return absl::StrJoin(names, "");
  const std::vector<std::string> most(names.begin(), names.end() - 1);
  return Say("%s and %s", absl::StrJoin(most, ", "), names.back());
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

std::string LoadText(const std::vector<LessonResult>& lessons, int cores_needed,
                     bool counted) {
  std::optional<OtherLoad> most;
  std::vector<std::string> disturbed;
  for (const LessonResult& lesson : lessons) {
    for (const CellResult& cell : lesson.cells) {
      const bool open = std::any_of(
          cell.claims.begin(), cell.claims.end(),
          [](const Claimed& claim) { return claim.judgement.disturbed; });
      if (open) disturbed.push_back(cell.number);
      const bool counts =
          open || (!counted && cell.load && cell.load->Disturbs(cores_needed));
      if (!counts || !cell.load) continue;
      if (!most || cell.load->cores > most->cores) most = cell.load;
    }
  }
  if (!most) return "";
  const std::string what =
      counted ? Say("When they have ended, run the undecided cells again: "
                    "--cell=%s",
                    absl::StrJoin(disturbed, ","))
              : Say("This kernel does not say which repeats they disturbed, so "
                    "all count.");
  return absl::StrCat(Lead(most->Text()), what);
}

std::string FiguresText(const CellResult& cell) {
  if (cell.figures.empty()) return "";
  const auto width = static_cast<std::size_t>(TextWidth());
  std::string text = Say("median [95 %% interval]") + "\n";
  for (const Figure& figure : cell.figures) {
    const std::string name = figure.Name().shown;
    const std::string value =
        FormatSummary(figure.value, Translated(figure.unit));
    const std::size_t used = TextColumns(name) + TextColumns(value);
    if (used + 2 <= width) {
      absl::StrAppend(&text, name, std::string(width - used, ' '), value, "\n");
    } else {
      absl::StrAppend(&text, Wrap(name), "    ", value, "\n");
    }
  }
  return text;
}

std::string ClaimsText(const CellResult& cell, bool verbose) {
  std::string text;
  for (std::size_t i = 0; i < cell.claims.size(); ++i) {
    const Claimed& claim = cell.claims[i];
    if (!verbose && i == kShownClaims) {
      const std::size_t more = cell.claims.size() - i;
      absl::StrAppend(&text,
                      more == 1 ? Say("%d more claim: --verbose", more)
                                : Say("%d more claims: --verbose", more),
                      "\n");
      break;
    }
    const Judgement& judgement = claim.judgement;
    const bool close = judgement.close && judgement.verdict != Verdict::kHolds;
    absl::StrAppend(&text, ClaimText(claim, !verbose && !close));
  }
  return text;
}

std::string PredictionText(const CellResult& cell) {
  const int mine = cell.predicted, right = cell.text.right;
  const std::vector<std::string>& choices = cell.text.choices;
  if (mine == 0) return "";
  if (mine == right) return Wrap(Say("You predicted %d: right.", right));
  if (right == 0) {
    return Wrap(Say("You predicted %d: %s.", mine, choices[mine - 1]));
  }
  return Wrap(Say("You predicted %d: %s. Right is %d: %s.", mine,
                  choices[mine - 1], right, choices[right - 1]));
}

std::string OneLine(const std::string& text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view stripped = absl::StripAsciiWhitespace(line);
    if (!stripped.empty()) lines.push_back(std::string(stripped));
  }
  return absl::StrJoin(lines, "; ");
}

std::string CourseText(const std::vector<LessonResult>& lessons) {
  std::string text;
  for (const LessonResult& lesson : lessons) {
    for (const CellResult& cell : lesson.cells) {
      std::string printed = PrintedFigures(cell.text.course_printed);
      for (const Claimed& claim : cell.claims) {
        absl::StrAppend(
            &text, TableLine(cell.number, WithoutNumber(claim.text.shown),
                             printed, claim.judgement.number,
                             Translated(VerdictName(claim.judgement.verdict))));
        printed.clear();  // stands beside the cell's first claim
      }
    }
  }
  if (text.empty()) return "";
  return absl::StrCat(TableLine("", Say("claim"), Say("notebook, d2l"),
                                Say("here"), Say("verdict")),
                      text);
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
  return absl::StrCat(
      cells == 1 ? Say("%d cell,", cells) : Say("%d cells,", cells), " ",
      claims == 1 ? Say("%d claim:", claims) : Say("%d claims:", claims), " ",
      Say("%d HOLDS, %d FAILS, %d INCONCLUSIVE.",
          verdicts[static_cast<int>(Verdict::kHolds)],
          verdicts[static_cast<int>(Verdict::kFails)],
          verdicts[static_cast<int>(Verdict::kInconclusive)]));
}

std::vector<std::string> Circumstances(bool launch_blocking, bool allow_tf32,
                                       bool profiled,
                                       const StreamOptions& stream_options,
                                       const std::vector<DeviceInfo>& devices,
                                       int cores) {
  std::vector<std::string> sentences;
  if (launch_blocking) {
    sentences.push_back(Say("Launch blocking is on: every call waits."));
  }
  const bool cuda =
      std::any_of(devices.begin(), devices.end(), [](const DeviceInfo& info) {
        return info.device.type() == DeviceType::kCuda;
      });
  if (allow_tf32 && cuda) {
    sentences.push_back(
        Say("TF32 is allowed (--allow_tf32): a GPU may compute float32 "
            "products with 10 bits of each factor."));
  }
  if (profiled) {
    sentences.push_back(
        Say("The profiler records (--trace or --html): each request takes "
            "longer, and so does each time that memory is taken or "
            "returned."));
  }
  const std::int64_t bound = stream_options.max_queued_operations;
  if (bound < StreamOptions().max_queued_operations) {
    sentences.push_back(
        bound == 1
            ? Say("A queue holds %d operation (--max_queued_operations): a "
                  "call waits until there is room.",
                  bound)
            : Say("A queue holds %d operations (--max_queued_operations): a "
                  "call waits until there is room.",
                  bound));
  }
  int workers = 0;
  for (const DeviceInfo& info : devices) {
    if (info.kind == DeviceKind::kVirtual) ++workers;
  }
  if (workers > 0 && workers >= cores) {
    // A single device shares a core: there are no more cores than devices.
    sentences.push_back(
        workers > 1
            ? (cores > 1
                   ? Say("%d virtual devices and the program share %d cores.",
                         workers, cores)
                   : Say("%d virtual devices and the program share %d core.",
                         workers, cores))
            : Say("%d virtual device and the program share %d core.", workers,
                  cores));
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
    kinds.insert(Translated(DeviceKindName(info.kind)));
  }
  const bool enough = static_cast<int>(found.size()) >= wanted;
  const std::string advice =
      enough ? Say("To run on GPUs leave out --devices.")
             : Say("To insist on hardware: --require_gpus=%d.", wanted);
  const std::string found_names =
      found.empty() ? "" : absl::StrCat(" (", absl::StrJoin(found, "; "), ")");
  const std::string used_names = AndList(running_on);
  const std::string used_kinds =
      AndList(std::vector<std::string>(kinds.begin(), kinds.end()));
  return wanted == 1
             ? Say("This lesson uses %d GPU; found %d%s. Running on %s (%s). "
                   "%s",
                   wanted, found.size(), found_names, used_names, used_kinds,
                   advice)
             : Say("This lesson uses %d GPUs; found %d%s. Running on %s (%s). "
                   "%s",
                   wanted, found.size(), found_names, used_names, used_kinds,
                   advice);
}

}  // namespace d2l
