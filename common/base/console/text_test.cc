#include "common/base/console/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace d2l {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::SizeIs;

TEST(Wrap, KeepsWithinTheWidthAndIndents) {
  std::string words;
  for (int i = 0; i < 100; ++i) words += "word" + std::to_string(i) + " ";
  std::istringstream lines(Wrap(words, "HOLDS  "));
  std::string line;
  std::string all;
  for (int n = 0; std::getline(lines, line); ++n) {
    EXPECT_LE(line.size(), 80u) << line;
    EXPECT_EQ(line.substr(0, 7), n == 0 ? "HOLDS  " : "       ");
    EXPECT_NE(line.back(), ' ');
    all += line.substr(7) + " ";
  }
  EXPECT_EQ(all, words);
}

TEST(Wrap, LongWordsAndNoWords) {
  const std::string word(100, 'x');
  EXPECT_EQ(Wrap("a " + word + " b", "> "), "> a\n  " + word + "\n  b\n");
  EXPECT_EQ(Wrap("", "> "), "> \n");
  EXPECT_EQ(Wrap("a\nb", "> "), "> a\n  b\n");
}

TEST(TextColumns, CountsWideCharactersTwice) {
  EXPECT_EQ(TextColumns(""), 0u);
  EXPECT_EQ(TextColumns("abc"), 3u);
  EXPECT_EQ(TextColumns("前向é"), 5u);
  EXPECT_EQ(TextColumns("（，）：！"), 10u);
  EXPECT_EQ(TextColumns("é…─×─“"), 6u);
  // The ends of ranges of UAX #11, and their neighbours.
  EXPECT_EQ(TextColumns("\u115f\u1160\u2e7f\u2e80\u303e\u303f"), 9u);
  EXPECT_EQ(TextColumns("\u3247\u3248\u324f\u3250\ua4c6\ua4d0"), 9u);
  EXPECT_EQ(TextColumns("\uabff\uac00\ud7a3\ud7b0\uff60\uff61"), 9u);
  EXPECT_EQ(TextColumns("\U0001ffff\U00020000\U0003fffd\U000e0001"), 6u);
}

TEST(TextColumns, CountsWhatIsNoUtf8AsOneAtMost) {
  EXPECT_EQ(TextColumns("a\xff b"), 4u);
  EXPECT_EQ(TextColumns("\xe5\x89"), 1u);
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

TEST(PrintableText, KeepsWhatCanBePrinted) {
  EXPECT_EQ(PrintableText(""), "");
  EXPECT_EQ(PrintableText("a \"quoted\" name\\"), "a \"quoted\" name\\");
  EXPECT_EQ(PrintableText("前向 é 🙂"), "前向 é 🙂");
}

TEST(PrintableText, EscapesTheRest) {
  EXPECT_EQ(PrintableText("a\nb\tc\r"), "a\\nb\\x09c\\x0d");
  EXPECT_EQ(PrintableText("a\nb\tc\r", "\n\t"), "a\nb\tc\\x0d");
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

TEST(CutText, CountsColumns) {
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

TEST(QuotedText, IsPrintableAndOfALimitedWidth) {
  EXPECT_EQ(QuotedText("权重\x1b[2J\n"), "\"权重\\x1b[2J\\n\"");
  EXPECT_EQ(QuotedText(std::string(5000, 'x')),
            "\"" + std::string(97, 'x') + "...\"");
}

TEST(QuotedTexts, AreTheFirstTen) {
  EXPECT_EQ(QuotedTexts({}), "");
  EXPECT_EQ(QuotedTexts({"a", "\x1b"}), "\"a\", \"\\x1b\"");
  const std::vector<std::string> ten(10, "a");
  EXPECT_THAT(QuotedTexts(ten), EndsWith("\"a\", \"a\""));
  EXPECT_THAT(QuotedTexts(std::vector<std::string>(20'000, "a")),
              AllOf(EndsWith("\"a\", \"a\" and 19990 more"), SizeIs(63)));
}

TEST(WrapWords, ShowsControlCharacters) {
  EXPECT_EQ(WrapWords("a\x1b[2J\x9b b\n\tc", "", "", 80),
            "a\\x1b[2J\\x9b b\n\tc\n");
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

TEST(WrapWords, BreaksBesideWideCharacters) {
  EXPECT_EQ(WrapWords("异步计算", "", "", 5), "异步\n计算\n");
  EXPECT_EQ(WrapWords("异步计算", "> ", "  ", 6), "> 异步\n  计算\n");
  EXPECT_EQ(WrapWords("在cpu:0上算", "", "", 8), "在cpu:0\n上算\n");
  EXPECT_EQ(WrapWords("在cpu:0上算", "", "", 5), "在\ncpu:0\n上算\n");
  EXPECT_EQ(WrapWords("a 异步 b", "", "", 6), "a 异步\nb\n");
  EXPECT_EQ(WrapWords("a 异步", "", "", 5), "a 异\n步\n");
  EXPECT_EQ(WrapWords("异步， 2 计 算", "", "", 20), "异步，2 计算\n");
}

TEST(WrapWords, KeepsMarksWithTheirWords) {
  EXPECT_EQ(WrapWords("异步，计算。", "", "", 4), "异\n步，\n计\n算。\n");
  EXPECT_EQ(WrapWords("异（步）", "", "", 4), "异\n（步）\n");
  EXPECT_EQ(WrapWords("用50%的", "", "", 5), "用50%\n的\n");
  EXPECT_EQ(WrapWords("，。", "", "", 2), "，。\n");
}

TEST(WrapWords, OtherCharactersTakeOneColumn) {
  EXPECT_EQ(WrapWords("ééé éé é", "", "", 6), "ééé éé\né\n");
  EXPECT_EQ(WrapWords("é é", "… ", "", 5), "… é é\n");
}

}  // namespace
}  // namespace d2l
