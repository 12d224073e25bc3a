#include "common/lesson/run/report.h"

#include <gtest/gtest.h>

#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/statistics.h"
#include "common/device/backend.h"
#include "common/device/device_table.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/cell/judge.h"
#include "common/lesson/cell/other_load.h"
#include "nlohmann/json.hpp"

namespace d2l {
namespace {

using Json = nlohmann::json;

DeviceInfo Info(const std::string& name, DeviceKind kind, int physical = 0) {
  DeviceInfo info;
  info.device = Device::Parse(name);
  info.kind = kind;
  info.physical_index = physical;
  return info;
}

LessonResult SampleResult() {
  CellResult cell;
  cell.text = {.id = "004/In4",
               .title = "The true cost",
               .also = {"001/c3"},
               .section = "d2l 13.2.1",
               .exercises = "2",
               .context = "The same, and then we wait.",
               .picture = "[a] --> [b]",
               .python = "\nwork()\n",
               .course_printed = "numpy: 0.2660 sec\ntorch: 0.0010 sec\n",
               .predict = "How long?",
               .choices = {"no time", "a second"},
               .learn = "Wait."};
  cell.number = "2.2";
  cell.predicted = 2;
  cell.figures = {
      {"ten products", "enqueue", "cpu:0, virtual", "s",
       Summarize({1e-5, 1e-5, 1e-5, 1.1e-5, 1e-5, 1e-5, 2e-5, 1e-5, 1e-5})},
      {"ten products", "completion", "cpu:0, virtual", "s", Exactly(0.25)},
      {"the host library", "completion", "host", "s", Exactly(0.5)},
      {"a figure with a name that is rather longer than its column", "", "",
       "x", Exactly(2)}};
  cell.claims = {
      {"It takes {} as long.",
       {Verdict::kHolds, "2.5x", "needs 1.30x or more; 95 %: 2.4-2.6", "why"}},
      {"\"quoted\"",
       {Verdict::kFails, "", std::string("\xff\n", 2), "Asking takes longer."},
       "Asking takes longer."},
      {"third",
       {Verdict::kInconclusive, "1.1x", "needs 1.30x or more", "Noise."}}};
  cell.drawings = {{"z = x", "d/z.svg", "\nz = x\n\n[x]\n"}};
  cell.load = OtherLoad{0.5, 2};
  cell.output = "printed \"this\"\n";
  cell.source = {"void In4();\n", 7, "lesson.cc"};
  cell.measured = {"Time();\n", 9, "lesson.cc"};
  cell.error = "[matmul] inner sizes";
  cell.seconds = 1.5;
  return {
      "async_computation",
      {Info("cpu:0", DeviceKind::kVirtual), Info("cuda:0", DeviceKind::kReal)},
      {cell},
      {"TF32 is allowed."},
      2,
      "Asynchronous computation",
      "D2L 13.2",
      Size::kSmall};
}

// Every member, and no other.
TEST(LessonJson, HasExactlyThisShape) {
  Json expected;
  expected["lesson"] = "async_computation";
  expected["number"] = 2;
  expected["title"] = "Asynchronous computation";
  expected["section"] = "D2L 13.2";
  expected["lang"] = "en";
  expected["size"] = "small";
  expected["notes"] = {"TF32 is allowed."};
  const LessonResult sample = SampleResult();
  expected["devices"] = {{{"name", "cpu:0"},
                          {"kind", "virtual"},
                          {"description", sample.devices[0].Describe()}},
                         {{"name", "cuda:0"},
                          {"kind", "real"},
                          {"description", sample.devices[1].Describe()}}};
  Json cell;
  cell["id"] = "004/In4";
  cell["number"] = "2.2";
  cell["also"] = {"001/c3"};
  cell["title"] = "The true cost";
  cell["section"] = "d2l 13.2.1";
  cell["exercises"] = "2";
  cell["context"] = "The same, and then we wait.";
  cell["picture"] = "[a] --> [b]";
  cell["python"] = "work()";
  cell["course_printed"] = "numpy: 0.2660 sec\ntorch: 0.0010 sec";
  cell["predict"] = "How long?";
  cell["right"] = 0;
  cell["choices"] = {"no time", "a second"};
  cell["predicted"] = 2;
  cell["learn"] = "Wait.";
  cell["source"] = {
      {"file", "lesson.cc"}, {"line", 7}, {"text", "void In4();\n"}};
  cell["measured"] = {
      {"file", "lesson.cc"}, {"line", 9}, {"text", "Time();\n"}};
  cell["output"] = "printed \"this\"\n";
  cell["error"] = "[matmul] inner sizes";
  cell["seconds"] = 1.5;
  const auto figure = [](const char* name, const char* unit, double median,
                         double low, double high) {
    return Json{{"name", name},     {"label", name}, {"unit", unit},
                {"median", median}, {"low", low},    {"high", high}};
  };
  cell["figures"] = {
      figure("ten products, enqueue (cpu:0, virtual)", "s", 1e-5, 1e-5, 1.1e-5),
      figure("ten products, completion (cpu:0, virtual)", "s", 0.25, 0.25,
             0.25),
      figure("the host library, completion (host)", "s", 0.5, 0.5, 0.5),
      figure("a figure with a name that is rather longer than its column", "x",
             2, 2, 2)};
  const auto claim = [](const char* text, const char* verdict,
                        const char* meaning, const char* number,
                        const char* evidence, const char* reason,
                        const char* because) {
    return Json{{"text", text},         {"verdict", verdict},
                {"meaning", meaning},   {"number", number},
                {"evidence", evidence}, {"reason", reason},
                {"because", because}};
  };
  cell["claims"] = {
      claim("It takes {} as long.", "HOLDS", "It takes 2.5x as long.", "2.5x",
            "needs 1.30x or more; 95 %: 2.4-2.6", "why", ""),
      claim("\"quoted\"", "FAILS", "\"quoted\"", "", "\xef\xbf\xbd\n",
            "Asking takes longer.", "Asking takes longer."),
      claim("third", "INCONCLUSIVE", "third", "1.1x", "needs 1.30x or more",
            "Noise.", "")};
  cell["not_asked"] = 0;
  cell["drawings"] = {{{"name", "z = x"},
                       {"label", "z = x"},
                       {"file", "d/z.svg"},
                       {"text", "\nz = x\n\n[x]\n"}}};
  cell["load"] = {{"cores", 0.5}, {"of", 2}};
  expected["cells"] = {cell};
  EXPECT_EQ(Json::parse(LessonJson(SampleResult())), expected);
}

TEST(LessonJson, EmptyListsAreLists) {
  const Json json = Json::parse(LessonJson({"x", {}, {CellResult()}, {}}));
  EXPECT_EQ(json["devices"], Json::array());
  EXPECT_EQ(json["cells"][0]["also"], Json::array());
  EXPECT_EQ(json["cells"][0]["figures"], Json::array());
  EXPECT_EQ(json["cells"][0]["claims"], Json::array());
  EXPECT_EQ(json["cells"][0]["drawings"], Json::array());
  EXPECT_TRUE(json["cells"][0]["load"].is_null());
}

TEST(CourseJson, IsAListOfLessons) {
  const Json json = Json::parse(CourseJson({SampleResult(), SampleResult()}));
  EXPECT_EQ(json.size(), 1u);
  ASSERT_EQ(json["lessons"].size(), 2u);
  EXPECT_EQ(json["lessons"][1], Json::parse(LessonJson(SampleResult())));
  EXPECT_EQ(Json::parse(CourseJson({}))["lessons"], Json::array());
}

TEST(FiguresText, HasALineForEach) {
  const std::string text = FiguresText(SampleResult().cells[0]);
  std::istringstream lines(text);
  std::vector<std::string> rows;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
    rows.push_back(line);
  }
  ASSERT_EQ(rows.size(), 5u) << text;
  EXPECT_EQ(rows[1], "ten products, enqueue (cpu:0, virtual)" +
                         std::string(22, ' ') + "10.0 us [10.0, 11.0]");
  EXPECT_EQ(rows[2].find("250 ms") + 6, 80u) << text;
  EXPECT_EQ(rows[3].find("500 ms") + 6, 80u) << text;
  EXPECT_EQ(rows[4].find("2.00x") + 5, 80u) << text;
  EXPECT_EQ(FiguresText({}), "");
}

TEST(ClaimsText, HasMeaningEvidenceAndReason) {
  CellResult cell = SampleResult().cells[0];
  cell.claims[1].judgement.evidence = "counted";
  EXPECT_EQ(
      ClaimsText(cell, /*verbose=*/true),
      "HOLDS  It takes 2.5x as long. (needs 1.30x or more; 95 %: 2.4-2.6)\n"
      "FAILS  \"quoted\" (counted)\n"
      "       Asking takes longer.\n"
      "INCONCLUSIVE  third (1.1x; needs 1.30x or more)\n"
      "       Noise.\n");
  EXPECT_EQ(ClaimsText({}, true), "");
}

TEST(ClaimsText, IsShortUnlessVerbose) {
  CellResult cell = SampleResult().cells[0];
  cell.claims[1].judgement.evidence = "needs 1.30x or more";
  EXPECT_EQ(ClaimsText(cell, /*verbose=*/false),
            "HOLDS  It takes 2.5x as long.\n"
            "FAILS  \"quoted\"\n"
            "       Asking takes longer.\n"
            "1 more claim: --verbose\n");
  // A claim that fails by little shows by how much; one that holds does not.
  cell.claims.pop_back();
  for (Claimed& claim : cell.claims) claim.judgement.close = true;
  EXPECT_EQ(ClaimsText(cell, /*verbose=*/false),
            "HOLDS  It takes 2.5x as long.\n"
            "FAILS  \"quoted\" (needs 1.30x or more)\n"
            "       Asking takes longer.\n");
}

TEST(PredictionText, SaysWhatIsRightWhereThatIsKnown) {
  CellResult cell = SampleResult().cells[0];
  EXPECT_EQ(PredictionText(cell), "You predicted 2: a second.\n");
  cell.text.right = 2;
  EXPECT_EQ(PredictionText(cell), "You predicted 2: right.\n");
  cell.text.right = 1;
  EXPECT_EQ(PredictionText(cell),
            "You predicted 2: a second. Right is 1: no time.\n");
  cell.predicted = 0;
  EXPECT_EQ(PredictionText(cell), "");
}

TEST(LoadText, NamesTheCellsThatOtherProgramsLeftOpen) {
  LessonResult lesson = SampleResult();
  lesson.cells.push_back(lesson.cells[0]);
  lesson.cells[1].number = "2.3";
  lesson.cells[0].load = OtherLoad{1.4, 2};
  lesson.cells[1].load = OtherLoad{1.8, 2};
  // Undisturbed repeats have decided all.
  EXPECT_EQ(LoadText({lesson}, 3, true), "");
  EXPECT_EQ(
      LoadText({lesson}, 3, false),
      "Other programs used 1.8 of 2 cores. This kernel does not say which "
      "repeats they disturbed, so all count.");
  lesson.cells[0].claims[2].judgement.disturbed = true;
  EXPECT_EQ(LoadText({lesson}, 3, true),
            "Other programs used 1.4 of 2 cores. When they have ended, run the "
            "undecided cells again: --cell=2.2");
  lesson.cells[1].claims[2].judgement.disturbed = true;
  EXPECT_EQ(LoadText({lesson}, 3, true),
            "Other programs used 1.8 of 2 cores. When they have ended, run the "
            "undecided cells again: --cell=2.2,2.3");
  lesson.cells[0].claims[2].judgement.disturbed = false;
  lesson.cells[1].claims[2].judgement.disturbed = false;
  lesson.cells[0].load = std::nullopt;
  lesson.cells[1].load = OtherLoad{0.1, 2};
  EXPECT_EQ(LoadText({lesson}, 3, false), "") << "that is the usual background";
}

TEST(CourseText, NamesEachClaimByItsCell) {
  LessonResult lesson = SampleResult();
  lesson.cells.push_back(CellResult());
  EXPECT_EQ(
      CourseText({lesson}),
      "     claim                              notebook, d2l     here      "
      "verdict\n"
      "2.2  It takes ... as long.              266 ms, 1.00 ms   2.5x      "
      "HOLDS\n"
      "2.2  \"quoted\"                                                       "
      "FAILS\n"
      "2.2  third                                                1.1x      "
      "INCONCLUSIVE\n");
  EXPECT_EQ(CourseText({}), "");
  // Long texts are cut, and so is a number; a claim beside which nothing was
  // printed has more room.
  CellResult& cell = lesson.cells[0];
  cell.claims = {{"Two devices are faster than one after the other: {}.",
                  {Verdict::kFails, "no measured size", "", ""}}};
  for (const auto& [printed, shown] :
       {std::pair("Self CPU time total: 875.584ms",
                  "than one... 876 ms           "),
        std::pair("a: 0.12 sec\nb: 0.13 sec\nc: 4 sec",
                  "than one... 120 ms, 130 ms..."),
        std::pair("True\n10\n", "than one... True; 10         "),
        std::pair("test acc: 0.83, 3.0 sec/epoch on",
                  "than one after the other     ")}) {
    cell.text.course_printed = printed;
    const std::string text = CourseText({lesson});
    EXPECT_TRUE(
        absl::StrContains(text, absl::StrCat("2.2  Two devices are faster ",
                                             shown, " no mea... FAILS\n")))
        << text;
  }
}

TEST(CountsText, Counts) {
  EXPECT_EQ(CountsText({SampleResult()}),
            "1 cell, 3 claims: 1 HOLDS, 1 FAILS, 1 INCONCLUSIVE.");
  EXPECT_EQ(CountsText({}),
            "0 cells, 0 claims: 0 HOLDS, 0 FAILS, 0 INCONCLUSIVE.");
}

TEST(Circumstances, NamesWhatIsUnusual) {
  const StreamOptions usual;
  StreamOptions narrow;
  narrow.max_queued_operations = 1;
  const DeviceInfo cpu0 = Info("cpu:0", DeviceKind::kVirtual);
  const DeviceInfo cpu1 = Info("cpu:1", DeviceKind::kVirtual);
  const DeviceInfo gpu = Info("cuda:0", DeviceKind::kReal);
  EXPECT_TRUE(
      Circumstances(false, false, false, usual, {cpu0, gpu}, 2).empty());
  EXPECT_TRUE(Circumstances(false, false, false, usual, {gpu}, 1).empty());
  EXPECT_TRUE(Circumstances(false, true, false, usual, {cpu0}, 2).empty())
      << "no device has it";
  EXPECT_EQ(Circumstances(false, true, false, usual, {cpu0, gpu}, 2),
            std::vector<std::string>{
                "TF32 is allowed (--allow_tf32): a GPU may compute float32 "
                "products with 10 bits of each factor."});
  EXPECT_EQ(Circumstances(false, false, true, usual, {gpu}, 1),
            std::vector<std::string>{
                "The profiler records (--trace or --html): each request takes "
                "longer, and so does each time that memory is taken or "
                "returned."});
  EXPECT_EQ(
      Circumstances(true, false, false, narrow, {cpu0, cpu1}, 2),
      (std::vector<std::string>{
          "Launch blocking is on: every call waits.",
          "A queue holds 1 operation (--max_queued_operations): a call waits "
          "until there is room.",
          "2 virtual devices and the program share 2 cores."}));
  EXPECT_EQ(Circumstances(false, false, false, usual, {cpu0}, 1),
            std::vector<std::string>{
                "1 virtual device and the program share 1 core."});
}

TEST(DevicesNote, SaysWhatTheLessonRunsOnInstead) {
  DeviceInventory none;
  DeviceInventory one;
  one.devices = {{"NVIDIA H200", 1, 1, "sm_90"}};

  EXPECT_EQ(DevicesNote(1, {Info("cuda:0", DeviceKind::kReal)}, one), "");
  EXPECT_EQ(DevicesNote(2,
                        {Info("cuda:0", DeviceKind::kLogical),
                         Info("cuda:1", DeviceKind::kLogical)},
                        one),
            "This lesson uses 2 GPUs; found 1 (cuda:0, NVIDIA H200). Running "
            "on cuda:0 and cuda:1 (logical). To insist on hardware: "
            "--require_gpus=2.");
  EXPECT_EQ(DevicesNote(1, {Info("cpu:0", DeviceKind::kVirtual)}, none),
            "This lesson uses 1 GPU; found 0. Running on cpu:0 (virtual). To "
            "insist on hardware: --require_gpus=1.");
  EXPECT_EQ(DevicesNote(1, {Info("cpu:0", DeviceKind::kVirtual)}, one),
            "This lesson uses 1 GPU; found 1 (cuda:0, NVIDIA H200). Running "
            "on cpu:0 (virtual). To run on GPUs leave out --devices.");
  EXPECT_EQ(DevicesNote(2,
                        {Info("cuda:0", DeviceKind::kReal, 0),
                         Info("cuda:1", DeviceKind::kReal, 1)},
                        one),
            "");
}

}  // namespace
}  // namespace d2l
