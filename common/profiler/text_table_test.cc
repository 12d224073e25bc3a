#include "common/profiler/text_table.h"

#include <string>

#include "gtest/gtest.h"

namespace d2l {
namespace {

TEST(PrintableTextTest, KeepsWhatCanBePrinted) {
  EXPECT_EQ(PrintableText(""), "");
  EXPECT_EQ(PrintableText("a \"quoted\" name\\"), "a \"quoted\" name\\");
  EXPECT_EQ(PrintableText("前向 é 🙂"), "前向 é 🙂");
}

TEST(PrintableTextTest, EscapesTheRest) {
  EXPECT_EQ(PrintableText("a\nb\tc\r"), "a\\nb\\x09c\\x0d");
  EXPECT_EQ(PrintableText("\x1b[31m\x7f"), "\\x1b[31m\\x7f");
  EXPECT_EQ(PrintableText(std::string("a\0b", 3)), "a\\x00b");
  // U+009B starts an escape sequence, as ESC [ does.
  EXPECT_EQ(PrintableText("\xc2\x9b"), "\\xc2\\x9b");
  EXPECT_EQ(PrintableText("\xc2\xa0"), "\xc2\xa0");
  // Not UTF-8: a lone continuation, a lead without its continuation, an end
  // that comes too early, a byte that never occurs.
  EXPECT_EQ(PrintableText("\x80z"), "\\x80z");
  EXPECT_EQ(PrintableText("\xe5z"), "\\xe5z");
  EXPECT_EQ(PrintableText("\xe5\x89"), "\\xe5\\x89");
  EXPECT_EQ(PrintableText("\xff"), "\\xff");
}

TEST(CutTextTest, CountsColumns) {
  EXPECT_EQ(CutText("abcdef", 6), "abcdef");
  EXPECT_EQ(CutText("abcdefg", 6), "abc...");
  EXPECT_EQ(CutText("前向前", 6), "前向前");
  EXPECT_EQ(CutText("前向前é", 6), "前...");
  EXPECT_EQ(CutText("é前向前", 6), "é前...");
  EXPECT_EQ(CutText("前向前向", 7), "前向...");
  EXPECT_EQ(CutText("éàéàéà", 5), "éà...");
  EXPECT_EQ(CutText("abcd", 3), "...");
  EXPECT_EQ(CutText("", 3), "");
}

TEST(WrapTextTest, BreaksBefore81Columns) {
  EXPECT_EQ(WrapText(""), "\n");
  EXPECT_EQ(WrapText("  two  words "), "two words\n");
  const std::string a(39, 'a');
  const std::string b(40, 'b');
  EXPECT_EQ(WrapText(a + " " + b), a + " " + b + "\n");
  EXPECT_EQ(WrapText(b + " " + b), b + "\n  " + b + "\n");
  const std::string c(37, 'c');
  EXPECT_EQ(WrapText(b + " " + b + " " + c), b + "\n  " + b + " " + c + "\n");
  EXPECT_EQ(WrapText(b + " " + b + " " + c + "c"),
            b + "\n  " + b + "\n  " + c + "c\n");
  const std::string long_word(100, 'w');
  EXPECT_EQ(WrapText("x " + long_word + " y"), "x\n  " + long_word + "\n  y\n");
}

TEST(TextTableTest, LinesUp) {
  TextTable table;
  table.AddColumn("Name", 8);
  table.AddColumn("long header", 3);
  table.AddColumn("n", 1);
  table.AddRow({"前向", "1", "22"});
  table.AddRow({"", "a cell that is longer", ""});
  EXPECT_EQ(table.ToString(),
            "--------  ---------------------  --\n"
            "    Name            long header   n\n"
            "--------  ---------------------  --\n"
            "    前向                      1  22\n"
            "          a cell that is longer\n"
            "--------  ---------------------  --\n");
}

TEST(TextTableTest, LastLineIsBelowTheRows) {
  TextTable table;
  table.AddColumn("Name", 5);
  table.SetRowsLeftOut(2, 1);
  EXPECT_EQ(table.ToString(),
            "-----\n Name\n-----\n(2 rows more; row_limit is 1)\n-----\n");
}

}  // namespace
}  // namespace d2l
