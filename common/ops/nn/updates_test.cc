// Operations that add to a tensor: AxpbyInPlace, IndexAdd, ScatterAdd.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/device/failure.h"
#include "common/device/stream_stall.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/primitive/record.h"
#include "common/ops/testing/testing.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

class UpdatesTest : public DeviceTest {
 protected:
  Tensor Index(const std::vector<std::int64_t>& values,
               const Shape& shape) const {
    return FromVector<std::int64_t>(values, shape, device());
  }
};
INSTANTIATE_FOR_ALL_DEVICES(UpdatesTest);

TEST_P(UpdatesTest, AxpbyAgreesWithTheSlowVersion) {
  for (const DType dtype : kFloatDTypes) {
    for (const Placement of_y : kPlacements) {
      for (const Placement of_x : kPlacements) {
        for (const Shape& shape :
             {Shape{3, 37}, Shape{0, 4}, Shape{300, 301}}) {
          for (const double beta : {0.0, 1.0, 0.75}) {
            const Tensor y = RandomTensor(shape, device(), dtype, of_y);
            const Tensor x = RandomTensor(shape, device(), dtype, of_x);
            const std::vector<double> xs = ValuesOf(x), ys = ValuesOf(y);
            const std::vector<double> memory = ValuesOf(MemoryOf(y));
            AxpbyInPlace(y, -0.5, x, beta);
            std::vector<double> expected, errors;
            for (std::size_t i = 0; i < xs.size(); ++i) {
              expected.push_back(-0.5 * xs[i] + beta * ys[i]);
              errors.push_back(Epsilon(dtype) *
                               (std::abs(xs[i]) + 2 * std::abs(ys[i])));
            }
            EXPECT_TRUE(IsNear(y, shape, dtype, expected, errors));
            EXPECT_EQ(ValuesOf(MemoryOf(y)),
                      WithValues(memory, y, ValuesOf(y)));
          }
        }
      }
    }
  }
}

// With beta = 0, NaN in y does not matter; and y may be x.
TEST_P(UpdatesTest, AxpbyOfNaNAndOfItself) {
  const double kNaN = std::nan("");
  const Tensor y = Place({kNaN, 1, 2}, {3}, device());
  AxpbyInPlace(y, 2, Place({3, 4, 5}, {3}, device()), 0);
  EXPECT_TRUE(Matches(y, {3}, DType::kFloat32, {6, 8, 10}));
  AxpbyInPlace(y, 0.5, y, 1);
  EXPECT_TRUE(Matches(y, {3}, DType::kFloat32, {9, 12, 15}));
}

TEST_P(UpdatesTest, AxpbyRefuses) {
  const Tensor y = Zeros({3}, device()), x = Zeros({1, 3}, device());
  EXPECT_REFUSED("[axpby] two tensors of one shape and dtype wanted; got " +
                     y.Describe() + " and " + x.Describe(),
                 AxpbyInPlace(y, 1, x, 1));
  const Tensor integers = Zeros({3}, device(), DType::kInt64);
  EXPECT_REFUSED("[axpby] float32 or float64 wanted; got " +
                     integers.Describe() +
                     "; convert it: To(x, DType::kFloat32)",
                 AxpbyInPlace(integers, 1, integers, 1));
}

// Collects how many records come at once.
class Batches : public OpListener {
 public:
  void OnOp(const OpRecord& record) override { OnOps({&record, 1}); }
  void OnOps(absl::Span<const OpRecord> records) override {
    sizes.push_back(records.size());
    for (const OpRecord& record : records) {
      EXPECT_EQ(record.number, records[0].number);
      EXPECT_EQ(record.stream, records[0].stream);
      EXPECT_TRUE(record.in_place);
      EXPECT_EQ(record.inputs.size(), 2u);
      EXPECT_EQ(record.inputs[0]->id(), record.output.id());
    }
  }

  std::vector<std::size_t> sizes;
};

std::vector<std::vector<double>> ValuesOfEach(
    const std::vector<Tensor>& tensors) {
  std::vector<std::vector<double>> values;
  for (const Tensor& x : tensors) values.push_back(ValuesOf(x));
  return values;
}

// Of more tensors than a kernel takes at once, at odd addresses.
template <typename T>
void CheckAxpbyOfLists(Device device) {
  constexpr DType kDType = DTypeOf<T>::value;
  using Limits = std::numeric_limits<T>;
  const T special[] = {Limits::infinity(),
                       -Limits::infinity(),
                       Limits::quiet_NaN(),
                       Limits::max(),
                       Limits::denorm_min(),
                       Limits::min(),
                       T{0},
                       -T{0},
                       Limits::lowest()};
  for (const double beta : {0.0, 1.0, 0.75, -1e-30}) {
    std::vector<Tensor> ys, xs;
    std::vector<std::vector<T>> expected;
    for (std::int64_t i = 0; i < 230; ++i) {
      const std::int64_t n = i == 7 ? 100003 : i * i * 5 % 131;
      std::vector<double> y = RandomValues(n, kDType);
      std::vector<double> x = RandomValues(n, kDType);
      for (std::int64_t e = 0; e < n && i % 3 == 0; ++e) {
        (e % 2 == 0 ? x : y)[e] = special[(e + i) % 9];
      }
      const auto placement = [](bool offset) {
        return offset ? Placement::kOffset : Placement::kContiguous;
      };
      ys.push_back(Place(y, {n}, device, kDType, placement(i % 4 == 1)));
      xs.push_back(Place(x, {n}, device, kDType, placement(i % 8 < 4)));
      std::vector<T>& result = expected.emplace_back();
      const T a = static_cast<T>(-0.3), b = static_cast<T>(beta);
      for (std::int64_t e = 0; e < n; ++e) {
        const T scaled = a * static_cast<T>(x[e]);
        result.push_back(beta == 0 ? scaled
                                   : scaled + b * static_cast<T>(y[e]));
      }
    }
    const std::vector<std::vector<double>> before = ValuesOfEach(xs);
    Batches batches;
    {
      const ScopedOpListener listen(&batches);
      AxpbyInPlace(ys, -0.3, xs, beta);
    }
    EXPECT_EQ(batches.sizes, std::vector<std::size_t>{ys.size()});
    for (std::size_t i = 0; i < ys.size(); ++i) {
      const std::vector<T> got = ToVector<T>(ys[i]);
      ASSERT_EQ(got.size(), expected[i].size());
      for (std::size_t e = 0; e < got.size(); ++e) {
        const T want = expected[i][e];
        ASSERT_TRUE((std::isnan(got[e]) && std::isnan(want)) ||
                    std::memcmp(&got[e], &want, sizeof(T)) == 0)
            << "element " << e << " of tensor " << i << ": " << got[e]
            << ", not " << want;
      }
      const std::vector<double> memory = ValuesOf(MemoryOf(ys[i]));
      EXPECT_EQ(WithValues(memory, ys[i], std::vector<double>(got.size(), 99)),
                std::vector<double>(memory.size(), 99));
    }
  }
}

TEST_P(UpdatesTest, AxpbyOfListsHasTheBitsOfALoop) {
  CheckAxpbyOfLists<float>(device());
  CheckAxpbyOfLists<double>(device());
}

// Strided tensors, several devices and dtypes.
TEST_P(UpdatesTest, AxpbyOfListsTakesAnyTensors) {
  std::vector<Tensor> ys, xs, expected;
  for (const Device where : {device(), OtherDevice(device())}) {
    for (const DType dtype : kFloatDTypes) {
      for (const Placement of_y : kPlacements) {
        for (const Placement of_x : kPlacements) {
          ys.push_back(RandomTensor({3, 7}, where, dtype, of_y));
          xs.push_back(RandomTensor({3, 7}, where, dtype, of_x));
          expected.push_back(Clone(ys.back()));
          AxpbyInPlace(expected.back(), 0.3, xs.back(), 0.7);
        }
      }
    }
  }
  AxpbyInPlace(ys, 0.3, xs, 0.7);
  EXPECT_EQ(ValuesOfEach(ys), ValuesOfEach(expected));
  AxpbyInPlace(absl::Span<const Tensor>(), 1, {}, 1);
}

// As if one after the other.
TEST_P(UpdatesTest, AxpbyOfListsThatOverlap) {
  for (int which = 0; which < 5; ++which) {
    std::vector<std::vector<double>> results;
    for (const bool list : {false, true}) {
      const Tensor a = Place({1, 2, 3, 4, 5, 6}, {6}, device());
      const Tensor b = Place({7, 8, 9, 10}, {4}, device());
      const Tensor low = Slice(a, 0, 0, 4), high = Slice(a, 0, 2, 6);
      const std::vector<Tensor> ys = which == 0   ? std::vector{low, high}
                                     : which == 1 ? std::vector{a, b}
                                     : which == 2 ? std::vector{low, b}
                                     : which == 3 ? std::vector{b, low}
                                                  : std::vector{b, b};
      const std::vector<Tensor> xs = which == 0   ? std::vector{b, b}
                                     : which == 1 ? std::vector{a, b}
                                     : which == 2 ? std::vector{b, high}
                                     : which == 3 ? std::vector{low, b}
                                                  : std::vector{low, high};
      Batches batches;
      {
        const ScopedOpListener listen(&batches);
        if (list) AxpbyInPlace(ys, 2, xs, 0.5);
      }
      // With itself, element for element, is no overlap.
      EXPECT_EQ(batches.sizes.size(), !list ? 0u : which == 1 ? 1u : 2u);
      for (int i = 0; i < 2 && !list; ++i) {
        AxpbyInPlace(ys[i], 2, xs[i], 0.5);
      }
      results.push_back(ValuesOf(Cat({a, b}, 0)));
    }
    EXPECT_EQ(results[0], results[1]) << which;
  }
}

TEST_P(UpdatesTest, AxpbyOfListsRefusesBeforeItWrites) {
  const Tensor x = Ones({3}, device()), y = Ones({3}, device());
  const Tensor row = Ones({1, 3}, device());
  const Tensor integers = Zeros({3}, device(), DType::kInt64);
  EXPECT_REFUSED("[axpby] an x for each of 2 tensors wanted; got 1",
                 AxpbyInPlace({y, row}, 1, {x}, 1));
  EXPECT_REFUSED(
      "[axpby] an operand is an undefined tensor (a Tensor that was "
      "declared and never assigned)",
      AxpbyInPlace({y, Tensor()}, 1, {x, x}, 1));
  EXPECT_REFUSED("[axpby] two tensors of one shape and dtype wanted; got " +
                     row.Describe() + " and " + x.Describe(),
                 AxpbyInPlace({y, row}, 1, {x, x}, 1));
  EXPECT_REFUSED("[axpby] float32 or float64 wanted; got " +
                     integers.Describe() +
                     "; convert it: To(x, DType::kFloat32)",
                 AxpbyInPlace({integers, y}, 1, {integers, x}, 1));
  EXPECT_EQ(ValuesOf(y), ValuesOf(x));
}

TEST_P(UpdatesTest, AxpbyOfListsFailsWithWhatItReads) {
  const std::vector<Tensor> ys = {Zeros({2}, device()), Zeros({2}, device())};
  const Tensor good = Ones({2}, device()), places = Index({0, 5}, {2});
  const SourceLocation at = SourceLocation::Current();
  {
    const StreamStall hold(CurrentStream(device()));
    AxpbyInPlace(ys, 1, {good, IndexSelect(good, 0, places, at)}, 1);
  }
  for (const Tensor& y : ys) ExpectFailedAt(at, y);
}

TEST_P(UpdatesTest, IndexAddAgreesWithTheSlowVersion) {
  struct OneCase {
    Shape x;
    int dim;
    std::int64_t count;
  };
  const OneCase cases[] = {
      {{5, 3}, 0, 7}, {{3, 5}, -1, 9},       {{2, 4, 3}, 1, 2},  {{4}, 0, 30},
      {{4, 3}, 0, 0}, {{1, 7, 4000}, 1, 20}, {{60, 5, 90}, 1, 8}};
  for (const DType dtype : kFloatDTypes) {
    for (const OneCase& one : cases) {
      SCOPED_TRACE(one.x.ToString());
      const int dim = one.dim < 0 ? one.dim + one.x.rank() : one.dim;
      Shape taken = one.x;
      taken[dim] = one.count;
      const Tensor x =
          RandomTensor(one.x, device(), dtype, Placement::kTransposed);
      const Tensor source =
          RandomTensor(taken, device(), dtype, Placement::kTransposed);
      const std::vector<double> xs = ValuesOf(x), sources = ValuesOf(source);
      for (const bool scatter : {false, true}) {
        std::vector<std::int64_t> index;
        const std::int64_t indices = scatter ? taken.numel() : one.count;
        for (std::int64_t i = 0; i < indices; ++i) {
          index.push_back((i * i + i / 5) % one.x[dim]);
        }
        std::vector<double> expected = xs;
        for (const Position& position : PositionsIn(taken)) {
          const std::int64_t number = NumberOf(position, taken);
          Position to = position;
          to[dim] = index[scatter ? number : position[dim]];
          double& sum = expected[NumberOf(to, one.x)];
          sum = RoundTo(dtype, sum + sources[number]);  // in this order
        }
        const Tensor y =
            scatter ? ScatterAdd(x, one.dim, Index(index, taken), source)
                    : IndexAdd(x, one.dim, Index(index, {one.count}), source);
        EXPECT_TRUE(Matches(y, one.x, dtype, expected));
        EXPECT_EQ(ValuesOf(x), xs);
      }
    }
  }
}

// As in PyTorch, the index may be shorter than x outside of `dim`, and than the
// source.
TEST_P(UpdatesTest, ScatterAddTakesAShorterIndex) {
  struct OneCase {
    Shape x, index, source;
    int dim;
  };
  const OneCase cases[] = {{{3, 4}, {2, 2}, {2, 2}, 0},
                           {{3, 4}, {2, 2}, {3, 5}, 1},
                           {{3, 4}, {2, 9}, {2, 9}, 1},
                           {{3, 4}, {7, 1}, {8, 3}, -2},
                           {{4, 5, 3}, {2, 6, 1}, {2, 7, 3}, 1},
                           {{2, 3, 2, 4}, {1, 2, 3, 2}, {1, 2, 3, 4}, 2},
                           {{5}, {3}, {4}, 0},
                           {{3, 4}, {0, 4}, {1, 1}, 0},
                           {{3, 4}, {0}, {1}, 1},
                           {{0, 4}, {0, 2}, {3, 2}, 0}};
  for (const DType dtype : kFloatDTypes) {
    for (const OneCase& one : cases) {
      SCOPED_TRACE(one.x.ToString() + one.index.ToString());
      const int dim = one.dim < 0 ? one.dim + one.x.rank() : one.dim;
      const Tensor x =
          RandomTensor(one.x, device(), dtype, Placement::kTransposed);
      const Tensor source =
          RandomTensor(one.source, device(), dtype, Placement::kTransposed);
      const std::vector<double> xs = ValuesOf(x), sources = ValuesOf(source);
      std::vector<double> expected = xs;
      std::vector<std::int64_t> index;
      for (const Position& position : PositionsIn(one.index)) {
        const auto i = static_cast<std::int64_t>(index.size());
        index.push_back((i * i + i / 3) % one.x[dim]);
        Position to = position;
        to[dim] = index.back();
        double& sum = expected[NumberOf(to, one.x)];
        sum = RoundTo(dtype, sum + sources[NumberOf(position, one.source)]);
      }
      const Tensor y = ScatterAdd(x, one.dim, Index(index, one.index), source);
      EXPECT_TRUE(Matches(y, one.x, dtype, expected));
      EXPECT_EQ(ValuesOf(x), xs);
    }
  }
  // A scalar counts as a vector.
  const Tensor scalar = Place({3}, {}, device());
  EXPECT_TRUE(Matches(ScatterAdd(scalar, 0, Index({0}, {}), scalar), {},
                      DType::kFloat32, {6}));
  EXPECT_TRUE(Matches(
      ScatterAdd(scalar, -1, Index({0, 0}, {2}), Place({2, 4}, {2}, device())),
      {}, DType::kFloat32, {9}));
}

TEST_P(UpdatesTest, IndexAddInPlaceWritesToItsTarget) {
  const Tensor x = Place({1, 2, 3}, {3}, device());
  const Tensor index = Index({2, 0, 2}, {3});
  const Tensor source = Place({10, 20, 30}, {3}, device());
  ApplyInPlace(IndexAddPrimitive(kernels::IndexOp::kSelect, 0),
               {&x, &index, &source}, x, SourceLocation::Current());
  EXPECT_TRUE(Matches(x, {3}, DType::kFloat32, {21, 2, 43}));
}

TEST_P(UpdatesTest, AnIndexOutOfRangeFailsLate) {
  const Tensor x = Zeros({3, 2}, device());
  for (const bool scatter : {false, true}) {
    const Shape shape = scatter ? Shape{2, 2} : Shape{2};
    const Tensor index = Index(scatter ? std::vector<std::int64_t>{0, 1, 3, 0}
                                       : std::vector<std::int64_t>{0, -1},
                               shape);
    const Tensor source = Ones({2, 2}, device());
    const SourceLocation at = SourceLocation::Current();
    const Tensor y = scatter ? ScatterAdd(x, 0, index, source, at)
                             : IndexAdd(x, 0, index, source, at);
    try {
      ValuesOf(y);
      FAIL() << "nothing was thrown";
    } catch (const AsyncError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("is out of range; valid are 0..2"), std::string::npos)
          << what;
      EXPECT_NE(what.find(at.ToString()), std::string::npos) << what;
    }
  }
}

TEST_P(UpdatesTest, IndexAddRefuses) {
  const Tensor x = Zeros({3, 2}, device()), source = Zeros({3, 2}, device());
  EXPECT_REFUSED(
      "[index_add] a source of shape (2, 2) and of the tensor's dtype wanted; "
      "got " +
          source.Describe() + " to add to " + x.Describe(),
      IndexAdd(x, 0, Index({0, 1}, {2}), source));
  EXPECT_REFUSED("[index_add] the index must be a vector; got (1, 1)",
                 IndexAdd(x, 0, Index({0}, {1, 1}), source));
}

TEST_P(UpdatesTest, ScatterAddRefuses) {
  const Tensor x = Zeros({3, 2}, device()), source = Zeros({3, 2}, device());
  for (const Shape& shape :
       {Shape{3, 3}, Shape{4, 2}, Shape{1, 1, 1}, Shape{2}}) {
    const Tensor index = Zeros(shape, device(), DType::kInt64);
    EXPECT_REFUSED(
        "[scatter_add] an index wanted with as many dimensions as the tensor "
        "and the source, none longer than theirs, but than the tensor's "
        "dimension 0: index " +
            shape.ToString() + ", tensor (3, 2), source (3, 2)",
        ScatterAdd(x, 0, index, source));
  }
  EXPECT_REFUSED("[scatter_add] an int64 index wanted; got " + x.Describe(),
                 ScatterAdd(x, 0, x, source));
  EXPECT_REFUSED("[scatter_add] dimension 2 is out of range; valid are -2 to 1",
                 ScatterAdd(x, 2, Index({0}, {1, 1}), source));
  const Tensor undefined{};
  EXPECT_REFUSED(
      "[scatter_add] an operand is an undefined tensor (a Tensor that was "
      "declared and never assigned)",
      ScatterAdd(x, 0, undefined, source));
}

}  // namespace
}  // namespace d2l
