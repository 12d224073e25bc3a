// x[...]: reading parts of a tensor and assigning to them.

#include "common/ops/indexing.h"

#include <cstdint>
#include <functional>
#include <vector>

#include "common/ops/creation.h"
#include "common/ops/elementwise.h"
#include "common/ops/read.h"
#include "common/ops/testing/testing.h"
#include "common/ops/views.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;

class IndexingTest : public DeviceTest {
 protected:
  // 0, 1, 2, ...
  Tensor Numbers(const Shape& shape, DType dtype = DType::kFloat32) const {
    return Reshape(Arange(shape.numel(), device(), dtype), shape);
  }
};

// A part of a (4, 5, 6) tensor, and where its elements come from.
struct Part {
  TensorSlice (*take)(const Tensor& x);
  Shape shape;
  Position (*from)(const Position& p);
};
using P = const Position&;
const Part kParts[] = {
    {[](const Tensor& x) { return x[2]; },
     {5, 6},
     [](P p) {
       return Position{2, p[0], p[1]};
     }},
    {[](const Tensor& x) { return x[-1]; },
     {5, 6},
     [](P p) {
       return Position{3, p[0], p[1]};
     }},
    {[](const Tensor& x) { return x[kAll]; }, {4, 5, 6}, [](P p) { return p; }},
    {[](const Tensor& x) {
       return x[Range{1, 3}];
     },
     {2, 5, 6},
     [](P p) {
       return Position{p[0] + 1, p[1], p[2]};
     }},
    {[](const Tensor& x) {
       return x[{kAll, 0}];
     },
     {4, 6},
     [](P p) {
       return Position{p[0], 0, p[1]};
     }},
    {[](const Tensor& x) {
       return x[{kAll, kAll, -2}];
     },
     {4, 5},
     [](P p) {
       return Position{p[0], p[1], 4};
     }},
    {[](const Tensor& x) {
       return x[{1, Range{1, 4}}];
     },
     {3, 6},
     [](P p) {
       return Position{1, p[0] + 1, p[1]};
     }},
    {[](const Tensor& x) {
       return x[{Range{0, 4, 2}, 3, Range{-3}}];
     },
     {2, 3},
     [](P p) {
       return Position{p[0] * 2, 3, p[1] + 3};
     }},
    {[](const Tensor& x) {
       return x[{3, 4, 5}];
     },
     {},
     [](P) {
       return Position{3, 4, 5};
     }},
    {[](const Tensor& x) {
       return x[{kAll, Range{1, 5, 3}, kAll}];
     },
     {4, 2, 6},
     [](P p) {
       return Position{p[0], 1 + 3 * p[1], p[2]};
     }},
    {[](const Tensor& x) {
       return x[Range{2, 2}];
     },
     {0, 5, 6},
     [](P p) { return p; }},
    {[](const Tensor& x) {
       return x[1][2][Range{0, 6, 5}];
     },
     {2},
     [](P p) {
       return Position{1, 2, 5 * p[0]};
     }},
};

TEST_P(IndexingTest, PartsOfATensor) {
  for (const Part& part : kParts) {
    for (const Placement placement : kPlacements) {
      const Tensor x =
          RandomTensor({4, 5, 6}, device(), DType::kInt64, placement);
      const TensorSlice y = part.take(x);
      EXPECT_TRUE(
          Matches(y, part.shape, x.dtype(), Pick(x, part.shape, part.from)));
      EXPECT_EQ(y.storage()->id(), x.storage()->id());
    }
  }
}

// x, (4, 5, 6), with its part replaced by f(old, i), i the element's number.
std::vector<double> Replaced(const Tensor& x, const Part& part,
                             const std::function<double(double, int)>& f) {
  std::vector<double> values = ValuesOf(x);
  int i = 0;
  for (const Position& position : PositionsIn(part.shape)) {
    double& value = values[NumberOf(part.from(position), x.shape())];
    value = f(value, i++);
  }
  return values;
}

TEST_P(IndexingTest, AssigningWritesToTheTensor) {
  for (const Part& part : kParts) {
    for (const Placement placement : kPlacements) {
      const Tensor x =
          RandomTensor({4, 5, 6}, device(), DType::kFloat64, placement);
      const Tensor memory = MemoryOf(x);
      const auto check = [&](const std::vector<double>& expected, auto assign) {
        const std::vector<double> all =
            WithValues(ValuesOf(memory), x, expected);
        const std::uint64_t version = x.version();
        assign();
        EXPECT_EQ(x.version(), version + 1);
        EXPECT_EQ(ValuesOf(memory), all);
      };
      check(Replaced(x, part, [](double, int) { return 0.5; }),
            [&] { part.take(x) = 0.5; });
      const Tensor y =
          RandomTensor(part.shape, device(), DType::kFloat64, placement);
      const std::vector<double> b = ValuesOf(y);
      check(Replaced(x, part, [&](double, int i) { return b[i]; }),
            [&] { part.take(x) = y; });
      check(Replaced(x, part, [&](double a, int i) { return a + b[i]; }),
            [&] { part.take(x) += y; });
      check(Replaced(x, part, [&](double a, int i) { return a - b[i]; }),
            [&] { part.take(x) -= y; });
      check(Replaced(x, part, [&](double a, int i) { return a * b[i]; }),
            [&] { part.take(x) *= y; });
      check(Replaced(x, part, [&](double a, int) { return a / 4; }),
            [&] { part.take(x) /= 4; });
      // Converts, and broadcasts one element to all.
      const Tensor one = Full({}, 7, device(), DType::kUInt8);
      check(Replaced(x, part, [](double, int) { return 7; }),
            [&] { part.take(x) = one; });
    }
  }
}

TEST_P(IndexingTest, APartToAPart) {
  const Tensor x = Numbers({3, 4});
  x[0] = x[2];
  EXPECT_THAT(ToVector<float>(x),
              ElementsAre(8, 9, 10, 11, 4, 5, 6, 7, 8, 9, 10, 11));
  x[{kAll, 0}] = x[{kAll, 3}];
  EXPECT_THAT(ToVector<float>(x),
              ElementsAre(11, 9, 10, 11, 7, 5, 6, 7, 11, 9, 10, 11));
  x[1] = 2 * x[1] - x[{1, 1}];
  EXPECT_THAT(ToVector<float>(x[1]), ElementsAre(9, 5, 7, 9));
  // Assigns a part to itself.
  x[1] = x[1];
  EXPECT_THAT(ToVector<float>(x[1]), ElementsAre(9, 5, 7, 9));
}

TEST_P(IndexingTest, WhatPerhapsOverlapsIsCopiedFirst) {
  const Tensor x = Numbers({2, 5});
  x[{kAll, Range{1, 5}}] = x[{kAll, Range{0, 4}}];
  EXPECT_THAT(ToVector<float>(x), ElementsAre(0, 0, 1, 2, 3, 5, 5, 6, 7, 8));
  const Tensor y = Numbers({2, 5});
  y[{kAll, Range{0, 4}}] = y[{kAll, Range{1, 5}}];
  EXPECT_THAT(ToVector<float>(y), ElementsAre(1, 2, 3, 4, 4, 6, 7, 8, 9, 9));
  const Tensor z = Numbers({3, 3});
  z[kAll] = T(z);
  EXPECT_THAT(ToVector<float>(z), ElementsAre(0, 3, 6, 1, 4, 7, 2, 5, 8));
}

TEST_P(IndexingTest, WhatIsAPartAndWhatIsAHandle) {
  const Tensor x = Numbers({2, 2});
  auto part = x[0];
  part = 7;  // writes
  EXPECT_THAT(ToVector<float>(x), ElementsAre(7, 7, 2, 3));
  part = x[1];  // also
  EXPECT_THAT(ToVector<float>(x), ElementsAre(2, 3, 2, 3));
  Tensor handle = x[0];
  handle = Full({2}, 9, device());  // does not
  EXPECT_THAT(ToVector<float>(x), ElementsAre(2, 3, 2, 3));
  handle = x[1];
  handle += 1;  // this does
  EXPECT_THAT(ToVector<float>(x), ElementsAre(2, 3, 3, 4));
}

TEST_P(IndexingTest, AssigningBroadcastsAndConverts) {
  const Tensor x = Zeros({2, 3}, device(), DType::kInt64);
  x[kAll] = FromVector<float>({1.9f, -2.9f, 3e30f}, {3}, device());
  EXPECT_THAT(ToVector<std::int64_t>(x),
              ElementsAre(1, -2, INT64_MAX, 1, -2, INT64_MAX));
  x[{kAll, Range{0, 2}}] = FromVector<std::uint8_t>({7, 8}, {2, 1}, device());
  EXPECT_THAT(ToVector<std::int64_t>(x),
              ElementsAre(7, 7, INT64_MAX, 8, 8, INT64_MAX));
  x[{1, 2}] = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ(Item<std::int64_t>(x[{1, 2}]), (std::int64_t{1} << 53) + 1);
}

TEST_P(IndexingTest, AssigningFromAnotherDevice) {
  const Device other = OtherDevice(device());
  const Tensor x = Zeros({2, 3}, device());
  x[{kAll, 1}] = FromVector<double>({5, 6}, {2}, other);
  EXPECT_THAT(ToVector<float>(x), ElementsAre(0, 5, 0, 0, 6, 0));
}

TEST_P(IndexingTest, LargeParts) {
  const Tensor x = RandomTensor({400, 600}, device());
  const std::vector<double> values = ValuesOf(x);
  const Tensor y = RandomTensor({400, 300}, device());
  x[{kAll, Range{0, 600, 2}}] = y;
  EXPECT_TRUE(
      Matches(x[{kAll, Range{0, 600, 2}}], {400, 300}, x.dtype(), ValuesOf(y)));
  const auto odd = [](P p) { return Position{p[0], 2 * p[1] + 1}; };
  EXPECT_TRUE(
      Matches(x[{kAll, Range{1, 600, 2}}], {400, 300}, x.dtype(),
              Pick(Place(values, {400, 600}, device()), {400, 300}, odd)));
}

TEST_P(IndexingTest, AnAssignmentToAllNamesItsLine) {
  const Tensor x = Zeros({2, 3}, device());
  const Tensor y = Zeros({4, 4}, device());
  const int line = __LINE__ + 1;
  const std::string text = ThrownText([&] { x[{}] = y[{kAll}]; });
  EXPECT_THAT(text,
              testing::HasSubstr("indexing_test.cc:" + std::to_string(line)));
}

INSTANTIATE_FOR_ALL_DEVICES(IndexingTest);

}  // namespace
}  // namespace d2l
