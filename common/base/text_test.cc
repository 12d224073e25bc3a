#include "common/base/text.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "common/base/statistics.h"

namespace d2l {
namespace {

Summary Interval(double median, double low, double high) {
  Summary summary = Exactly(median);
  summary.low = low;
  summary.high = high;
  return summary;
}

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

TEST(FormatSummary, ScalesTimeAndBytes) {
  EXPECT_EQ(FormatSummary(Interval(0.0123, 0.0119, 0.013), "s"),
            "12.3 ms [11.9, 13.0]");
  EXPECT_EQ(FormatSummary(Interval(2e-6, 1.5e-6, 0.0031), "s"),
            "2.00 us [1.50, 3,100]");
  EXPECT_EQ(FormatSummary(Interval(1.2626, 1.25, 1.27), "s"),
            "1.26 s [1.25, 1.27]");
  EXPECT_EQ(FormatMedian(Exactly(85e-9), "s"), "85.0 ns");
  EXPECT_EQ(FormatMedian(Exactly(0.9997), "s"), "1.00 s");
  EXPECT_EQ(FormatMedian(Exactly(3 << 20), "B"), "3.00 MiB");
  EXPECT_EQ(FormatMedian(Exactly(512), "B"), "512 B");
}

TEST(FormatSummary, AConstantHasNoInterval) {
  EXPECT_EQ(FormatSummary(Exactly(1.5), "x"), "1.50x");
  EXPECT_EQ(FormatSummary(Exactly(7), "operations"), "7 operations");
  EXPECT_EQ(FormatSummary(Exactly(7), ""), "7");
}

TEST(FormatFactor, ReadsWell) {
  EXPECT_EQ(FormatFactor(1.3), "1.30x");
  EXPECT_EQ(FormatFactor(13000), "13,000x");
  EXPECT_EQ(FormatFactor(1234567.8), "1,234,568x");
  EXPECT_EQ(FormatFactor(123), "123x");
  EXPECT_EQ(FormatFactor(0.25), "0.250x");
  EXPECT_EQ(FormatFactor(0), "0.00x");
  EXPECT_EQ(FormatFactor(2), "2.00x");
  EXPECT_EQ(FormatFactor(0.012345), "0.0123x");
  EXPECT_EQ(FormatFactor(-1234), "-1,234x");
  EXPECT_EQ(FormatFactor(-123), "-123x");
}

}  // namespace
}  // namespace d2l
