#include "common/lesson/text/source.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/status/statusor.h"

namespace d2l {
namespace {

constexpr char kFile[] =
    "before\n"
    "// %% 004/In4\n"
    "\n"
    "void In4() {\n"
    "\tf(\"// %% not a mark\");\n"
    "\n"
    "}  // trailing spaces stay  \n"
    "\n"
    "// %%\n"
    "between\n"
    "  // %% 004/In40\n"
    "    two();\n"
    "      three();\n"
    "\n"
    "    four();\n"
    "// %% last/cell\n"
    "no newline at the end";

TEST(ExtractCell, TakesTheLinesAsTheyStand) {
  const absl::StatusOr<SourceExcerpt> cell = ExtractCell(kFile, "004/In4");
  ASSERT_TRUE(cell.ok()) << cell.status();
  EXPECT_EQ(cell->text,
            "void In4() {\n"
            "\tf(\"// %% not a mark\");\n"
            "\n"
            "}  // trailing spaces stay  \n");
  EXPECT_EQ(cell->line, 4);
}

TEST(ExtractCell, LeavesOutTheIndentationThatAllLinesShare) {
  const absl::StatusOr<SourceExcerpt> cell = ExtractCell(kFile, "004/In40");
  ASSERT_TRUE(cell.ok()) << cell.status();
  EXPECT_EQ(cell->text, "two();\n  three();\n\nfour();\n");
  EXPECT_EQ(cell->line, 12);
}

TEST(ExtractCell, TakesEveryPart) {
  constexpr char kParts[] =
      "// %% a/1, b/2\n  helper();\n// %%\nno\n// %% b/2\n  main();\n// %%\n";
  EXPECT_EQ(ExtractCell(kParts, "b/2")->text, "helper();\n\nmain();\n");
  EXPECT_EQ(ExtractCell(kParts, "b/2")->line, 2);
  EXPECT_EQ(ExtractCell(kParts, "a/1")->text, "helper();\n");
  EXPECT_FALSE(ExtractCell(kParts, "a/1, b/2").ok());
}

TEST(ExtractCell, WhatMeasuresIsApart) {
  constexpr char kFile[] =
      "// %% a/1, b/2\nshared();\n// %% a/1, measured\ntimes();\n"
      "// %% a/1, b/2, measured\nboth();\n// %%\n";
  EXPECT_EQ(ExtractCell(kFile, "a/1")->text, "shared();\n");
  EXPECT_EQ(ExtractCell(kFile, "a/1", CodePart::kMeasured)->text,
            "times();\n\nboth();\n");
  EXPECT_EQ(ExtractCell(kFile, "b/2", CodePart::kMeasured)->text, "both();\n");
  EXPECT_EQ(ExtractCell(kFile, "b/2", CodePart::kMeasured)->line, 6);
  EXPECT_FALSE(ExtractCell(kFile, "measured").ok());
  const auto none = ExtractCell("// %% c\n", "c", CodePart::kMeasured).status();
  EXPECT_EQ(none.message(), "there is no line \"// %% c, measured\"");
}

TEST(ExtractCell, MayEndWithTheFile) {
  const absl::StatusOr<SourceExcerpt> cell = ExtractCell(kFile, "last/cell");
  ASSERT_TRUE(cell.ok()) << cell.status();
  EXPECT_EQ(cell->text, "no newline at the end\n");
}

TEST(ExtractCell, EmptyCellIsEmpty) {
  EXPECT_EQ(ExtractCell("// %% a\n\n\n// %%\n", "a")->text, "");
  EXPECT_EQ(ExtractCell("// %% a", "a")->text, "");
}

TEST(ExtractCell, UnknownCellIsNamed) {
  for (const char* id : {"004/In", "004/In41", "", "not a mark"}) {
    const absl::StatusOr<SourceExcerpt> cell = ExtractCell(kFile, id);
    ASSERT_FALSE(cell.ok()) << id;
    EXPECT_NE(std::string(cell.status().message()).find(id), std::string::npos);
  }
  EXPECT_FALSE(ExtractCell("", "004/In4").ok());
}

TEST(CellSource, FindsWhatIsRegistered) {
  RegisterSource("some/lesson.cc", kFile);
  EXPECT_EQ(CellSource("some/lesson.cc", "last/cell")->line, 17);
  RegisterSource("some/more.cc", "\n// %% here\ncode\n// %%\n");
  EXPECT_STREQ(CellSource("some/lesson.cc", "here")->file, "some/more.cc");
  EXPECT_EQ(CellSource("some/lesson.cc", "here")->line, 3);
  const std::string no_cell(
      CellSource("some/lesson.cc", "x").status().message());
  EXPECT_NE(no_cell.find("some/lesson.cc: there is no line \"// %% x\""),
            std::string::npos);
  const std::string no_file(
      CellSource("other/lesson.cc", "x").status().message());
  EXPECT_NE(no_file.find("other/lesson.cc is not embedded"), std::string::npos);
}

}  // namespace
}  // namespace d2l
