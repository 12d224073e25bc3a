#include "common/kernels/cuda/index/reduce_plan.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace d2l::kernels::cuda {
namespace {

constexpr std::int64_t kSizes[] = {0,  1,   2,   3,    4,    5,    7,    31,
                                   33, 127, 128, 1003, 1024, 4097, 20483};

// Counts how often the kernel's walk visits each element of each output.
std::vector<int> Visits(const ReducePlan& plan, std::int64_t outputs,
                        std::int64_t n, bool runs) {
  std::vector<int> visits(static_cast<std::size_t>(outputs * n));
  for (std::int64_t block = 0; block < plan.blocks; ++block) {
    for (std::int64_t segment = 0; segment < plan.segments; ++segment) {
      const std::int64_t begin = segment * plan.segment;
      const std::int64_t length = std::min(plan.segment, n - begin);
      for (int thread = 0; thread < kReduceThreads; ++thread) {
        const std::int64_t output =
            block * plan.Outputs() + plan.OutputOf(thread);
        if (output >= outputs) continue;
        const LaneWalk walk(plan.lane_bits, plan.LaneOf(thread), runs, length);
        for (std::int64_t step = 0; step <= walk.full_steps(); ++step) {
          const int count =
              step < walk.full_steps() ? kReduceStep : walk.rest();
          for (int j = 0; j < count; ++j) {
            const std::int64_t element = begin + walk.Element(step, j);
            ++visits.at(static_cast<std::size_t>(output * n + element));
          }
        }
      }
    }
  }
  return visits;
}

TEST(ReducePlanTest, EveryElementOfEveryOutputOnce) {
  for (const std::int64_t outputs : {1, 2, 3, 8, 31, 33, 300, 2500}) {
    for (const std::int64_t n : kSizes) {
      if (outputs * n > 3000000) continue;
      for (const bool columns : {false, true}) {
        for (const bool runs : {false, true}) {
          const ReducePlan plan = PlanReduce(outputs, n, columns);
          const std::vector<int> visits = Visits(plan, outputs, n, runs);
          ASSERT_EQ(std::count(visits.begin(), visits.end(), 1), outputs * n)
              << outputs << " " << n << " " << columns << " " << runs;
        }
      }
    }
  }
}

TEST(ReducePlanTest, LargeSizes) {
  for (const std::int64_t n : {100003, 3000000}) {
    for (const bool runs : {false, true}) {
      for (const std::int64_t outputs : {1, 2}) {
        const ReducePlan plan = PlanReduce(outputs, n, outputs > 1);
        EXPECT_GT(plan.segments, 1);
        const std::vector<int> visits = Visits(plan, outputs, n, runs);
        ASSERT_EQ(std::count(visits.begin(), visits.end(), 1), outputs * n);
      }
    }
  }
}

TEST(ReducePlanTest, PlansHoldTogether) {
  for (const std::int64_t outputs :
       {std::int64_t{1}, std::int64_t{2}, std::int64_t{100}, std::int64_t{2048},
        std::int64_t{1} << 33}) {
    for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1},
                                 std::int64_t{5000}, std::int64_t{1} << 34}) {
      for (const bool columns : {false, true}) {
        const ReducePlan plan = PlanReduce(outputs, n, columns);
        SCOPED_TRACE(testing::Message() << outputs << " " << n);
        EXPECT_EQ(plan.Lanes() * plan.Outputs(), kReduceThreads);
        EXPECT_GE(plan.blocks * plan.Outputs(), outputs);
        EXPECT_LT((plan.blocks - 1) * plan.Outputs(), outputs);
        EXPECT_GE(plan.segments, 1);
        EXPECT_LE(plan.segments, 1024);  // blockIdx.y has 16 bits
        EXPECT_GE(plan.segment * plan.segments, n);
        EXPECT_TRUE(n == 0 || (plan.segments - 1) * plan.segment < n);
        // Each thread is one lane of one output.
        std::vector<int> seen(kReduceThreads);
        for (int t = 0; t < kReduceThreads; ++t) {
          const int lane = plan.LaneOf(t);
          const int output = plan.OutputOf(t);
          ASSERT_LT(lane, plan.Lanes());
          ASSERT_LT(output, plan.Outputs());
          ++seen[static_cast<std::size_t>(output * plan.Lanes() + lane)];
          if (lane + 1 < plan.Lanes()) {
            EXPECT_EQ(plan.LaneOf(t + plan.LaneStride()), lane + 1);
            EXPECT_EQ(plan.OutputOf(t + plan.LaneStride()), output);
          }
        }
        EXPECT_EQ(seen, std::vector<int>(kReduceThreads, 1));
      }
    }
  }
}

TEST(ReducePlanTest, NeighboursReadNeighbours) {
  // A row: the lanes of a step lie side by side, in runs or one by one.
  for (const bool runs : {false, true}) {
    const LaneWalk first(8, 0, runs, 100000), second(8, 1, runs, 100000);
    EXPECT_EQ(second.Element(3, 0) - first.Element(3, 0),
              runs ? kReduceStep : 1);
  }
  // Columns: at least a warp of outputs, if there are so many.
  EXPECT_GE(PlanReduce(1000, 100000, true).Outputs(), 32);
  EXPECT_EQ(PlanReduce(2, 100000, true).Outputs(), 2);
  EXPECT_EQ(PlanReduce(1000, 2, true).Lanes(), 1);
}

}  // namespace
}  // namespace d2l::kernels::cuda
