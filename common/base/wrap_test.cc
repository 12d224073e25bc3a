#include "common/base/wrap.h"

#include <gtest/gtest.h>

#include <string>

namespace d2l {
namespace {

TEST(TextColumns, CountsCodePoints) {
  EXPECT_EQ(TextColumns(""), 0u);
  EXPECT_EQ(TextColumns("abc"), 3u);
  EXPECT_EQ(TextColumns("前向é"), 3u);
}

TEST(WrapWords, BreaksAtTheWidth) {
  EXPECT_EQ(WrapWords("aaa bb c", "", "", 6), "aaa bb\nc\n");
  EXPECT_EQ(WrapWords("aaa bb c", "", "", 5), "aaa\nbb c\n");
  EXPECT_EQ(WrapWords("  aaa   bb ", "", "", 6), "aaa bb\n");
  EXPECT_EQ(WrapWords("", "", "", 6), "\n");
}

TEST(WrapWords, PrefixesCount) {
  EXPECT_EQ(WrapWords("a b c d", "> ", "... ", 6), "> a b\n... c\n... d\n");
  EXPECT_EQ(WrapWords("", "> ", "  ", 6), "> \n");
  EXPECT_EQ(WrapWords("a\nb\n", "> ", "  ", 6), "> a\n  b\n  \n");
}

TEST(WrapWords, ALongWordHasALineOfItsOwn) {
  EXPECT_EQ(WrapWords("a bbbbbbbb c", "> ", "  ", 6), "> a\n  bbbbbbbb\n  c\n");
  EXPECT_EQ(WrapWords("bbbbbbbb c", "> ", "  ", 6), "> bbbbbbbb\n  c\n");
}

TEST(WrapWords, WidthIsInCodePoints) {
  EXPECT_EQ(WrapWords("ééé éé é", "", "", 6), "ééé éé\né\n");
  EXPECT_EQ(WrapWords("é é", "… ", "", 5), "… é é\n");
}

}  // namespace
}  // namespace d2l
