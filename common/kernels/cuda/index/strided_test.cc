#include "common/kernels/cuda/index/strided.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "absl/types/span.h"
#include "common/kernels/layout.h"
#include "common/tensor/shape.h"
#include "gtest/gtest.h"

namespace d2l::kernels::cuda {
namespace {

constexpr int kOperands = 3;
using Offsets = std::array<std::int64_t, kOperands>;

// The offsets of all elements, counted up dimension by dimension.
std::vector<Offsets> WalkSlowly(const StridedLayout& layout) {
  const Shape* strides[kOperands] = {&layout.out, &layout.in[0], &layout.in[1]};
  std::vector<Offsets> all;
  std::vector<std::int64_t> at(layout.shape.size());
  for (std::int64_t i = 0; i < layout.shape.numel(); ++i) {
    Offsets offsets{};
    for (int d = 0; d < layout.shape.rank(); ++d) {
      for (int k = 0; k < kOperands; ++k)
        offsets[k] += at[d] * (*strides[k])[d];
    }
    all.push_back(offsets);
    for (int d = layout.shape.rank() - 1; d >= 0; --d) {
      if (++at[d] < layout.shape[d]) break;
      at[d] = 0;
    }
  }
  return all;
}

std::vector<Offsets> Walk(const StridedLayout& layout, bool wide) {
  StridedDims<kOperands> dims = MakeStridedDims<kOperands>(
      layout.shape, {&layout.out, &layout.in[0], &layout.in[1]});
  EXPECT_FALSE(dims.wide);
  dims.wide = wide;
  std::vector<Offsets> all;
  for (std::int64_t i = 0; i < layout.shape.numel(); ++i) {
    std::int64_t offset[kOperands];
    dims.Offsets(i, offset);
    all.push_back({offset[0], offset[1], offset[2]});
  }
  return all;
}

std::mt19937& Random() {
  static std::mt19937 random(11);
  return random;
}

// The output's dimensions in any order, without two elements in one place; the
// inputs' strides are anything, often 0.
StridedLayout RandomLayout() {
  const int rank = static_cast<int>(Random()() % (kMaxRank + 1));
  StridedLayout layout;
  layout.shape = Shape::Filled(rank, 1);
  std::vector<int> order;
  for (int d = 0; d < rank; ++d) {
    layout.shape[d] = 1 + static_cast<std::int64_t>(Random()() % 4);
    order.push_back(d);
  }
  layout.out = layout.in[0] = layout.in[1] = Shape::Filled(rank, 0);
  std::shuffle(order.begin(), order.end(), Random());
  std::int64_t stride = 1 + static_cast<std::int64_t>(Random()() % 2);
  for (const int d : order) {
    layout.out[d] = stride;
    stride *= layout.shape[d] + static_cast<std::int64_t>(Random()() % 2);
    layout.in[0][d] = static_cast<std::int64_t>(Random()() % 3) * layout.out[d];
    layout.in[1][d] =
        static_cast<std::int64_t>(Random()() % 2 * (Random()() % 99));
  }
  return layout;
}

TEST(StridedTest, AsCountedUpDimensionByDimension) {
  for (int i = 0; i < 500; ++i) {
    const StridedLayout layout = RandomLayout();
    ASSERT_EQ(Walk(layout, false), WalkSlowly(layout)) << layout.shape;
    ASSERT_EQ(Walk(layout, true), WalkSlowly(layout)) << layout.shape;
  }
}

TEST(StridedTest, ManyElementsAndLongStrides) {
  const std::int64_t kLong = std::int64_t{1} << 40;
  const Shape shape = {7, 1 << 20, 1 << 10};
  const Shape strides = {kLong, 3, -1};
  const StridedDims<1> dims = MakeStridedDims<1>(shape, {&strides});
  EXPECT_TRUE(dims.wide);
  std::int64_t offset[1];
  dims.Offsets(shape.numel() - 1, offset);
  EXPECT_EQ(offset[0], 6 * kLong + 3 * ((1 << 20) - 1) - ((1 << 10) - 1));
  dims.Offsets((std::int64_t{5} << 30) + (3 << 10) + 2, offset);
  EXPECT_EQ(offset[0], 5 * kLong + 9 - 2);
}

TEST(StridedTest, RefusesWhatADividerCannotDivideBy) {
  const std::int64_t kLong = std::int64_t{1} << 31;
  const Shape shape = {2, kLong}, strides = {kLong, 1};
  EXPECT_THROW(MakeStridedDims<1>(shape, {&strides}), std::invalid_argument);
  const Shape alone = {kLong}, step = {2};
  const StridedDims<1> dims = MakeStridedDims<1>(alone, {&step});
  std::int64_t offset[1];
  dims.Offsets(kLong - 1, offset);
  EXPECT_EQ(offset[0], 2 * (kLong - 1));
}

// Elements that met before meet after, and the output's are then in order.
TEST(StridedTest, SortAndCollapseKeepsElementsTogether) {
  int contiguous = 0;
  for (int i = 0; i < 2000; ++i) {
    const StridedLayout before = RandomLayout();
    for (int inputs = 0; inputs <= 2; ++inputs) {
      StridedLayout after = before;
      const bool plain = SortAndCollapse(after, inputs);
      std::vector<Offsets> expected = WalkSlowly(before);
      if (inputs < 2) {
        for (Offsets& offsets : expected) offsets[2] = 0;
        after.in[1] = Shape::Filled(after.shape.rank(), 0);
      }
      if (inputs < 1) {
        for (Offsets& offsets : expected) offsets[1] = 0;
        after.in[0] = Shape::Filled(after.shape.rank(), 0);
      }
      const std::vector<Offsets> sorted = WalkSlowly(after);
      ASSERT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(sorted, expected) << before.shape;
      if (!plain) continue;
      ++contiguous;
      for (std::size_t e = 0; e < sorted.size(); ++e) {
        for (int k = 0; k <= inputs; ++k) {
          ASSERT_EQ(sorted[e][k], static_cast<std::int64_t>(e));
        }
      }
    }
  }
  EXPECT_GT(contiguous, 100);
}

// Elements that met before meet after, vector by vector.
TEST(StridedTest, SplitRowsKeepsElementsTogether) {
  constexpr int kVector = 2;
  int split = 0, repeated = 0;
  for (int i = 0; i < 20000; ++i) {
    StridedLayout layout = RandomLayout();
    if (layout.shape.rank() == 0) continue;
    const int last = layout.shape.rank() - 1;
    for (Shape* strides : {&layout.in[0], &layout.in[1]}) {
      if (Random()() % 2 != 0)
        (*strides)[last] = static_cast<std::int64_t>(Random()() % 2);
    }
    // The addresses are never read: only their values count.
    const bool has_number = Random()() % 4 == 0;
    const std::uintptr_t places[kOperands] = {64, 64 + 4 * (Random()() % 2),
                                              has_number ? 0u : 64u};
    if (has_number) {
      layout.in[1] = Shape::Filled(layout.shape.rank(), 0);
    }
    StridedOperand operands[kOperands];
    const std::vector<Offsets> expected = WalkSlowly(layout);
    Shape* const strides[kOperands] = {&layout.out, &layout.in[0],
                                       &layout.in[1]};
    for (int k = 0; k < kOperands; ++k) {
      operands[k] = {strides[k], reinterpret_cast<const void*>(places[k]),
                     k == 2 ? std::size_t{8} : std::size_t{4}, false};
    }
    if (!SplitRows(kVector, layout.shape, absl::MakeSpan(operands))) {
      ASSERT_EQ(WalkSlowly(layout), expected);
      continue;
    }
    ++split;
    const auto in_memory = [&](int k) {
      return operands[k].data != nullptr && !operands[k].repeated;
    };
    std::vector<Offsets> elements;
    for (const Offsets& vector : WalkSlowly(layout)) {
      for (int j = 0; j < kVector; ++j) {
        Offsets element = vector;
        for (int k = 0; k < kOperands; ++k) {
          if (in_memory(k)) element[k] += j;
        }
        elements.push_back(element);
      }
      for (int k = 0; k < kOperands; ++k) {
        repeated += operands[k].repeated ? 1 : 0;
        if (!in_memory(k)) continue;
        const std::size_t size = operands[k].element_size;
        const std::size_t address =
            places[k] + static_cast<std::size_t>(vector[k]) * size;
        ASSERT_EQ(address % (kVector * size), 0u);
      }
    }
    ASSERT_EQ(elements, expected);
    EXPECT_FALSE(operands[0].repeated);
  }
  EXPECT_GT(split, 100);
  EXPECT_GT(repeated, 100);
}

TEST(StridedTest, SortReducedKeepsTheElements) {
  ReduceLayout layout = {{4}, {1}, {2, 3, 5}, {4, 40, 8}};
  SortReduced(layout);
  EXPECT_EQ(layout.kept, Shape({4}));
  EXPECT_EQ(layout.reduced, Shape({30}));
  EXPECT_EQ(layout.reduced_strides, Shape({4}));
}

}  // namespace
}  // namespace d2l::kernels::cuda
