#include "common/tensor/tensor.h"

#include <cstdint>
#include <limits>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "common/device/device_table.h"
#include "common/device/testing/testing.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::HasSubstr;

TEST(DType, SizesAndNames) {
  EXPECT_EQ(DTypeSize(DType::kFloat32), sizeof(float));
  EXPECT_EQ(DTypeSize(DType::kFloat64), sizeof(double));
  EXPECT_EQ(DTypeSize(DType::kInt64), sizeof(std::int64_t));
  EXPECT_EQ(DTypeSize(DType::kUInt8), sizeof(std::uint8_t));
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kUInt8}) {
    VisitDType(dtype, [&](auto zero) {
      EXPECT_EQ(DTypeOf<decltype(zero)>::value, dtype);
      EXPECT_EQ(sizeof(zero), DTypeSize(dtype));
    });
  }
}

TEST(Shape, HoldsSizes) {
  const Shape shape = {2, 3, 4};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape.numel(), 24);
  EXPECT_EQ(shape.ToString(), "(2, 3, 4)");
  EXPECT_EQ(Shape().ToString(), "()");
  EXPECT_EQ(Shape().numel(), 1);
  EXPECT_EQ((Shape{5}).ToString(), "(5)");
  EXPECT_EQ((Shape{2, 0}).numel(), 0);
  EXPECT_NE(shape, (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_EQ(Shape::Filled(2, 7), (Shape{7, 7}));
}

TEST(Shape, ReadsItsTextBack) {
  for (const Shape& shape :
       {Shape{}, Shape{5}, Shape{2, 0, 3}, Shape{-1, 4}, Shape::Filled(8, 1)}) {
    EXPECT_EQ(Shape::Parse(shape.ToString()), shape);
  }
  for (const char* text : {"", "(", ")", "2", "(2,3)", "(2, )", "(, 2)", "(2 )",
                           "(2, 3", "(1, 1, 1, 1, 1, 1, 1, 1, 1)", "(+2)",
                           "(9223372036854775808)", "()x"}) {
    EXPECT_FALSE(Shape::Parse(text).has_value()) << text;
  }
}

TEST(Shape, RefusesTooManyDimensions) {
  EXPECT_EQ((Shape{1, 1, 1, 1, 1, 1, 1, 1}).rank(), kMaxRank);
  EXPECT_THAT(ThrownText([] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }),
              HasSubstr("9 dimensions asked for; a tensor has at most 8"));
  EXPECT_THROW(Shape::Filled(9, 1), std::invalid_argument);
}

TEST(Shape, CheckedNumelRefusesNegativeAndOverflowingSizes) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(CheckedNumel("op", {2, 3}, 4), 6);
  EXPECT_EQ(CheckedNumel("op", {}, 4), 1);
  EXPECT_EQ(CheckedNumel("op", {kMax / 4}, 4), kMax / 4);
  EXPECT_THAT(ThrownText([] {
                CheckedNumel("op", {2, -1}, 4);
              }),
              HasSubstr("[op] a size is negative: (2, -1)"));
  // The elements can be counted, their bytes cannot.
  EXPECT_THAT(ThrownText([] { CheckedNumel("op", {kMax / 4 + 1}, 4); }),
              HasSubstr("more elements than 64 bits can count"));
  EXPECT_THROW(CheckedNumel("op", {kMax, kMax, 2}, 1), std::invalid_argument);
  // Empty, whatever the other sides are.
  EXPECT_EQ(CheckedNumel("op", {kMax, kMax, 0}, 8), 0);
  EXPECT_THROW(CheckedNumel("op", {0, -1}, 8), std::invalid_argument);
}

TEST(Shape, ContiguousStridesAreRowMajor) {
  EXPECT_EQ(ContiguousStrides({2, 3, 4}), (Shape{12, 4, 1}));
  EXPECT_EQ(ContiguousStrides({2, 0, 4}), (Shape{4, 4, 1}));
  EXPECT_EQ(ContiguousStrides({}), Shape());
  constexpr std::int64_t kLong = std::int64_t{1} << 40;
  EXPECT_EQ((Shape{kLong, kLong, 0}).numel(), 0);
  EXPECT_EQ(ContiguousStrides({0, kLong, kLong})[2], 1);
}

TEST(Shape, BroadcastsAsNumPyDoes) {
  EXPECT_EQ(BroadcastShapes("op", {2, 3}, {3}), (Shape{2, 3}));
  EXPECT_EQ(BroadcastShapes("op", {2, 1}, {1, 3}), (Shape{2, 3}));
  EXPECT_EQ(BroadcastShapes("op", {}, {4, 5}), (Shape{4, 5}));
  EXPECT_EQ(BroadcastShapes("op", {0}, {1}), (Shape{0}));
  EXPECT_EQ(BroadcastShapes("op", {1}, {0}), (Shape{0}));
  EXPECT_THAT(
      ThrownText([] {
        BroadcastShapes("add", {2, 3}, {4, 3});
      }),
      HasSubstr("[add] shapes (2, 3) and (4, 3) do not broadcast: 2 against 4 "
                "in dimension 2 from the end"));
  EXPECT_THROW(BroadcastShapes("op", {0}, {2}), std::invalid_argument);
}

Tensor MakeTensor(const Shape& shape, DType dtype = DType::kFloat32) {
  const Device device = Devices()[0].device;
  return Tensor(Memory(device).Allocate(shape.numel() * DTypeSize(dtype),
                                        DefaultStream(device)),
                device, dtype, shape);
}

TEST(Tensor, IsMetadataOverSharedMemory) {
  const Tensor x = MakeTensor({2, 3});
  EXPECT_TRUE(x.defined());
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  EXPECT_EQ(x.strides(), (Shape{3, 1}));
  EXPECT_EQ(x.numel(), 6);
  EXPECT_EQ(x.dim(), 2);
  EXPECT_EQ(x.dtype(), DType::kFloat32);
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_EQ(x.Describe(), "a float32 tensor of shape (2, 3) on " +
                              Devices()[0].device.ToString());
  const Tensor same = x;
  EXPECT_EQ(same.id(), x.id());
  EXPECT_EQ(same.data(), x.data());
  EXPECT_FALSE(Tensor().defined());
  EXPECT_EQ(Tensor().Describe(), "an undefined tensor");
}

TEST(Tensor, ViewsKnowWhetherTheyAreContiguous) {
  const Tensor x = MakeTensor({2, 3, 4});
  const auto contiguous = [&x](const Shape& shape, const Shape& strides) {
    return Tensor::View(x, 0, shape, strides).is_contiguous();
  };
  EXPECT_TRUE(contiguous({6, 4}, {4, 1}));
  EXPECT_TRUE(contiguous({3, 4}, {4, 1}));
  EXPECT_FALSE(contiguous({4, 3}, {1, 4}));
  EXPECT_FALSE(contiguous({2, 4}, {12, 1}));
  EXPECT_TRUE(contiguous({1, 4}, {99, 1}));  // a stride that is never used
  EXPECT_TRUE(contiguous({0, 4}, {7, 7}));
  EXPECT_TRUE(contiguous({}, {}));

  const Tensor row = Tensor::View(x, 4, {4}, {1});
  EXPECT_NE(row.id(), x.id());
  EXPECT_EQ(row.storage()->id(), x.storage()->id());
  EXPECT_EQ(static_cast<char*>(row.data()) - static_cast<char*>(x.data()),
            4 * sizeof(float));
}

TEST(Tensor, IdsAreUniqueAcrossThreads) {
  std::vector<std::vector<std::uint64_t>> ids(4);
  std::vector<std::thread> threads;
  for (auto& mine : ids) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < 100; ++i) mine.push_back(MakeTensor({1}).id());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::uint64_t> all;
  for (const auto& some : ids) all.insert(some.begin(), some.end());
  EXPECT_EQ(all.size(), 400u);
  EXPECT_EQ(all.count(0), 0u);
}

}  // namespace
}  // namespace d2l
