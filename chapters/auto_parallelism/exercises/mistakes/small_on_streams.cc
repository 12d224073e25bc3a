#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace all_at_once {
int LargestSize(int units, int tile, int streams) {
  int side = 0;
  while (streams * (side + 1) * (side + 1) <= units) ++side;
  return side * tile;
}
}  // namespace all_at_once

namespace some_units_idle {
int LargestSize(int units, int tile, int streams) {
  int side = 0;
  while ((side + 1) * (side + 1) < units) ++side;
  return side * tile;
}
}  // namespace some_units_idle

namespace whole_tiles {
int LargestSize(int units, int tile, int streams) {
  return all_at_once::LargestSize(units, tile, streams) + tile - 1;
}
}  // namespace whole_tiles

// More than 1.5 times, not at least.
namespace more_than_half {
int LargestSize(int units, int tile, int streams) {
  for (int side = 2 * units + 2; side > 0; --side) {
    const int tiles = side * side;
    const int one_by_one = streams * ((tiles + units - 1) / units);
    const int together = (streams * tiles + units - 1) / units;
    if (2 * one_by_one > 3 * together) return side * tile;
  }
  return 0;
}
}  // namespace more_than_half

namespace at_least_one_tile {
int LargestSize(int units, int tile, int streams) {
  for (int side = 2 * units + 2; side > 1; --side) {
    const int tiles = side * side;
    const int one_by_one = streams * ((tiles + units - 1) / units);
    const int together = (streams * tiles + units - 1) / units;
    if (2 * one_by_one >= 3 * together) return side * tile;
  }
  return tile;
}
}  // namespace at_least_one_tile

D2L_MISTAKE("small_on_streams", all_at_once, LargestSize, "gain as well");
D2L_MISTAKE("small_on_streams", some_units_idle, LargestSize,
            "too few for another product");
D2L_MISTAKE("small_on_streams", whole_tiles, LargestSize, "at the edge");
D2L_MISTAKE("small_on_streams", more_than_half, LargestSize, "exactly 1.5");
D2L_MISTAKE("small_on_streams", at_least_one_tile, LargestSize,
            "there is no such size");

}  // namespace
}  // namespace d2l
