// Whole programs: the sample lesson, and a course of it, run with right and
// with wrong flags.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/child_process.h"
#include "common/base/console/text.h"
#include "common/base/files/atomic_file.h"
#include "nlohmann/json.hpp"

namespace d2l {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using Json = nlohmann::json;

ProgramResult Sample(std::vector<std::string> flags,
                     const std::vector<std::string>& environment = {}) {
  bool devices_given = false;
  for (const std::string& flag : flags) {
    if (flag.find("--devices") == 0) devices_given = true;
  }
  if (!devices_given) flags.push_back("--devices=cpu:0,cpu:1");
  return RunProgram("common/lesson/sample", flags, environment);
}

// Undoes the wrapping of the text.
std::string Unwrapped(const std::string& text) {
  std::istringstream words(text);
  std::string result;
  for (std::string word; words >> word;) absl::StrAppend(&result, word, " ");
  return result;
}

std::string TempPath(const std::string& name) {
  return (fs::path(::testing::TempDir()) / name).string();
}

// Expects the parts in this order.
void ExpectParts(const std::string& output,
                 const std::vector<std::string>& parts) {
  std::size_t at = 0;
  for (const std::string& part : parts) {
    const std::size_t found = output.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << "\nin\n" << output;
    at = found + part.size();
  }
}

TEST(Runner, GoodCellPrintsAllItsParts) {
  const ProgramResult r = Sample({"--cell=s/good"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  ExpectParts(r.output,
              {"A sample lesson", "Devices, at size course", "cpu:0 (virtual",
               "cpu:1 (virtual", "Note: ",
               "9.1  A good cell" + std::string(33, ' ') +
                   "d2l 0.1, exercise 1, 2 [s/good]\n\n",
               "A stream is given work", "\nPredict: How long does it take?\n",
               "size 2, \"quoted\" \\n\n", "notebook: Done: 0.0020 sec\n",
               // INCONCLUSIVE beside other load.
               "  The call returns ", "x sooner than the work is done.",
               "FAILS  The work is done when the call returns. (0 of 1)\n"
               "       It is not.\n",
               "\nYou learn: To wait.",
               "Code: --code   Figures: --verbose   Next: --cell=9.2\n",
               "1 cell, 2 claims: "});
  EXPECT_THAT(r.output, Not(HasSubstr("work()")));
  EXPECT_THAT(r.output, Not(HasSubstr("median")));
}

TEST(Runner, FiguresAndVerdictsCanStandAlone) {
  const ProgramResult r = Sample({"--cell=s/good", "--no_text"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  ExpectParts(r.output, {"size 2, \"quoted\" \\n\n", "Done: 0.0020 sec\n",
                         "FAILS  The work is done when the call returns.",
                         "1 cell, 2 claims: "});
  for (const char* text :
       {"A sample lesson", "Devices,", "A good cell", "A stream is given work",
        "Predict:", "You learn:", "Code: --code", "==="}) {
    EXPECT_THAT(r.output, Not(HasSubstr(text)));
  }
}

TEST(Runner, CodeAndFiguresAreShownOnDemand) {
  const ProgramResult r = Sample({"--cell=9.1,s/after", "--code", "--verbose"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  ExpectParts(
      r.output,
      {"[s/good]\n", "A stream is given work", "--- Python --",
       "\nwith Benchmark():\n    work()\n",
       "--- Here (C++), common/lesson/testing/sample", "HostCallback(",
       "Predict: ", "(needs 1.30x",  // the line may end behind it
       "FAILS  The work is done when the call returns. (0 of 1; it takes "
       "two\n       milliseconds)\n       It is not.\n",
       "median [95 % interval]\n",
       "two milliseconds, completion (cpu:1, virtual)", "Next: --cell=9.2\n",
       "[s/after]\n", "Next: --cell=9.10\n"});
  EXPECT_THAT(r.output, Not(HasSubstr("Code: --code")));
  EXPECT_THAT(r.output, Not(HasSubstr("Figures: --verbose")));
}

// Texts without a Chinese translation appear in English.
TEST(Runner, SpeaksChinese) {
  const std::string path = TempPath("zh.json");
  const ProgramResult r = Sample(
      {"--cell=s/good,s/after", "--lang=zh", "--verbose", "--json=" + path});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  ExpectParts(r.output,
              {"示例课", "设备，规模course：", "注意：", "9.1  好的单元",
               "d2l 0.1, 练习1, 2 [s/good]\n\n", "给一个流两毫秒的任务。",
               "\n预测：要多久？\n", "笔记本：Done: 0.0020 sec\n", "  调用早",
               "倍返回。", "要求1.30倍", "不成立  The work is done when",
               "       并没有。\n", "中位数", "两毫秒，完成（cpu:1，虚拟）",
               "\n你会学到：等待。", "下一个：--cell=9.2\n", "9.9  After",
               "2个单元，2个论断："});
  std::istringstream lines(r.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(path) == std::string::npos) {
      EXPECT_LE(TextColumns(line), 80u) << line;
    }
  }
  const Json json = Json::parse(ReadFile(path));
  EXPECT_EQ(json["lang"], "zh");
  const Json& cell = json["cells"][0];
  EXPECT_EQ(cell["figures"][0]["name"],
            "two milliseconds, enqueue (cpu:1, virtual)");
  EXPECT_EQ(cell["figures"][0]["label"], "两毫秒，提交（cpu:1，虚拟）");
  EXPECT_EQ(cell["claims"][0]["text"],
            "The call returns {} sooner than the work is done.");
  EXPECT_THAT(cell["claims"][0]["meaning"].get<std::string>(),
              HasSubstr("调用早"));
  EXPECT_EQ(cell["claims"][1]["verdict"], "FAILS");
  fs::remove(path);
  EXPECT_THAT(Sample({"--cell=s/after"}, {"LC_ALL=zh_CN.UTF-8"}).output,
              HasSubstr("1个单元，"));
  // A message within a message.
  const std::string refused =
      Sample({"--require_gpus=1000", "--lang=zh"}).output;
  EXPECT_THAT(refused, HasSubstr("需要1000块GPU。"));
  EXPECT_THAT(refused, Not(HasSubstr("Rebuild")));
  // Typed text is no text of the program: "devices" and "host" are keys.
  EXPECT_THAT(Sample({"--devics=cpu:0", "--lang=zh"}).output,
              HasSubstr("--devices=cpu:0"));
  EXPECT_THAT(Sample({"--lang=zh", "host"}).output, HasSubstr("host"));
}

TEST(Runner, ChineseLeavesFileNamesAsTheyAre) {
  const fs::path directory = TempPath("zoom2x");
  fs::create_directories(directory);
  const auto sample = [&](const std::string& json) {
    return Sample(
               {"--cell=s/after", "--lang=zh", "--json=" + json},
               {absl::StrCat("BUILD_WORKING_DIRECTORY=", directory.string())})
        .output;
  };
  // A word that is a key; and a path with a text like a factor, "3x".
  EXPECT_THAT(sample("host"),
              HasSubstr("已写入：" + (directory / "host").string() + "\n"));
  const std::string refused = Unwrapped(sample("no3x/host"));
  EXPECT_THAT(refused, HasSubstr((directory / "no3x/host").string() + "："));
  EXPECT_THAT(refused,
              HasSubstr("mkdir -p " + (directory / "no3x").string() + " "));
  fs::remove_all(directory);
}

TEST(Runner, PrintedSourceIsTheFiles) {
  const std::string file = ReadFile("common/lesson/testing/sample_lesson.cc");
  std::string source;
  for (const char* mark : {"// %% s/good, s/plot\n", "// %% s/good\n"}) {
    const std::size_t begin = file.find(mark) + std::string(mark).size();
    const std::string part =
        file.substr(begin, file.find("// %%\n", begin) - begin);
    ASSERT_GT(part.size(), 50u);
    absl::StrAppend(&source, source.empty() ? "" : "\n", part);
  }
  EXPECT_THAT(Sample({"--cell=s/good", "--code"}).output, HasSubstr(source));
}

TEST(Runner, OutputIsPlainAndEightyColumnsWide) {
  const std::string output = Sample({"--cell=s/good"}).output;
  EXPECT_EQ(output.find('\033'), std::string::npos);
  EXPECT_EQ(output.find('\r'), std::string::npos);
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(Runner, WrongResultIsNamedAndCounts) {
  const ProgramResult r = Sample({"--cell=s/wrong,s/after"});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(
      r.output,
      HasSubstr("WRONG RESULT in s/wrong: z: 2 of 3 elements differ; "
                "the first is [1]: got 4, expected 3, tolerance 1e-06"));
  EXPECT_THAT(r.output, HasSubstr("all is well"));
  EXPECT_THAT(r.output, HasSubstr("1 wrong results, 0 errors."));
}

TEST(Runner, ExceptionIsPrintedAndTheNextCellRuns) {
  const ProgramResult r = Sample({"--cell=s/throws,s/after"});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("Error in s/throws: [matmul] inner sizes"));
  EXPECT_THAT(r.output, HasSubstr("all is well"));
}

TEST(Runner, LateErrorBelongsToItsCell) {
  const ProgramResult r = Sample({"--cell=s/late,s/after"});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("Error in s/late: "));
  EXPECT_THAT(Unwrapped(r.output), HasSubstr("it broke late"));
  EXPECT_THAT(r.output, HasSubstr("common/lesson/testing/sample_lesson.cc:"));
  EXPECT_THAT(r.output, HasSubstr("all is well"));
  EXPECT_THAT(r.output, HasSubstr("0 wrong results, 1 errors."));
}

TEST(Runner, OutOfMemoryNamesTheSmallerSize) {
  const ProgramResult course = Sample({"--cell=s/memory"});
  EXPECT_EQ(course.exit_code, 1);
  EXPECT_THAT(Unwrapped(course.output),
              HasSubstr("Error in s/memory: cpu:0 has 3 B free. Run the lesson "
                        "with --size=small. "));
  EXPECT_THAT(Unwrapped(Sample({"--cell=s/memory", "--size=large"}).output),
              HasSubstr("with --size=course or --size=small. "));
  EXPECT_THAT(Unwrapped(Sample({"--cell=s/memory", "--size=small"}).output),
              HasSubstr("This is the smallest size; "));
}

TEST(Runner, CellsAreChosenByAnyOfTheirIds) {
  const ProgramResult r = Sample({"--cell=u/good, s/after"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("2 cells, 2 claims"));
  EXPECT_THAT(Sample({"--cell=s/after", "--size=large"}).output,
              HasSubstr("at size large"));
}

TEST(Runner, JsonIsWrittenWhereTheUserTypedTheCommand) {
  const std::string directory = TempPath("typed_here");
  fs::remove_all(directory);
  fs::create_directories(directory);
  const ProgramResult r =
      Sample({"--cell=s/good", "--json=out.json"},
             {absl::StrCat("BUILD_WORKING_DIRECTORY=", directory)});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  const Json json = Json::parse(ReadFile(directory + "/out.json"));
  EXPECT_EQ(json["lesson"], "sample");
  EXPECT_EQ(json["number"], 9);
  EXPECT_EQ(json["title"], "A sample lesson");
  EXPECT_EQ(json["size"], "course");
  ASSERT_EQ(json["devices"].size(), 2u);
  EXPECT_EQ(json["devices"][1]["name"], "cpu:1");
  EXPECT_EQ(json["devices"][1]["kind"], "virtual");
  ASSERT_EQ(json["cells"].size(), 1u);
  const Json& cell = json["cells"][0];
  EXPECT_EQ(cell["id"], "s/good");
  EXPECT_EQ(cell["number"], "9.1");
  EXPECT_EQ(cell["title"], "A good cell");
  EXPECT_EQ(cell["also"], (Json{"t/good", "u/good"}));
  EXPECT_EQ(cell["output"], "size 2, \"quoted\" \\n\n");
  EXPECT_EQ(cell["python"], "with Benchmark():\n    work()");
  EXPECT_EQ(cell["error"], "");
  EXPECT_GT(cell["seconds"], 0.002);
  const std::string& source =
      cell["source"]["text"].get_ref<const std::string&>();
  EXPECT_THAT(source, HasSubstr("void Good(Cell& cell) {\n"));
  const std::string file = ReadFile(cell["source"]["file"]);
  const int line = cell["source"]["line"];
  const std::size_t at = file.find("// Work that takes this long.\n");
  EXPECT_EQ(line, 1 + std::count(file.begin(), file.begin() + at, '\n'));
  ASSERT_EQ(cell["figures"].size(), 2u);
  EXPECT_EQ(cell["figures"][1]["name"],
            "two milliseconds, completion (cpu:1, virtual)");
  EXPECT_GE(cell["figures"][1]["low"], 0.002);
  ASSERT_EQ(cell["claims"].size(), 2u);
  EXPECT_EQ(cell["claims"][1]["verdict"], "FAILS");
  EXPECT_THAT(cell["claims"][1]["reason"].get<std::string>(),
              HasSubstr("It is not."));
  fs::remove_all(directory);
}

TEST(Runner, SvgsAreWrittenWhereTheUserTypedTheCommand) {
  const fs::path directory = TempPath("svg_typed_here");
  fs::remove_all(directory);
  fs::create_directories(directory);
  const std::string json_path = (directory / "out.json").string();
  const ProgramResult r =
      Sample({"--cell=s/draw", "--svg=new/drawings", "--json=out.json"},
             {absl::StrCat("BUILD_WORKING_DIRECTORY=", directory.string())});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  const Json cell = Json::parse(ReadFile(json_path))["cells"][0];
  const Json& drawings = cell["drawings"];
  ASSERT_EQ(drawings.size(), 2u);
  const bool has_dot = RunProgram("dot", {"-V"}).exit_code == 0;
  EXPECT_EQ(drawings[0]["name"], "z = x * y + 2");
  EXPECT_EQ(drawings[0]["file"],
            (directory / "new/drawings/sample_s-draw_z-x-y-2").string() +
                (has_dot ? ".svg" : ".dot"));
  for (const Json& drawing : drawings) {
    const std::string svg = ReadFile(drawing["file"]);
    EXPECT_THAT(svg, HasSubstr("mul"));
    if (has_dot) {
      EXPECT_THAT(svg, HasSubstr("</svg>"));
    }
    EXPECT_THAT(r.output,
                HasSubstr("Written: " + drawing["file"].get<std::string>()));
    EXPECT_THAT(cell["output"].get<std::string>(),
                HasSubstr(drawing["text"].get<std::string>()));
  }
  EXPECT_THAT(cell["output"].get<std::string>(), Not(HasSubstr("Written:")));
  fs::remove_all(directory);
}

TEST(Runner, SvgsInTheDirectoryItselfAreNamedWithoutIt) {
  const TemporaryDirectory directory;
  const ProgramResult r =
      Sample({"--cell=s/draw", "--svg=.", "--no_predict"},
             {"BUILD_WORKING_DIRECTORY=" + directory.path()});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("Written: " + directory.path() + "/sample_"));
  const std::string sample = fs::absolute("common/lesson/sample").string();
  EXPECT_THAT(
      RunProgram("bash", {"-c", absl::StrCat(
                                    "cd ", directory.path(), " && ", sample,
                                    " --devices=cpu:0 --cell=s/draw --svg=./")})
          .output,
      HasSubstr("Written: sample_"));
}

// A name of a file is text of others: it neither commands the terminal nor
// looks like a line of the program.
TEST(Runner, NamesAreShownWithoutControlCharacters) {
  const TemporaryDirectory directory;
  const std::string name =
      directory.path() + "/a\033[2J\nWritten: \xff\xc2\x9b";
  const std::string shown =
      directory.path() + "/a\\x1b[2J\\nWritten: \\xff\\xc2\\x9b";
  const ProgramResult written =
      Sample({"--cell=s/draw", "--json=" + name + "j", "--svg=" + name});
  EXPECT_EQ(written.exit_code, 0);
  EXPECT_THAT(written.output, HasSubstr("Written: " + shown + "/sample_"));
  EXPECT_THAT(written.output, HasSubstr("Written: " + shown + "j\n"));
  std::vector<std::string> outputs = {written.output};
  for (const char* flag :
       {"json", "svg", "trace", "html", "cell", "size", "lang", "devices"}) {
    const std::string value =
        absl::StrCat("--", flag, "=", name, "j/", "missing");
    const ProgramResult r = Sample({value});
    EXPECT_EQ(r.exit_code, 1) << r.output;
    outputs.push_back(r.output);
  }
  outputs.push_back(Sample({name}).output);
  outputs.push_back(Sample({"--" + name}).output);
  for (const std::string& output : outputs) {
    EXPECT_EQ(PrintableText(output, "\n"), output);
    EXPECT_THAT(output, Not(ContainsRegex("\n *Written: .xff"))) << output;
  }
}

TEST(Runner, HowACellIsMeasuredIsFolded) {
  const std::string folded = Sample({"--cell=s/plot", "--code"}).output;
  EXPECT_THAT(folded, HasSubstr("void WaitOn("));
  EXPECT_THAT(folded, Not(HasSubstr("void PlotSizes(")));
  EXPECT_THAT(folded, HasSubstr("How it is measured, common/lesson/"));
  const std::string all =
      Sample({"--cell=s/plot", "--code", "--verbose"}).output;
  EXPECT_THAT(all, HasSubstr("void PlotSizes("));
  EXPECT_THAT(all, HasSubstr("--- How it is measured, common/lesson/"));
}

TEST(Runner, WithoutTheFlagNoDrawingIsWritten) {
  const fs::path directory = TempPath("no_svg");
  fs::remove_all(directory);
  fs::create_directories(directory);
  const ProgramResult r =
      Sample({"--cell=s/draw,s/plot", "--verbose"},
             {absl::StrCat("BUILD_WORKING_DIRECTORY=", directory.string())});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("z = x * y + 2\n\nlevel "));
  EXPECT_THAT(r.output, HasSubstr("sample_lesson"));
  EXPECT_THAT(r.output, HasSubstr("front end |"));
  EXPECT_THAT(r.output, HasSubstr("* on one, o on both"));
  EXPECT_TRUE(fs::is_empty(directory));
  std::istringstream lines(r.output);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
  }
  EXPECT_EQ(r.output.find('\033'), std::string::npos);
  EXPECT_EQ(r.output.find('\r'), std::string::npos);
}

// The slices of a trace of this category, by name.
std::vector<std::string> SliceNames(const Json& trace, const char* category) {
  std::vector<std::string> names;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["cat"] == category) {
      names.push_back(event["name"]);
    }
  }
  return names;
}

// The number of events of a phase.
int CountPhase(const Json& trace, const char* phase) {
  int count = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == phase) ++count;
  }
  return count;
}

TEST(Runner, TraceHasARangeForEachCellAndWhatDevicesDid) {
  const fs::path directory = TempPath("traced");
  fs::remove_all(directory);
  fs::create_directories(directory);
  const ProgramResult r =
      Sample({"--cell=s/draw,s/after,s/plot", "--trace=trace.json",
              "--html=timeline.html", "--json=out.json"},
             {absl::StrCat("BUILD_WORKING_DIRECTORY=", directory.string())});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(Unwrapped(r.output),
              HasSubstr("Note: The profiler records (--trace or --html): "));
  std::size_t at = 0;
  for (const char* file : {"out.json", "trace.json", "timeline.html"}) {
    at = r.output.find(
        absl::StrCat("Written: ", (directory / file).string(), "\n"), at);
    ASSERT_NE(at, std::string::npos) << file << "\n" << r.output;
  }

  const Json trace = Json::parse(ReadFile((directory / "trace.json").string()));
  EXPECT_THAT(SliceNames(trace, "user_annotation"),
              IsSupersetOf({"s/after", "s/draw", "s/plot", "on one, warm-up",
                            "on both, warm-up", "on one #1", "on both #1",
                            "on one #2"}));
  // x * y + 2, on the front end and on the device, with arrows.
  for (const char* category : {"cpu_op", "kernel"}) {
    const std::vector<std::string> names = SliceNames(trace, category);
    EXPECT_EQ(std::count(names.begin(), names.end(), "mul"), 1) << category;
    EXPECT_EQ(std::count(names.begin(), names.end(), "add"), 1) << category;
  }
  EXPECT_GE(CountPhase(trace, "s"), 2);
  EXPECT_EQ(CountPhase(trace, "s"), CountPhase(trace, "f"));
  EXPECT_GE(CountPhase(trace, "C"), 1) << "memory";
  EXPECT_EQ(trace["otherData"]["not_recorded"], 0);
  EXPECT_EQ(trace["otherData"]["cut"], 0);

  const std::string html = ReadFile((directory / "timeline.html").string());
  EXPECT_THAT(html, HasSubstr("</html>"));
  EXPECT_THAT(html, HasSubstr("A sample lesson"));
  for (const char* name : {"s/draw", "s/after", "s/plot", "mul"}) {
    EXPECT_THAT(html, HasSubstr(absl::StrCat("<title>", name, "\n"))) << name;
  }

  const Json json = Json::parse(ReadFile((directory / "out.json").string()));
  EXPECT_EQ(json["cells"].size(), 3u);
  EXPECT_THAT(json["notes"].dump(), HasSubstr("The profiler records"));
  fs::remove_all(directory);
}

TEST(Runner, CourseNamesTheLessonInItsTrace) {
  const std::string path = TempPath("course_trace.json");
  const ProgramResult r = RunProgram(
      "common/lesson/sample_course",
      {"--cell=s/draw,s/after,s/throws", "--devices=cpu:0", "--trace=" + path});
  // The trace is written even if a cell fails.
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(
      SliceNames(Json::parse(ReadFile(path)), "user_annotation"),
      ElementsAre("sample s/throws", "sample s/after", "sample s/draw"));
  fs::remove(path);
}

TEST(Runner, WithoutTheFlagsNothingIsRecorded) {
  const ProgramResult r = Sample({"--cell=s/draw"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, Not(HasSubstr("profiler")));
  EXPECT_THAT(r.output, Not(HasSubstr("Written: ")));
}

TEST(Runner, UnwritableTraceIsRefusedBeforeAnythingRuns) {
  for (const std::string flag : {"--trace", "--html"}) {
    const std::string path = TempPath("missing_directory/out");
    const ProgramResult r =
        Sample({"--cell=s/good", absl::StrCat(flag, "=", path)});
    EXPECT_EQ(r.exit_code, 1);
    EXPECT_THAT(
        Unwrapped(r.output),
        HasSubstr(absl::StrCat("Error: ", flag, ": cannot write ", path)));
    EXPECT_THAT(r.output, Not(HasSubstr("A sample lesson")));
  }
}

TEST(Runner, AFileThatCannotBeWrittenAtTheEndLeavesTheOldOnes) {
  // The cell makes --trace's directory unusable; --html's stays.
  const fs::path directory = TempPath("goes_away");
  fs::remove_all(directory);
  fs::create_directories(directory / "trace");
  std::ofstream(directory / "trace" / "t.json") << "old";
  const std::string html = (directory / "t.html").string();
  const ProgramResult r =
      Sample({"--cell=s/after,s/rename",
              "--trace=" + (directory / "trace" / "t.json").string(),
              "--html=" + html},
             {absl::StrCat("SAMPLE_RENAME=", (directory / "trace").string())});
  EXPECT_EQ(r.exit_code, 1) << r.output;
  EXPECT_THAT(Unwrapped(r.output), HasSubstr("Error: cannot write "));
  EXPECT_THAT(r.output, HasSubstr("0 wrong results, 0 errors."));
  EXPECT_EQ(ReadFile((directory / "trace.away" / "t.json").string()), "old");
  EXPECT_THAT(r.output, HasSubstr("Written: " + html + "\n"));
  EXPECT_THAT(ReadFile(html), HasSubstr("s/rename"));
  fs::remove_all(directory);
}

TEST(Runner, TraceGoesToAPipeAsWell) {
  const ProgramResult r = Sample({"--cell=s/draw", "--trace=/dev/stdout"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  const std::size_t begin = r.output.find("{\"displayTimeUnit\"");
  const std::size_t end = r.output.find("Written: /dev/stdout");
  ASSERT_NE(begin, std::string::npos) << r.output;
  ASSERT_NE(end, std::string::npos) << r.output;
  EXPECT_THAT(SliceNames(Json::parse(r.output.substr(begin, end - begin)),
                         "user_annotation"),
              ElementsAre("s/draw"));
}

// Runs the sample lesson as a part of a shell command.
ProgramResult Shell(const std::string& command) {
  return RunProgram("/bin/bash", {"-c", command});
}

TEST(Runner, JsonOnStdoutStandsBehindTheTextInAFile) {
  const std::string path = TempPath("stdout.txt");
  std::ofstream(path) << "first\n";
  const ProgramResult r = Shell(
      "common/lesson/sample --cell=s/after --devices=cpu:0 "
      "--json=/dev/stdout >> " +
      path);
  EXPECT_EQ(r.exit_code, 0) << r.output;
  const std::string text = ReadFile(path);
  std::size_t at = 0;
  for (const char* part : {"first\n", "all is well", "0 errors.", "{\n",
                           "\"lesson\": \"sample\"", "Written: /dev/stdout"}) {
    at = text.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << "\nin\n" << text;
  }
  fs::remove(path);
}

TEST(Runner, LostOutputIsNoSuccess) {
  for (const char* command :
       {"common/lesson/sample --cell=s/after --devices=cpu:0",
        "common/lesson/sample_course --cell=s/after --devices=cpu:0",
        "common/lesson/sample --help"}) {
    for (const char* lost : {" > /dev/full", " >&-"}) {
      const ProgramResult r = Shell(absl::StrCat(command, lost));
      EXPECT_EQ(r.exit_code, 1) << command << lost;
      EXPECT_EQ(r.output,
                "Error: stdout cannot be written (the disk is full, or the "
                "stream is closed); output is lost.\n");
    }
  }
}

TEST(Runner, TwoFlagsCannotNameOneFile) {
  const fs::path directory = TempPath("one_file");
  fs::remove_all(directory);
  fs::create_directories(directory / "drawings");
  std::ofstream(directory / "old") << "old";
  fs::create_symlink("old", directory / "link");
  for (const auto& [a, b] :
       {std::pair("--json=new", "--trace=./new"),
        std::pair("--json=new", "--html=drawings/../new"),
        std::pair("--trace=old", "--html=link"),
        std::pair("--json=/dev/stdout", "--trace=/dev/fd/1")}) {
    const ProgramResult r =
        Sample({"--cell=s/after", a, b},
               {absl::StrCat("BUILD_WORKING_DIRECTORY=", directory.string())});
    EXPECT_EQ(r.exit_code, 1);
    for (const std::string flag : {a, b}) {
      EXPECT_THAT(Unwrapped(r.output),
                  HasSubstr(flag.substr(0, flag.find('=') + 1)));
    }
    EXPECT_THAT(Unwrapped(r.output), HasSubstr("name the same file. "));
    EXPECT_THAT(r.output, Not(HasSubstr("all is well")));
  }
  // A file cannot have the name of the drawings' directory.
  const std::string both = (directory / "new_drawings").string();
  const ProgramResult r =
      Sample({"--cell=s/after", "--json=" + both, "--svg=" + both});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(Unwrapped(r.output), HasSubstr("--json: cannot write " + both));
  EXPECT_EQ(ReadFile((directory / "old").string()), "old");
  fs::remove_all(directory);
}

TEST(Runner, APipeWithoutAReaderIsRefusedBeforeAnythingRuns) {
  const std::string path = TempPath("pipe");
  fs::remove(path);
  ProgramResult r = Shell(absl::StrCat(
      "mkfifo ", path, "; common/lesson/sample --cell=s/after --json=", path));
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(Unwrapped(r.output),
              HasSubstr("Error: --json: cannot write " + path));
  EXPECT_THAT(Unwrapped(r.output), HasSubstr("start the reader first: "));
  EXPECT_THAT(r.output, Not(HasSubstr("all is well")));

  r = Shell(absl::StrCat("cat ", path, " > ", path, ".json & ",
                         "common/lesson/sample --cell=s/after --devices=cpu:0 "
                         "--json=",
                         path, "; result=$?; wait; exit $result"));
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_EQ(Json::parse(ReadFile(path + ".json"))["lesson"], "sample");
  fs::remove(path);
  fs::remove(path + ".json");
}

// Sends the signal while a cell runs.
ProgramResult Stop(const std::string& signal, const fs::path& directory) {
  fs::remove_all(directory);
  fs::create_directories(directory);
  std::ofstream(directory / "trace.json") << "old";
  const std::string output = directory.string() + ".txt";
  // Programs in the background of a shell ignore SIGINT, unless told not to. A
  // minute is far longer than the program takes to start.
  ProgramResult r = Shell(absl::StrCat(
      "env --default-signal=INT common/lesson/sample --cell=s/sleep "
      "--devices=cpu:0 --trace=",
      directory.string(), "/trace.json > ", output,
      " & for i in {1..600}; do grep -sq 'For Ctrl-C' ", output,
      " && break; sleep 0.1; done; kill -", signal, " $!; wait $!"));
  r.output += ReadFile(output);
  fs::remove(output);
  EXPECT_EQ(ReadFile((directory / "trace.json").string()), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory), {}), 1);
  fs::remove_all(directory);
  EXPECT_THAT(r.output, Not(HasSubstr("1 cell, ")));
  return r;
}

TEST(Runner, CtrlCStopsAtOnce) {
  const ProgramResult r = Stop("INT", TempPath("interrupted"));
  EXPECT_EQ(r.exit_code, 130) << r.output;
  EXPECT_THAT(r.output, HasSubstr("Interrupted.\n"));
}

TEST(Runner, SigtermStopsAtOnce) {
  EXPECT_EQ(Stop("TERM", TempPath("terminated")).exit_code, 143);
}

TEST(Runner, UnwritableJsonIsRefusedBeforeAnythingRuns) {
  const std::string path = TempPath("missing_directory/out.json");
  const ProgramResult r = Sample({"--cell=s/good", "--json=" + path});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(Unwrapped(r.output),
              HasSubstr("Error: --json: cannot write " + path));
  EXPECT_THAT(Unwrapped(r.output), HasSubstr("mkdir -p"));
  EXPECT_THAT(r.output, Not(HasSubstr("A sample lesson")));
}

TEST(Runner, FailedCellStillLeavesWholeJson) {
  const std::string path = TempPath("failed.json");
  EXPECT_EQ(Sample({"--cell=s/throws,s/wrong", "--json=" + path}).exit_code, 1);
  const Json cells = Json::parse(ReadFile(path))["cells"];
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_EQ(cells[1]["error"], "[matmul] inner sizes");
  EXPECT_THAT(cells[0]["output"].get<std::string>(),
              HasSubstr("WRONG RESULT in s/wrong"));
  fs::remove(path);
}

TEST(Runner, CourseEndsWithAllVerdicts) {
  const std::string path = TempPath("course.json");
  const ProgramResult r = RunProgram(
      "common/lesson/sample_course",
      {"--cell=s/good,s/after", "--devices=cpu:0,cpu:1", "--json=" + path});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("at size small"));
  EXPECT_THAT(r.output, ::testing::ContainsRegex(
                            "9\\.1  The call returns \\.\\.\\. sooner [^\n]* "
                            "2\\.00 ms [^\n]*x [^\n]*[A-Z]+\n"
                            "9\\.1  The work is done when the call[^\n]*0 of 1"
                            "[^\n]* FAILS\n"));
  EXPECT_THAT(r.output, Not(HasSubstr("Predict: "))) << "nobody can answer";
  const Json json = Json::parse(ReadFile(path));
  ASSERT_EQ(json["lessons"].size(), 1u);
  EXPECT_EQ(json["lessons"][0]["cells"].size(), 2u);
  fs::remove(path);
  EXPECT_EQ(RunProgram("common/lesson/sample_course",
                       {"--cell=s/wrong", "--devices=cpu:0"})
                .exit_code,
            1);
}

TEST(Runner, HelpExplainsEachFlag) {
  for (const char* flag : {"--help", "-h"}) {
    const ProgramResult r = Sample({flag});
    EXPECT_EQ(r.exit_code, 0);
    for (const char* name :
         {"devices", "size", "cell", "code", "no_code", "verbose", "no_predict",
          "no_text", "require_gpus", "json", "svg", "trace", "html",
          "trace_calls", "max_queued_operations", "max_bytes_in_flight",
          "launch_blocking", "check_races", "allow_tf32"}) {
      EXPECT_THAT(r.output,
                  HasSubstr(absl::StrCat("\n--", name, " (default: ")));
      EXPECT_THAT(Unwrapped(r.output), HasSubstr(absl::StrCat(" --", name)));
    }
    EXPECT_THAT(r.output, HasSubstr("Example: --size=small"));
    EXPECT_THAT(r.output, Not(HasSubstr("A sample lesson")));
  }
}

TEST(Runner, LaunchBlockingMakesTheCallWait) {
  const std::string path = TempPath("blocking.json");
  const ProgramResult r =
      Sample({"--cell=s/good", "--launch_blocking", "--json=" + path});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("Note: Launch blocking is on"));
  const Json claims = Json::parse(ReadFile(path))["cells"][0]["claims"];
  // There is one ratio per repeat, and enqueueing includes the wait.
  EXPECT_NE(claims[0]["verdict"], "HOLDS") << claims;
  fs::remove(path);
}

// With a busy process on every core, a claim about times is about undisturbed
// repeats, or is INCONCLUSIVE.
TEST(Runner, OtherLoadIsSeen) {
  const std::string path = TempPath("loaded.json");
  const ProgramResult r = Shell(
      "for i in $(seq $(nproc)); do while :; do :; done & done; "
      "common/lesson/sample --cell=s/good --devices=cpu:0 --json=" +
      path + "; kill $(jobs -p)");
  const Json cell = Json::parse(ReadFile(path))["cells"][0];
  fs::remove(path);
  if (cell["load"].is_null()) GTEST_SKIP() << "/proc/stat says nothing here";
  EXPECT_GT(cell["load"]["cores"], 0.3) << cell;
  const Json claim = cell["claims"][0];
  EXPECT_NE(claim["verdict"], "FAILS") << cell;
  if (claim["verdict"] == "INCONCLUSIVE") {
    EXPECT_THAT(claim["reason"], HasSubstr("Other programs disturbed")) << cell;
    EXPECT_THAT(Unwrapped(r.output),
                HasSubstr("run the undecided cells again: --cell=9.1 "));
  }
  EXPECT_EQ(cell["claims"][1]["verdict"], "FAILS") << "it was counted";
}

// Runs a program on its own terminal. At each prompt it types the next of the
// keys, and Ctrl-C at last; what stands behind a "~" as soon as the keys before
// it are refused. The output ends with the state of the terminal, and whether
// the program was surely not asking yet when it typed those.
constexpr char kOnTerminal[] = R"py(
import os, pty, select, sys, termios
keys, command = sys.argv[1].split("|"), sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    os.execv(command[0], command)
output, at, late, early = b"", 0, "", False
prompts = [text.encode() for text in ("skips): ", "跳过）：")]
while True:
    try:
        output += os.read(terminal, 4096)
    except OSError:  # the program has ended
        break
    for prompt in prompts:
        if prompt in output[at:]:
            at = output.index(prompt, at) + len(prompt)
            now, _, late = (keys.pop(0) if keys else "\x03").partition("~")
            os.write(terminal, now.encode())
    if late and b"all questions." in output[at:]:
        os.write(terminal, late.encode())
        late, early = "", not select.select([terminal], [], [], 0)[0]
lines = termios.tcgetattr(terminal)[3] & termios.ICANON
sys.stdout.buffer.write(output.replace(b"\r\n", b"\n"))
print("terminal:", "lines" if lines else "keys")
print("typed early:", early)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
sys.exit(code if code >= 0 else 128 - code)
)py";

// `keys` are separated by bars.
ProgramResult OnTerminal(const std::string& keys,
                         const std::vector<std::string>& command) {
  std::vector<std::string> arguments = {"-c", kOnTerminal, keys};
  arguments.insert(arguments.end(), command.begin(), command.end());
  return RunProgram("python3", arguments);
}

ProgramResult SampleOnTerminal(const std::string& keys,
                               std::vector<std::string> flags) {
  flags.insert(flags.begin(),
               {"common/lesson/sample", "--devices=cpu:0,cpu:1"});
  return OnTerminal(keys, flags);
}

// A terminal shows the program before the question; with --no_code, in the
// course and in a pipe there is none.
TEST(Runner, ChosenCellsShowTheirProgramOnATerminal) {
  const std::string shown = SampleOnTerminal("2", {"--cell=s/good"}).output;
  ExpectParts(shown, {"A stream is given work", "\n\n--- Here (C++), common/",
                      "HostCallback(", "\n\nPredict: ", "Next: --cell=9.2"});
  EXPECT_THAT(shown, Not(HasSubstr("(Python)")));
  EXPECT_THAT(shown, Not(HasSubstr("Code: --code")));
  ExpectParts(SampleOnTerminal("2", {"--cell=s/good", "--code"}).output,
              {"--- Python --", "--- Here (C++), common/"});
  for (const std::string& output :
       {SampleOnTerminal("2", {"--cell=s/good", "--no_code"}).output,
        OnTerminal("", {"common/lesson/sample_course", "--cell=s/good",
                        "--devices=cpu:0"})
            .output,
        Sample({"--cell=s/good"}).output}) {
    EXPECT_THAT(output, Not(HasSubstr("Here (C++)")));
  }
}

TEST(Runner, ALessonOnATerminalShowsThePicture) {
  constexpr char kPicture[] =
      "\n\n+------+   +======+\n| call |-->| work |\n+------+   +======+\n\n";
  ExpectParts(SampleOnTerminal("2", {"--cell=s/good"}).output,
              {"A stream is given work", kPicture, "--- Here (C++)"});
  EXPECT_THAT(Sample({"--cell=s/good"}).output, Not(HasSubstr("+======+")));
}

TEST(Prediction, IsTakenByAKeyAndRepeatedBelowTheVerdicts) {
  const std::string path = TempPath("predicted.json");
  const ProgramResult r = SampleOnTerminal(
      "2|1", {"--cell=s/good,s/after,s/wrong", "--json=" + path});
  EXPECT_EQ(r.exit_code, 1) << "s/wrong is wrong";
  ExpectParts(
      r.output,
      {"\n\nPredict: How long does it take?\n"
       "  1  no time\n"
       "  2  two milliseconds, which is long enough for this choice to be "
       "wrapped as\n"
       "     well\n"
       "  3  a second\n"
       "Press 1-3 (Enter skips): 2\n\nsize 2,",
       "FAILS  ", "It is not.\nYou predicted 2: right.\n\nYou learn: ",
       // A cell without a question.
       "[s/wrong]\n\nA wrong result.\n\n",
       // Choices without a right one, and a cell without claims.
       "Predict: Does it run?\n  1  it does\n  2  no\n"
       "Press 1-2 (Enter skips): 1\n\n",
       "all is well\n\nYou predicted 1: it does.\n", "terminal: lines\n"});
  const Json cells = Json::parse(ReadFile(path))["cells"];
  ASSERT_EQ(cells.size(), 3u);
  EXPECT_EQ(cells[0]["predicted"], 2);
  EXPECT_EQ(cells[0]["choices"].size(), 3u);
  EXPECT_EQ(cells[0]["output"], "size 2, \"quoted\" \\n\n");
  EXPECT_EQ(cells[1]["predicted"], 0);
  EXPECT_EQ(cells[2]["predicted"], 1);
  fs::remove(path);
}

TEST(Prediction, AWrongOneIsToldWhatIsRight) {
  EXPECT_THAT(SampleOnTerminal("3", {"--cell=s/good"}).output,
              HasSubstr("\nYou predicted 3: a second. Right is 2: two "
                        "milliseconds, which is long enough\nfor this choice "
                        "to be wrapped as well.\n\nYou learn: "));
}

TEST(Prediction, EnterSkipsOne) {
  const ProgramResult r = SampleOnTerminal("\n|2", {"--cell=s/good,s/after"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  ExpectParts(r.output, {"skips): \n\nsize 2,", "skips): 2\n\n", "all is well",
                         "\nYou predicted 2: no.\n"});
  EXPECT_EQ(r.output.find("You predicted"), r.output.rfind("You predicted"));
}

TEST(Prediction, EnterPressedTwiceSkipsOne) {
  const ProgramResult r =
      SampleOnTerminal("\n\n|1\n\n", {"--cell=s/good,s/after"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  ExpectParts(r.output, {"skips): \n\nsize 2,", "skips): 1\n\n", "all is well",
                         "\nYou predicted 1: it does.\n"});
}

// Whoever types a word does not mean its second letter.
TEST(Prediction, AKeySoonAfterAWrongOneIsDropped) {
  ProgramResult r;
  for (int i = 0; i < 20; ++i) {
    r = SampleOnTerminal("x~1|2", {"--cell=s/good"});
    if (r.output.find("typed early: True") != std::string::npos) break;
  }
  ExpectParts(r.output, {"skips): x\n\"x\" is not one of", "skips): 2\n\n",
                         "You predicted 2: right", "typed early: True"});
}

TEST(Prediction, AKeyThatIsNoChoiceIsAskedForAgain) {
  // Too large, none, a letter, an arrow key; at last a number and Enter.
  const ProgramResult r =
      SampleOnTerminal("4|0|x|\033[A|1\n", {"--cell=s/good"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  ExpectParts(
      r.output,
      {"skips): 4\n\"4\" is not one of 1-3. Ctrl-D skips all questions.\n"
       "Press 1-3 (Enter skips): 0\n\"0\" is not one of",
       "skips): x\n\"x\" is not one of", "\"\\x1b[A\" is not one of",
       "skips): 1\n\nsize 2,", "You predicted 1: no time. Right is 2: "});
}

TEST(Prediction, TheEndOfTheInputSkipsAll) {
  const ProgramResult r = SampleOnTerminal("\004", {"--cell=s/good,s/after"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  ExpectParts(r.output, {"skips): ", "size 2,", "[s/after]",
                         "\n\nPredict: Does it run?\n\n", "all is well\n",
                         "terminal: lines\n"});
  EXPECT_THAT(r.output, Not(HasSubstr("You predicted")));
}

TEST(Prediction, CtrlCLeavesTheTerminalAsItWas) {
  const ProgramResult r = SampleOnTerminal("\003", {"--cell=s/good"});
  EXPECT_EQ(r.exit_code, 130) << r.output;
  ExpectParts(r.output, {"skips): ", "Interrupted.\n", "terminal: lines\n"});
}

TEST(Prediction, CtrlBackslashLeavesTheTerminalAsItWas) {
  const ProgramResult r = SampleOnTerminal("\034", {"--cell=s/good"});
  EXPECT_EQ(r.exit_code, 128 + SIGQUIT) << r.output;
  ExpectParts(r.output, {"skips): ", "terminal: lines\n"});
}

TEST(Prediction, IsMadeInChinese) {
  const ProgramResult r =
      SampleOnTerminal("5|3", {"--cell=s/good", "--lang=zh"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  ExpectParts(r.output, {"预测：要多久？\n  1  不需要时间\n  2  两毫秒\n",
                         "按1-3（回车跳过）：5\n", "\"5\"不是1-3之一。",
                         "你的预测是3：一秒。正确的是2：两毫秒。\n"});
}

// With the flag, in the background and in a pipe only the question is printed,
// and the program does not wait. The course prints no question.
TEST(Prediction, IsNotAskedForOtherwise) {
  for (const ProgramResult& r :
       {SampleOnTerminal("", {"--cell=s/good", "--no_predict"}),
        OnTerminal("", {"/bin/bash", "-c",
                        "set -m; common/lesson/sample --cell=s/good "
                        "--devices=cpu:0 & wait"}),
        Sample({"--cell=s/good"}),
        Shell("echo 2 | common/lesson/sample --cell=s/good --devices=cpu:0")}) {
    EXPECT_EQ(r.exit_code, 0) << r.output;
    EXPECT_THAT(r.output,
                HasSubstr("\n\nPredict: How long does it take?\n\nsize "));
    EXPECT_THAT(r.output, Not(HasSubstr("You predicted")));
  }
  const ProgramResult course = OnTerminal(
      "", {"common/lesson/sample_course", "--cell=s/good", "--devices=cpu:0"});
  EXPECT_EQ(course.exit_code, 0) << course.output;
  EXPECT_THAT(course.output, Not(HasSubstr("Predict")));
}

// On a terminal the runner reports a cell that takes long.
TEST(Runner, SaysWhatRunsForLong) {
  const ProgramResult r =
      SampleOnTerminal("", {"--cell=s/long", "--size=course"});
  EXPECT_THAT(r.output, HasSubstr("9.12 (cell 1 of 1): 2 s ...")) << r.output;
  EXPECT_THAT(Sample({"--cell=s/long"}).output, Not(HasSubstr("2 s ...")));
}

struct BadFlag {
  const char* name;
  std::vector<std::string> flags;
  // Parts of the message: what was requested, and what to do.
  std::vector<std::string> said;
};

void PrintTo(const BadFlag& flag, std::ostream* out) { *out << flag.name; }

class BadFlagTest : public ::testing::TestWithParam<BadFlag> {};

TEST_P(BadFlagTest, EndsWithAnExplanation) {
  std::vector<std::string> flags = GetParam().flags;
  const bool names_cell = std::any_of(
      flags.begin(), flags.end(),
      [](const std::string& flag) { return flag.find("--cell") == 0; });
  if (!names_cell) flags.push_back("--cell=s/after");
  const ProgramResult r = Sample(flags);
  EXPECT_EQ(r.exit_code, 1) << r.output;
  for (const std::string& text : GetParam().said) {
    EXPECT_THAT(Unwrapped(r.output), HasSubstr(text));
  }
  EXPECT_THAT(r.output, Not(HasSubstr("all is well")));
}

INSTANTIATE_TEST_SUITE_P(
    Runner, BadFlagTest,
    ::testing::Values(
        BadFlag{"UnknownDevice", {"--devices=tpu:0"}, {"Error: ", "tpu:0"}},
        BadFlag{"MalformedDevice", {"--devices=cpu:x"}, {"Error: ", "cpu:x"}},
        BadFlag{"EmptyDevice", {"--devices=cpu:0,,cpu:1"}, {"Error: "}},
        BadFlag{"NoDevice", {"--devices="}, {"Error: "}},
        BadFlag{"GapInTheList",
                {"--devices=cpu:1"},
                {"cpu:1 asked for", "--devices=cpu:0,cpu:1"}},
        BadFlag{"AbsentGpu", {"--devices=cuda:99"}, {"cuda:99 asked for"}},
        BadFlag{"MoreGpusThanThereAre",
                {"--devices=cpu:0", "--require_gpus=1"},
                {"1 GPU required", "cpu:0 (virtual"}},
        BadFlag{"NegativeGpus",
                {"--require_gpus=-1"},
                {"--require_gpus=-1 asked for"}},
        BadFlag{"QueueOfNone",
                {"--max_queued_operations=0"},
                {"--max_queued_operations=0 asked for",
                 "Say --max_queued_operations=1 or more."}},
        BadFlag{"NoBytes",
                {"--max_bytes_in_flight=0"},
                {"--max_bytes_in_flight=0 asked for"}},
        BadFlag{"NoNumber",
                {"--max_queued_operations=many"},
                {"many", "max_queued_operations"}},
        BadFlag{"TooManyOperations",
                {"--max_queued_operations=9000000000000000000"},
                {"Error: ", "9000000000000000000"}},
        BadFlag{"TwoValues",
                {"--json=a", "-json", "b"},
                {"--json=a and --json=b asked for; a flag has one value."}},
        BadFlag{"YesAndNo",
                {"--code", "--nocode"},
                {"--code=true and --code=false asked for"}},
        BadFlag{"UnknownLanguage",
                {"--lang=fr"},
                {"--lang=fr asked for; there are en (English) and zh (Chinese)",
                 "Say --lang=en."}},
        BadFlag{"UnknownSize",
                {"--size=huge"},
                {"--size=huge asked for; there are small, course and large. "
                 "Say --size=small."}},
        BadFlag{"NegativePace",
                {"--pace=-1"},
                {"--pace=-1 asked for; it is auto or a number from 0 to 100. "
                 "Say --pace=4."}},
        BadFlag{"NoPace", {"--pace=fast"}, {"--pace=fast asked for"}},
        BadFlag{"MinTime",
                {"--min_time=-1"},
                {"--min_time=-1 asked for; it is a number of seconds from 0 to "
                 "60. Say --min_time=1."}},
        BadFlag{"NoMinTime", {"--min_time=nan"}, {"--min_time=nan asked for"}},
        BadFlag{"UnknownLink",
                {"--link=usb"},
                {"--link=usb asked for, with 2 devices; there are pcie, "
                 "nvlink, nvswitch, dgx1 (8 devices at most)",
                 "Say --link=pcie, or --link=12.5e9,5e-6"}},
        BadFlag{
            "LinkWithoutSpeed", {"--link=0,1e-6"}, {"--link=0,1e-6 asked for"}},
        BadFlag{
            "UnknownCell",
            {"--cell=s/after,s/nothing"},
            {"--cell=s/nothing asked for; there are 9.1 s/good, 9.2 s/wrong",
             "Did you mean --cell=s/"}},
        BadFlag{"CellInTheWrongCase",
                {"--cell=T/GOOD"},
                {"--cell=T/GOOD asked for", "Did you mean --cell=t/good?"}},
        BadFlag{"ControlCharacters",
                {"--cell=\x1b[2J"},
                {"--cell=\\x1b[2J asked for"}},
        BadFlag{"UnknownNumber",
                {"--cell=9.29"},
                {"--cell=9.29 asked for", "Did you mean --cell=9.2?"}},
        BadFlag{"UnknownFlag",
                {"--sizes=small"},
                {"Error: --sizes=small asked for", "Say --size=small, or"}},
        BadFlag{"NotAFlag", {"small"}, {"\"small\" is not a flag"}},
        BadFlag{
            "SvgIsAFile", {"--svg=/dev/null"}, {"Error: --svg: ", "/dev/null"}},
        BadFlag{"SvgBelowAFile",
                {"--svg=/dev/null/x"},
                {"--svg: cannot make the directory /dev/null/x"}},
        BadFlag{"JsonIsADirectory", {"--json=/"}, {"--json: cannot write /"}},
        BadFlag{
            "TraceIsADirectory", {"--trace=/"}, {"--trace: cannot write /"}},
        BadFlag{"HtmlIsADirectory", {"--html=/"}, {"--html: cannot write /"}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace d2l
