// Judges two_way_ring: with symbols (AddendsAfter), then by time in the
// simulator.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "chapters/multi_gpu/exercises/judges/moves.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/device/topology.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/parallel/collective/schedule.h"
#include "common/parallel/simulator/simulator.h"

namespace d2l {
namespace {

using TwoWayRing = void(int n, const std::function<void(Move)>& move);

void JudgeTwoWayRing(Judging& judging, TwoWayRing* answer) {
  for (const int n : {3, 4, 5, 8, 2, 1, static_cast<int>(Drawn(9, 14))}) {
    const std::string input = Say("a ring of %d", n);
    const std::vector<Move> moves = MovesOf(answer, n);
    std::vector<int> of_chunk(static_cast<std::size_t>(2 * n), 0);
    for (const Move& move : moves) {
      const int distance = (move.to - move.from + n) % n;
      if (move.to < 0 || move.to >= n || move.from < 0 || move.from >= n ||
          move.chunk < 0 || move.chunk >= 2 * n ||
          (distance != 1 && distance != n - 1)) {
        judging.Wrong(
            {input,
             Say("rank %d fetches chunk %d of rank %d", move.to, move.chunk,
                 move.from),
             Say("ranks of 0 to %d, chunks of 0 to %d, from a neighbour", n - 1,
                 2 * n - 1),
             "A ring has cables between neighbours only."});
      }
      ++of_chunk[static_cast<std::size_t>(move.chunk)];
    }
    const auto most = std::max_element(of_chunk.begin(), of_chunk.end());
    if (*most > 2 * (n - 1)) {
      judging.Wrong(
          {input, Say("%d moves of chunk %d", *most, most - of_chunk.begin()),
           Say("%d at most", 2 * (n - 1)),
           "Two rings meet on the same chunk: give the second one "
           "chunks of its own."});
    }
    std::string look =
        "Mirror each move of the ring: rank r becomes n - 1 - r.";
    if (*std::min_element(of_chunk.begin(), of_chunk.end()) == 0) {
      look = "Half of the array is not added up: there are 2 n chunks.";
    }
    const CollectiveSchedule schedule =
        ExpectAllReduce(judging, input, moves, n, 2 * n, look);
    ExpectFewSteps(judging, input, moves, n);
    if (n < 3) continue;  // with two ranks both directions are one cable
    const Topology ring = Topology::Ring(n, 54e9);
    const double one_way =
        Simulate(ring, AllReduceSchedule(AllReduceAlgorithm::kRing, n), 160e6)
            .seconds;
    const double got = Simulate(ring, schedule, 160e6).seconds;
    if (got > 0.51 * one_way) {
      judging.Wrong(
          {input + Say(", 160 MB on cables of 54 GB/s"),
           Say("%s in the simulator", FormatDuration(got)),
           Say("%s, half of the time of one ring", FormatDuration(one_way / 2)),
           "Both halves are sent in the same direction, and the other "
           "direction is idle."});
    }
    if (n == 8) {
      judging.Note(Say("160 MB on 8 GPUs: one way %s, both ways %s.",
                       FormatDuration(one_way), FormatDuration(got)));
    }
  }
}

D2L_JUDGE("two_way_ring", JudgeTwoWayRing);

}  // namespace
}  // namespace d2l
