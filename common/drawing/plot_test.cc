#include "common/drawing/plot.h"

#include <cmath>
#include <limits>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::vector<std::string> Lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(PlotText, PointsStandWhereTheyBelong) {
  Plot plot("n", "", "time", "s");
  plot.AddLine("dots", {0, 10}, {0, 2});
  const std::string text = plot.ToText(40);
  const std::vector<std::string> lines = Lines(text);
  ASSERT_GE(lines.size(), 18u) << text;
  EXPECT_EQ(lines[0], "time");
  // 16 rows: the largest value on top, zero at the bottom.
  EXPECT_EQ(lines[1].front(), ' ');
  EXPECT_THAT(lines[1], HasSubstr("2 s +"));
  EXPECT_EQ(lines[1].back(), '*');
  EXPECT_THAT(lines[14], HasSubstr("0 +*"));
  EXPECT_THAT(lines[15], HasSubstr("+---"));
  EXPECT_THAT(lines[16], HasSubstr("10"));
  EXPECT_EQ(lines[18], "* dots");
}

TEST(PlotText, BytesOnALogarithmicAxisAreMarkedInPowersOfTwo) {
  Plot plot("memory", "B", "time", "s");
  plot.LogX().LogY();
  plot.AddLine("load", {4096, 1 << 28}, {1e-9, 1e-7});
  EXPECT_THAT(Lines(plot.ToText(80))[16],
              MatchesRegex(" +4 KiB +32 KiB +256 KiB +2 MiB +16 MiB +128 MiB"));
}

TEST(PlotText, FitsAnyWidthAndAnyData) {
  for (const bool log : {false, true}) {
    for (const int points : {1, 2, 200}) {
      Plot plot("n", "B", "a rather long name of an axis", "s");
      if (log) plot.LogX().LogY();
      std::vector<double> x, y;
      for (int i = 1; i <= points; ++i) {
        x.push_back(std::pow(1.3, i % 60));
        y.push_back(1e-7 * i * i);
      }
      plot.AddLine("one", x, y);
      plot.AddLine("two", y, x);
      for (const int width : {40, 80}) {
        const std::string text = plot.ToText(width);
        for (const std::string& line : Lines(text)) {
          EXPECT_LE(line.size(), static_cast<std::size_t>(width)) << text;
        }
      }
      EXPECT_THAT(plot.ToSvg("t"), HasSubstr("</svg>"));
    }
  }
  EXPECT_EQ(Plot("x", "", "y", "").ToText(), "There is nothing to plot.\n");
}

// The plot shows how many lines coincide, and the legend names the other.
TEST(Plot, LinesThatCoincideAreSeen) {
  Plot plot("n", "", "time", "s");
  plot.AddLine("a", {0, 5, 10}, {0, 1, 2});
  plot.AddLine("b", {0, 5, 10}, {0, 1, 2});
  plot.AddLine("c", {0, 5, 10}, {1, 2, 2});
  const std::string text = plot.ToText(60);
  const std::vector<std::string> lines = Lines(text);
  EXPECT_EQ(lines[1].back(), '3') << text;
  EXPECT_THAT(lines[14], HasSubstr("0 +2"));
  EXPECT_THAT(lines[18],
              HasSubstr("* a, o b (as a), + c; 2, 3, ...: number of lines"));
  const std::string svg = plot.ToSvg();
  EXPECT_THAT(svg, HasSubstr(">b (as a)<"));
  EXPECT_THAT(svg, HasSubstr(">c<"));
  EXPECT_THAT(svg, HasSubstr("stroke-dasharray"));
  // Concentric rings: 3.5, 6 and 8.5 pixels.
  EXPECT_THAT(svg, HasSubstr("r=\"6\" fill=\"none\""));
  EXPECT_THAT(svg, HasSubstr("r=\"8.5\" fill=\"none\""));
}

// The names of points that are alone stand beside them, and not on each other.
TEST(Plot, PointsAloneAreNamed) {
  Plot plot("n", "", "time", "s");
  plot.AddLine("line", {0, 10}, {0, 10});
  for (const char* name : {"first", "second", "third"}) {
    plot.AddLine(name, {5}, {5});
  }
  plot.AddLine("right", {10}, {5});
  const std::string svg = plot.ToSvg();
  const auto place = [&](const std::string& name) {
    std::smatch text;
    return std::regex_search(svg, text,
                             std::regex("<text x=\"([0-9.]+)\" y=\"([0-9.]+)\" "
                                        "font-size=\"11\"[^>]*>" +
                                        name + "<"))
               ? text[1].str() + " " + text[2].str()
               : "";
  };
  EXPECT_EQ(place("line"), "");
  std::set<std::string> places = {""};
  for (const char* name : {"first", "second", "third", "right"}) {
    places.insert(place(name));
  }
  EXPECT_EQ(places.size(), 5u) << svg;
}

TEST(Plot, RefusesWhatHasNoPlace) {
  Plot plot("n", "", "time", "s");
  plot.LogX();
  EXPECT_THROW(plot.AddLine("a", {1, 2}, {1}), std::invalid_argument);
  EXPECT_THROW(plot.AddLine("a", {0}, {1}), std::invalid_argument);
  EXPECT_THROW(plot.AddLine("a", {1}, {NAN}), std::invalid_argument);
  EXPECT_THROW(
      plot.AddLine("a", {1}, {std::numeric_limits<double>::infinity()}),
      std::invalid_argument);
}

}  // namespace
}  // namespace d2l
