#include "chapters/multi_gpu/exercises/judges/moves.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "common/base/console/language.h"
#include "common/exercise/exercise.h"
#include "common/parallel/collective/schedule.h"

namespace d2l {
namespace {

// True if one move reads or writes what the other one writes.
bool Depend(const Move& a, const Move& b) {
  return a.chunk == b.chunk &&
         (a.to == b.to || a.to == b.from || a.from == b.to);
}

void ExpectIndependent(const Judging& judging, const std::string& input,
                       const std::vector<Move>& moves) {
  for (auto a = moves.begin(); a != moves.end(); ++a) {
    for (auto b = a + 1; b != moves.end() && b->step == a->step; ++b) {
      if (!Depend(*a, *b)) continue;
      judging.Wrong({input,
                     Say("in step %d rank %d fetches chunk %d of rank %d, and "
                         "rank %d fetches it of rank %d",
                         a->step, a->to, a->chunk, a->from, b->to, b->from),
                     "moves that do not depend on each other",
                     "Moves of the same step are made at the same time: no "
                     "move may read or write a chunk that another one writes. "
                     "Give later moves a later step."});
    }
  }
}

// The error in the result; "" if there is none.
std::string Unsummed(const CollectiveSchedule& schedule) {
  const absl::StatusOr<std::vector<Addends>> held = AddendsAfter(schedule);
  if (!held.ok()) {
    return Say("a sum is added to a sum: %s",
               std::string(held.status().message()));
  }
  const int chunks = schedule.chunks();
  for (int i = 0; i < schedule.ranks() * chunks; ++i) {
    const int rank = i / chunks, chunk = i % chunks;
    const Addends& found = (*held)[static_cast<std::size_t>(i)];
    Addends sorted = found;
    std::sort(sorted.begin(), sorted.end());
    const bool whole =
        static_cast<int>(sorted.size()) == schedule.ranks() &&
        std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
    if (!whole && found.size() == 1) {
      return Say("rank %d ends with chunk %d of rank %d only", rank, chunk,
                 found[0]);
    }
    if (!whole) {
      return Say("rank %d ends with chunk %d as the sum of the ranks %s", rank,
                 chunk, absl::StrJoin(found, ", "));
    }
    if (found != (*held)[static_cast<std::size_t>(chunk)]) {
      return Say("rank %d has added chunk %d in another order than rank 0",
                 rank, chunk);
    }
  }
  return "";
}

}  // namespace

std::vector<Move> MovesOf(void (*answer)(int n,
                                         const std::function<void(Move)>& move),
                          int n) {
  std::vector<Move> moves;
  answer(n, [&](Move move) { moves.push_back(move); });
  return moves;
}

CollectiveSchedule ExpectAllReduce(const Judging& judging,
                                   const std::string& input,
                                   std::vector<Move> moves, int ranks,
                                   int chunks, const std::string& look) {
  std::stable_sort(
      moves.begin(), moves.end(),
      [](const Move& a, const Move& b) { return a.step < b.step; });
  for (const Move& move : moves) {
    if (move.op == MoveOp::kCopy || move.op == MoveOp::kAdd) continue;
    judging.Wrong({input, "a move of another kind", "kCopy or kAdd",
                   "A move copies a chunk of one rank, or adds it."});
  }
  ExpectIndependent(judging, input, moves);
  const CollectiveSchedule schedule(
      "yours", ranks, chunks,
      [moves = std::move(moves)](CollectiveSchedule::Visitor visit) {
        for (const Move& move : moves) visit(move);
      });
  const std::string unsummed = Unsummed(schedule);
  if (!unsummed.empty()) {
    judging.Wrong(
        {input, unsummed, "the sum of all ranks, on all ranks", look});
  }
  return schedule;
}

void ExpectFewSteps(const Judging& judging, const std::string& input,
                    const std::vector<Move>& moves, int n) {
  std::set<int> steps;
  for (const Move& move : moves) steps.insert(move.step);
  const int enough = 2 * (n - 1);
  if (static_cast<int>(steps.size()) <= enough) return;
  judging.Wrong({input, Say("%d steps", steps.size()),
                 Say("%d steps at most", enough),
                 "Moves of one step are made at the same time, and 2 (n - 1) "
                 "steps are enough. Does a rank fetch what it has already? Do "
                 "moves wait for others that have nothing to do with them?"});
}

}  // namespace d2l
