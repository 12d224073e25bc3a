#include "common/drawing/svg.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(EscapeXml, LeavesNothingThatIsMarkup) {
  EXPECT_EQ(EscapeXml("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(EscapeXml("z = x"), "z = x");
  EXPECT_EQ(EscapeXml("\xc3\xa9 \xe2\x80\xa6 \xf0\x9f\x98\x80"),
            "\xc3\xa9 \xe2\x80\xa6 \xf0\x9f\x98\x80");
}

TEST(EscapeXml, ReplacesWhatXmlCannotHold) {
  EXPECT_EQ(EscapeXml(std::string("\0\x01\x1b\x7f", 4)),
            "\\x00\\x01\\x1b\\x7f");
  EXPECT_EQ(EscapeXml("\t\n"), "\t\n");
  EXPECT_EQ(EscapeXml("\xff"), "\\xff");
  EXPECT_EQ(EscapeXml("a\xc3"), "a\\xc3");                  // cut short
  EXPECT_EQ(EscapeXml("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(EscapeXml("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half a pair
  EXPECT_EQ(EscapeXml("\xf5\x80\x80\x80"),
            "\\xf5\\x80\\x80\\x80");  // too large
}

TEST(Svg, IsAWholeFile) {
  Svg svg(100, 50, "a & b");
  svg.Rect(1, 2, 3, 4, {"red", "none"}, "tip <1>");
  svg.Circle(1, 2, 3, {"red"});
  svg.Line(0, 0, 1, 1, {"#333333", 1, true, true});
  svg.Text(5, 6, "<text>", {12, "middle"});
  const std::string text = svg.ToString();
  EXPECT_THAT(text, StartsWith("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                               "<svg xmlns=\"http://www.w3.org/2000/svg\""));
  for (const char* part : {"<title>a &amp; b</title>", "tip &lt;1&gt;",
                           "stroke-dasharray", "url(#arrow)", "&lt;text&gt;"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_EQ(text.substr(text.size() - 7), "</svg>\n");
  EXPECT_THAT(text, Not(HasSubstr("<text>")));
}

TEST(PaletteColour, Repeats) {
  EXPECT_EQ(PaletteColour(0), PaletteColour(8));
  EXPECT_NE(PaletteColour(0), PaletteColour(1));
}

}  // namespace
}  // namespace d2l
