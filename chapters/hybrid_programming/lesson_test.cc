// Tests what is special to this lesson. Those of every chapter are in
// common/lesson/testing/chapter_tests.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/child_process.h"
#include "common/lesson/testing/lesson_testing.h"

namespace d2l {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const LessonRun& OnOneDevice() {
  return RunLesson(Tested(), {"--devices=cpu:0"});
}

// All claims, of which the output shows two for each cell.
std::string Claims() {
  std::string claims;
  for (const auto& cell : OnOneDevice().json["cells"]) {
    for (const auto& claim : cell["claims"]) {
      claims += claim["verdict"].get<std::string>() + "  " +
                claim["meaning"].get<std::string>() + "\n";
    }
  }
  return claims;
}

TEST(Lesson, CompilersLeaveTheConstantOfTheText) {
  const std::string& output = OnOneDevice().output;
  EXPECT_THAT(output, HasSubstr("return fancy_func(1, 2, 3, 4); }\n"
                                "Output:  10\n"));
  EXPECT_THAT(output, ContainsRegex("-O2:     .*10.*;.*\n"));
  EXPECT_THAT(output, ContainsRegex("HOLDS  -O2 leaves [0-9]+ instructions"));
  EXPECT_THAT(Claims(), HasSubstr("HOLDS  The passes leave 0 of the traced"));
}

TEST(Lesson, TheCompiledProgramKeepsNeitherENorF) {
  EXPECT_THAT(OnOneDevice().output,
              HasSubstr("HOLDS  Keeping e and f takes 3.00x the memory"));
}

TEST(Lesson, RefusesAReadAndFreezesAFlag) {
  const std::string& output = OnOneDevice().output;
  EXPECT_THAT(output, HasSubstr("HOLDS  Of three calls 1 printed"));
  EXPECT_THAT(output, HasSubstr("HOLDS  A read in Forward was refused"));
  EXPECT_THAT(Claims(), HasSubstr("HOLDS  A changed flag changes 0 of 2"));
  EXPECT_THAT(output,
              ContainsRegex("chapters/hybrid_programming/networks.cc:"));
}

TEST(Lesson, RunsTheSavedNetworkInAnotherBinary) {
  const std::string& output = OnOneDevice().output;
  EXPECT_THAT(output, HasSubstr("my_mlp.safetensors"));
  EXPECT_THAT(output, HasSubstr("HOLDS  2 of 2 numbers that another binary "
                                "computes are"));
}

// Without a compiler the lesson shows a program's text and runs strips, and
// says so.
TEST(Lesson, NeedsNoCompiler) {
  ProgramOptions options;
  options.time_limit = std::chrono::minutes(2);
  const ProgramResult run = RunProgram(
      "chapters/hybrid_programming/lesson",
      {"--devices=cpu:0", "--size=small", "--cell=001/c2,d2l/fused-chain"},
      {"PATH=/empty", "CXX", "XDG_CACHE_HOME=" + testing::TempDir()}, options);
  EXPECT_EQ(run.failure, "") << run.output;
  EXPECT_THAT(run.output, HasSubstr("int g = add(e, f);"));
  EXPECT_THAT(run.output,
              HasSubstr("Nothing was compiled: there is no C++ compiler"));
  EXPECT_THAT(run.output, HasSubstr("INCONCLUSIVE  -O2 leaves ? instructions"));
  EXPECT_THAT(run.output, HasSubstr("No generated C++: there is no C++"));
  EXPECT_THAT(run.output, Not(HasSubstr("ERROR")));
}

}  // namespace
}  // namespace d2l
