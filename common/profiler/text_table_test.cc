#include "common/profiler/text_table.h"

#include <string>

#include "gtest/gtest.h"

namespace d2l {
namespace {

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
