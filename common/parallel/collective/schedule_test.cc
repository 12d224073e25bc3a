#include "common/parallel/collective/schedule.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

std::vector<CollectiveSchedule> AllSchedules(int ranks) {
  std::vector<CollectiveSchedule> all;
  for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
    all.push_back(AllReduceSchedule(algorithm, ranks));
  }
  return all;
}

std::string Name(const CollectiveSchedule& schedule) {
  return schedule.name() + " of " + std::to_string(schedule.ranks());
}

// The same schedule with these moves.
CollectiveSchedule With(const CollectiveSchedule& schedule,
                        std::vector<Move> moves) {
  return CollectiveSchedule(
      schedule.name(), schedule.ranks(), schedule.chunks(),
      [moves = std::move(moves)](CollectiveSchedule::Visitor visit) {
        for (const Move& move : moves) visit(move);
      },
      schedule.uses_host());
}

// Whether the moves, one after the other, give every rank the sum of all, and
// add in the same order for each. Together with CheckOrder it proves that
// streams that execute the plan get the result, whatever they do at the same
// time and however long each move takes.
absl::Status CheckResult(const CollectiveSchedule& schedule) {
  absl::StatusOr<std::vector<Addends>> held = AddendsAfter(schedule);
  if (!held.ok()) return held.status();
  const int chunks = schedule.chunks();
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const Addends& found = (*held)[rank * chunks + chunk];
      // Each rank once, and in the same order as rank 0.
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

// Whether every two moves that touch the same chunk, one of them writing, are
// ordered by the ranks' own order and the plan's waits.
absl::Status CheckOrder(const CollectivePlan& plan) {
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

TEST(Schedule, EveryOneDoesWhatItSays) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const CollectiveSchedule& schedule : AllSchedules(ranks)) {
      SCOPED_TRACE(Name(schedule));
      EXPECT_TRUE(CheckResult(schedule).ok()) << CheckResult(schedule);
      const CollectivePlan plan = MakePlan(schedule);
      EXPECT_TRUE(CheckOrder(plan).ok()) << CheckOrder(plan);
    }
  }
}

TEST(Schedule, WithoutAnyOneMoveItDoesNot) {
  int dropped = 0;
  for (int ranks = 2; ranks <= 8; ++ranks) {
    for (const CollectiveSchedule& schedule : AllSchedules(ranks)) {
      SCOPED_TRACE(Name(schedule));
      const std::vector<Move> moves = schedule.Moves();
      for (std::size_t i = 0; i < moves.size(); ++i) {
        std::vector<Move> fewer = moves;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_FALSE(CheckResult(With(schedule, fewer)).ok()) << "move " << i;
        ++dropped;
      }
    }
  }
  EXPECT_GT(dropped, 1000);
}

TEST(Schedule, WithoutAnyOneWaitMovesMeet) {
  int dropped = 0;
  for (int ranks = 2; ranks <= 8; ++ranks) {
    for (const CollectiveSchedule& schedule : AllSchedules(ranks)) {
      SCOPED_TRACE(Name(schedule));
      CollectivePlan plan = MakePlan(schedule);
      for (std::size_t i = 0; i < plan.moves.size(); ++i) {
        std::vector<int>& waits = plan.moves[i].waits;
        for (std::size_t w = 0; w < waits.size(); ++w) {
          const std::vector<int> all = waits;
          waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(w));
          EXPECT_FALSE(CheckOrder(plan).ok()) << i << " waits for " << all[w];
          waits = all;
          ++dropped;
        }
      }
    }
  }
  EXPECT_GT(dropped, 1000);
}

TEST(Schedule, SplitStarAndHostAddInTheRanksOrder) {
  const Addends in_order = {0, 1, 2, 3, 4};
  for (const AllReduceAlgorithm algorithm :
       {AllReduceAlgorithm::kSplit, AllReduceAlgorithm::kStar,
        AllReduceAlgorithm::kHost}) {
    const CollectiveSchedule schedule = AllReduceSchedule(algorithm, 5);
    const std::vector<Addends> held = AddendsAfter(schedule).value();
    for (int i = 0; i < 5 * schedule.chunks(); ++i) {
      EXPECT_EQ(held[i], in_order) << schedule.name() << " " << i;
    }
  }
}

// A split does the same, in two halves.
TEST(Schedule, AReduceScatterAndAnAllGatherAreASplit) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    const CollectiveSchedule scatter = ReduceScatterSchedule(ranks);
    const CollectiveSchedule gather = AllGatherSchedule(ranks);
    EXPECT_TRUE(CheckOrder(MakePlan(scatter)).ok());
    EXPECT_TRUE(CheckOrder(MakePlan(gather)).ok());
    Addends in_order(ranks);
    std::iota(in_order.begin(), in_order.end(), 0);
    const std::vector<Addends> sums = AddendsAfter(scatter).value();
    const std::vector<Addends> gathered = AddendsAfter(gather).value();
    for (int rank = 0; rank < ranks; ++rank) {
      for (int chunk = 0; chunk < ranks; ++chunk) {
        EXPECT_EQ(sums[rank * ranks + chunk],
                  rank == chunk ? in_order : Addends{rank});
        EXPECT_EQ(gathered[rank * ranks + chunk], Addends{chunk});
      }
    }
    const auto split = AllReduceSchedule(AllReduceAlgorithm::kSplit, ranks);
    EXPECT_EQ(scatter.Moves().size() + gather.Moves().size(),
              ranks == 1 ? 0 : split.Moves().size());
  }
}

TEST(Schedule, RingsAddInRotatedOrder) {
  const auto rotated = [](int first, int direction) {
    Addends order;
    for (int i = 0; i < 5; ++i)
      order.push_back((first + 5 + direction * i) % 5);
    std::sort(order.begin(), order.begin() + 2);
    return order;
  };
  const std::vector<Addends> ring =
      AddendsAfter(AllReduceSchedule(AllReduceAlgorithm::kRing, 5)).value();
  const std::vector<Addends> both =
      AddendsAfter(AllReduceSchedule(AllReduceAlgorithm::kBidirectionalRing, 5))
          .value();
  for (int rank = 0; rank < 5; ++rank) {
    for (int c = 0; c < 5; ++c) {
      EXPECT_EQ(ring[rank * 5 + c], rotated(c, 1));
      EXPECT_EQ(both[rank * 10 + c], rotated(c, 1));
      EXPECT_EQ(both[rank * 10 + 5 + c], rotated(c, -1));
    }
  }
}

// A ring in which each step waited for the whole step before would be right,
// and slow: step s of rank r needs nothing but step s - 1 of rank r - 1, and
// the last reader of what it overwrites.
TEST(Schedule, RingStepsWaitForTheirNeighboursOnly) {
  const CollectivePlan plan =
      MakePlan(AllReduceSchedule(AllReduceAlgorithm::kRing, 8));
  for (const PlannedMove& planned : plan.moves) {
    if (planned.move.op == MoveOp::kEnd) continue;
    EXPECT_LE(planned.waits.size(), 2u);
    for (const int other : planned.waits) {
      const Move& awaited = plan.moves[other].move;
      EXPECT_LT(awaited.step, planned.move.step);
      const int distance = (planned.move.to - awaited.to + 8) % 8;
      EXPECT_TRUE(distance == 1 || distance == 7) << distance;
    }
  }
}

TEST(Schedule, CheckersFindWrongOnes) {
  const auto two = [](std::vector<Move> moves) {
    return With(AllReduceSchedule(AllReduceAlgorithm::kStar, 2),
                std::move(moves));
  };
  const Move sum = {0, 0, 0, 0, MoveOp::kSum};
  const Move add = {0, 0, 1, 0, MoveOp::kAdd};
  const Move copy = {1, 1, 0, 0, MoveOp::kCopy};
  EXPECT_TRUE(CheckResult(two({sum, copy})).ok());
  EXPECT_TRUE(CheckResult(two({add, copy})).ok());
  EXPECT_EQ(CheckResult(two({copy, add})).message(),
            "star of 2: rank 0 ends with chunk 0 of 0 + 0");
  EXPECT_EQ(CheckResult(two({sum})).message(),
            "star of 2: rank 1 ends with chunk 0 of 1");
  EXPECT_EQ(CheckResult(two({sum, copy, add})).message(),
            "step 0: 0 adds chunk 0 of 1: both are sums already");
  const CollectiveSchedule host =
      AllReduceSchedule(AllReduceAlgorithm::kHost, 2);
  EXPECT_EQ(CheckResult(With(host, {{1, 0, 2, 0, MoveOp::kCopy}})).message(),
            "step 1: 0 copies chunk 0 of 2, where nothing was written");
  CollectivePlan plan = MakePlan(two({sum, copy}));
  plan.moves[3].waits.clear();
  EXPECT_EQ(std::string(CheckOrder(plan).message()),
            "nothing orders \"the work of 0 before\" and \"1 copies chunk 0 of "
            "0\", which touch chunk 0 of 0");
}

TEST(Schedule, ChunksCoverAnyLength) {
  for (const std::int64_t length : {0, 1, 7, 8, 9, 1'000'001}) {
    for (const int chunks : {1, 2, 3, 7, 8, 16}) {
      EXPECT_EQ(ChunkBegin(length, chunks, 0), 0);
      EXPECT_EQ(ChunkBegin(length, chunks, chunks), length);
      for (int c = 0; c < chunks; ++c) {
        const std::int64_t size =
            ChunkBegin(length, chunks, c + 1) - ChunkBegin(length, chunks, c);
        EXPECT_GE(size, length / chunks);
        EXPECT_LE(size, length / chunks + 1);
      }
    }
  }
}

TEST(Schedule, NamesAreReadAndWrongOnesRefused) {
  for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
    EXPECT_EQ(
        ParseAllReduceAlgorithm(AllReduceAlgorithmName(algorithm)).value(),
        algorithm);
  }
  EXPECT_EQ(ParseAllReduceAlgorithm("tree").status().message(),
            "no allreduce algorithm \"tree\"; there are split, star, host, "
            "ring, bidirectional_ring, nccl");
  EXPECT_EQ(ParseAllReduceAlgorithm("nccl").value(), AllReduceAlgorithm::kNccl);
  EXPECT_THROW(AllReduceSchedule(AllReduceAlgorithm::kNccl, 2),
               std::invalid_argument);
  EXPECT_THROW(AllReduceSchedule(AllReduceAlgorithm::kSplit, 0),
               std::invalid_argument);
}

}  // namespace
}  // namespace d2l
