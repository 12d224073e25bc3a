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

D2L_MISTAKE("small_on_streams", all_at_once, LargestSize, "gain as well");
D2L_MISTAKE("small_on_streams", some_units_idle, LargestSize,
            "leaves units idle is not enough");
D2L_MISTAKE("small_on_streams", whole_tiles, LargestSize, "at the edge");

}  // namespace
}  // namespace d2l
