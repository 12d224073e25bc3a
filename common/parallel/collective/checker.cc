#include "common/parallel/collective/checker.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace d2l {
namespace {

std::string Describe(const Move& move) {
  switch (move.op) {
    case MoveOp::kCopy:
      return absl::StrFormat("%d copies chunk %d of %d", move.to, move.chunk,
                             move.from);
    case MoveOp::kAdd:
      return absl::StrFormat("%d adds chunk %d of %d", move.to, move.chunk,
                             move.from);
    case MoveOp::kSum:
      return absl::StrFormat("%d sums chunk %d of all", move.to, move.chunk);
    case MoveOp::kBegin:
      return absl::StrFormat("the work of %d before", move.to);
    case MoveOp::kEnd:
      return absl::StrFormat("the work of %d behind", move.to);
  }
  return "";
}

absl::StatusOr<Addends> Add(const Addends& a, const Addends& b,
                            const Move& move) {
  if (a.empty() || b.empty()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "step %d: %s, where nothing was written", move.step, Describe(move)));
  }
  if (a.size() > 1 && b.size() > 1) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "step %d: %s: both are sums already", move.step, Describe(move)));
  }
  Addends sum = a.size() > 1 ? a : b;
  sum.push_back(a.size() > 1 ? b[0] : a[0]);
  if (sum.size() == 2) std::sort(sum.begin(), sum.end());
  return sum;
}

}  // namespace

absl::StatusOr<std::vector<Addends>> AddendsAfter(
    const CollectiveSchedule& schedule) {
  const int chunks = schedule.chunks();
  std::vector<Addends> held(schedule.participants() * chunks);
  for (int i = 0; i < schedule.ranks() * chunks; ++i) held[i] = {i / chunks};
  absl::Status status;
  schedule.ForEach([&](const Move& move) {
    if (!status.ok()) return;
    const auto at = [&](int rank) -> Addends& {
      return held[rank * chunks + move.chunk];
    };
    absl::StatusOr<Addends> result = at(move.from);
    if (move.op == MoveOp::kAdd) {
      result = Add(at(move.to), at(move.from), move);
    } else if (move.op == MoveOp::kSum) {
      result = at(0);
      for (int rank = 1; rank < schedule.ranks() && result.ok(); ++rank) {
        result = Add(*result, at(rank), move);
      }
    }
    status = result.status();
    if (status.ok() && result->empty()) status = Add({}, {}, move).status();
    if (status.ok()) at(move.to) = *std::move(result);
  });
  if (!status.ok()) return status;
  return held;
}

absl::Status CheckResult(const CollectiveSchedule& schedule) {
  absl::StatusOr<std::vector<Addends>> held = AddendsAfter(schedule);
  if (!held.ok()) return held.status();
  const int chunks = schedule.chunks();
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const Addends& found = (*held)[rank * chunks + chunk];
      // Each rank once; in an order that is rank 0's.
      Addends all = found;
      std::sort(all.begin(), all.end());
      bool right = found == (*held)[chunk] &&
                   static_cast<int>(all.size()) == schedule.ranks();
      for (int r = 0; r < schedule.ranks() && right; ++r) right = all[r] == r;
      if (right) continue;
      return absl::FailedPreconditionError(absl::StrFormat(
          "%s of %d: rank %d ends with chunk %d of %s", schedule.name(),
          schedule.ranks(), rank, chunk, absl::StrJoin(found, " + ")));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOrder(const Plan& plan) {
  const int count = static_cast<int>(plan.moves.size());
  // The last move of each rank that is done when a move begins, and -1.
  std::vector<std::vector<int>> before(count);
  std::vector<int> last(plan.participants, -1);
  for (int i = 0; i < count; ++i) {
    const PlannedMove& planned = plan.moves[i];
    std::vector<int> clock(plan.participants, -1);
    const auto follow = [&](int other) {
      for (int r = 0; r < plan.participants; ++r) {
        clock[r] = std::max(clock[r], before[other][r]);
      }
      int& own = clock[plan.moves[other].move.to];
      own = std::max(own, other);
    };
    if (last[planned.move.to] >= 0) follow(last[planned.move.to]);
    for (const int other : planned.waits) {
      if (other >= i) {
        return absl::FailedPreconditionError(
            absl::StrFormat("move %d waits for a later one, %d", i, other));
      }
      follow(other);
    }
    last[planned.move.to] = i;
    before[i] = std::move(clock);
  }
  struct Access {
    int move;
    bool write;
  };
  std::vector<std::vector<Access>> accesses(plan.participants * plan.chunks);
  for (int i = 0; i < count; ++i) {
    ForEachAccess(plan, plan.moves[i].move, [&](int r, int c, bool write) {
      accesses[r * plan.chunks + c].push_back({i, write});
    });
  }
  for (int place = 0; place < plan.participants * plan.chunks; ++place) {
    const std::vector<Access>& all = accesses[place];
    for (std::size_t b = 0; b < all.size(); ++b) {
      for (std::size_t a = 0; a < b; ++a) {
        if (!all[a].write && !all[b].write) continue;
        const Move& first = plan.moves[all[a].move].move;
        const Move& second = plan.moves[all[b].move].move;
        if (before[all[b].move][first.to] >= all[a].move) continue;
        return absl::FailedPreconditionError(absl::StrFormat(
            "nothing orders \"%s\" and \"%s\", which touch chunk %d of %d",
            Describe(first), Describe(second), place % plan.chunks,
            place / plan.chunks));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace d2l
