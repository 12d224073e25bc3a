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

TEST(Utf8Length, IsThatOfTheFirstCharacter) {
  EXPECT_EQ(Utf8Length("ab"), 1u);
  EXPECT_EQ(Utf8Length("é1"), 2u);
  EXPECT_EQ(Utf8Length("前1"), 3u);
  EXPECT_EQ(Utf8Length("\xf0\x9f\x98\x80 1"), 4u);
  EXPECT_EQ(Utf8Length("\xf4\x8f\xbf\xbf"), 4u);
}

TEST(Utf8Length, IsZeroForWhatIsNoUtf8) {
  for (const char* text :
       {"", "\x80", "\xff", "\xc3", "\xc3(", "\xe8\xae", "\xc1\xbf",
        "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80"}) {
    EXPECT_EQ(Utf8Length(text), 0u) << text;
  }
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
