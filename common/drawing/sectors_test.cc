#include "common/drawing/sectors.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

// Lanes whose words begin `apart` bytes apart; lane `without` has none.
std::vector<std::int64_t> Lanes(int count, int apart, int without = -1) {
  std::vector<std::int64_t> first;
  for (int lane = 0; lane < count; ++lane) {
    first.push_back(lane == without ? -1 : std::int64_t{1} * lane * apart + 4);
  }
  return first;
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos;
       ++at) {
    ++count;
  }
  return count;
}

TEST(Sectors, OfNeighboursAreFull) {
  const Drawing drawing = DrawSectors("by columns", Lanes(15, 4, 9));
  EXPECT_EQ("\n" + drawing.text, R"(
the thread that uses each word of a sector, in the first request
sector    0 |  .  0  1  2  3  4  5  6 |
sector    1 |  7  8  . 10 11 12 13 14 |
)");
  EXPECT_EQ(Count(drawing.svg, ">sector "), 2);
  // The background is one more rectangle.
  EXPECT_EQ(Count(drawing.svg, "<rect "), 2 * 8 + 1);
  EXPECT_EQ(Count(drawing.svg, "fill=\"#56B4E9\""), 14);
  EXPECT_EQ(drawing.name.english, "by columns");
}

TEST(Sectors, OfAColumnAreTooManyForTheText) {
  const Drawing drawing = DrawSectors("by rows", Lanes(32, 256));
  EXPECT_EQ("\n" + drawing.text, R"(
the thread that uses each word of a sector, in the first request
sector    0 |  .  0  .  .  .  .  .  . |
sector    8 |  .  1  .  .  .  .  .  . |
sector   16 |  .  2  .  .  .  .  .  . |
sector   24 |  .  3  .  .  .  .  .  . |
... and 28 more
)");
  EXPECT_EQ(Count(drawing.svg, ">sector "), 32);
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_TRUE(absl::StrContains(drawing.svg, absl::StrCat(">", lane, "<")));
  }
}

TEST(Sectors, OneWordMayServeAll) {
  EXPECT_EQ("\n" + DrawSectors("broadcast", Lanes(32, 0)).text, R"(
the thread that uses each word of a sector, in the first request
sector    0 |  .  0  .  .  .  .  .  . |
)");
  EXPECT_EQ(Count(DrawSectors("none", {}).svg, ">sector "), 0);
}

}  // namespace
}  // namespace d2l
