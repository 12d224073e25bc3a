#include "common/base/console/format.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <limits>
#include <utility>

#include "common/base/comma_locale_testing.h"
#include "common/base/console/language.h"
#include "common/base/statistics.h"

namespace d2l {
namespace {

Summary Interval(double median, double low, double high) {
  Summary summary = Exactly(median);
  summary.low = low;
  summary.high = high;
  return summary;
}

TEST(FormatBytes, TakesTheUnitThatFits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.0 KiB");
  EXPECT_EQ(FormatBytes(std::int64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(FormatBytes(std::numeric_limits<std::int64_t>::max()),
            "8192.0 PiB");
}

TEST(FormatDuration, KeepsThreeFigures) {
  EXPECT_EQ(FormatDuration(0), "0.00 ns");
  EXPECT_EQ(FormatDuration(85.4e-9), "85.4 ns");
  EXPECT_EQ(FormatDuration(1.25e-6), "1.25 us");
  EXPECT_EQ(FormatDuration(999.6e-6), "1.00 ms");
  EXPECT_EQ(FormatDuration(0.123), "123 ms");
  EXPECT_EQ(FormatDuration(2.41), "2.41 s");
  EXPECT_EQ(FormatDuration(7200), "7200 s");
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

TEST(FormatNumber, HasAPointInEveryLocale) {
  const CommaLocale comma;
  char text[16];
  std::snprintf(text, sizeof(text), "%.2f", 0.25);
  ASSERT_STREQ(text, "0,25");
  for (const auto& [number, expected] :
       {std::pair(1.5, "1.50"), std::pair(-1.25e-30, "-1.25e-30"),
        std::pair(2.5e-5, "2.50e-05"), std::pair(1.25e300, "1.25e+300"),
        std::pair(13'000.0, "13,000"), std::pair(0.0, "0.00")}) {
    EXPECT_EQ(FormatNumber(number), expected);
  }
  EXPECT_EQ(FormatDuration(1.25e-3), "1.25 ms");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
}

}  // namespace
}  // namespace d2l
