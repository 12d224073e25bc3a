// The lesson from outside: results, ids and exit code on one, two and three
// devices; what it prints of itself. Never speed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "common/lesson/run_program.h"
#include "nlohmann/json.hpp"

namespace d2l {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr char kLesson[] = "chapters/async_computation/lesson";
constexpr char kBenchmarks[] = "chapters/async_computation/benchmarks";

struct CellIds {
  const char* id;
  std::vector<std::string> also;
  int claims;
};

const std::vector<CellIds>& Cells() {
  static const auto& cells = *new std::vector<CellIds>{
      {"004/In2", {"001/c3"}, 1}, {"004/In4", {}, 2}, {"004/In5", {}, 3}};
  return cells;
}

class LessonTest : public ::testing::TestWithParam<const char*> {};

TEST_P(LessonTest, ResultsAreRight) {
  const std::string path = ::testing::TempDir() + "/async_computation.json";
  const ProgramResult r =
      RunProgram(kLesson, {"--size=small", "--json=" + path,
                           std::string("--devices=") + GetParam()});
  ASSERT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("tensor([[3., 3.]], device='cpu:0')\n"));
  EXPECT_THAT(r.output, HasSubstr("0 wrong results, 0 errors."));
  EXPECT_THAT(r.output, Not(HasSubstr("WRONG RESULT")));

  const Json json = Json::parse(ReadFile(path));
  std::filesystem::remove(path);
  EXPECT_EQ(json["lesson"], "async_computation");
  const std::string devices = GetParam();
  EXPECT_EQ(json["devices"].size(),
            std::count(devices.begin(), devices.end(), ',') + 1u);
  ASSERT_EQ(json["cells"].size(), Cells().size());
  for (std::size_t i = 0; i < Cells().size(); ++i) {
    const Json& cell = json["cells"][i];
    EXPECT_EQ(cell["id"], Cells()[i].id);
    EXPECT_EQ(cell["also"], Json(Cells()[i].also));
    EXPECT_EQ(cell["claims"].size(),
              static_cast<std::size_t>(Cells()[i].claims))
        << cell;
    EXPECT_GE(cell["figures"].size(), 2u);
    for (const Json& figure : cell["figures"]) {
      EXPECT_LE(figure["low"], figure["median"]) << figure;
      EXPECT_LE(figure["median"], figure["high"]) << figure;
      EXPECT_GT(figure["low"], 0) << figure;
      const std::string name = figure["name"];
      EXPECT_TRUE(name.find("virtual") != std::string::npos ||
                  name.find("host") != std::string::npos)
          << name;
    }
    for (const Json& claim : cell["claims"]) EXPECT_NE(claim["reason"], "");
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, LessonTest,
                         ::testing::Values("cpu:0", "cpu:0,cpu:1",
                                           "cpu:0,cpu:1,cpu:2"),
                         [](const auto& info) {
                           return std::to_string(info.index + 1);
                         });

// What stands between the marks, and no more than one can read at a time.
TEST(Lesson, PrintsItsSourceByteForByte) {
  const std::string file = ReadFile("chapters/async_computation/lesson.cc");
  const ProgramResult r =
      RunProgram(kLesson, {"--size=small", "--devices=cpu:0"});
  for (const CellIds& cell : Cells()) {
    const std::string mark = std::string("// %% ") + cell.id + "\n";
    const std::size_t begin = file.find(mark) + mark.size();
    const std::size_t end = file.find("// %%\n", begin);
    ASSERT_NE(end, std::string::npos) << cell.id;
    const std::string source = file.substr(begin, end - begin);
    EXPECT_THAT(r.output, HasSubstr(source));
    EXPECT_LE(std::count(source.begin(), source.end(), '\n'), 45) << cell.id;
  }
}

TEST(Lesson, RunsOneCellByAnyOfItsIds) {
  const ProgramResult r =
      RunProgram(kLesson, {"--size=small", "--devices=cpu:0", "--cell=001/c3"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("004/In2 (also 001/c3)"));
  EXPECT_THAT(r.output, Not(HasSubstr("004/In4")));
}

TEST(Lesson, KeepsToEightyColumns) {
  std::istringstream lines(
      RunProgram(kLesson, {"--size=small", "--devices=cpu:0"}).output);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(Lesson, LaunchBlockingChangesNoResult) {
  const ProgramResult r = RunProgram(
      kLesson, {"--size=small", "--devices=cpu:0", "--launch_blocking"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("tensor([[3., 3.]], device='cpu:0')\n"));
}

TEST(Lesson, QueueOfOneChangesNoResult) {
  const ProgramResult r = RunProgram(
      kLesson,
      {"--size=small", "--devices=cpu:0", "--max_queued_operations=1"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("tensor([[3., 3.]], device='cpu:0')\n"));
}

TEST(Benchmarks, MirrorTheCells) {
  const ProgramResult r =
      RunProgram(kBenchmarks, {"--benchmark_list_tests", "--devices=cpu:0"});
  ASSERT_EQ(r.exit_code, 0) << r.output;
  for (const CellIds& cell : Cells()) {
    std::string id = cell.id;
    std::replace(id.begin(), id.end(), '/', '_');
    for (const char* device : {"cpu:0", "cuda:0"}) {
      EXPECT_THAT(r.output, ::testing::ContainsRegex(
                                "BM_" + id + "_[A-Za-z_]+/device:" + device));
    }
  }
}

TEST(Benchmarks, AnAbsentDeviceIsSkippedWithItsName) {
  const ProgramResult r = RunProgram(
      kBenchmarks, {"--devices=cpu:0", "--benchmark_filter=In5.*cuda",
                    "--benchmark_min_time=0.001"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("there is no cuda:0"));
}

}  // namespace
}  // namespace d2l
