// Compares the lists of chapters and cells, chapters.bzl and cells.json, with
// the course's output, the benchmarks' names and the READMEs. README.md says
// where to add a new chapter or cell.

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
  std::vector<std::string> with_cells;
  for (const Json& chapter : Chapters()) with_cells.push_back(chapter["name"]);
  EXPECT_THAT(with_cells, ElementsAreArray(chapters)) << "in cells.json";
  // The table of lessons: the chapter's README, the command.
  EXPECT_THAT(
      AllMatches("README.md",
                 R"re(\n\| \[[^\]]+\]\(chapters/(\w+)/README\.md\) \| )re"
                 R"re(`bazel run //chapters/\1:lesson` \|)re"),
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
  EXPECT_THAT(listed,
              HasSubstr("there are " + absl::StrJoin(all, ", ") + ". Did"));
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
          << prefix;
    }
    for (const std::string& name : names) {
      const auto is_its = [&](const Json& cell) {
        return name.rfind(BenchmarkPrefix(cell["id"]), 0) == 0;
      };
      EXPECT_TRUE(
          std::any_of(chapter["cells"].begin(), chapter["cells"].end(), is_its))
          << name << " is of no cell";
    }
  }
}

TEST(Readmes, NameEveryCellAndItsCommand) {
  // The first column of the table of cells.
  const std::regex row(R"(\n\| `([0-9a-z]+/[^`]+)`([^|]*)\|)");
  const std::regex id(R"(`([^`]+)`)");
  for (const Json& chapter : Chapters()) {
    const std::string readme = ReadFile(Folder(chapter) + "/README.md");
    std::vector<std::string> rows;
    for (std::sregex_iterator it(readme.begin(), readme.end(), row), end;
         it != end; ++it) {
      rows.push_back((*it)[1]);
      const std::string others = (*it)[2];
      std::vector<std::string> also;
      for (std::sregex_iterator o(others.begin(), others.end(), id);
           o != std::sregex_iterator(); ++o) {
        also.push_back((*o)[1]);
      }
      for (const Json& cell : chapter["cells"]) {
        if (cell["id"] == rows.back()) {
          EXPECT_EQ(Json(also), cell["also"]);
        }
      }
    }
    EXPECT_THAT(rows, ElementsAreArray(Ids(chapter["cells"])));
    for (const std::string& cell : Ids(chapter["cells"])) {
      EXPECT_THAT(readme,
                  HasSubstr(absl::StrCat("bazel run //", Folder(chapter),
                                         ":lesson -- --cell=", cell)));
    }
  }
}

}  // namespace
}  // namespace d2l
