#include "common/parallel/collective/schedule.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/parallel/collective/checker.h"
#include "common/parallel/collective/plan.h"
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

TEST(Schedule, EveryOneDoesWhatItSays) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const CollectiveSchedule& schedule : AllSchedules(ranks)) {
      SCOPED_TRACE(Name(schedule));
      EXPECT_TRUE(CheckResult(schedule).ok()) << CheckResult(schedule);
      const Plan plan = MakePlan(schedule);
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
      Plan plan = MakePlan(schedule);
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

// Chunk c begins at rank c; the second ring goes the other way.
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
  const Plan plan = MakePlan(AllReduceSchedule(AllReduceAlgorithm::kRing, 8));
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
  Plan plan = MakePlan(two({sum, copy}));
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
