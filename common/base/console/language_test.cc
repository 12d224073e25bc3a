#include "common/base/console/language.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/console/command_line.h"

namespace d2l {
namespace {

using ::testing::HasSubstr;

[[maybe_unused]] const bool added = AddTranslations({
    {"%s takes %d%% of %.1f | %s.", "%4$s的%3$.1f中，%1$s占%2$d%%。"},
    {"asking", "提交"},
    {"  asking\n", "  提交\n"},
    {"%d of %d", "%s个，共%d个"},
    {"Note:", "注意："},
    {"The %s takes {}.", "%s需要{}。"},
    {"--lang=%s asked for; there are en (English) and zh (Chinese). Say "
     "--lang=en.",
     "没有--lang=%s；可选en。"},
});

class LanguageTest : public ::testing::Test {
 protected:
  void SetUp() override { Speak("zh"); }
  void TearDown() override { Speak("en"); }

  static void Speak(const std::string& language) {
    const absl::Status status = SetLanguage(language);
    ASSERT_TRUE(status.ok()) << status;
  }
};

TEST_F(LanguageTest, SaysTheSentenceInTheLanguage) {
  const auto say = [] {
    return Say("%s takes %d%% of %.1f | %s.", "asking", 7, 2.55, "x");
  };
  EXPECT_EQ(Language(), "zh");
  EXPECT_EQ(say(), "x的2.5中，提交占7%。");
  Speak("en");
  EXPECT_EQ(Language(), "en");
  EXPECT_EQ(say(), "asking takes 7% of 2.5 | x.");
}

TEST_F(LanguageTest, FallsBackToEnglish) {
  EXPECT_EQ(Say("nobody said %s", "asking"), "nobody said 提交");
  EXPECT_EQ(Translated("asking %s"), "asking %s");
  EXPECT_EQ(Translated("  asking\n"), "  提交\n");
  // A translation that does not fit.
  EXPECT_EQ(Say("%d of %d", 1, 2), "1 of 2");
}

// A file may have any name: that of a text, of a factor.
TEST_F(LanguageTest, AUsersTextStaysAsItIs) {
  for (const std::string name : {"asking", "/tmp/zoom2x/t.json", "2x",
                                 "2 calls", "Note:", "{", "%s", "主机", ""}) {
    EXPECT_EQ(Say("nobody said %s", name), "nobody said " + name);
    EXPECT_EQ(Say("The %s takes {}.", absl::string_view(name)),
              name + "需要{}。");
    const Phrase worded = Worded("The %s takes {}.", name);
    EXPECT_EQ(worded.english, "The " + name + " takes {}.");
    EXPECT_EQ(worded.shown, name + "需要{}。");
  }
}

TEST_F(LanguageTest, WritesFactorsAndCountsAsTheLanguageDoes) {
  EXPECT_EQ(Measured("1.62x, 1,193x。"), "1.62倍, 1,193倍。");
  EXPECT_EQ(Measured("3x3, 4x, 0xff, 29.4 calls"), "3x3, 4倍, 0xff, 29.4次");
  EXPECT_EQ(FormatFactor(1.62), "1.62倍");
  Speak("en");
  EXPECT_EQ(Measured("1.62x, 29.4 calls"), "1.62x, 29.4 calls");
  EXPECT_EQ(FormatFactor(1.62), "1.62x");
}

TEST_F(LanguageTest, PadsByColumns) {
  EXPECT_EQ(Padded("asking", 6), "提交  ");
  EXPECT_EQ(Padded("asking", -6), "  提交");
  EXPECT_EQ(Padded("asking", 3), "提交");
  EXPECT_EQ(Padded("é", 3), "é  ");
}

TEST_F(LanguageTest, LeadsHaveASpaceWhereOneIsNeeded) {
  EXPECT_EQ(Lead("Note:"), "注意：");
  EXPECT_EQ(Lead("Other:"), "Other: ");
  EXPECT_EQ(Lead("没有差别。"), "没有差别。");
}

TEST_F(LanguageTest, PhrasesKeepTheirKey) {
  const Phrase worded = Worded("The %s takes {}.", "asking");
  EXPECT_EQ(worded.english, "The asking takes {}.");
  EXPECT_EQ(worded.shown, "提交需要{}。");
  EXPECT_EQ(Worded("The %s takes {}.", Phrase(std::string("asking"))).shown,
            worded.shown);
  const Phrase literal = "asking";
  EXPECT_EQ(literal.english, "asking");
  EXPECT_EQ(literal.shown, "提交");
}

TEST_F(LanguageTest, ArgumentsThatDoNotFitAreAnError) {
  EXPECT_THROW(Say("%s and %s", "one"), std::logic_error);
  EXPECT_THROW(Say("%d", "one"), std::logic_error);
}

TEST_F(LanguageTest, UnknownLanguageSaysWhatThereIs) {
  const std::string message(SetLanguage("fr").message());
  EXPECT_THAT(message, HasSubstr("没有--lang=fr；可选en"));
  EXPECT_EQ(Language(), "zh");
}

TEST_F(LanguageTest, TheEnvironmentDecidesIfNobodySays) {
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) unsetenv(name);
  Speak("");
  EXPECT_EQ(Language(), "en");
  setenv("LANG", "zh_CN.UTF-8", 1);
  Speak("");
  EXPECT_EQ(Language(), "zh");
  Speak("en");
  EXPECT_EQ(Language(), "en");
  setenv("LC_ALL", "C", 1);
  Speak("");
  EXPECT_EQ(Language(), "en");
  setenv("LC_ALL", "", 1);
  setenv("LC_MESSAGES", "zh", 1);
  setenv("LANG", "de_DE", 1);
  Speak("");
  EXPECT_EQ(Language(), "zh");
}

// What a file is called must not command a terminal, nor look like a line of
// the program.
TEST_F(LanguageTest, TextOfAUserIsShownOnOneLineWithoutControlCharacters) {
  const std::string name = "a\033[2J\nError: \xff\xc2\x9b文.bin";
  const std::string shown = "a\\x1b[2J\\nError: \\xff\\xc2\\x9b文.bin";
  EXPECT_EQ(Say("Written: %s", name), "Written: " + shown);
  EXPECT_EQ(Say("Written: %s", absl::string_view(name)), "Written: " + shown);
  EXPECT_EQ(Worded("Written: %s", name).english, "Written: " + shown);
  // A text of the program may have lines.
  EXPECT_EQ(Say("Said: %s", Phrase(std::string("a\n\tb"))), "Said: a\n\tb");
}

}  // namespace
}  // namespace d2l
