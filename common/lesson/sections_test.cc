#include "common/lesson/sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/statusor.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Markdown Parse(const std::string& text) {
  const absl::StatusOr<Markdown> parsed = ParseSections("l.md", text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? *parsed : Markdown();
}

TEST(ParseSections, TakesTitleHeadAndSections) {
  const Markdown m = Parse(
      "# A: title\n\nOne line\nhttps://a.b\n\n"
      "## 1/a: Kept: whole\n\n## judge.cc\n\n### More\n");
  EXPECT_EQ(m.title, "A: title");
  EXPECT_EQ(m.head, "One line\nhttps://a.b");
  ASSERT_EQ(m.sections.size(), 2u);
  EXPECT_EQ(m.sections[0].id, "1/a");
  EXPECT_EQ(m.sections[0].title, "Kept: whole");
  EXPECT_EQ(m.sections[0].line, 6);
  EXPECT_EQ(m.sections[0].Text(""), "");
  EXPECT_EQ(m.sections[0].Listed("Book"), "");
  EXPECT_EQ(m.sections[1].id, "judge.cc");
  EXPECT_EQ(m.sections[1].title, "");
}

TEST(ParseSections, JoinsTheLinesOfAParagraph) {
  const Section s =
      Parse(
          "# t\n## a: b\n- Also: x, y\n- Book: d2l 1.2,\n  and 3\n"
          "\n\nOne\n two * _3_.\n\nNext one.\r\n")
          .sections.at(0);
  EXPECT_EQ(s.Text(""), "One two * _3_.\n\nNext one.");
  EXPECT_EQ(s.Listed("Also"), "x, y");
  EXPECT_EQ(s.Listed("Book"), "d2l 1.2, and 3");
  EXPECT_EQ(s.Listed("Boo"), "");
}

TEST(ParseSections, JoinsChineseWithoutSpaces) {
  const Section s =
      Parse("# t\n## a: b\n异步\n计算，\n用CPU\n也行\n").sections.at(0);
  EXPECT_EQ(s.Text(""), "异步计算，用CPU 也行");
}

TEST(ParseSections, LabelsBeginParts) {
  const Section s = Parse(
                        "# t\n## a: b\ntext\n\n**Predict:** which\none?\n\n"
                        "- the first\n- the\n  second\n\n**你会学到：** 等。\n")
                        .sections.at(0);
  EXPECT_EQ(s.Text(""), "text");
  EXPECT_EQ(s.Text("Predict"), "which one?");
  EXPECT_THAT(s.parts.at("Predict").items,
              ElementsAre("the first", "the second"));
  EXPECT_EQ(s.Text("你会学到"), "等。");
}

TEST(ParseSections, CodeIsAsItStands) {
  const Section s = Parse(
                        "# t\n## a: b\n```python\n# one\n## two\n\n  - "
                        "x\n```\n```text\n```\n")
                        .sections.at(0);
  EXPECT_EQ(s.code.at("python"), "# one\n## two\n\n  - x");
  EXPECT_EQ(s.code.at("text"), "");
  EXPECT_EQ(s.Text(""), "");
}

struct Bad {
  const char* text;
  const char* message;
};

class BadMarkdownTest : public ::testing::TestWithParam<Bad> {};

TEST_P(BadMarkdownTest, IsAnErrorWithItsLine) {
  const absl::StatusOr<Markdown> parsed =
      ParseSections("l.md", GetParam().text);
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(std::string(parsed.status().message()),
              HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Sections, BadMarkdownTest,
    ::testing::Values(Bad{"", "l.md:1: there is no line \"# TITLE\""},
                      Bad{"# t\n## a: b\n```python\nx\n",
                          "l.md:3: the code that begins here has no end"}));

}  // namespace
}  // namespace d2l
