// Compares the lists of chapters and cells, chapters.bzl and every lesson.md,
// with the course's output and the benchmarks' names. README.md says how to add
// a new chapter or cell.

#include <algorithm>
#include <cstddef>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/child_process.h"
#include "common/base/files/atomic_file.h"
#include "common/lesson/testing/lesson_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace d2l {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const Json& Chapters() {
  static const Json& chapters =
      *new Json(Json::parse(ReadFile("chapters/cells.json"))["chapters"]);
  return chapters;
}

std::vector<std::string> Ids(const Json& cells) {
  std::vector<std::string> ids;
  for (const Json& cell : cells) ids.push_back(cell["id"]);
  return ids;
}

std::string Folder(const Json& chapter) {
  return absl::StrCat("chapters/", chapter["name"].get<std::string>());
}

// All texts that the first group of the pattern matches in a file.
std::vector<std::string> AllMatches(const std::string& path,
                                    const std::string& pattern) {
  const std::string text = ReadFile(path);
  const std::regex regex(pattern);
  std::vector<std::string> matches;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end;
       ++it) {
    matches.push_back((*it)[1]);
  }
  return matches;
}

// The course's first and last cell of each chapter, run once for all tests
// here. Each chapter's lesson_test runs all of its cells.
struct Course {
  std::vector<std::string> cells;
  ProgramResult run;
};

const Course& TheCourse() {
  static const Course& course = *[] {
    auto* made = new Course;
    for (const Json& chapter : Chapters()) {
      made->cells.push_back(chapter["cells"].front()["id"]);
      made->cells.push_back(chapter["cells"].back()["id"]);
    }
    made->run = RunWithMpi(
        "course", {"--devices=cpu:0,cpu:1",
                   absl::StrCat("--cell=", absl::StrJoin(made->cells, ","))});
    return made;
  }();
  return course;
}

TEST(Chapters, AreTheSameInEveryList) {
  const std::vector<std::string> chapters =
      AllMatches("chapters/chapters.bzl", R"re(\n    "(\w+)": \d+,)re");
  EXPECT_FALSE(chapters.empty());
  // The list of lessons: the chapter's README, and what it is about.
  EXPECT_THAT(
      AllMatches("README.md",
                 R"re(\n- \[[^\]]+\]\(chapters/(\w+)/README\.md\): )re"),
      ElementsAreArray(chapters))
      << "in README.md";
}

TEST(Cells, AreNamedOnce) {
  std::set<std::string> all;
  for (const Json& chapter : Chapters()) {
    for (const Json& cell : chapter["cells"]) {
      EXPECT_TRUE(all.insert(cell["id"]).second) << cell["id"];
      for (const std::string also : cell["also"]) {
        EXPECT_TRUE(all.insert(also).second) << also;
      }
    }
  }
  EXPECT_GE(all.size(), 18u);
}

// The error for an unknown cell lists the cells.
TEST(Cells, AreWhatTheCourseHas) {
  const ProgramResult run =
      RunProgram("course", {"--devices=cpu:0", "--cell=none"});
  EXPECT_NE(run.exit_code, 0);
  std::string listed = run.output;
  absl::RemoveExtraAsciiWhitespace(&listed);
  int number = 0;
  std::vector<std::string> all;
  for (const Json& chapter : Chapters()) {
    ++number;
    int place = 0;
    for (const std::string& id : Ids(chapter["cells"])) {
      all.push_back(absl::StrCat(number, ".", ++place, " ", id));
    }
  }
  EXPECT_THAT(listed, HasSubstr("there are "));
  for (const std::string& cell : all) {
    EXPECT_THAT(listed, ContainsRegex(cell + "[,.] "))
        << "the course lacks " << cell << ", which a lesson.md has";
  }
  EXPECT_EQ(std::count(listed.begin(), listed.end(), ','), all.size() - 1)
      << "the course has cells that no lesson.md has: " << listed;
}

TEST(Course, NamesItsCellsAndEndsWithAllVerdicts) {
  const std::string& output = TheCourse().run.output;
  EXPECT_EQ(TheCourse().run.exit_code, 0) << output;
  for (const Json& chapter : Chapters()) {
    EXPECT_THAT(output, HasSubstr(chapter["title"].get<std::string>()));
  }
  for (const std::string& id : TheCourse().cells) {
    EXPECT_THAT(output, HasSubstr(absl::StrCat("[", id, "]\n")));
  }
  EXPECT_THAT(output, HasSubstr("0 wrong results, 0 errors."));
}

TEST(Course, IsPlainTextOfEightyColumns) {
  const std::string& output = TheCourse().run.output;
  for (const char c : output) {
    ASSERT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= ' ')
        << static_cast<int>(c);
  }
  LessonRun run;
  run.output = output;
  ExpectEightyColumns(run);
}

TEST(Benchmarks, CarryTheCellsIds) {
  for (const Json& chapter : Chapters()) {
    SCOPED_TRACE(chapter["name"].get<std::string>());
    const ProgramResult list =
        RunProgram(absl::StrCat(Folder(chapter), "/benchmarks"),
                   {"--benchmark_list_tests", "--devices=cpu:0,cpu:1"});
    ASSERT_EQ(list.exit_code, 0) << list.output;
    const std::vector<std::string> names =
        absl::StrSplit(list.output, '\n', absl::SkipEmpty());
    for (const Json& cell : chapter["cells"]) {
      const std::string prefix = BenchmarkPrefix(cell["id"]);
      const auto is_of_cell = [&](const std::string& name) {
        return name.rfind(prefix, 0) == 0;
      };
      EXPECT_EQ(std::any_of(names.begin(), names.end(), is_of_cell),
                cell["timed"].get<bool>())
          << Folder(chapter) << "/lesson.md says of " << cell["id"]
          << (cell["timed"] ? " \"- Timed:\", and no benchmark begins with "
                            : " no \"- Timed:\", and a benchmark begins with ")
          << prefix;
    }
    for (const std::string& name : names) {
      const auto is_its = [&](const Json& cell) {
        return name.rfind(BenchmarkPrefix(cell["id"]), 0) == 0;
      };
      EXPECT_TRUE(
          std::any_of(chapter["cells"].begin(), chapter["cells"].end(), is_its))
          << name << " begins with BM_ and the id of no cell in "
          << Folder(chapter) << "/lesson.md, with _ for other characters";
    }
  }
}

}  // namespace
}  // namespace d2l
