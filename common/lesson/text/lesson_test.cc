#include "common/lesson/text/lesson.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

CellText Cell(std::string id, std::string title,
              std::vector<std::string> also = {}) {
  CellText text;
  text.id = std::move(id);
  text.title = std::move(title);
  text.also = std::move(also);
  return text;
}

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

// This is a single test, because lessons stay registered.
TEST(LoadTexts, FillsInTheLanguageOfTheSameCells) {
  EXPECT_TRUE(LoadTexts("en").ok());
  RegisterLesson({2, "async", 1, {{"004/In2", nullptr}, {"004/In4", nullptr}}});
  const Lesson& lesson = *Lessons().at(0);
  EXPECT_THAT(lesson.file, EndsWith("lesson_test.cc"));
  EXPECT_THAT(Message(LoadTexts("en")), StartsWith(lesson.file));
  EXPECT_THAT(Message(LoadTexts("en")), HasSubstr("has no texts"));

  const CellText in2 = Cell("004/In2", "A clock that lies", {"001/c3"});
  const CellText in4 = Cell("004/In4", "The true cost");
  RegisterTexts(lesson.file, "en", {"Async", "D2L 13.2", {in2, in4}});
  ASSERT_TRUE(LoadTexts("en").ok());
  EXPECT_EQ(lesson.title, "Async");
  EXPECT_EQ(lesson.section, "D2L 13.2");
  EXPECT_EQ(lesson.cells[0].text.title, "A clock that lies");
  EXPECT_EQ(lesson.cells[1].text.title, "The true cost");
  EXPECT_THAT(lesson.cells[0].text.also, ElementsAre("001/c3"));

  ASSERT_TRUE(LoadTexts("zh").ok());
  EXPECT_EQ(lesson.title, "Async");
  RegisterTexts(lesson.file, "zh", {"异步计算", "", {in2, in4}});
  ASSERT_TRUE(LoadTexts("zh").ok());
  EXPECT_EQ(lesson.title, "异步计算");

  RegisterTexts(lesson.file, "zh", {"", "", {in4, in2}});
  EXPECT_THAT(Message(LoadTexts("zh")),
              HasSubstr(" lists 004/In2 where its lesson.md has 004/In4; "));
  RegisterTexts(lesson.file, "zh", {"", "", {in2}});
  EXPECT_THAT(Message(LoadTexts("zh")),
              HasSubstr(" lists 004/In4 where its lesson.md has no more; "));
  RegisterTexts(lesson.file, "zh", {"", "", {in2, in4, in4}});
  EXPECT_THAT(Message(LoadTexts("zh")),
              HasSubstr(" lists no more cells where its lesson.md has 004/"));
  ASSERT_TRUE(LoadTexts("en").ok());
}

}  // namespace
}  // namespace d2l
