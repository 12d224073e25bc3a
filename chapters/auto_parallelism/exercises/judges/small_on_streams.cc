// Judges small_on_streams: by trying all sizes.

#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"

namespace d2l {
namespace {

using LargestSize = int(int units, int tile, int streams);

// The number of turns in which the units do this many tiles.
int Turns(int tiles, int units) {
  int turns = 0;
  for (; tiles > 0; tiles -= units) ++turns;
  return turns;
}

double Gain(int units, int tile, int streams, int n) {
  int side = 0;
  for (int at = 0; at < n; at += tile) ++side;
  return 1.0 * streams * Turns(side * side, units) /
         Turns(streams * side * side, units);
}

struct Machine {
  int units, tile, streams;
};

void JudgeLargestSize(Judging& judging, LargestSize* answer) {
  std::vector<Machine> machines = {{100, 64, 2}, {108, 128, 4}, {132, 128, 8},
                                   {7, 32, 3},   {1, 32, 4},    {16, 32, 1},
                                   {2, 32, 2}};
  for (int i = 0; i < 20; ++i) {
    machines.push_back({static_cast<int>(Drawn(1, 150)),
                        static_cast<int>(Drawn(3, 130)),
                        static_cast<int>(Drawn(1, 9))});
  }
  for (const auto& [units, tile, streams] : machines) {
    int expected = 0;
    for (int n = 1; n <= 2 * tile * (units + 1); ++n) {
      if (Gain(units, tile, streams, n) >= 1.5) expected = n;
      // Many tiles: hardly anything is left to gain.
      if (n > tile && n / tile * (n / tile) > 4 * units) break;
    }
    const int got = answer(units, tile, streams);
    if (got == expected) continue;
    std::string look =
        "Some larger products gain as well: the last turn of a product may "
        "leave most units idle.";
    if (got % tile != 0) {
      look =
          "A tile at the edge takes as long as a whole one, however few "
          "numbers it has.";
    } else if (expected == 0) {
      look =
          "With one unit, or on one stream, no two products run at the same "
          "time: there is no such size, and the answer is 0.";
    } else if (got < expected && Gain(units, tile, streams, expected) == 1.5 &&
               Gain(units, tile, streams, got) > 1.5) {
      look =
          Say("At n = %d the streams are exactly 1.5 times as fast, and that "
              "is enough.",
              expected);
    } else if (got > expected) {
      look =
          Say("At n = %d the streams are only %.2f times as fast: the units "
              "that one product leaves idle are too few for another product.",
              got, Gain(units, tile, streams, got));
    }
    judging.Wrong({Say("%d units, tiles of %d x %d, %d streams", units, tile,
                       tile, streams),
                   absl::StrFormat("%d", got), absl::StrFormat("%d", expected),
                   look});
  }
}

D2L_JUDGE("small_on_streams", JudgeLargestSize);

}  // namespace
}  // namespace d2l
