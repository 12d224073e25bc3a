#include "common/lesson/text/lesson.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace d2l {

class Cell;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CellText Text(std::string id, std::string title,
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

void NoCode(Cell&) {}

// This is a single test, because lessons stay registered.
TEST(LoadTexts, BindsEachTextToItsCode) {
  EXPECT_TRUE(LoadTexts("en").ok());
  const CellText in2 = Text("004/In2", "A clock that lies", {"001/c3"});
  const CellText in4 = Text("004/In4", "The true cost");
  RegisterLesson({2,
                  "async",
                  1,
                  "lesson.cc",
                  {{"en", {"Async", "D2L 13.2", {in2, in4}}},
                   {"zh", {"异步计算", "", {in2, in4}}}}});
  RegisterCell("004/In4", NoCode);
  EXPECT_THAT(Message(LoadTexts("en")),
              HasSubstr("async has the text of 004/In2, and no code: add "
                        "D2L_CELL(\"004/In2\""));
  RegisterCell("004/In2", NoCode);
  ASSERT_TRUE(LoadTexts("en").ok());
  const Lesson& lesson = *Lessons().at(0);
  EXPECT_EQ(lesson.title, "Async");
  EXPECT_EQ(lesson.section, "D2L 13.2");
  ASSERT_EQ(lesson.cells.size(), 2u);
  EXPECT_EQ(lesson.cells[0].text.title, "A clock that lies");
  EXPECT_EQ(lesson.cells[0].run, NoCode);
  EXPECT_EQ(lesson.cells[1].text.title, "The true cost");
  EXPECT_THAT(lesson.cells[0].text.also, ElementsAre("001/c3"));

  ASSERT_TRUE(LoadTexts("zh").ok());
  EXPECT_EQ(lesson.title, "异步计算");
  EXPECT_EQ(lesson.cells.size(), 2u);
  ASSERT_TRUE(LoadTexts("de").ok());
  EXPECT_EQ(lesson.title, "Async");

  RegisterCell("004/In5", NoCode);
  EXPECT_THAT(Message(LoadTexts("en")),
              HasSubstr("add \"## 004/In5: TITLE\" to the chapter's"));
}

}  // namespace
}  // namespace d2l
