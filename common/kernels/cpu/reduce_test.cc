#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "common/device/backend.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/device/device.h"
#include "common/device/op_label.h"
#include "common/kernels/cpu/targets.h"
#include "common/kernels/enqueue.h"
#include "common/kernels/kernels.h"
#include "common/kernels/layout.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "gtest/gtest.h"
#include "hwy/highway.h"

namespace d2l::kernels::cpu {
namespace {

// Equal, where NaN equals NaN.
template <typename T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() ||
          std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMax,
                             ReduceOp::kMin, ReduceOp::kArgMax};

// A stream with this number of cores, whatever the machine has.
std::unique_ptr<CpuStream> StreamOf(int cores) {
  return std::make_unique<CpuStream>(Device(DeviceType::kCpu, 0), 1,
                                     StreamOptions(),
                                     std::make_shared<ThreadPool>(cores));
}

// n outputs between guards, which the destructor checks.
template <typename T>
class Output {
 public:
  explicit Output(std::int64_t n)
      : n_(static_cast<std::size_t>(n)), memory_(n_ + 2 * kGuard, T{77}) {}
  ~Output() {
    for (std::size_t i = 0; i < kGuard; ++i) {
      EXPECT_EQ(memory_[i], T{77});
      EXPECT_EQ(memory_[kGuard + n_ + i], T{77});
    }
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  T* data() { return memory_.data() + kGuard; }
  std::vector<T> values() const {
    return {memory_.begin() + kGuard, memory_.end() - kGuard};
  }

 private:
  static constexpr std::size_t kGuard = 17;
  std::size_t n_;
  std::vector<T> memory_;
};

template <typename T>
std::vector<T> RandomNumbers(std::int64_t n, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::vector<T> numbers(static_cast<std::size_t>(n));
  for (T& x : numbers) {
    if constexpr (std::is_floating_point_v<T>) {
      // Numbers of very different sizes and both signs, mostly positive.
      std::normal_distribution<double> normal;
      x = static_cast<T>(std::exp(2 * normal(generator)) *
                         (generator() % 8 == 0 ? -1 : 1));
    } else {
      // Few different numbers: there are ties.
      x = static_cast<T>(generator() % (sizeof(T) == 1 ? 256 : 1000));
    }
  }
  return numbers;
}

// A result of any type.
struct Value {
  double number;         // of floating point
  std::int64_t integer;  // otherwise
  double magnitude;      // of a sum: that of the absolute values
};

template <typename T>
Value Expected(ReduceOp op, const std::vector<T>& x) {
  Value value = {};
  if (op == ReduceOp::kSum || op == ReduceOp::kMean) {
    long double sum = 0, magnitude = 0;
    std::uint64_t wrapping = 0;
    for (const T y : x) {
      sum += y;
      magnitude += std::abs(static_cast<long double>(y));
      if constexpr (std::is_integral_v<T>) {
        wrapping += static_cast<std::uint64_t>(y);
      }
    }
    const long double n = op == ReduceOp::kSum ? 1 : x.size();
    value.number = static_cast<double>(sum / n);
    value.magnitude = static_cast<double>(magnitude / n);
    value.integer = static_cast<std::int64_t>(wrapping);
    return value;
  }
  std::size_t at = 0;
  for (std::size_t i = 1; i < x.size(); ++i) {
    if (x[at] != x[at]) break;
    const bool better = op == ReduceOp::kMin ? x[i] < x[at] : x[i] > x[at];
    if (better || x[i] != x[i]) at = i;
  }
  value.number = static_cast<double>(x[at]);
  value.integer =
      op == ReduceOp::kArgMax
          ? static_cast<std::int64_t>(at)
          : static_cast<std::int64_t>(std::is_integral_v<T> ? x[at] : T{});
  return value;
}

// The offsets that a strided shape leads to, in row-major order.
std::vector<std::int64_t> Offsets(const Shape& sizes, const Shape& strides) {
  std::vector<std::int64_t> offsets = {0};
  for (int d = 0; d < sizes.rank(); ++d) {
    std::vector<std::int64_t> next;
    for (const std::int64_t offset : offsets) {
      for (std::int64_t i = 0; i < sizes[d]; ++i) {
        next.push_back(offset + i * strides[d]);
      }
    }
    offsets = next;
  }
  return offsets;
}

template <typename Out, typename T>
std::vector<Out> Reduced(CpuStream& stream, ReduceOp op, const T* in,
                         const ReduceLayout& layout) {
  Output<Out> out(layout.kept.numel());
  Enqueue(stream, OpLabel("reduce"),
          ReduceArgs{op, DTypeOf<T>::value, out.data(), in, &layout});
  stream.Synchronize();
  return out.values();
}

// The error of a float's sum, as a part of the sum of absolute values.
template <typename T>
constexpr double kTolerance = 16 * std::numeric_limits<T>::epsilon();

template <typename T, typename Out>
void ExpectOutputs(ReduceOp op, const T* in, const ReduceLayout& layout,
                   const std::vector<Out>& actual) {
  const auto kept = Offsets(layout.kept, layout.kept_strides);
  const auto reduced = Offsets(layout.reduced, layout.reduced_strides);
  ASSERT_EQ(actual.size(), kept.size());
  for (std::size_t k = 0; k < kept.size(); ++k) {
    std::vector<T> x;
    for (const std::int64_t offset : reduced) x.push_back(in[kept[k] + offset]);
    const Value expected = Expected(op, x);
    if constexpr (std::is_integral_v<Out>) {
      ASSERT_EQ(static_cast<std::int64_t>(actual[k]), expected.integer) << k;
    } else if (std::isnan(expected.number)) {
      ASSERT_TRUE(std::isnan(actual[k])) << k;
    } else if (std::isinf(expected.number)) {
      ASSERT_EQ(actual[k], expected.number) << k;
    } else {
      ASSERT_NEAR(actual[k], expected.number,
                  kTolerance<T> * expected.magnitude)
          << k;
    }
  }
}

// Compares with the obvious loop, and with the results of other numbers of
// cores, other targets and another alignment.
template <typename T>
void Check(CpuStream& stream, const std::vector<T>& in,
           const ReduceLayout& layout) {
  SCOPED_TRACE("kept " + layout.kept.ToString() + " strides " +
               layout.kept_strides.ToString() + ", reduced " +
               layout.reduced.ToString() + " strides " +
               layout.reduced_strides.ToString());
  std::vector<T> shifted(in.size() + 1);
  std::copy(in.begin(), in.end(), shifted.begin() + 1);
  for (const ReduceOp op : kOps) {
    if (op == ReduceOp::kMean && std::is_integral_v<T>) continue;
    if (layout.reduced.numel() == 0 && op != ReduceOp::kSum &&
        op != ReduceOp::kMean) {
      continue;
    }
    SCOPED_TRACE(static_cast<int>(op));
    const auto check = [&](auto zero) {
      using Out = decltype(zero);
      const auto actual = Reduced<Out>(stream, op, in.data(), layout);
      ExpectOutputs(op, in.data(), layout, actual);
      for (const std::int64_t target : Targets()) {
        const ScopedTarget scope(target);
        const auto other = Reduced<Out>(stream, op, shifted.data() + 1, layout);
        EXPECT_TRUE(SameBits(actual, other)) << hwy::TargetName(target);
      }
    };
    VisitDType(ResultDType(op, DTypeOf<T>::value), check);
  }
}

template <typename T>
class ReduceTest : public testing::Test {
 public:
  const std::unique_ptr<CpuStream> stream = StreamOf(1);
};
using Types = testing::Types<float, double, std::int64_t, std::uint8_t>;
TYPED_TEST_SUITE(ReduceTest, Types);

TYPED_TEST(ReduceTest, Full) {
  for (const std::int64_t n :
       {0,   1,    2,    7,    8,    9,    31,   63,    64,    65,
        127, 1000, 1023, 1024, 2048, 2049, 8193, 65536, 65537, 200'003}) {
    const auto in = RandomNumbers<TypeParam>(n, 1);
    Check(*this->stream, in, {{}, {}, {n}, {1}});
  }
  // No dimension is reduced.
  const auto in = RandomNumbers<TypeParam>(1, 2);
  Check(*this->stream, in, {{}, {}, {}, {}});
}

TYPED_TEST(ReduceTest, RowsAndColumns) {
  for (const std::int64_t rows : {2, 3, 8, 64, 65, 130}) {
    for (const std::int64_t columns : {2, 7, 10, 64, 65, 515}) {
      const auto in = RandomNumbers<TypeParam>(rows * (columns + 3), 3);
      Check(*this->stream, in, {{rows}, {columns}, {columns}, {1}});
      Check(*this->stream, in, {{columns}, {1}, {rows}, {columns}});
      // Parts of wider rows.
      Check(*this->stream, in, {{rows}, {columns + 3}, {columns}, {1}});
      Check(*this->stream, in, {{columns}, {1}, {rows}, {columns + 3}});
    }
  }
}

TYPED_TEST(ReduceTest, OtherLayouts) {
  const auto in = RandomNumbers<TypeParam>(30'000, 4);
  const ReduceLayout layouts[] = {
      {{6, 50}, {2000, 1}, {40}, {50}},        // the middle of three
      {{40}, {50}, {6, 50}, {2000, 1}},        // all but the middle
      {{3, 5}, {1, 3}, {7}, {15}},             // a permuted view
      {{40, 3}, {3, 1}, {5, 7}, {1200, 120}},  // of four, the even ones
      {{5, 40}, {1200, 3}, {7, 3}, {120, 1}},
      {{2, 3, 4}, {1000, 200, 1}, {5, 6}, {30, 5}},
      {{2, 3, 4}, {1000, 200, 7}, {5, 6, 2}, {30, 4, 1}},
      {{30}, {2}, {100}, {200}},  // every second column
      {{100}, {200}, {30}, {3}},
      {{}, {}, {100, 30}, {1, 100}},  // a transposed matrix
      {{}, {}, {90, 30}, {300, 1}},   // part of a matrix
      {{}, {}, {5000}, {6}},
      {{700}, {1}, {}, {}},  // nothing is reduced
      {{70}, {3}, {}, {}},
      {{70}, {0}, {30}, {1}},  // a broadcast operand
      {{70}, {1}, {30}, {0}},
      {{}, {}, {100}, {0}},
      {{0}, {1}, {30}, {5}},  // no outputs
      {{0, 3}, {5, 1}, {30}, {5}},
      {{5}, {1}, {0}, {5}},  // no elements
      {{5}, {3}, {0}, {1}},
      {{5}, {7}, {3, 0}, {2, 5}},
      {{5}, {1}, {3, 0}, {2, 5}},
  };
  for (const ReduceLayout& layout : layouts) {
    Check(*this->stream, in, layout);
  }
}

// Long enough for threads to share it, in each way.
TYPED_TEST(ReduceTest, SameBitsWithAnyNumberOfCores) {
  const std::int64_t n = 1'200'000;
  const auto in = RandomNumbers<TypeParam>(n, 5);
  const ReduceLayout layouts[] = {
      {{}, {}, {n}, {1}},
      {{}, {}, {n / 2}, {2}},
      {{3}, {400'000}, {400'000}, {1}},
      {{3}, {400'000}, {200, 1000}, {2000, 1}},
      {{1200}, {1000}, {1000}, {1}},
      {{1000}, {1}, {1200}, {1000}},
      {{10}, {1}, {120'000}, {10}},
      {{100'000}, {1}, {12}, {100'000}},
      {{100'000}, {12}, {12}, {1}},
  };
  const auto several = StreamOf(3);
  for (const ReduceLayout& layout : layouts) {
    SCOPED_TRACE(layout.kept.ToString() + layout.reduced.ToString());
    for (const ReduceOp op : kOps) {
      if (op == ReduceOp::kMean && std::is_integral_v<TypeParam>) continue;
      VisitDType(ResultDType(op, DTypeOf<TypeParam>::value), [&](auto zero) {
        using Out = decltype(zero);
        const auto alone = Reduced<Out>(*this->stream, op, in.data(), layout);
        ExpectOutputs(op, in.data(), layout, alone);
        for (int i = 0; i < 3; ++i) {
          const auto shared = Reduced<Out>(*several, op, in.data(), layout);
          EXPECT_TRUE(SameBits(alone, shared));
        }
      });
    }
  }
}

TYPED_TEST(ReduceTest, ArgMaxIsTheFirstOfEqualOnes) {
  for (const std::int64_t n : {1, 2, 9, 64, 130, 3000, 140'000}) {
    std::vector<TypeParam> in(static_cast<std::size_t>(2 * n), TypeParam{3});
    for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
      in[at] = in[n - 1] = TypeParam{5};
      EXPECT_EQ(Reduced<std::int64_t>(*this->stream, ReduceOp::kArgMax,
                                      in.data(), {{}, {}, {n}, {1}}),
                std::vector<std::int64_t>{at});
      // The row as the first of two columns; the other is constant.
      std::vector<TypeParam> columns(in.size(), TypeParam{3});
      for (std::int64_t i = 0; i < n; ++i) columns[2 * i] = in[i];
      EXPECT_EQ(Reduced<std::int64_t>(*this->stream, ReduceOp::kArgMax,
                                      columns.data(), {{2}, {1}, {n}, {2}}),
                (std::vector<std::int64_t>{at, 0}));
      in[at] = in[n - 1] = TypeParam{3};
    }
  }
}

TYPED_TEST(ReduceTest, IntegersWrapAround) {
  if constexpr (sizeof(TypeParam) == 8 && std::is_integral_v<TypeParam>) {
    const std::vector<TypeParam> in(100, std::numeric_limits<TypeParam>::max());
    Check(*this->stream, in, {{}, {}, {100}, {1}});
    Check(*this->stream, in, {{10}, {1}, {10}, {10}});
  }
}

template <typename T>
class FloatReduceTest : public ReduceTest<T> {};
using FloatTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(FloatReduceTest, FloatTypes);

TYPED_TEST(FloatReduceTest, NanAndInfinityInEachPlace) {
  using Limits = std::numeric_limits<TypeParam>;
  for (const std::int64_t n : {1, 2, 9, 64, 67, 140}) {
    const auto numbers = RandomNumbers<TypeParam>(n, 6);
    for (std::int64_t at = 0; at < n; ++at) {
      for (const TypeParam special :
           {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
        auto in = numbers;
        in[at] = special;
        if (at + 2 < n) in[at + 2] = special;
        for (const ReduceOp op :
             {ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kArgMax}) {
          VisitDType(
              ResultDType(op, DTypeOf<TypeParam>::value), [&](auto zero) {
                using Out = decltype(zero);
                std::vector<TypeParam> columns;
                for (const TypeParam x : in) {
                  columns.insert(columns.end(), {x, TypeParam{1}, x});
                }
                const ReduceLayout row = {{}, {}, {n}, {1}};
                const ReduceLayout column = {{3}, {1}, {n}, {3}};
                ExpectOutputs(op, in.data(), row,
                              Reduced<Out>(*this->stream, op, in.data(), row));
                ExpectOutputs(
                    op, columns.data(), column,
                    Reduced<Out>(*this->stream, op, columns.data(), column));
              });
        }
        const auto sum = Reduced<TypeParam>(*this->stream, ReduceOp::kSum,
                                            in.data(), {{}, {}, {n}, {1}});
        EXPECT_TRUE(std::isnan(special) ? std::isnan(sum[0])
                                        : sum[0] == special);
      }
    }
  }
}

TYPED_TEST(FloatReduceTest, AllMinusInfinity) {
  constexpr TypeParam kInfinity = std::numeric_limits<TypeParam>::infinity();
  for (const std::int64_t n : {1, 70, 2100}) {
    const std::vector<TypeParam> in(static_cast<std::size_t>(n), -kInfinity);
    Check(*this->stream, in, {{}, {}, {n}, {1}});
  }
}

// Within an ulp of the exact sum where a running sum is off by hundreds.
TEST(ReduceDTypeTest, IntegersHaveNoMean) {
  const auto stream = StreamOf(1);
  const std::int64_t in[4] = {1, 2, 3, 4};
  std::int64_t out = 0;
  const ReduceLayout layout = {{}, {}, {4}, {1}};
  EXPECT_THROW(
      Enqueue(*stream, OpLabel("mean"),
              ReduceArgs{ReduceOp::kMean, DType::kInt64, &out, in, &layout}),
      std::invalid_argument);
}

TEST(ReduceAccuracyTest, LongSums) {
  const std::int64_t n = 10'000'000;
  std::vector<float> in(static_cast<std::size_t>(n));
  std::mt19937 generator(7);
  for (float& x : in) x = std::exp(static_cast<float>(generator() % 1000) / 99);
  double exact = 0;
  float running = 0;
  for (const float x : in) {
    exact += x;
    running += x;
  }
  const double ulp = exact * std::numeric_limits<float>::epsilon();
  ASSERT_GT(std::abs(running - exact), 100 * ulp);
  const auto stream = StreamOf(1);
  EXPECT_NEAR(
      Reduced<float>(*stream, ReduceOp::kSum, in.data(), {{}, {}, {n}, {1}})[0],
      exact, ulp);
  // Down two columns.
  double columns[2] = {};
  for (std::int64_t i = 0; i < n; ++i) columns[i % 2] += in[i];
  const auto sums = Reduced<float>(*stream, ReduceOp::kSum, in.data(),
                                   {{2}, {1}, {n / 2}, {2}});
  EXPECT_NEAR(sums[0], columns[0], ulp / 2);
  EXPECT_NEAR(sums[1], columns[1], ulp / 2);
}

// ---- Softmax.

template <typename T>
std::vector<T> RunSoftmax(CpuStream& stream, bool log, const std::vector<T>& in,
                          std::int64_t outer, std::int64_t size,
                          std::int64_t inner, bool in_place) {
  Output<T> out(outer * size * inner);
  if (in_place) std::copy(in.begin(), in.end(), out.data());
  Enqueue(stream, OpLabel("softmax"),
          SoftmaxArgs{log, DTypeOf<T>::value, out.data(),
                      in_place ? out.data() : in.data(), outer, size, inner});
  stream.Synchronize();
  return out.values();
}

template <typename T>
void CheckSoftmax(CpuStream& stream, CpuStream& several,
                  const std::vector<T>& in, std::int64_t outer,
                  std::int64_t size, std::int64_t inner) {
  SCOPED_TRACE(Shape({outer, size, inner}).ToString());
  for (const bool log : {false, true}) {
    SCOPED_TRACE(log);
    const auto actual = RunSoftmax(stream, log, in, outer, size, inner, false);
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < inner; ++i) {
        const std::int64_t first = o * size * inner + i;
        long double max = -std::numeric_limits<long double>::infinity();
        for (std::int64_t k = 0; k < size; ++k) {
          max = std::max<long double>(max, in[first + k * inner]);
        }
        long double sum = 0;
        for (std::int64_t k = 0; k < size; ++k) {
          sum += std::exp(in[first + k * inner] - max);
        }
        for (std::int64_t k = 0; k < size; ++k) {
          const std::int64_t at = first + k * inner;
          const long double x = in[at] - max;
          const double expected =
              static_cast<double>(log ? x - std::log(sum) : std::exp(x) / sum);
          if (std::isnan(expected)) {
            ASSERT_TRUE(std::isnan(actual[at])) << at;
          } else if (std::isinf(expected)) {
            ASSERT_EQ(actual[at], expected) << at;
          } else {
            // x - max is rounded, which e^x makes larger.
            const double scale =
                (log ? 1 + std::abs(expected) + std::log(size)
                     : expected *
                           (2 +
                            std::min(std::abs(static_cast<double>(x)), 100.0)));
            ASSERT_NEAR(actual[at], expected,
                        4 * std::numeric_limits<T>::epsilon() * scale +
                            std::numeric_limits<T>::min())
                << at;
          }
        }
      }
    }
    const auto expect_same = [&](const std::vector<T>& other) {
      EXPECT_TRUE(SameBits(actual, other));
    };
    expect_same(RunSoftmax(stream, log, in, outer, size, inner, true));
    expect_same(RunSoftmax(several, log, in, outer, size, inner, false));
    if (actual.size() > 20'000) continue;  // some targets are slow
    for (const std::int64_t target : Targets()) {
      SCOPED_TRACE(hwy::TargetName(target));
      const ScopedTarget scope(target);
      expect_same(RunSoftmax(stream, log, in, outer, size, inner, true));
    }
  }
}

TYPED_TEST(FloatReduceTest, Softmax) {
  const auto several = StreamOf(3);
  const std::int64_t shapes[][3] = {
      {1, 1, 1},      {0, 3, 1},    {3, 0, 2},       {2, 3, 0},
      {3, 2, 1},      {256, 10, 1}, {300, 63, 1},    {5, 64, 1},
      {5, 65, 1},     {3, 1000, 1}, {2, 2047, 1},    {2, 2048, 1},
      {2, 2049, 1},   {3, 8200, 1}, {2, 65'537, 1},  {1, 300'001, 1},
      {1, 2, 3},      {2, 63, 5},   {3, 64, 64},     {2, 65, 130},
      {1, 1000, 100}, {2, 7, 1001}, {1, 20'000, 33},
  };
  for (const auto& shape : shapes) {
    auto in = RandomNumbers<TypeParam>(shape[0] * shape[1] * shape[2], 8);
    CheckSoftmax(*this->stream, *several, in, shape[0], shape[1], shape[2]);
  }
}

TYPED_TEST(FloatReduceTest, SoftmaxOfSpecialNumbers) {
  using Limits = std::numeric_limits<TypeParam>;
  const auto several = StreamOf(3);
  for (const TypeParam special :
       {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
    for (const std::int64_t size : {1, 5, 70, 2500}) {
      for (const std::int64_t at : {std::int64_t{0}, size / 2, size - 1}) {
        auto in = RandomNumbers<TypeParam>(2 * size, 9);
        in[at] = special;
        CheckSoftmax(*this->stream, *several, in, 2, size, 1);
        CheckSoftmax(*this->stream, *several, in, 1, size, 2);
      }
    }
    const std::vector<TypeParam> all(200, special);
    CheckSoftmax(*this->stream, *several, all, 2, 100, 1);
    CheckSoftmax(*this->stream, *several, all, 1, 100, 2);
  }
}

}  // namespace
}  // namespace d2l::kernels::cpu
