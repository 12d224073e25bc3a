// Judges all linked answers: a chapter's solutions, its untouched exercises and
// the typical mistakes. exercise.bzl makes a test of it.

#include <cstddef>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::HasSubstr;

// The text without its line breaks.
std::string OneLine(std::string text) {
  absl::RemoveExtraAsciiWhitespace(&text);
  return text;
}

// The hint.
std::string LastParagraph(const std::string& text) {
  const std::size_t end = text.rfind("\n\n");
  return end == std::string::npos ? text : text.substr(end);
}

// The figures that a judge has beside those of a right kernel are still those
// of the solution, which is judged here.
void ExpectFiguresOfTheSolution(const std::string& text, bool is_kernel) {
  int figures = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    const std::size_t n = words.size();
    if (n < 4 || words[n - 2] != "solution") continue;
    EXPECT_EQ(words[n - 3], words[n - 1]) << line;
    ++figures;
  }
  EXPECT_EQ(figures > 0, is_kernel) << text;
}

class ExerciseTest : public testing::TestWithParam<std::string> {};

TEST_P(ExerciseTest, IsJudgedAsItShouldBe) {
  int solutions = 0, untouched = 0, mistakes = 0;
  std::set<std::string> messages, looks;
  for (const Answer& answer : Answers()) {
    if (answer.exercise != GetParam()) continue;
    SCOPED_TRACE(answer.file + " " + answer.mistake);
    const Judged judged = JudgeAnswer(answer, /*timed=*/false);
    if (!answer.mistake.empty()) {
      ++mistakes;
      EXPECT_EQ(judged.verdict, ExerciseVerdict::kWrong) << judged.text;
      EXPECT_THAT(OneLine(judged.text), HasSubstr(answer.expected));
      EXPECT_TRUE(messages.insert(answer.expected).second)
          << "another mistake gets this message, too";
      EXPECT_TRUE(looks.insert(LastParagraph(judged.text)).second)
          << "another mistake gets this advice, too: " << judged.text;
    } else if (absl::StrContains(answer.file, "/solutions/")) {
      ++solutions;
      EXPECT_EQ(judged.verdict, ExerciseVerdict::kRight) << judged.text;
      ExpectFiguresOfTheSolution(judged.text,
                                 absl::EndsWith(answer.file, ".cu"));
    } else {
      ++untouched;
      EXPECT_EQ(judged.verdict, ExerciseVerdict::kNotDone) << judged.text;
    }
  }
  EXPECT_EQ(solutions, 1);
  EXPECT_EQ(untouched, 1);
  EXPECT_GE(mistakes, 3);
}

std::set<std::string> Names() {
  std::set<std::string> names;
  for (const Judge& judge : Judges()) names.insert(judge.exercise);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, ExerciseTest, testing::ValuesIn(Names()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

}  // namespace
}  // namespace d2l

int main(int argc, char** argv) {
  const absl::Status status = d2l::InitializeDevices("cpu:0,cpu:1,cpu:2,cpu:3");
  if (!status.ok()) {
    std::cerr << status.message() << "\n";
    return 2;
  }
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
