#include "common/lesson/cell/figure_drawings.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/console/language.h"
#include "common/base/statistics.h"
#include "common/drawing/drawing.h"
#include "common/lesson/cell/judge.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Figure Time(const Phrase& label, const std::string& column, double seconds,
            std::optional<Place> place = std::nullopt, int group = 0) {
  Figure figure{label, column, "cpu:0, virtual", "s", Exactly(seconds)};
  figure.place = std::move(place);
  figure.group = group;
  return figure;
}

TEST(DrawFigures, AlternativesAreBars) {
  const std::vector<Drawing> drawings =
      DrawFigures({Time("one", "enqueue", 0.001, {}, 1),
                   Time("one", "completion", 0.004, {}, 1),
                   Time("both", "enqueue", 0.001, {}, 1),
                   Time("both", "completion", 0.002, {}, 1)},
                  {{"both, completion (cpu:0, virtual)", 0.003}});
  ASSERT_EQ(drawings.size(), 1u);
  EXPECT_EQ(drawings[0].name, "time");
  EXPECT_THAT(drawings[0].text, HasSubstr("  one   ===="));
  EXPECT_THAT(drawings[0].text, HasSubstr("4.00 ms"));
  EXPECT_THAT(drawings[0].text, HasSubstr("  both  ===="));
  EXPECT_THAT(drawings[0].text, HasSubstr("| needed for HOLDS"));
}

TEST(DrawFigures, EachUnitHasADrawing) {
  const std::vector<Drawing> drawings = DrawFigures(
      {Time("one", "", 1), Known("peak, one", "B", 1024), Time("two", "", 2),
       Known("peak, two", "B", 4096), Known("alone", "x", 3)},
      {});
  ASSERT_EQ(drawings.size(), 2u);
  EXPECT_EQ(drawings[0].name, "time");
  EXPECT_EQ(drawings[1].name, "memory");
  EXPECT_THAT(drawings[1].text, HasSubstr("4.00 KiB"));
  EXPECT_THAT(drawings[1].text, Not(HasSubstr("enqueueing")));
}

TEST(DrawFigures, AFigureAloneHasABarOnlyIfItHasTwoParts) {
  EXPECT_TRUE(DrawFigures({}, {}).empty());
  EXPECT_TRUE(DrawFigures({Time("one", "", 1)}, {}).empty());
  EXPECT_EQ(DrawFigures(
                {Time("one", "enqueue", 0.1), Time("one", "completion", 1)}, {})
                .size(),
            1u);
}

TEST(DrawFigures, SweepsAreCurves) {
  std::vector<Figure> figures;
  for (const int n : {4, 16, 64}) {
    figures.push_back(Time("one", "enqueue", 1e-6, Place{"n", 1.0 * n}));
    figures.push_back(Time("one", "completion", 1e-3 * n, Place{"n", 1.0 * n}));
    figures.push_back(Time("two", "completion", 5e-4 * n, Place{"n", 1.0 * n}));
  }
  figures.push_back(Time("another", "", 1));
  const std::vector<Drawing> drawings = DrawFigures(figures, {});
  ASSERT_EQ(drawings.size(), 1u);
  EXPECT_EQ(drawings[0].name, "time by n");
  EXPECT_THAT(drawings[0].text, HasSubstr("* one, o two"));
  EXPECT_THAT(drawings[0].svg, HasSubstr("one: 64, 64 ms"));
  EXPECT_THAT(drawings[0].text, Not(HasSubstr("another")));
}

TEST(DrawFigures, BareNumbersAreWhatTheirLabelSays) {
  std::vector<Figure> figures;
  for (const int step : {0, 10}) {
    for (const char* label : {"apart, with it", "apart, without"}) {
      figures.push_back(Known(label, "", 0.5 * step));
      figures.back().place = Place{"step", 1.0 * step};
    }
  }
  const std::vector<Drawing> drawings = DrawFigures(figures, {});
  ASSERT_EQ(drawings.size(), 1u);
  EXPECT_EQ(drawings[0].name, "apart by step");
  EXPECT_TRUE(DrawFigures({Known("a", "", 1), Known("b", "", 2)}, {}).empty());
}

TEST(DrawFigures, APlaceIsPartOfTheName) {
  const Figure figure = Time("one", "completion", 1, Place{"n", 64});
  EXPECT_EQ(figure.Name().english, "one, n = 64, completion (cpu:0, virtual)");
}

TEST(DrawFigures, WhatHasNoLengthIsLeftOut) {
  for (const double seconds : {-1.0, std::nan(""), HUGE_VAL}) {
    Figure odd = Time("a", "", 1);
    odd.value.low = odd.value.median = odd.value.high = seconds;
    EXPECT_TRUE(DrawFigures({odd, Time("b", "", 1)}, {}).empty());
    odd.place = Place{"n", 1};
    EXPECT_TRUE(
        DrawFigures({odd, Time("a", "", 1, Place{"n", 2})}, {}).empty());
  }
}

TEST(DrawFigures, EqualLabelsOfTwoGroupsAreTwoBars) {
  const std::vector<Drawing> drawings = DrawFigures(
      {Time("a", "enqueue", 1, {}, 1), Time("a", "completion", 4, {}, 1),
       Time("a", "enqueue", 3, {}, 2), Time("a", "completion", 4, {}, 2)},
      {});
  ASSERT_EQ(drawings.size(), 1u);
  const std::string& text = drawings[0].text;
  const std::size_t second = text.find("\n\n");
  ASSERT_NE(second, std::string::npos);
  EXPECT_LT(2 * std::count(text.begin(), text.begin() + second, '='),
            std::count(text.begin() + second, text.end(), '='));
}

}  // namespace
}  // namespace d2l
