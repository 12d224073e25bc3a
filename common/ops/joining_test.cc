// Joining tensors, and picking elements by index.

#include "common/ops/joining.h"

#include <cstdint>
#include <random>
#include <vector>

#include "common/ops/creation.h"
#include "common/ops/read.h"
#include "common/ops/testing/testing.h"
#include "common/ops/views.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;

using Tensors = std::vector<Tensor>;

// Checks a joined tensor against the pieces, one behind the other along `dim`.
// Each piece counts as having the rank of the result.
void CheckJoined(const Tensor& joined, const Tensors& pieces, int dim) {
  Shape shape = pieces[0].shape();
  shape[dim] = 0;
  for (const Tensor& piece : pieces) shape[dim] += piece.size(dim);
  std::vector<double> expected(shape.numel());
  std::int64_t start = 0;
  for (const Tensor& piece : pieces) {
    const std::vector<double> values = ValuesOf(piece);
    std::size_t i = 0;
    for (Position position : PositionsIn(piece.shape())) {
      position[dim] += start;
      expected[NumberOf(position, shape)] = values[i++];
    }
    start += piece.size(dim);
  }
  EXPECT_TRUE(Matches(joined, shape, pieces[0].dtype(), expected));
  EXPECT_TRUE(joined.is_contiguous());
  for (const Tensor& piece : pieces) {
    EXPECT_NE(joined.storage()->id(), piece.storage()->id());
  }
}

// The pieces seen in another shape: the sizes of the result but for `dim`.
Tensors Seen(const Tensors& pieces, const Shape& shape) {
  Tensors seen;
  for (const Tensor& piece : pieces) seen.push_back(Reshape(piece, shape));
  return seen;
}

class JoiningTest : public DeviceTest {
 protected:
  Tensor Random(const Shape& shape, DType dtype = DType::kFloat32,
                Placement placement = Placement::kContiguous) const {
    return RandomTensor(shape, device(), dtype, placement);
  }
  Tensor Index(const std::vector<std::int64_t>& values,
               const Shape& shape) const {
    return FromVector(values, shape, device());
  }
};

TEST_P(JoiningTest, CatAlongEveryDimension) {
  for (const DType dtype : kAllDTypes) {
    for (const Placement p : kPlacements) {
      for (const Placement q : kPlacements) {
        for (int dim = 0; dim < 3; ++dim) {
          Shape a = {2, 3, 4}, b = a, c = a;
          b[dim] = 5;
          c[dim] = 1;
          const Tensors pieces = {Random(a, dtype, p), Random(b, dtype, q),
                                  Random(c, dtype)};
          CheckJoined(Cat(pieces, dim), pieces, dim);
          CheckJoined(Cat(pieces, dim - 3), pieces, dim);
        }
      }
      const Tensors vectors = {Random({7}, dtype, p), Random({0}, dtype, p),
                               Random({3}, dtype, p)};
      CheckJoined(Cat(vectors), vectors, 0);
    }
    const Tensor x = Random({3, 5}, dtype), y = Random({5, 3}, dtype);
    CheckJoined(Cat({x, T(y), x}, 1), {x, T(y), x}, 1);
  }
}

TEST_P(JoiningTest, CatOfManyFewAndNone) {
  const Tensor x = Random({3, 4});
  CheckJoined(Cat({x}), {x}, 0);
  CheckJoined(Cat({x, x}, 1), {x, x}, 1);
  Tensors many;
  for (int i = 0; i < 40; ++i) many.push_back(Random({3, i % 4}));
  CheckJoined(Cat(many, 1), many, 1);
  const Tensors empty = {Random({0, 4}), Random({0, 4})};
  CheckJoined(Cat(empty, 0), empty, 0);
  const Tensors narrow = {Random({2, 0}), Random({3, 0})};
  CheckJoined(Cat(narrow, 0), narrow, 0);
  const Tensors row = {Expand(Random({4}), {3, 4}), x};
  CheckJoined(Cat(row, 0), row, 0);
}

TEST_P(JoiningTest, LargePieces) {
  for (const DType dtype : {DType::kFloat32, DType::kUInt8}) {
    const Tensors pieces = {Random({331, 317}, dtype), Random({331, 1}, dtype),
                            Random({331, 200}, dtype, Placement::kTransposed)};
    CheckJoined(Cat(pieces, 1), pieces, 1);
    const Tensors rows = {Random({150, 317}, dtype), Random({331, 317}, dtype)};
    CheckJoined(Cat(rows, 0), rows, 0);
    const Tensors columns(5, Random({100003, 1}, dtype));
    CheckJoined(Cat(columns, 1), columns, 1);
  }
}

TEST_P(JoiningTest, StackingMakesADimension) {
  for (const DType dtype : kAllDTypes) {
    for (const Placement p : kPlacements) {
      const Tensors pieces = {Random({3, 4}, dtype, p), Random({3, 4}, dtype),
                              Random({3, 4}, dtype, p)};
      CheckJoined(Stack(pieces), Seen(pieces, {1, 3, 4}), 0);
      CheckJoined(Stack(pieces, 1), Seen(pieces, {3, 1, 4}), 1);
      CheckJoined(Stack(pieces, 2), Seen(pieces, {3, 4, 1}), 2);
      CheckJoined(Stack(pieces, -1), Seen(pieces, {3, 4, 1}), 2);
      CheckJoined(Stack(pieces, -3), Seen(pieces, {1, 3, 4}), 0);
    }
    const Tensors scalars = {Random({}, dtype), Random({}, dtype)};
    CheckJoined(Stack(scalars), Seen(scalars, {1}), 0);
    CheckJoined(Stack(scalars, -1), Seen(scalars, {1}), 0);
  }
}

TEST_P(JoiningTest, StacksOfOneKindAndTheOther) {
  for (const Placement p : kPlacements) {
    const DType dtype = DType::kInt64;
    const Tensors scalars = {Random({}, dtype, p), Random({}, dtype, p)};
    const Tensors vectors = {Random({4}, dtype, p), Random({4}, dtype, p)};
    const Tensors matrices = {Random({3, 4}, dtype, p),
                              Random({3, 4}, dtype, p)};
    const Tensors cubes = {Random({3, 4, 2}, dtype, p),
                           Random({3, 4, 2}, dtype, p)};
    CheckJoined(VStack(scalars), Seen(scalars, {1, 1}), 0);
    CheckJoined(VStack(vectors), Seen(vectors, {1, 4}), 0);
    CheckJoined(VStack(matrices), matrices, 0);
    CheckJoined(VStack(cubes), cubes, 0);
    CheckJoined(HStack(scalars), Seen(scalars, {1}), 0);
    CheckJoined(HStack(vectors), vectors, 0);
    CheckJoined(HStack(matrices), matrices, 1);
    CheckJoined(HStack(cubes), cubes, 1);
    CheckJoined(DStack(scalars), Seen(scalars, {1, 1, 1}), 2);
    CheckJoined(DStack(vectors), Seen(vectors, {1, 4, 1}), 2);
    CheckJoined(DStack(matrices), Seen(matrices, {3, 4, 1}), 2);
    CheckJoined(DStack(cubes), cubes, 2);
    // The lengths differ in the joined dimension.
    const Tensors rows = {Random({4}, dtype, p), Random({2, 4}, dtype, p)};
    CheckJoined(VStack(rows), {Reshape(rows[0], {1, 4}), rows[1]}, 0);
    const Tensors mixed = {Random({3, 4}, dtype, p),
                           Random({3, 4, 2}, dtype, p)};
    CheckJoined(DStack(mixed), {Reshape(mixed[0], {3, 4, 1}), mixed[1]}, 2);
  }
  const Tensors many(10, Random({10, 10}));
  CheckJoined(DStack(many), Seen(many, {10, 10, 1}), 2);
}

// ---- Indices.

std::vector<std::int64_t> RandomIndices(std::int64_t count, std::int64_t size) {
  static std::mt19937_64 generator(7);
  std::uniform_int_distribution<std::int64_t> index(0, size - 1);
  std::vector<std::int64_t> indices(count);
  for (std::int64_t& i : indices) i = index(generator);
  return indices;
}

void CheckIndexSelect(const Tensor& x, int dim, const Tensor& index) {
  const int d = dim < 0 ? dim + x.dim() : dim;
  const auto indices = ToVector<std::int64_t>(index);
  Shape shape = x.shape();
  shape[d] = indices.size();
  const Tensor y = IndexSelect(x, dim, index);
  EXPECT_TRUE(Matches(y, shape, x.dtype(),
                      Pick(x, shape,
                           [&](Position p) {
                             p[d] = indices[p[d]];
                             return p;
                           })))
      << x.shape() << " with strides " << x.strides() << " dimension " << dim;
  EXPECT_NE(y.storage()->id(), x.storage()->id());
}

TEST_P(JoiningTest, IndexSelectAgainstTheLoop) {
  for (const DType dtype : kAllDTypes) {
    for (const Placement placement : kPlacements) {
      for (int dim = -3; dim < 3; ++dim) {
        const Tensor x = Random({4, 5, 3}, dtype, placement);
        const std::int64_t size = x.size(dim < 0 ? dim + 3 : dim);
        CheckIndexSelect(x, dim, Index(RandomIndices(9, size), {9}));
      }
      CheckIndexSelect(Random({7}, dtype, placement), 0,
                       Index({6, 0, 0, 3}, {4}));
    }
    CheckIndexSelect(Random({4, 5}, dtype), 1, Index({}, {0}));
    CheckIndexSelect(Random({4, 0}, dtype), 0, Index({3, 1}, {2}));
    CheckIndexSelect(Random({331, 317}, dtype), 0,
                     Index(RandomIndices(500, 331), {500}));
    CheckIndexSelect(Random({331, 317}, dtype), 1,
                     Index(RandomIndices(500, 317), {500}));
    CheckIndexSelect(Random({1000}, dtype), 0,
                     Index(RandomIndices(100003, 1000), {100003}));
    CheckIndexSelect(Expand(Random({5}, dtype), {4, 5}), 1, Index({4}, {1}));
  }
  // The index may be a view as well.
  const Tensor index = Index({0, 1, 2, 3, 4, 0}, {6});
  CheckIndexSelect(Random({5, 2}), 0, Slice(index, 0, 0, 6, 2));
  CheckIndexSelect(Random({5, 2}), 0, Expand(Slice(index, 0, 3, 4), {7}));
}

void CheckGather(const Tensor& x, int dim, const Tensor& index) {
  const int d = dim < 0 ? dim + x.dim() : dim;
  const auto indices = ToVector<std::int64_t>(index);
  const Shape shape = index.shape();
  EXPECT_TRUE(Matches(Gather(x, dim, index), shape, x.dtype(),
                      Pick(x, shape,
                           [&](Position p) {
                             p[d] = indices[NumberOf(p, shape)];
                             return p;
                           })))
      << x.shape() << " with strides " << x.strides() << " dimension " << dim;
}

TEST_P(JoiningTest, GatherAgainstTheLoop) {
  for (const DType dtype : kAllDTypes) {
    for (const Placement placement : kPlacements) {
      for (int dim = -3; dim < 3; ++dim) {
        const Tensor x = Random({4, 5, 3}, dtype, placement);
        const int d = dim < 0 ? dim + 3 : dim;
        for (const std::int64_t length : {1, 2, 9}) {
          Shape shape = x.shape();
          shape[d] = length;
          CheckGather(x, dim,
                      Index(RandomIndices(shape.numel(), x.size(d)), shape));
          // The index is shorter than x in the other dimensions.
          for (int i = 0; i < 3; ++i) shape[i] -= i != d;
          CheckGather(x, dim,
                      Index(RandomIndices(shape.numel(), x.size(d)), shape));
        }
      }
      CheckGather(Random({7}, dtype, placement), 0, Index({6, 0, 3}, {3}));
    }
    CheckGather(Random({4, 5}, dtype), 1, Index({}, {4, 0}));
    CheckGather(Random({4, 5}, dtype), 1, Index({}, {0, 9}));
    CheckGather(Random({331, 317}, dtype), 1,
                Index(RandomIndices(331 * 317, 317), {331, 317}));
    CheckGather(Random({331, 317}, dtype), 0,
                Index(RandomIndices(331 * 317, 331), {331, 317}));
    CheckGather(Random({331, 317}, dtype), 1,
                Index(RandomIndices(331, 317), {331, 1}));
  }
  // The index may be a view as well.
  const Tensor x = Random({3, 4});
  CheckGather(x, 1, T(Index(RandomIndices(6, 4), {2, 3})));
  CheckGather(x, 0, Expand(Index(RandomIndices(4, 3), {4}), {5, 4}));
}

TEST_P(JoiningTest, TheHeadersExamples) {
  const Tensor x = FromVector<float>({1, 2, 3, 4}, {2, 2}, device());
  EXPECT_THAT(ToVector<float>(Gather(x, 1, Index({0, 0, 1, 0}, {2, 2}))),
              ElementsAre(1, 1, 4, 3));
  EXPECT_THAT(ToVector<float>(IndexSelect(x, 0, Index({1, 1}, {2}))),
              ElementsAre(3, 4, 3, 4));
}

// PyTorch counts a scalar as a vector of one element here.
TEST_P(JoiningTest, ScalarsCanBeIndexed) {
  const Tensor x = Full({}, 7, device());
  const Tensor one = Index({0}, {1});
  const Tensor none = Index({}, {0});
  const Tensor scalar = Index({0}, {});
  EXPECT_TRUE(Matches(IndexSelect(x, 0, one), {}, DType::kFloat32, {7}));
  EXPECT_TRUE(Matches(Gather(x, 0, one), {1}, DType::kFloat32, {7}));
  EXPECT_TRUE(Matches(Gather(x, -1, scalar), {}, DType::kFloat32, {7}));
  EXPECT_TRUE(Matches(Gather(Full({1}, 7, device()), 0, scalar), {},
                      DType::kFloat32, {7}));
  EXPECT_TRUE(Matches(Gather(x, 0, none), {0}, DType::kFloat32, {}));
  EXPECT_TRUE(
      Matches(Gather(Random({2, 3}), 1, none), {0}, DType::kFloat32, {}));
}

// Early PyTorch used an empty vector for "no tensor yet".
TEST_P(JoiningTest, AnEmptyVectorJoinsAnything) {
  const Tensor empty = Zeros({0}, device());
  const Tensor x = Random({2, 3});
  EXPECT_TRUE(
      Matches(Cat({empty, x, empty}, 1), {2, 3}, x.dtype(), ValuesOf(x)));
  EXPECT_TRUE(Matches(HStack({x, empty}), {2, 3}, x.dtype(), ValuesOf(x)));
  EXPECT_TRUE(Matches(Cat({empty, empty}), {0}, x.dtype(), {}));
}

INSTANTIATE_FOR_ALL_DEVICES(JoiningTest);

}  // namespace
}  // namespace d2l
