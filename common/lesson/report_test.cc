#include "common/lesson/report.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "common/base/statistics.h"
#include "common/device/backend.h"
#include "common/device/device_table.h"
#include "common/lesson/cell.h"
#include "common/lesson/judge.h"
#include "nlohmann/json.hpp"

namespace d2l {
namespace {

using Json = nlohmann::json;

DeviceInfo Info(const std::string& name, DeviceKind kind, int physical = 0) {
  DeviceInfo info;
  info.device = Device::Parse(name).value();
  info.kind = kind;
  info.physical_index = physical;
  return info;
}

LessonResult SampleResult() {
  CellResult cell;
  cell.id = "004/In4";
  cell.also = {"001/c3"};
  cell.figures = {
      {"ten products", "enqueue", "cpu:0, virtual", "s",
       Summarize({1e-5, 1e-5, 1e-5, 1.1e-5, 1e-5, 1e-5, 2e-5, 1e-5, 1e-5})},
      {"ten products", "completion", "cpu:0, virtual", "s", Exactly(0.25)},
      {"the host library", "completion", "host", "s", Exactly(0.5)},
      {"a figure with a name that is rather longer than its column", "", "",
       "x", Exactly(2)}};
  cell.claims = {
      {"this is the true cost",
       {Verdict::kHolds, "0.25 s against 10 us.", "250 ms, 10.0 us"}},
      {"\"quoted\"", {Verdict::kFails, std::string("\xff\n", 2)}},
      {"third", {}}};
  cell.drawings = {{"z = x", "d/z.svg"}};
  cell.course_printed = "numpy: 0.2660 sec\ntorch: 0.0010 sec";
  return {
      "async_computation",
      {Info("cpu:0", DeviceKind::kVirtual), Info("cuda:0", DeviceKind::kReal)},
      {cell},
      {"TF32 is allowed."}};
}

// Every member, and none besides.
TEST(LessonJson, HasExactlyThisShape) {
  Json expected;
  expected["lesson"] = "async_computation";
  expected["notes"] = {"TF32 is allowed."};
  expected["devices"] = {{{"name", "cpu:0"}, {"kind", "virtual"}},
                         {{"name", "cuda:0"}, {"kind", "real"}}};
  Json cell;
  cell["id"] = "004/In4";
  cell["also"] = {"001/c3"};
  const auto figure = [](const char* name, const char* unit, double median,
                         double low, double high) {
    return Json{{"name", name},
                {"unit", unit},
                {"median", median},
                {"low", low},
                {"high", high}};
  };
  cell["figures"] = {
      figure("ten products, enqueue (cpu:0, virtual)", "s", 1e-5, 1e-5, 1.1e-5),
      figure("ten products, completion (cpu:0, virtual)", "s", 0.25, 0.25,
             0.25),
      figure("the host library, completion (host)", "s", 0.5, 0.5, 0.5),
      figure("a figure with a name that is rather longer than its column", "x",
             2, 2, 2)};
  const auto claim = [](const char* text, const char* verdict,
                        const char* reason) {
    return Json{{"text", text}, {"verdict", verdict}, {"reason", reason}};
  };
  cell["claims"] = {
      claim("this is the true cost", "HOLDS", "0.25 s against 10 us."),
      claim("\"quoted\"", "FAILS", "\xef\xbf\xbd\n"),
      claim("third", "INCONCLUSIVE", "")};
  cell["drawings"] = {{{"name", "z = x"}, {"file", "d/z.svg"}}};
  expected["cells"] = {cell};
  EXPECT_EQ(Json::parse(LessonJson(SampleResult())), expected);
}

TEST(LessonJson, EmptyListsAreLists) {
  const Json json =
      Json::parse(LessonJson({"x", {}, {{"s/1", {}, {}, {}, 0}}, {}}));
  EXPECT_EQ(json["devices"], Json::array());
  EXPECT_EQ(json["cells"][0]["also"], Json::array());
  EXPECT_EQ(json["cells"][0]["figures"], Json::array());
  EXPECT_EQ(json["cells"][0]["claims"], Json::array());
  EXPECT_EQ(json["cells"][0]["drawings"], Json::array());
}

TEST(CourseJson, IsAListOfLessons) {
  const Json json = Json::parse(CourseJson({SampleResult(), SampleResult()}));
  EXPECT_EQ(json.size(), 1u);
  ASSERT_EQ(json["lessons"].size(), 2u);
  EXPECT_EQ(json["lessons"][1], Json::parse(LessonJson(SampleResult())));
  EXPECT_EQ(Json::parse(CourseJson({}))["lessons"], Json::array());
}

TEST(FiguresText, EnqueueAndCompletionAreColumns) {
  const std::string text = FiguresText(SampleResult().cells[0]);
  std::istringstream lines(text);
  std::vector<std::string> rows;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
    rows.push_back(line);
  }
  ASSERT_EQ(rows.size(), 5u) << text;
  const std::size_t enqueue_ends = rows[0].find("enqueue") + 7;
  EXPECT_EQ(rows[1].find("ten products (cpu:0, virtual)"), 0u) << text;
  EXPECT_EQ(rows[1].find("10.0 us [10.0, 11.0]") + 20, enqueue_ends) << text;
  EXPECT_EQ(rows[1].find("250 ms") + 6, rows[0].size()) << text;
  EXPECT_EQ(rows[2].find("500 ms") + 6, rows[0].size()) << text;
  EXPECT_EQ(rows[4].find("2.00x") + 5, rows[0].size()) << text;
  EXPECT_EQ(FiguresText({}), "");
}

TEST(ClaimsText, EveryVerdictStandsOut) {
  const std::string text = ClaimsText(SampleResult().cells[0]);
  EXPECT_NE(text.find("HOLDS         this is the true cost\n"
                      "              0.25 s against 10 us.\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("FAILS         \"quoted\""), std::string::npos);
  EXPECT_NE(text.find("INCONCLUSIVE  third"), std::string::npos);
}

TEST(CountsText, Counts) {
  EXPECT_EQ(CountsText({SampleResult()}),
            "1 cell, 3 claims: 1 HOLDS, 1 FAILS, 1 INCONCLUSIVE.");
  EXPECT_EQ(CountsText({}),
            "0 cells, 0 claims: 0 HOLDS, 0 FAILS, 0 INCONCLUSIVE.");
}

TEST(VerdictTable, HasARowForEachClaim) {
  const std::string text = VerdictTable({SampleResult()}, 80);
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    EXPECT_LE(line.size(), 80u) << line;
    lines.push_back(line);
  }
  const std::string rule(80, '-');
  ASSERT_GE(lines.size(), 9u) << text;
  EXPECT_EQ(
      lines[0],
      "Cell    Claim                     The course       Here     Verdict"
      "      Device");
  EXPECT_EQ(lines[1], rule);
  EXPECT_EQ(
      lines[2],
      "004/In4 this is the true cost     numpy: 0.2660    250 ms,  HOLDS  "
      "      real");
  EXPECT_EQ(
      lines[3],
      "                                  sec; torch:      10.0 us         "
      "      virtual")
      << text;
}

TEST(VerdictTable, BreaksALongIdBehindAHyphen) {
  LessonResult lesson = SampleResult();
  lesson.cells[0].id = "000/launch-blocking";
  const std::string text = VerdictTable({lesson}, 80);
  EXPECT_NE(text.find("\n000/launch-  this is"), std::string::npos) << text;
  EXPECT_NE(text.find("\nblocking     "), std::string::npos) << text;
}

TEST(VerdictTable, IsAListWhereThereIsNoRoom) {
  EXPECT_EQ(VerdictTable({}, 40), "");
  const std::string text = VerdictTable({SampleResult()}, 40);
  EXPECT_EQ(text.find("Cell        004/In4\n"
                      "Claim       this is the true cost\n"
                      "The course  numpy: 0.2660 sec; torch:\n"
                      "            0.0010 sec\n"
                      "Here        250 ms, 10.0 us\n"
                      "Verdict     HOLDS\n"),
            0u)
      << text;
}

TEST(VerdictTable, CutsWhatTheCoursePrintedShort) {
  LessonResult lesson = SampleResult();
  lesson.cells[0].course_printed = "a page " + std::string(500, 'x');
  const std::string text = VerdictTable({lesson}, 80);
  EXPECT_NE(text.find("a page ..."), std::string::npos) << text;
  EXPECT_EQ(text.find("xxx"), std::string::npos) << text;
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
            "on cuda:0 and cuda:1; times are marked \"logical\". To insist on "
            "hardware: --require_gpus=2.");
  EXPECT_EQ(DevicesNote(1, {Info("cpu:0", DeviceKind::kVirtual)}, none),
            "This lesson uses 1 GPU; found 0. Running on cpu:0; times are "
            "marked \"virtual\". To insist on hardware: --require_gpus=1.");
  EXPECT_EQ(DevicesNote(1, {Info("cpu:0", DeviceKind::kVirtual)}, one),
            "This lesson uses 1 GPU; found 1 (cuda:0, NVIDIA H200). Running "
            "on cpu:0; times are marked \"virtual\". To run on GPUs leave out "
            "--devices.");
  EXPECT_EQ(DevicesNote(2,
                        {Info("cuda:0", DeviceKind::kReal, 0),
                         Info("cuda:1", DeviceKind::kReal, 1)},
                        one),
            "");
}

}  // namespace
}  // namespace d2l
