// Views: what they show, and that it is the same memory.

#include "common/ops/views.h"

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

#include "common/ops/creation.h"
#include "common/ops/elementwise.h"
#include "common/ops/read.h"
#include "common/ops/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;

// Checks that `view` shows the elements of x at f(position), and that writing
// to one is seen in the other. No element is shown twice.
void CheckView(const Tensor& x, const Tensor& view, const Shape& shape,
               const std::function<Position(Position)>& f) {
  EXPECT_TRUE(Matches(view, shape, x.dtype(), Pick(x, shape, f)))
      << "of a " << x.Describe() << " with strides " << x.strides();
  EXPECT_EQ(view.storage()->id(), x.storage()->id());
  EXPECT_NE(view.id(), x.id());
  EXPECT_EQ(view.device(), x.device());

  std::vector<double> expected = ValuesOf(x);
  for (const Position& position : PositionsIn(shape)) {
    expected[NumberOf(f(position), x.shape())] = 5;
  }
  const std::uint64_t version = x.version();
  FillInPlace(view, 5);
  EXPECT_EQ(x.version(), version + 1);
  EXPECT_EQ(view.version(), x.version());
  EXPECT_EQ(ValuesOf(x), expected);

  FillInPlace(x, 6);
  EXPECT_EQ(ValuesOf(view), std::vector<double>(shape.numel(), 6));
}

class ViewsTest : public DeviceTest {
 protected:
  // Calls f(x) for tensors of this shape in all kinds of memory.
  void ForEach(const Shape& shape,
               const std::function<void(const Tensor& x)>& f) const {
    for (const DType dtype : kAllDTypes) {
      for (const Placement placement : kPlacements) {
        SCOPED_TRACE(PlacementName(placement));
        f(RandomTensor(shape, device(), dtype, placement));
      }
    }
  }
};

TEST_P(ViewsTest, Transposing) {
  ForEach({3, 5}, [](const Tensor& x) {
    const auto swap = [](const Position& p) { return Position{p[1], p[0]}; };
    CheckView(x, T(x), {5, 3}, swap);
    CheckView(x, Transpose(x, 0, 1), {5, 3}, swap);
    CheckView(x, Transpose(x, -1, -2), {5, 3}, swap);
    CheckView(x, Transpose(x, 1, 1), {3, 5},
              [](const Position& p) { return p; });
  });
  ForEach({2, 3, 4}, [](const Tensor& x) {
    CheckView(x, Transpose(x, 0, -1), {4, 3, 2}, [](const Position& p) {
      return Position{p[2], p[1], p[0]};
    });
  });
  ForEach({0, 3}, [](const Tensor& x) {
    CheckView(x, T(x), {3, 0}, [](const Position& p) { return p; });
  });
  // T returns vectors and scalars unchanged.
  const Tensor vector = RandomTensor({3}, device());
  EXPECT_EQ(T(vector).id(), vector.id());
  const Tensor scalar = RandomTensor({}, device());
  EXPECT_EQ(T(scalar).id(), scalar.id());
  EXPECT_EQ(ValuesOf(Transpose(scalar, 0, -1)), ValuesOf(scalar));
}

TEST_P(ViewsTest, SlicesAgainstTheLoop) {
  for (const int dim : {0, 1, -1, -2}) {
    const int d = dim < 0 ? dim + 2 : dim;
    for (const std::int64_t start : {0, 2, -2, 7, -9}) {
      for (const std::int64_t end : {0, 1, 5, -1, 100, -100}) {
        for (const std::int64_t step : {1, 2, 3, 100}) {
          const Tensor x = RandomTensor({5, 6}, device(), DType::kInt64,
                                        kPlacements[(start + 9) % 5]);
          const std::int64_t size = x.size(d);
          const auto bound = [size](std::int64_t i) {
            if (i < 0) i += size;
            return i < 0 ? 0 : i > size ? size : i;
          };
          Shape shape = {5, 6};
          shape[d] = 0;
          for (std::int64_t i = bound(start); i < bound(end); i += step) {
            ++shape[d];
          }
          SCOPED_TRACE(testing::PrintToString(
              std::vector<std::int64_t>{d, start, end, step}));
          CheckView(x, Slice(x, dim, start, end, step), shape, [&](Position p) {
            p[d] = bound(start) + p[d] * step;
            return p;
          });
        }
      }
    }
  }
  ForEach({4, 5, 3}, [](const Tensor& x) {
    CheckView(x, Slice(x, 1, 1), {4, 4, 3}, [](const Position& p) {
      return Position{p[0], p[1] + 1, p[2]};
    });
    CheckView(x, Slice(x, 1), {4, 5, 3}, [](const Position& p) { return p; });
  });
}

TEST_P(ViewsTest, Selecting) {
  ForEach({3, 4, 5}, [](const Tensor& x) {
    CheckView(x, Select(x, 0, 2), {4, 5}, [](const Position& p) {
      return Position{2, p[0], p[1]};
    });
    CheckView(x, Select(x, -1, -5), {3, 4}, [](const Position& p) {
      return Position{p[0], p[1], 0};
    });
    CheckView(x, Select(Select(x, 1, 3), 1, -2), {3}, [](const Position& p) {
      return Position{p[0], 3, 3};
    });
  });
  ForEach({4}, [](const Tensor& x) {
    CheckView(x, Select(x, 0, -1), {},
              [](const Position&) { return Position{3}; });
  });
  const Tensor x = Zeros({3, 0}, device());
  EXPECT_EQ(Select(x, 0, 1).shape(), Shape{0});
}

TEST_P(ViewsTest, SqueezingAndUnsqueezing) {
  ForEach({1, 3, 1, 2}, [](const Tensor& x) {
    const auto both = [](const Position& p) {
      return Position{0, p[0], 0, p[1]};
    };
    CheckView(x, Squeeze(x), {3, 2}, both);
    CheckView(x, Squeeze(Squeeze(x, 2), 0), {3, 2}, both);
    CheckView(x, Squeeze(x, -2), {1, 3, 2}, [](const Position& p) {
      return Position{0, p[1], 0, p[2]};
    });
    CheckView(x, Squeeze(x, 1), {1, 3, 1, 2},
              [](const Position& p) { return p; });
    CheckView(x, Unsqueeze(x, -1), {1, 3, 1, 2, 1},
              [](Position p) { return p.pop_back(), p; });
    CheckView(x, Unsqueeze(x, 2), {1, 3, 1, 1, 2}, [](const Position& p) {
      return Position{0, p[1], 0, p[4]};
    });
  });
  ForEach({}, [](const Tensor& x) {
    const auto only = [](const Position&) { return Position(); };
    CheckView(x, Unsqueeze(x, 0), {1}, only);
    CheckView(x, Unsqueeze(x, -1), {1}, only);
    CheckView(x, Squeeze(x), {}, only);
    CheckView(x, Squeeze(x, -1), {}, only);
  });
}

TEST_P(ViewsTest, Expanding) {
  ForEach({3, 1}, [](const Tensor& x) {
    for (const Shape& given : {Shape{2, 3, 4}, Shape{2, -1, 4}}) {
      const Tensor y = Expand(x, given);
      EXPECT_TRUE(Matches(y, {2, 3, 4}, x.dtype(),
                          Pick(x, {2, 3, 4}, [](const Position& p) {
                            return Position{p[1], 0};
                          })));
      EXPECT_EQ(y.storage()->id(), x.storage()->id());
      EXPECT_NE(y.id(), x.id());
    }
    EXPECT_EQ(Expand(x, {3, 0}).numel(), 0);
    const Tensor y = Expand(x, {3, 4});
    const std::uint64_t version = y.version();
    FillInPlace(x, 7);
    EXPECT_EQ(y.version(), version + 1);
    EXPECT_EQ(ValuesOf(y), std::vector<double>(12, 7));
  });
  EXPECT_EQ(ValuesOf(Expand(Full({}, 3, device()), {2, 2})),
            std::vector<double>(4, 3));
  // One element repeated is a target that no result could be left in.
  Tensor one = Expand(Ones({1}, device()), {1, 1});
  one += 1;
  EXPECT_EQ(Item(one), 2);
}

TEST_P(ViewsTest, Splitting) {
  const auto check = [](const Tensor& x, const std::vector<Tensor>& pieces,
                        const std::vector<std::int64_t>& sizes, int dim) {
    ASSERT_EQ(pieces.size(), sizes.size());
    std::int64_t start = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      Shape shape = x.shape();
      shape[dim] = sizes[i];
      CheckView(x, pieces[i], shape, [&](Position p) {
        p[dim] += start;
        return p;
      });
      start += sizes[i];
    }
  };
  ForEach({7, 4}, [&](const Tensor& x) {
    check(x, Split(x, 3), {3, 3, 1}, 0);
    check(x, Split(x, 7), {7}, 0);
    check(x, Split(x, 100, 0), {7}, 0);
    check(x, Split(x, 2, -1), {2, 2}, 1);
    check(x, SplitWithSizes(x, {4, 0, 3}), {4, 0, 3}, 0);
    check(x, SplitWithSizes(x, {1, 3}, 1), {1, 3}, 1);
  });
  const Tensor none = Zeros({0, 2}, device());
  check(none, Split(none, 3), {0}, 0);
  EXPECT_TRUE(SplitWithSizes(none, std::vector<std::int64_t>()).empty());
}

// ---- View and Reshape.

// Tries whether x's elements, row by row, lie at regular steps as a tensor of
// `shape` with as many elements.
bool IsViewable(const Tensor& x, const Shape& shape) {
  std::vector<std::int64_t> memory;  // of each element of x
  for (const Position& position : PositionsIn(x.shape())) {
    std::int64_t at = x.offset();
    for (int d = 0; d < x.dim(); ++d) at += position[d] * x.strides()[d];
    memory.push_back(at);
  }
  std::vector<std::int64_t> strides(shape.rank());
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 1) continue;
    Position step(shape.rank());
    step[d] = 1;
    strides[d] = memory[NumberOf(step, shape)] - memory[0];
  }
  for (const Position& position : PositionsIn(shape)) {
    std::int64_t at = memory[0];
    for (int d = 0; d < shape.rank(); ++d) at += position[d] * strides[d];
    if (at != memory[NumberOf(position, shape)]) return false;
  }
  return true;
}

TEST_P(ViewsTest, ViewAndReshapeOfAllShapesAndMemories) {
  const std::vector<Shape> shapes = {
      {24},       {2, 12},   {4, 6},    {3, 8},          {2, 3, 4},
      {4, 3, 2},  {6, 2, 2}, {1, 24},   {24, 1},         {2, 1, 12},
      {12, 1, 2}, {2, 2, 6}, {3, 2, 4}, {1, 4, 1, 6, 1}, {2, 2, 2, 3},
      {8, 3},     {2, 6, 2}};
  int seen = 0, copied = 0;
  for (const Shape& from : shapes) {
    std::vector<Tensor> tensors;
    for (const Placement placement : kPlacements) {
      tensors.push_back(
          RandomTensor(from, device(), DType::kFloat32, placement));
      if (from.rank() > 1) {
        tensors.push_back(Transpose(tensors.back(), 0, 1));
        tensors.push_back(Transpose(tensors.back(), -1, -2));
      }
    }
    const Tensor row = RandomTensor({from[from.rank() - 1]}, device());
    tensors.push_back(Expand(row, from));
    for (const Tensor& x : tensors) {
      const std::vector<double> values = ValuesOf(x);
      for (const Shape& to : shapes) {
        const Tensor y = Reshape(x, to);
        EXPECT_TRUE(Matches(y, to, x.dtype(), values));
        const bool shares = y.storage()->id() == x.storage()->id();
        EXPECT_EQ(shares, IsViewable(x, to))
            << x.shape() << " with strides " << x.strides() << " as " << to;
        if (shares) {
          EXPECT_TRUE(Matches(View(x, to), to, x.dtype(), values));
        } else {
          EXPECT_THROW(View(x, to), std::invalid_argument);
        }
        ++(shares ? seen : copied);
      }
    }
  }
  EXPECT_GT(seen, 100);
  EXPECT_GT(copied, 100);
}

TEST_P(ViewsTest, ViewsWithASizeLeftOpen) {
  ForEach({2, 3, 4}, [](const Tensor& x) {
    EXPECT_TRUE(Matches(Reshape(x, {-1}), {24}, x.dtype(), ValuesOf(x)));
    EXPECT_TRUE(
        Matches(Reshape(x, {6, -1, 2}), {6, 2, 2}, x.dtype(), ValuesOf(x)));
    EXPECT_EQ(Reshape(x, {24, -1}).shape(), (Shape{24, 1}));
  });
  const Tensor x = RandomTensor({4, 6}, device());
  const Tensor flat = View(x, {-1});
  CheckView(x, flat, {24}, [](const Position& p) {
    return Position{p[0] / 6, p[0] % 6};
  });
  EXPECT_EQ(View(Zeros({0, 3}, device()), {3, -1}).shape(), (Shape{3, 0}));
  EXPECT_EQ(View(Zeros({0, 3}, device()), {5, 0, 7}).shape(), (Shape{5, 0, 7}));
  EXPECT_EQ(View(Ones({1, 1}, device()), {}).shape(), Shape());
  EXPECT_EQ(View(Ones({}, device()), {1, 1, 1}).shape(), (Shape{1, 1, 1}));
}

TEST_P(ViewsTest, ReshapeCopiesOnlyIfItMust) {
  const Tensor x = RandomTensor({3, 4}, device());
  const Tensor copy = Reshape(T(x), {12});
  const Tensor seen = Reshape(x, {12});
  FillInPlace(x, 1);
  EXPECT_NE(ValuesOf(copy), std::vector<double>(12, 1));
  EXPECT_EQ(ValuesOf(seen), std::vector<double>(12, 1));
}

TEST_P(ViewsTest, ReadingAViewReadsItsElementsInOrder) {
  const Tensor x = FromVector<float>({1, 2, 3, 4, 5, 6}, {2, 3}, device());
  EXPECT_THAT(ToVector<float>(T(x)), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(ToVector<float>(Slice(x, 1, 0, 3, 2)), ElementsAre(1, 3, 4, 6));
  EXPECT_THAT(ToVector<float>(Select(x, 1, 1)), ElementsAre(2, 5));
  EXPECT_THAT(ToVector<float>(Expand(Slice(x, 1, 2), {2, 2})),
              ElementsAre(3, 3, 6, 6));
  EXPECT_EQ(Item(Select(Select(x, 0, 1), 0, 1)), 5);
}

TEST_P(ViewsTest, AViewKeepsTheMemory) {
  Tensor x = RandomTensor({1000}, device());
  const std::vector<double> values = ValuesOf(x);
  const Tensor view = Slice(x, 0, 500);
  x = Tensor();
  const Tensor other = Ones({1000}, device());
  EXPECT_EQ(ValuesOf(view),
            std::vector<double>(values.begin() + 500, values.end()));
}

TEST_P(ViewsTest, SplitsNothingIntoPiecesOfNothing) {
  const std::vector<Tensor> pieces = Split(Zeros({0}, device()), 0);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].shape(), (Shape{0}));
}

INSTANTIATE_FOR_ALL_DEVICES(ViewsTest);

}  // namespace
}  // namespace d2l
