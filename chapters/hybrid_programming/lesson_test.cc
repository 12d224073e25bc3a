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

TEST(Lesson, CompilersLeaveTheConstantOfTheText) {
  const std::string& output = OnOneDevice().output;
  EXPECT_THAT(output, HasSubstr("return fancy_func(1, 2, 3, 4); }\n"
                                "Output:  10\n"));
  EXPECT_THAT(output, ContainsRegex("-O2:     .*10.*;.*\n"));
  EXPECT_THAT(output, ContainsRegex(
                          "HOLDS  -O2 leaves hardly any instructions: [0-9]+"));
  EXPECT_THAT(Claims(OnOneDevice()),
              HasSubstr("HOLDS  The passes leave none of the traced"));
}

TEST(Lesson, TheCompiledProgramKeepsNeitherENorF) {
  EXPECT_THAT(OnOneDevice().output,
              HasSubstr("HOLDS  Keeping e and f takes more memory than the "
                        "compiled program: 3.00x"));
}

TEST(Lesson, RefusesAReadAndFreezesAFlag) {
  const std::string& output = OnOneDevice().output;
  EXPECT_THAT(output, HasSubstr("HOLDS  Of three calls only one printed: 1."));
  EXPECT_THAT(output, HasSubstr("HOLDS  The read in Forward was refused"));
  EXPECT_THAT(Claims(OnOneDevice()),
              HasSubstr("HOLDS  Changing a flag does not change the program's "
                        "output: 0 of 2"));
  EXPECT_THAT(output,
              ContainsRegex("chapters/hybrid_programming/networks.cc:"));
}

TEST(Lesson, RunsTheSavedNetworkInAnotherBinary) {
  const std::string& output = OnOneDevice().output;
  EXPECT_THAT(output, HasSubstr("my_mlp.safetensors"));
  EXPECT_THAT(output, HasSubstr("HOLDS  Another binary computes the same "
                                "numbers as the network: 2 of 2."));
}

// Without a compiler the lesson shows a program's text and runs strips, and
// says so.
TEST(Lesson, NeedsNoCompiler) {
  ProgramOptions options;
  options.time_limit = std::chrono::minutes(2);
  const ProgramResult run = RunProgram(
      "chapters/hybrid_programming/lesson",
      {"--devices=cpu:0", "--size=small",
       "--cell=001/c2,d2l/fused-chain,d2l/break-even", "--verbose"},
      {"PATH=/empty", "CXX", "XDG_CACHE_HOME=" + testing::TempDir()}, options);
  EXPECT_EQ(run.failure, "") << run.output;
  EXPECT_THAT(run.output, HasSubstr("int g = add(e, f);"));
  EXPECT_THAT(run.output,
              HasSubstr("Nothing was compiled: there is no C++ compiler"));
  EXPECT_THAT(run.output,
              HasSubstr("INCONCLUSIVE  -O2 leaves hardly any instructions: ?"));
  EXPECT_THAT(run.output, HasSubstr("No generated C++: there is no C++"));
  EXPECT_THAT(run.output,
              HasSubstr("INCONCLUSIVE  The C++ compiler has paid for itself"));
  EXPECT_THAT(run.output, Not(HasSubstr("ERROR")));
}

}  // namespace
}  // namespace d2l
