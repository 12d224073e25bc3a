#include "common/lesson/testing/lesson_testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/child_process.h"
#include "common/base/console/text.h"
#include "common/base/files/atomic_file.h"
#include "common/lesson/text/source.h"

namespace d2l {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

// The readable amount of a cell's code and of its output.
constexpr int kMaxCodeLines = 55;
constexpr int kMaxTaughtLines = 40;
// An undecided verdict with its reason takes up to five lines more than
// another.
constexpr int kMaxPrintedLines = 55;

constexpr std::size_t kColumns = 80;

std::string Path(const TestedLesson& lesson, const std::string& file) {
  return absl::StrCat("chapters/", lesson.name, "/", file);
}

// Whether the run has the listed cells, in order. If not, the test fails, and
// the message names the cells.
bool HasListedCells(const TestedLesson& lesson, const LessonRun& run) {
  std::vector<std::string> listed, ran;
  for (const TestedCell& cell : lesson.cells) listed.push_back(cell.id);
  for (const Json& cell : run.json["cells"]) ran.push_back(cell["id"]);
  if (ran == listed) return true;
  const auto has = [](const std::vector<std::string>& ids,
                      const std::string& id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  std::string faults;
  for (const std::string& id : ran) {
    if (has(listed, id)) continue;
    absl::StrAppend(&faults, "\n", id, " ran, but is not listed");
  }
  for (const std::string& id : listed) {
    if (has(ran, id)) continue;
    absl::StrAppend(&faults, "\n", id, " is listed, but did not run");
  }
  if (faults.empty()) {
    faults = absl::StrCat("\nThey ran as ", absl::StrJoin(ran, ", "),
                          "\nand are listed as ", absl::StrJoin(listed, ", "));
  }
  ADD_FAILURE() << "The cells of " << lesson.name
                << " are not those of chapters/cells.json:" << faults;
  return false;
}

// The end of the line with which a cell begins.
std::string Heading(const TestedCell& cell) {
  return absl::StrCat("[", cell.id, "]\n");
}

void ExpectFigure(const TestedLesson& lesson, const Json& figure) {
  EXPECT_LE(figure["low"], figure["median"]) << figure;
  EXPECT_LE(figure["median"], figure["high"]) << figure;
  if (figure["unit"] != "s") return;
  const std::string name = figure["name"];
  const bool is_difference =
      std::any_of(lesson.differences.begin(), lesson.differences.end(),
                  [&name](const std::string& difference) {
                    return absl::StartsWith(name, difference);
                  });
  EXPECT_TRUE(is_difference || figure["low"] > 0) << figure;
  EXPECT_THAT(name, ContainsRegex("virtual|logical|real|host")) << figure;
}

// Runs of dashes with two spaces between them, wider than the page.
bool IsWideRule(absl::string_view line) {
  if (line.size() <= kColumns) return false;
  const std::vector<absl::string_view> runs = absl::StrSplit(line, "  ");
  return runs.size() > 1 &&
         std::all_of(runs.begin(), runs.end(), [](absl::string_view run) {
           return !run.empty() &&
                  run.find_first_not_of('-') == absl::string_view::npos;
         });
}

// The line after the profiler's table that begins at this line; 0 if none does.
// A table is as wide as PyTorch's: it has the same rule above the headers,
// below them, and below the rows.
std::size_t EndOfWideTable(const std::vector<absl::string_view>& lines,
                           std::size_t begin) {
  if (!IsWideRule(lines[begin])) return 0;
  int rules = 1;
  for (std::size_t i = begin + 1; i < lines.size(); ++i) {
    if (lines[i] == lines[begin] && ++rules == 3) return i + 1;
  }
  return 0;
}

// A part of a reason that says how figures compare. In `says`, NUMBER stands
// for a number with its unit.
struct Comparison {
  std::string says;
  std::function<bool(const std::vector<double>& numbers, const Json& cell)>
      holds;
};

// The median of the cell's figure whose name begins so.
double MedianOf(const Json& cell, const std::string& name) {
  for (const Json& figure : cell["figures"]) {
    if (absl::StartsWith(figure["name"].get<std::string>(), name)) {
      return figure["median"];
    }
  }
  ADD_FAILURE() << "no figure " << name << " in " << cell["id"];
  return 0;
}

// Numbers are rounded to three digits, percent to whole ones.
const std::vector<Comparison>& Comparisons() {
  using Numbers = std::vector<double>;
  static const auto& comparisons = *new std::vector<Comparison>{
      {"Enqueueing took NUMBER of the time: the device works nearly as fast as "
       "the front end enqueues",
       [](const Numbers& n, const Json&) { return n[0] >= 50; }},
      {"on one stream and NUMBER on two; enqueueing them takes NUMBER\\. The "
       "front end enqueues no faster than the device works",
       [](const Numbers& n, const Json&) { return n[1] > 0.79 * n[0]; }},
      {"NUMBER of NUMBER additions are in the queue",
       [](const Numbers& n, const Json&) { return n[0] > 0; }},
      {"NUMBER requests needed NUMBER blocks of memory: a stream's next "
       "operation may reuse a block",
       [](const Numbers& n, const Json&) { return n[1] < n[0]; }},
      {"t1 is NUMBER t2\\. Enqueueing takes longer while the device works: "
       "NUMBER",
       [](const Numbers& n, const Json& cell) {
         return n[0] >= 1 && n[1] > MedianOf(cell, "t1 ");
       }},
      {"t2 is NUMBER t1: the device is slower than the front end",
       [](const Numbers& n, const Json&) { return n[0] >= 1; }},
      {"The t2 of an addition is NUMBER t1",
       [](const Numbers& n, const Json& cell) {
         const double ratio = MedianOf(cell, "t2 ") / MedianOf(cell, "t1 ");
         return std::abs(n[0] / ratio - 1) < 0.01;
       }},
      {"The calls take NUMBER of the time: one front end makes them",
       [](const Numbers& n, const Json&) { return n[0] >= 50; }},
      {"The calls take NUMBER of the time, so the front end is not the "
       "bottleneck: operations "
       "that run at the same time take longer than alone",
       [](const Numbers& n, const Json&) { return n[0] <= 50; }},
      {"The products alone take NUMBER of its time, and no compiler makes them "
       "faster",
       [](const Numbers& n, const Json&) { return n[0] >= 90; }},
      {"Neither enqueueing nor the products hides the other",
       [](const Numbers&, const Json& cell) {
         return MedianOf(cell, "predicted") <
                MedianOf(cell, "without compiling, completion");
       }},
      {"From batch NUMBER on, that is less",
       [](const Numbers& n, const Json&) { return n[0] >= 256; }},
      {"NUMBER at the end, NUMBER overlapped: the sums are work for the same "
       "cores",
       [](const Numbers& n, const Json&) { return n[0] < 1.11 * n[1]; }},
      {"NUMBER on two; enqueueing it takes NUMBER and NUMBER\\. A virtual "
       "device "
       ".*: nearly all of a step is computation",
       [](const Numbers& n, const Json&) { return 9.9 * n[2] < n[0]; }},
      {"The star's transfers take turns",
       [](const Numbers&, const Json& cell) {
         return MedianOf(cell, "split, simulated") <
                MedianOf(cell, "split, two processes");
       }},
      {"The copies take NUMBER as long as the products",
       [](const Numbers& n, const Json& cell) {
         return std::abs(n[0] - 100 *
                                    MedianOf(cell, "copies alone, completion") /
                                    MedianOf(cell,
                                             "products alone, "
                                             "completion")) < 1;
       }},
      {"The front end's calls for [a-z]*:[0-9] took NUMBER; for NUMBER of that "
       "time it waited",
       [](const Numbers& n, const Json&) { return n[1] < 1.01 * n[0]; }},
      {"The first product's NUMBER are NUMBER of the first run's NUMBER",
       [](const Numbers& n, const Json&) {
         return std::abs(100 * n[0] / n[2] - n[1]) < 2;
       }},
  };
  return comparisons;
}

// "80.2 us" in seconds, "12 MiB" in bytes; other units as they are.
double ValueOf(const std::string& number) {
  static const std::map<std::string, double> kUnits = {
      {"ns", 1e-9},    {"us", 1e-6},           {"ms", 1e-3},
      {"KiB", 1024.0}, {"MiB", 1024.0 * 1024}, {"GiB", 1024.0 * 1048576}};
  std::string digits = number;
  digits.erase(std::remove(digits.begin(), digits.end(), ','), digits.end());
  std::size_t end = 0;
  const double value = std::stod(digits, &end);
  const auto unit =
      kUnits.find(std::string(absl::StripAsciiWhitespace(digits.substr(end))));
  return unit == kUnits.end() ? value : unit->second * value;
}

// Every comparison that the cell's reason makes must be one of these, and be
// true of the figures.
void ExpectBorneOut(const Json& cell, const Json& claim) {
  static const std::regex kCompares(
      "faster|slower|longer|shorter|nearly|limit|hides|the least|no more|"
      "as long as|too little|dominat|than alone");
  std::string because = claim["because"];
  for (const Comparison& comparison : Comparisons()) {
    const std::regex says(absl::StrReplaceAll(
        comparison.says,
        {{"NUMBER",
          "([0-9][0-9.,]*(?:e[+-][0-9]+)?(?: ?(?:[num]?s|[KMG]iB|B|%|x))?)"}}));
    std::smatch match;
    if (!std::regex_search(because, match, says)) continue;
    std::vector<double> numbers;
    for (std::size_t i = 1; i < match.size(); ++i) {
      numbers.push_back(ValueOf(match[i]));
    }
    EXPECT_TRUE(comparison.holds(numbers, cell))
        << cell["id"] << ": " << claim["because"] << "\n"
        << claim;
    because = match.prefix().str() + match.suffix().str();
  }
  EXPECT_FALSE(std::regex_search(because, kCompares))
      << cell["id"] << ": \"" << because
      << "\" compares figures: say it only where they bear it out, and add it "
         "to Comparisons in lesson_testing.cc";
}

// The number of devices that --devices names.
std::size_t DevicesOf(const LessonRun& run) {
  for (absl::string_view argument : run.arguments) {
    if (!absl::ConsumePrefix(&argument, "--devices=")) continue;
    return std::count(argument.begin(), argument.end(), ',') + 1;
  }
  ADD_FAILURE() << "no --devices in the arguments";
  return 0;
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  if (value != nullptr) return value;
  throw std::runtime_error(
      absl::StrCat(name, " is not set: make the test with d2l_chapter"));
}

}  // namespace

TestedLesson ListedLesson(const std::string& chapter) {
  Json list = Json::parse(ReadFile("chapters/cells.json"));
  list.at("chapters").push_back(list.at("pattern"));  // an entry to copy
  for (const Json& listed : list.at("chapters")) {
    if (listed.at("name") != chapter) continue;
    TestedLesson lesson = {chapter, {}};
    for (const Json& cell : listed.at("cells")) {
      const bool timed = cell.at("timed");
      lesson.cells.push_back({cell.at("id"), cell.at("also"), cell.at("claims"),
                              timed ? 2 : 0, timed, cell.value("host", false),
                              cell.value("not_drawn", "")});
    }
    return lesson;
  }
  throw std::out_of_range(chapter + " is not in chapters/cells.json");
}

const TestedLesson& Tested() {
  static const auto& tested = *[] {
    auto* lesson = new TestedLesson(ListedLesson(Variable("D2L_CHAPTER")));
    lesson->differences =
        absl::StrSplit(Variable("D2L_DIFFERENCES"), ';', absl::SkipEmpty());
    return lesson;
  }();
  return tested;
}

std::vector<const LessonRun*> LessonRuns() {
  std::vector<const LessonRun*> runs;
  const std::string all = Variable("D2L_RUNS");
  for (const absl::string_view flags : absl::StrSplit(all, ';')) {
    runs.push_back(&RunLesson(Tested(), absl::StrSplit(flags, ' ')));
  }
  return runs;
}

ProgramResult RunWithMpi(const std::string& program,
                         const std::vector<std::string>& arguments) {
  return RunProgram(
      program, arguments,
      {absl::StrCat("OMPI_MCA_orte_tmpdir_base=", ::testing::TempDir())});
}

std::string Claims(const LessonRun& run) {
  std::string claims;
  for (const Json& cell : run.json["cells"]) {
    for (const Json& claim : cell["claims"]) {
      absl::StrAppend(&claims, claim["verdict"].get<std::string>(), "  ",
                      claim["meaning"].get<std::string>(), "\n");
    }
  }
  return claims;
}

const LessonRun& RunLesson(const TestedLesson& lesson,
                           const std::vector<std::string>& arguments) {
  static auto& runs = *new std::map<std::vector<std::string>, LessonRun>;
  std::vector<std::string> key = arguments;
  key.push_back(lesson.name);
  const auto [entry, is_new] = runs.emplace(key, LessonRun());
  LessonRun& run = entry->second;
  if (!is_new) return run;

  const std::string json =
      absl::StrCat(::testing::TempDir(), "/", lesson.name, ".json");
  std::filesystem::remove(json);
  std::vector<std::string> all = arguments;
  all.push_back("--size=small");
  // No test looks at how fast anything is.
  all.push_back("--min_time=0.02");
  all.push_back("--json=" + json);
  ProgramResult result = RunWithMpi(Path(lesson, "lesson"), all);
  run.arguments = arguments;
  run.exit_code = result.exit_code;
  run.output = std::move(result.output);
  const std::string text = ReadFile(json);
  if (!text.empty()) run.json = Json::parse(text);
  return run;
}

void ExpectRightResults(const LessonRun& run) {
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("0 wrong results, 0 errors."));
  EXPECT_THAT(run.output, Not(HasSubstr("WRONG RESULT")));
  EXPECT_THAT(run.output, Not(HasSubstr("Error in ")));
}

void ExpectCellsAsListed(const TestedLesson& lesson, const LessonRun& run) {
  ASSERT_FALSE(run.json.is_null()) << run.output;
  EXPECT_EQ(run.json["lesson"], lesson.name);
  EXPECT_EQ(run.json["devices"].size(), DevicesOf(run));
  if (!HasListedCells(lesson, run)) return;
  for (std::size_t i = 0; i < lesson.cells.size(); ++i) {
    const TestedCell& expected = lesson.cells[i];
    const Json& cell = run.json["cells"][i];
    EXPECT_EQ(cell["also"], Json(expected.also)) << expected.id;
    EXPECT_NE(cell["predict"], "") << expected.id;
    EXPECT_GE(cell["choices"].size(), 2u) << expected.id;
    EXPECT_LE(cell["choices"].size(), 4u) << expected.id;
    EXPECT_EQ(cell["claims"].size() + cell["not_asked"].get<std::size_t>(),
              static_cast<std::size_t>(expected.claims))
        << expected.id << " in lesson.md, \"- Claims:\"; " << cell;
    EXPECT_GE(cell["figures"].size(),
              static_cast<std::size_t>(expected.figures))
        << cell;
    EXPECT_EQ(cell["drawings"].empty(), !expected.not_drawn.empty())
        << expected.id
        << " in lesson.md, \"- Not drawn:\": " << expected.not_drawn;
    std::set<std::string> names;
    for (const Json& figure : cell["figures"]) {
      ExpectFigure(lesson, figure);
      EXPECT_TRUE(names.insert(figure["name"]).second)
          << expected.id << ": two figures are called " << figure["name"];
    }
    for (const Json& claim : cell["claims"]) {
      EXPECT_NE(claim["meaning"], "") << claim;
      EXPECT_NE(claim["evidence"], "") << claim;
      EXPECT_TRUE(claim["verdict"] == "HOLDS" || claim["reason"] != "")
          << claim;
    }
    EXPECT_THAT(run.output, HasSubstr(Heading(expected)));
  }
}

void ExpectReasonsBorneOut(const LessonRun& run) {
  for (const Json& cell : run.json["cells"]) {
    for (const Json& claim : cell["claims"]) ExpectBorneOut(cell, claim);
  }
}

void ExpectSourcePrinted(const TestedLesson& lesson) {
  // A taught program in a folder of its own (from_scratch/) is read by itself.
  const std::filesystem::path directory =
      std::filesystem::path(Path(lesson, "")).parent_path();
  std::string beside, below;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(directory)) {
    const std::filesystem::path path = entry.path();
    if (path.extension() != ".cc" && path.extension() != ".cu") continue;
    const bool is_beside = path.parent_path() == directory;
    (is_beside ? beside : below) += ReadFile(path);
  }
  const auto lines = [](const std::string& file, const std::string& id,
                        CodePart part) {
    const std::string text =
        ExtractCell(file, id, part).value_or(SourceExcerpt()).text;
    return std::count(text.begin(), text.end(), '\n');
  };
  std::vector<std::string> blocks = absl::StrSplit(below, "\n// %%");
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    if (absl::StartsWith(blocks[i], "\n")) continue;  // no cell shows it
    EXPECT_LE(std::count(blocks[i].begin(), blocks[i].end(), '\n'),
              kMaxTaughtLines + 1)
        << blocks[i];
  }
  const TestedCell* measured_apart = nullptr;
  for (const TestedCell& cell : lesson.cells) {
    const auto taught = lines(beside, cell.id, CodePart::kTaught);
    const auto measured = lines(beside, cell.id, CodePart::kMeasured);
    const auto apart = lines(below, cell.id, CodePart::kTaught);
    EXPECT_GT(taught + apart, 0) << "nothing is marked " << cell.id;
    EXPECT_LE(taught + measured, kMaxCodeLines) << cell.id;
    EXPECT_LE(taught, measured > 0 ? kMaxTaughtLines : kMaxCodeLines)
        << cell.id;
    if (measured > 0 && taught > 0 && measured_apart == nullptr) {
      measured_apart = &cell;
    }
  }
  ASSERT_NE(measured_apart, nullptr);
  const std::string& id = measured_apart->id;
  const std::vector<std::string> arguments = {"--devices=cpu:0", "--code",
                                              "--verbose", "--cell=" + id};
  const LessonRun& run = RunLesson(lesson, arguments);
  for (const CodePart part : {CodePart::kTaught, CodePart::kMeasured}) {
    EXPECT_THAT(run.output, HasSubstr(ExtractCell(beside, id, part)->text));
  }
}

void ExpectShortCells(const LessonRun& run) {
  const std::vector<std::string> cells =
      absl::StrSplit(run.output, std::string(kColumns, '=') + "\n");
  EXPECT_GT(cells.size(), 1u) << run.output;
  for (const std::string& cell : cells) {
    EXPECT_LE(std::count(cell.begin(), cell.end(), '\n'), kMaxPrintedLines)
        << cell;
  }
}

void ExpectEightyColumns(const LessonRun& run) {
  const std::vector<absl::string_view> lines = absl::StrSplit(run.output, '\n');
  std::vector<std::string> too_wide;
  std::size_t table_end = 0;  // of the last wide table
  for (std::size_t i = 0; i < lines.size(); ++i) {
    // A path cannot be shortened.
    if (absl::StartsWith(lines[i], "Written: ")) continue;
    if (i >= table_end) table_end = EndOfWideTable(lines, i);
    const std::size_t columns =
        i < table_end ? lines[table_end - 1].size() : kColumns;
    if (TextColumns(lines[i]) > columns)
      too_wide.push_back(std::string(lines[i]));
  }
  EXPECT_THAT(too_wide, IsEmpty());
}

void ExpectOneCellByAnyId(const TestedLesson& lesson, const TestedCell& cell) {
  std::vector<std::string> ids = cell.also;
  ids.push_back(cell.id);
  for (const std::string& id : ids) {
    const std::vector<std::string> arguments = {"--devices=cpu:0",
                                                "--cell=" + id};
    const LessonRun& run = RunLesson(lesson, arguments);
    EXPECT_EQ(run.exit_code, 0) << run.output;
    for (const TestedCell& other : lesson.cells) {
      if (other.id == cell.id) {
        EXPECT_THAT(run.output, HasSubstr(Heading(other)));
      } else {
        EXPECT_THAT(run.output, Not(HasSubstr(Heading(other))));
      }
    }
  }
}

std::string BenchmarkPrefix(const std::string& id) {
  std::string prefix = absl::StrCat("BM_", id, "_");
  std::replace_if(
      prefix.begin(), prefix.end(),
      [](unsigned char c) { return !absl::ascii_isalnum(c); }, '_');
  return prefix;
}

void ExpectBenchmarksMirrorCells(const TestedLesson& lesson) {
  const ProgramResult r =
      RunProgram(Path(lesson, "benchmarks"),
                 {"--benchmark_list_tests", "--devices=cpu:0"});
  ASSERT_EQ(r.exit_code, 0) << r.output;
  for (const TestedCell& cell : lesson.cells) {
    const std::string prefix = BenchmarkPrefix(cell.id);
    if (!cell.has_benchmark) {
      EXPECT_THAT(r.output, Not(HasSubstr(prefix)))
          << cell.id << " in lesson.md lacks \"- Timed: yes\"";
      continue;
    }
    if (cell.on_host) {
      EXPECT_THAT(r.output, ContainsRegex(prefix + "[A-Za-z0-9_]*Host"));
      continue;
    }
    for (const char* device : {"cpu:0", "cuda:0"}) {
      EXPECT_THAT(r.output, ContainsRegex(absl::StrCat(
                                prefix, "[A-Za-z0-9_]+/devices?:", device)));
    }
  }
}

void ExpectBenchmarkSkipped(const TestedLesson& lesson,
                            const std::string& filter,
                            const std::string& device) {
  const ProgramResult r =
      RunProgram(Path(lesson, "benchmarks"),
                 {"--devices=cpu:0", "--benchmark_filter=" + filter,
                  "--benchmark_min_time=0.001"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("there is no " + device));
}

}  // namespace d2l
