// Judges split_allreduce: with symbols (AddendsAfter), by the bytes that the
// busiest rank receives, then by the time that they take in the simulator.

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

using SplitMoves = void(int n, const std::function<void(Move)>& move);

void JudgeSplitMoves(Judging& judging, SplitMoves* answer) {
  for (const int n : {4, 3, 7, 2, 1, static_cast<int>(Drawn(9, 14))}) {
    const std::string input = Say("%d ranks", n);
    const std::vector<Move> moves = MovesOf(answer, n);
    std::vector<int> received(static_cast<std::size_t>(n), 0);
    bool copies = false;
    for (const Move& move : moves) {
      if (move.to < 0 || move.to >= n || move.from < 0 || move.from >= n ||
          move.chunk < 0 || move.chunk >= n ||
          (move.op != MoveOp::kAdd && move.op != MoveOp::kCopy)) {
        judging.Wrong(
            {input,
             Say("rank %d fetches chunk %d of rank %d", move.to, move.chunk,
                 move.from),
             Say("ranks and chunks of 0 to %d, by kAdd or kCopy", n - 1),
             "A move writes one chunk of rank `to`."});
      }
      ++received[static_cast<std::size_t>(move.to)];
      copies = copies || move.op == MoveOp::kCopy;
    }
    const CollectiveSchedule schedule = ExpectAllReduce(
        judging, input, moves, n, n,
        copies ? "Each chunk has to be added up on one rank, from all other "
                 "ranks, and then copied to all other ranks."
               : "Every rank has a part of the sum now. The others need it, "
                 "too.");
    const auto busiest = std::max_element(received.begin(), received.end());
    if (*busiest > 2 * (n - 1)) {
      judging.Wrong({input,
                     Say("rank %d receives %d chunks",
                         busiest - received.begin(), *busiest),
                     Say("%d at most", 2 * (n - 1)),
                     "The rank that receives the most sets the pace: let each "
                     "add up one chunk only."});
    }
    if (n == 1) continue;
    const double bytes = 160e6;
    const Topology pcie = Topology::PcieSwitch(n, 16e9);
    const double got = Simulate(pcie, schedule, bytes).seconds;
    const double bound = 2 * (n - 1) * bytes / n / 16e9;
    if (got > 1.01 * bound) {
      judging.Wrong({input + Say(", 160 MB on links of 16 GB/s"),
                     Say("%s in the simulator", FormatDuration(got)),
                     FormatDuration(bound),
                     "In one step several ranks fetch from the same rank, "
                     "which sends to one after the other. Let rank r begin "
                     "with rank r + 1."});
    }
    ExpectFewSteps(judging, input, moves, n);
    if (n != 4) continue;
    judging.Note(Say(
        "160 MB on 4 GPUs at 16 GB/s: %s, the book's 15 ms; with all sums on "
        "one GPU %s.",
        FormatDuration(got),
        FormatDuration(Simulate(pcie,
                                AllReduceSchedule(AllReduceAlgorithm::kStar, 4),
                                bytes)
                           .seconds)));
  }
}

D2L_JUDGE("split_allreduce", JudgeSplitMoves);

}  // namespace
}  // namespace d2l
