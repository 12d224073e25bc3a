#include "common/kernels/cuda/index/transposition.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/kernels/layout.h"
#include "common/tensor/shape.h"
#include "gtest/gtest.h"

namespace d2l::kernels::cuda {
namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

// The destination of each element, and its source.
Pairs Slowly(const StridedLayout& layout) {
  Pairs pairs;
  for (std::int64_t i = 0; i < layout.shape.numel(); ++i) {
    std::int64_t rest = i, to = 0, from = 0;
    for (int d = layout.shape.rank() - 1; d >= 0; --d) {
      to += rest % layout.shape[d] * layout.out[d];
      from += rest % layout.shape[d] * layout.in[0][d];
      rest /= layout.shape[d];
    }
    pairs.emplace_back(to, from);
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

Pairs Of(const Transposition& turn) {
  Pairs pairs;
  for (std::int64_t b = 0; b < turn.batch; ++b) {
    for (std::int64_t r = 0; r < turn.rows; ++r) {
      for (std::int64_t c = 0; c < turn.columns; ++c) {
        pairs.emplace_back(b * turn.out_batch + r * turn.out_row + c,
                           b * turn.in_batch + r + c * turn.in_column);
      }
    }
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

TEST(TranspositionTest, FindsMatricesAndBatchesOfThem) {
  const StridedLayout layouts[] = {
      {{33, 40}, {40, 1}, {{1, 33}}},
      {{33, 40}, {50, 1}, {{1, 99}}},             // with gaps
      {{3, 9, 40}, {360, 40, 1}, {{360, 1, 9}}},  // matrix by matrix
      {{9, 3, 40}, {120, 40, 1}, {{1, 360, 9}}},  // reversed
      {{9, 3, 40}, {120, 40, 1}, {{1, 0, 9}}},    // one for all
  };
  for (const StridedLayout& layout : layouts) {
    Transposition turn;
    ASSERT_TRUE(FindTransposition(layout, &turn)) << layout.shape;
    EXPECT_EQ(Of(turn), Slowly(layout)) << layout.shape;
  }
}

TEST(TranspositionTest, LeavesTheRestAlone) {
  const StridedLayout layouts[] = {
      {{1000}, {1}, {{2}}},
      {{33, 40}, {40, 1}, {{80, 2}}},  // no side along memory
      {{33, 40}, {80, 2}, {{1, 33}}},  // nor here
      {{33, 40}, {41, 1}, {{40, 1}}},  // rows to rows
      {{3, 400}, {400, 1}, {{1, 3}}},  // narrow
      {{9, 9, 9, 9}, {729, 81, 9, 1}, {{1, 9, 81, 729}}},
  };
  for (const StridedLayout& layout : layouts) {
    Transposition turn;
    EXPECT_FALSE(FindTransposition(layout, &turn)) << layout.shape;
  }
}

TEST(TranspositionTest, CountsTiles) {
  const Transposition turn = {3, 33, 64, 0, 0, 0, 0};
  EXPECT_EQ(turn.TilesDown(), 2);
  EXPECT_EQ(turn.TilesAcross(), 2);
  EXPECT_EQ(turn.Tiles(), 12);
}

}  // namespace
}  // namespace d2l::kernels::cuda
