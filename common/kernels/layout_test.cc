// Collapsing must not change which elements are visited, nor their order.

#include "common/kernels/layout.h"

#include <cstdint>
#include <random>
#include <vector>

#include "common/tensor/shape.h"
#include "gtest/gtest.h"

namespace d2l::kernels {
namespace {

// The offsets of all elements, the last dimension fastest.
std::vector<std::int64_t> Offsets(const Shape& shape, const Shape& strides) {
  std::vector<std::int64_t> offsets;
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    std::int64_t rest = i;
    std::int64_t offset = 0;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      offset += rest % shape[d] * strides[d];
      rest /= shape[d];
    }
    offsets.push_back(offset);
  }
  return offsets;
}

bool IsContiguous(const std::vector<std::int64_t>& offsets) {
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

// Whether dimension d could be joined to d + 1.
bool Joins(const StridedLayout& layout, int inputs, int d) {
  const auto joins = [&](const Shape& strides) {
    return strides[d] == strides[d + 1] * layout.shape[d + 1];
  };
  bool all = joins(layout.out);
  for (int i = 0; i < inputs; ++i) all = all && joins(layout.in[i]);
  return all;
}

bool CheckCollapse(const StridedLayout& given, int inputs) {
  StridedLayout layout = given;
  const bool contiguous = Collapse(layout, inputs);
  EXPECT_EQ(layout.shape.numel(), given.shape.numel()) << given.shape;
  EXPECT_EQ(layout.out.rank(), layout.shape.rank());
  EXPECT_EQ(Offsets(layout.shape, layout.out), Offsets(given.shape, given.out))
      << given.shape << " out " << given.out;
  bool expected = IsContiguous(Offsets(given.shape, given.out));
  for (int i = 0; i < inputs; ++i) {
    const auto offsets = Offsets(given.shape, given.in[i]);
    EXPECT_EQ(layout.in[i].rank(), layout.shape.rank());
    EXPECT_EQ(Offsets(layout.shape, layout.in[i]), offsets)
        << given.shape << " in " << given.in[i];
    expected = expected && IsContiguous(offsets);
  }
  // A single element is contiguous in any layout.
  EXPECT_EQ(contiguous, expected) << given.shape;
  EXPECT_GE(layout.shape.rank(), 1);
  for (int d = 0; d < layout.shape.rank(); ++d) {
    EXPECT_TRUE(layout.shape[d] > 1 || layout.shape.rank() == 1);
    if (d + 1 < layout.shape.rank()) {
      EXPECT_FALSE(Joins(layout, inputs, d)) << given.shape;
    }
  }
  return contiguous;
}

TEST(Collapse, WhatIsContiguous) {
  EXPECT_TRUE(CheckCollapse({{2, 3, 4}, {12, 4, 1}, {{12, 4, 1}}}, 1));
  EXPECT_TRUE(CheckCollapse({{6}, {1}, {{1}, {1}, {1}}}, 3));
  EXPECT_TRUE(CheckCollapse({{2, 1, 3}, {3, 99, 1}, {{3, 0, 1}}}, 1));
  EXPECT_TRUE(CheckCollapse({{2, 3}, {3, 1}, {}}, 0));
  EXPECT_TRUE(CheckCollapse({{}, {}, {{}, {}}}, 2));
  EXPECT_TRUE(CheckCollapse({{1, 1}, {7, 5}, {{0, 0}}}, 1));
}

TEST(Collapse, WhatIsNot) {
  EXPECT_FALSE(CheckCollapse({{5, 7}, {7, 1}, {{1, 5}}}, 1));  // transposed
  EXPECT_FALSE(CheckCollapse({{5, 7}, {7, 1}, {{0, 1}}}, 1));  // broadcast
  EXPECT_FALSE(CheckCollapse({{5, 7}, {10, 1}, {}}, 0));       // gaps
  EXPECT_FALSE(CheckCollapse({{6}, {2}, {{1}}}, 1));           // steps
  EXPECT_FALSE(CheckCollapse({{2, 3, 4}, {12, 4, 1}, {{0, 0, 0}}}, 1));
}

TEST(Collapse, JoinsWhatAllOperandsStepThroughAsOne) {
  StridedLayout layout = {{2, 3, 4}, {12, 4, 1}, {{24, 8, 2}, {0, 4, 1}}};
  EXPECT_FALSE(Collapse(layout, 2));
  EXPECT_EQ(layout.shape, (Shape{2, 12}));
  EXPECT_EQ(layout.out, (Shape{12, 1}));
  EXPECT_EQ(layout.in[0], (Shape{24, 2}));
  EXPECT_EQ(layout.in[1], (Shape{0, 1}));
  layout = {{2, 3, 4}, {12, 4, 1}, {{0, 0, 0}}};
  EXPECT_FALSE(Collapse(layout, 1));
  EXPECT_EQ(layout.shape, Shape{24});
  EXPECT_EQ(layout.in[0], Shape{0});
}

TEST(Collapse, RandomLayouts) {
  std::mt19937 generator(7);
  const auto random = [&](int n) {
    return static_cast<std::int64_t>(generator() % n);
  };
  int contiguous = 0, collapsed = 0;
  for (int n = 0; n < 20000; ++n) {
    const int rank = static_cast<int>(random(6));
    const int inputs = static_cast<int>(random(kMaxInputs + 1));
    Shape shape = Shape::Filled(rank, 1);
    for (int d = 0; d < rank; ++d) shape[d] = 1 + random(3);
    const auto strides = [&] {
      // Strides of a larger tensor or, mostly, of its own: contiguous.
      Shape memory = shape;
      for (int d = 0; d < rank; ++d) memory[d] += random(8) == 0;
      Shape result = ContiguousStrides(memory);
      for (int d = 0; d < rank; ++d) {
        if (random(10) == 0) result[d] = 0;
        if (random(10) == 0) result[d] *= 2;
      }
      return result;
    };
    StridedLayout layout = {shape, strides(), {}};
    for (int i = 0; i < inputs; ++i) layout.in[i] = strides();
    contiguous += CheckCollapse(layout, inputs);
    StridedLayout copy = layout;
    Collapse(copy, inputs);
    collapsed += copy.shape.rank() < rank;
  }
  EXPECT_GT(contiguous, 1000);
  EXPECT_GT(collapsed, 1000);
}

TEST(CollapseReduction, KeepsTheOrderInEachHalf) {
  std::mt19937 generator(8);
  const auto random = [&](int n) {
    return static_cast<std::int64_t>(generator() % n);
  };
  for (int n = 0; n < 5000; ++n) {
    const auto half = [&](Shape& shape, Shape& strides) {
      const int rank = static_cast<int>(random(5));
      shape = Shape::Filled(rank, 1);
      for (int d = 0; d < rank; ++d)
        shape[d] = random(12) == 0 ? 0 : 1 + random(3);
      strides = ContiguousStrides(shape);
      for (int d = 0; d < rank; ++d) strides[d] *= 1 + (random(6) == 0);
    };
    ReduceLayout given;
    half(given.kept, given.kept_strides);
    half(given.reduced, given.reduced_strides);
    ReduceLayout layout = given;
    Collapse(layout);
    EXPECT_EQ(Offsets(layout.kept, layout.kept_strides),
              Offsets(given.kept, given.kept_strides));
    EXPECT_EQ(Offsets(layout.reduced, layout.reduced_strides),
              Offsets(given.reduced, given.reduced_strides));
    for (const Shape& shape : {layout.kept, layout.reduced}) {
      for (const std::int64_t size : shape) EXPECT_NE(size, 1);
    }
  }
}

TEST(CollapseReduction, AnExample) {
  // A contiguous (2, 3, 4, 5), reduced over the two dimensions in the middle.
  ReduceLayout layout = {{2, 5}, {60, 1}, {3, 4}, {20, 5}};
  Collapse(layout);
  EXPECT_EQ(layout.kept, (Shape{2, 5}));
  EXPECT_EQ(layout.reduced, Shape{12});
  EXPECT_EQ(layout.reduced_strides, Shape{5});
  // Reduces all dimensions.
  layout = {{}, {}, {2, 3, 4, 5}, {60, 20, 5, 1}};
  Collapse(layout);
  EXPECT_EQ(layout.kept, Shape());
  EXPECT_EQ(layout.reduced, Shape{120});
}

}  // namespace
}  // namespace d2l::kernels
