#include "common/drawing/bars.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/console/language.h"
#include "common/drawing/drawing.h"
#include "common/drawing/svg.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> Lines(const Drawing& drawing) {
  return absl::StrSplit(drawing.text, '\n');
}

std::size_t Count(const std::string& line, char c) {
  return std::count(line.begin(), line.end(), c);
}

TEST(Bars, LengthsAreInProportion) {
  const Drawing drawing =
      DrawBars("time", {{{"one by one", "60.0 ms", 60, 60, 60},
                         {"both", "30.0 ms", 30, 30, 30}}});
  EXPECT_EQ(drawing.name, "time");
  const std::vector<std::string> lines = Lines(drawing);
  ASSERT_EQ(lines.size(), 3u) << drawing.text;
  EXPECT_THAT(lines[0], HasSubstr("  one by one  ####"));
  EXPECT_THAT(lines[1], HasSubstr("30.0 ms"));
  EXPECT_EQ(lines[0].size(), 80u);
  EXPECT_NEAR(Count(lines[0], '#'), 2.0 * Count(lines[1], '#'), 1);
}

TEST(Bars, EnqueueingAndTheWorkAreOneBar) {
  const Drawing drawing = DrawBars("time", {{{"a", "4 s", 4, 4, 4, 1},
                                             {"b", "4 s", 4, 4, 4, 4},
                                             {"c", "4 s", 4, 4, 4, 0}}});
  const std::vector<std::string> lines = Lines(drawing);
  EXPECT_NEAR(Count(lines[0], '#'), 3.0 * Count(lines[0], '='), 3);
  EXPECT_EQ(Count(lines[1], '#'), 0u);
  EXPECT_EQ(Count(lines[2], '='), 0u);
  EXPECT_THAT(drawing.text, HasSubstr("= enqueueing"));
  EXPECT_THAT(drawing.svg, HasSubstr(">enqueueing<"));
}

TEST(Bars, BoundsStandInTheirPlaceUnlessFarAway) {
  const Drawing drawing = DrawBars(
      "time",
      {{{"a", "4 s", 4, 4, 4, 0, {2}}, {"b", "2 s", 2, 2, 2, 0, {4, 400}}}});
  const std::vector<std::string> lines = Lines(drawing);
  const std::size_t first = lines[0].find('#');
  const std::size_t length = lines[0].rfind('#') - first + 1;
  EXPECT_NEAR(lines[0].find('|') - first, length / 2.0, 1);
  EXPECT_EQ(Count(lines[1], '|'), 1u);
  EXPECT_NEAR(lines[1].find('|') - first, length, 1);
  EXPECT_THAT(drawing.svg, HasSubstr("stroke-dasharray"));
}

TEST(Bars, GroupsHaveScalesOfTheirOwn) {
  const std::vector<Bar> small = {{"a", "1 us", 1e-6, 1e-6, 1e-6},
                                  {"b", "2 us", 2e-6, 2e-6, 2e-6}};
  const std::vector<Bar> large = {{"c", "1 s", 1, 1, 1}, {"d", "2 s", 2, 2, 2}};
  const std::vector<std::string> lines =
      Lines(DrawBars("time", {small, large}));
  EXPECT_EQ(Count(lines[1], '#'), Count(lines[4], '#'));
  EXPECT_EQ(lines[2], "");
  const Drawing together = DrawBars("time", {{small[0], large[1]}});
  EXPECT_THAT(together.text, HasSubstr("a logarithmic scale"));
  EXPECT_GT(Count(Lines(together)[0], '#'), 0u);
}

TEST(Bars, LongLabelsHaveALineAndWideOnesTwoColumns) {
  const std::string label(50, 'x');
  EXPECT_THAT(
      DrawBars("time", {{{Phrase(label.c_str()), "1 s", 1, 1, 1}}}).text,
      HasSubstr(absl::StrCat("  ", label, "\n")));
}

TEST(Bars, NothingAndZero) {
  EXPECT_EQ(DrawBars("time", {}).text, "");
  EXPECT_EQ(DrawBars("time", {{}}).text, "");
  const Drawing zero = DrawBars("memory", {{{"none", "0 B"}, {"b", "0 B"}}});
  EXPECT_EQ(Count(zero.text, '#'), 0u);
  EXPECT_THAT(zero.svg, Not(HasSubstr("nan")));
}

TEST(Bars, RefusesWhatHasNoLength) {
  for (const double value : {-1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_THROW(DrawBars("time", {{{"a", "", value}}}), std::invalid_argument);
    EXPECT_THROW(DrawBars("time", {{{"a", "", 1, 1, value}}}),
                 std::invalid_argument);
  }
}

// No line is wider than the page, and no SVG contains NaN or infinity.
TEST(Bars, RandomOnesFit) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> size(0, 6);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::vector<Bar>> groups(random() % 4);
    for (std::vector<Bar>& group : groups) {
      group.resize(random() % 5);
      for (Bar& bar : group) {
        const double value = random() % 9 == 0 ? 0 : size(random);
        const std::string label(random() % 60, 'l');
        bar = {{label, label}, "12.3 ms", value,         0.5 * value,
               2 * value,      value / 3, {size(random)}};
      }
    }
    const Drawing drawing = DrawBars("time", groups);
    for (const std::string& line : Lines(drawing)) {
      EXPECT_LE(line.size(), 80u) << drawing.text;
    }
    EXPECT_THAT(drawing.svg, Not(HasSubstr("nan")));
    EXPECT_THAT(drawing.svg, Not(HasSubstr("width=\"-")));
  }
}

TEST(Bars, ACallOfTheHostHasAnotherColourAndNoParts) {
  Bar host = {"host library", "4 ms", 0.004, 0.004, 0.004, /*enqueue=*/0.004};
  host.of_host = true;
  const Drawing drawing = DrawBars("time", {{host}});
  EXPECT_THAT(drawing.text, Not(HasSubstr("enqueueing")));
  EXPECT_THAT(drawing.svg, HasSubstr(PaletteColour(1)));
  EXPECT_THAT(drawing.svg, Not(HasSubstr(PaletteColour(0))));
}

}  // namespace
}  // namespace d2l
