// Judges ring_with_a_hole: with symbols instead of numbers (AddendsAfter).

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

using RingMoves = void(int n, const std::function<void(Move)>& move);

void JudgeRingMoves(Judging& judging, RingMoves* answer) {
  for (const int n : {2, 3, 4, 8, 1, static_cast<int>(Drawn(9, 14))}) {
    const std::string input = Say("a ring of %d", n);
    const std::vector<Move> moves = MovesOf(answer, n);
    int copies = 0;
    std::vector<int> adds(static_cast<std::size_t>(n), 0);
    for (const Move& move : moves) {
      if (move.to < 0 || move.to >= n || move.chunk < 0 || move.chunk >= n ||
          move.from != (move.to + n - 1) % n) {
        judging.Wrong(
            {input,
             Say("rank %d fetches chunk %d of rank %d", move.to, move.chunk,
                 move.from),
             Say("ranks and chunks of 0 to %d, from the left neighbour", n - 1),
             "The left neighbour of `to` is (to + n - 1) % n."});
      }
      copies += move.op == MoveOp::kCopy ? 1 : 0;
      adds[static_cast<std::size_t>(move.to)] +=
          move.op == MoveOp::kAdd ? 1 : 0;
    }
    std::string look =
        "After the first half, which finished chunk does the left neighbour "
        "have? Rank r has chunk (r + 1) % n.";
    if (*std::max_element(adds.begin(), adds.end()) > n - 1) {
      look =
          "Copy finished sums: adding a finished sum to a partial one counts "
          "some ranks twice.";
    } else if (copies < n * (n - 1)) {
      look =
          Say("A move is missing: there are %d copies, and each of %d ranks "
              "lacks %d chunks.",
              copies, n, n - 1);
    }
    const CollectiveSchedule ring =
        ExpectAllReduce(judging, input, moves, n, n, look);
    ExpectFewSteps(judging, input, moves, n);
    if (n != 8) continue;
    const auto seconds = [](const CollectiveSchedule& schedule) {
      return Simulate(Topology::Ring(8, 54e9), schedule, 160e6).seconds;
    };
    judging.Note(
        Say("160 MB on 8 GPUs in a ring of 54 GB/s: %s; if rank 0 added "
            "everything up: %s.",
            FormatDuration(seconds(ring)),
            FormatDuration(
                seconds(AllReduceSchedule(AllReduceAlgorithm::kStar, 8)))));
  }
}

D2L_JUDGE("ring_with_a_hole", JudgeRingMoves);

}  // namespace
}  // namespace d2l
