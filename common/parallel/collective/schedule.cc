#include "common/parallel/collective/schedule.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <stdexcept>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"

namespace d2l {
namespace {

using Visitor = CollectiveSchedule::Visitor;

// In the order of AllReduceAlgorithm.
constexpr const char* kNames[] = {
    "split", "star", "host", "ring", "bidirectional_ring", "nccl"};

int Modulo(int a, int n) { return (a % n + n) % n; }

// Chunk r goes from rank r to all others. In each step every rank sends one
// chunk and receives one.
void Gather(int ranks, int first_step, Visitor visit) {
  for (int i = 1; i < ranks; ++i) {
    for (int to = 0; to < ranks; ++to) {
      const int from = (to + i) % ranks;
      visit({first_step + i - 1, to, from, from, MoveOp::kCopy});
    }
  }
}

void Scatter(int ranks, Visitor visit) {
  for (int to = 0; to < ranks; ++to) visit({0, to, to, to, MoveOp::kSum});
}

// In step s rank r receives from r - 1, or from r + 1 in the other direction.
// Chunk c's sum begins at rank c and grows in ring order; it is complete at the
// rank before c, from which the result goes round once more.
//
// One direction after the other: if a rank has one link for both, as at a
// switch, every link then serves a whole direction before the next one. Rank by
// rank, each transfer would wait for its neighbour's, round the whole ring.
void Ring(int ranks, bool both_directions, Visitor visit) {
  for (int step = 0; step < 2 * (ranks - 1); ++step) {
    const bool adds = step < ranks - 1;
    const int round = adds ? step + 1 : step - (ranks - 1);
    for (int way = 0; way < (both_directions ? 2 : 1); ++way) {
      const int direction = way == 0 ? 1 : -1;
      for (int to = 0; to < ranks; ++to) {
        visit({step, to, Modulo(to - direction, ranks),
               Modulo(to - direction * round, ranks) + way * ranks,
               adds ? MoveOp::kAdd : MoveOp::kCopy});
      }
    }
  }
}

std::string Describe(const Move& move) {
  if (move.op == MoveOp::kSum) {
    return absl::StrFormat("%d sums chunk %d of all", move.to, move.chunk);
  }
  return absl::StrFormat("%d %s chunk %d of %d", move.to,
                         move.op == MoveOp::kAdd ? "adds" : "copies",
                         move.chunk, move.from);
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

// The uses of a rank's chunk so far, as numbers of moves.
struct Uses {
  int writer = -1;
  std::vector<int> readers;  // since then
};

// The last move of each rank that is known to be done; -1 for none.
using Clock = std::vector<int>;

class Planner {
 public:
  explicit Planner(CollectivePlan& plan)
      : plan_(plan),
        uses_(plan.participants * plan.chunks),
        now_(plan.participants, Clock(plan.participants, -1)) {}

  void Add(const Move& move) {
    const int number = static_cast<int>(plan_.moves.size());
    PlannedMove planned{move, {}};
    std::vector<int> before;
    ForEachAccess(plan_, move, [&](int rank, int chunk, bool write) {
      Uses& uses = uses_[rank * plan_.chunks + chunk];
      if (uses.writer >= 0) before.push_back(uses.writer);
      if (write) {
        before.insert(before.end(), uses.readers.begin(), uses.readers.end());
        uses = {number, {}};
      } else {
        uses.readers.push_back(number);
      }
    });
    // From the latest on: what one of these has waited for needs no second
    // wait, and none can have waited for a later one.
    std::sort(before.begin(), before.end(), std::greater<>());
    Clock& now = now_[move.to];
    for (const int other : before) {
      const int rank = plan_.moves[other].move.to;
      if (rank == move.to || now[rank] >= other) continue;
      planned.waits.push_back(other);
      plan_.moves[other].awaited = true;
      for (int r = 0; r < plan_.participants; ++r) {
        now[r] = std::max(now[r], done_[other][r]);
      }
    }
    now[move.to] = number;
    done_.push_back(now);
    plan_.moves.push_back(std::move(planned));
  }

 private:
  CollectivePlan& plan_;
  std::vector<Uses> uses_;
  std::vector<Clock> now_;   // of each rank
  std::vector<Clock> done_;  // behind each move
};

}  // namespace

std::vector<int> Sources(const Move& move, int ranks) {
  if (move.op != MoveOp::kSum) return {move.from};
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

const char* AllReduceAlgorithmName(AllReduceAlgorithm algorithm) {
  return kNames[static_cast<std::size_t>(algorithm)];
}

absl::StatusOr<AllReduceAlgorithm> ParseAllReduceAlgorithm(
    absl::string_view name) {
  const auto* const found =
      std::find(std::begin(kNames), std::end(kNames), name);
  if (found != std::end(kNames)) {
    return static_cast<AllReduceAlgorithm>(found - std::begin(kNames));
  }
  return absl::InvalidArgumentError(
      Say("no allreduce algorithm \"%s\"; there are %s", name,
          absl::StrJoin(kNames, ", ")));
}

std::vector<Move> CollectiveSchedule::Moves() const {
  std::vector<Move> moves;
  ForEach([&](const Move& move) { moves.push_back(move); });
  return moves;
}

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

CollectiveSchedule ReduceScatterSchedule(int ranks) {
  return CollectiveSchedule("reduce_scatter", ranks, ranks, [=](Visitor visit) {
    if (ranks > 1) Scatter(ranks, visit);
  });
}

CollectiveSchedule AllGatherSchedule(int ranks) {
  return CollectiveSchedule("all_gather", ranks, ranks,
                            [=](Visitor visit) { Gather(ranks, 0, visit); });
}

CollectiveSchedule AllReduceSchedule(AllReduceAlgorithm algorithm, int ranks) {
  if (ranks < 1) {
    throw std::invalid_argument(
        absl::StrFormat("[allreduce] at least 1 device wanted; got %d", ranks));
  }
  const auto make = [&](int chunks, std::function<void(Visitor)> generate) {
    if (ranks == 1) generate = [](Visitor) {};
    return CollectiveSchedule(AllReduceAlgorithmName(algorithm), ranks, chunks,
                              std::move(generate),
                              algorithm == AllReduceAlgorithm::kHost);
  };
  switch (algorithm) {
    case AllReduceAlgorithm::kSplit:
      return make(ranks, [=](Visitor visit) {
        Scatter(ranks, visit);
        Gather(ranks, 1, visit);
      });
    case AllReduceAlgorithm::kStar:
    case AllReduceAlgorithm::kHost: {
      const int center = algorithm == AllReduceAlgorithm::kHost ? ranks : 0;
      return make(1, [=](Visitor visit) {
        visit({0, center, 0, 0, MoveOp::kSum});
        for (int to = 0; to < ranks; ++to) {
          if (to != center) visit({1, to, center, 0, MoveOp::kCopy});
        }
      });
    }
    case AllReduceAlgorithm::kRing:
      return make(ranks, [=](Visitor visit) { Ring(ranks, false, visit); });
    case AllReduceAlgorithm::kBidirectionalRing:
      return make(2 * ranks, [=](Visitor visit) { Ring(ranks, true, visit); });
    case AllReduceAlgorithm::kNccl:
      throw std::invalid_argument(
          "[allreduce] \"nccl\" is no schedule: NVIDIA's library adds as it "
          "likes, and only on GPUs (AllReduce)");
  }
  throw std::logic_error("no such algorithm");
}

double BusBandwidth(int ranks, double bytes, double seconds) {
  return bytes / seconds * 2 * (ranks - 1) / ranks;
}

std::string FormatBandwidths(int ranks, double bytes, double seconds) {
  return absl::StrFormat(
      "%8s%8s GB/s", FormatNumber(bytes / seconds / 1e9),
      FormatNumber(BusBandwidth(ranks, bytes, seconds) / 1e9));
}

void ForEachAccess(const CollectivePlan& plan, const Move& move,
                   absl::FunctionRef<void(int, int, bool)> f) {
  switch (move.op) {
    case MoveOp::kCopy:
    case MoveOp::kAdd:
      f(move.from, move.chunk, false);
      f(move.to, move.chunk, true);
      return;
    case MoveOp::kSum:
      for (int rank = 0; rank < plan.ranks; ++rank) {
        if (rank != move.to) f(rank, move.chunk, false);
      }
      f(move.to, move.chunk, true);
      return;
    case MoveOp::kBegin:
    case MoveOp::kEnd:
      for (int chunk = 0; chunk < plan.chunks; ++chunk) {
        f(move.to, chunk, true);
      }
  }
}

CollectivePlan MakePlan(const CollectiveSchedule& schedule) {
  CollectivePlan plan{
      schedule.ranks(), schedule.participants(), schedule.chunks(), {}};
  Planner planner(plan);
  for (int rank = 0; rank < plan.participants; ++rank) {
    planner.Add({-1, rank, rank, 0, MoveOp::kBegin});
  }
  schedule.ForEach([&](const Move& move) { planner.Add(move); });
  for (int rank = 0; rank < plan.participants; ++rank) {
    planner.Add({-1, rank, rank, 0, MoveOp::kEnd});
  }
  return plan;
}

}  // namespace d2l
