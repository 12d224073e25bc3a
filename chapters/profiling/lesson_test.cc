// Tests what is special to this lesson. Those of every chapter are in
// common/lesson/testing/chapter_tests.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/child_process.h"
#include "common/base/files/atomic_file.h"
#include "common/lesson/testing/lesson_testing.h"
#include "nlohmann/json.hpp"

namespace d2l {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const LessonRun& OneDevice() {
  return RunLesson(Tested(), {"--devices=cpu:0"});
}

Json Cell(const LessonRun& run, const std::string& id) {
  for (const Json& cell : run.json["cells"]) {
    if (cell["id"] == id) return cell;
  }
  return {};
}

TEST(Lesson, PrintsPyTorchsColumnsWithVerbose) {
  const std::vector<std::string> arguments = {"--devices=cpu:0", "--verbose",
                                              "--cell=003/c2"};
  const LessonRun& run = RunLesson(Tested(), arguments);
  EXPECT_THAT(
      run.output,
      ContainsRegex("Name +Self CPU % +Self CPU +CPU total % +CPU total +CPU "
                    "time avg +Self Device +Self Device % +Device total "
                    "+Device time avg +# of Calls"));
  EXPECT_THAT(run.output, HasSubstr("Self CPU time total: "));
  EXPECT_THAT(run.output, HasSubstr("Self Device time total: "));
  ExpectEightyColumns(run);
}

TEST(Lesson, PrintsHowLongEnqueueingAndWorkingTook) {
  EXPECT_THAT(OneDevice().output,
              ContainsRegex("calls +CPU, enqueueing +Device, working\n"
                            "  transpose +100 .* each +-\n"
                            "  matmul +100 .* each .* each\n"));
}

// The cell repeats little, so that the README's trace stays small.
TEST(Lesson, TheTraceOfTheFirstProfileIsSmall) {
  const std::string trace = ::testing::TempDir() + "/small.trace.json";
  const ProgramResult run = RunProgram(
      "chapters/profiling/lesson",
      {"--devices=cpu:0", "--cell=003/c2", absl::StrCat("--trace=", trace)});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_LT(std::filesystem::file_size(trace), 8'000'000);
  std::filesystem::remove(trace);
}

TEST(Lesson, ShowsATimelineAndACurve) {
  std::vector<std::string> names;
  for (const Json& cell : OneDevice().json["cells"]) {
    for (const Json& drawing : cell["drawings"]) {
      names.push_back(drawing["name"]);
    }
  }
  EXPECT_THAT(names, testing::IsSupersetOf(
                         {"timeline", "latency by size", "time by n"}));
}

TEST(Lesson, ColdFiguresAreOfFreshProcesses) {
  for (const char* id : {"003/c5", "003/c9"}) {
    int fresh = 0;
    const Json cell = Cell(OneDevice(), id);
    for (const Json& figure : cell["figures"]) {
      if (figure.dump().find("fresh processes") != std::string::npos) ++fresh;
    }
    EXPECT_EQ(fresh, 4) << id;
  }
}

TEST(Lesson, TheLoopAndTheStackedProductAreEqual) {
  EXPECT_THAT(OneDevice().output, HasSubstr("\nTrue\n"));
}

// Small sizes are smaller than those that a learner gets.
TEST(Lesson, RunsHardwareAtTheSizeOfTheCourse) {
  const ProgramResult run = RunProgram(
      "chapters/profiling/lesson", {"--devices=cpu:0",
                                    "--cell=d2l/hw-bandwidth,d2l/hw-packets,"
                                    "d2l/hw-storage"});
  EXPECT_EQ(run.exit_code, 0) << run.output;
}

TEST(Lesson, WritesATraceAndAPage) {
  const std::string trace = ::testing::TempDir() + "/profiling.trace.json";
  const std::string page = ::testing::TempDir() + "/profiling.html";
  const ProgramResult run = RunProgram(
      "chapters/profiling/lesson",
      {"--devices=cpu:0", "--size=small", "--cell=003/c2",
       absl::StrCat("--trace=", trace), absl::StrCat("--html=", page)});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  const Json events = Json::parse(ReadFile(trace))["traceEvents"];
  int requests = 0, work = 0, arrows = 0;
  for (const Json& event : events) {
    if (event["ph"] == "s") ++arrows;
    if (event["ph"] != "X" || event["name"] != "matmul") continue;
    (event["pid"] == 1 ? requests : work) += 1;
  }
  EXPECT_GE(requests, 100);
  EXPECT_EQ(work, requests) << "the device's part of each";
  EXPECT_GE(arrows, work);
  EXPECT_THAT(ReadFile(page), HasSubstr("003/c2"));
  std::filesystem::remove(trace);
  std::filesystem::remove(page);
}

TEST(Benchmarks, AnAbsentDeviceIsSkippedWithItsName) {
  ExpectBenchmarkSkipped(Tested(), "c9.*device:cuda", "cuda:0");
}

}  // namespace
}  // namespace d2l
