// Compares every function, type and layout with the plain formula, element by
// element, on each CPU device.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/device.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/device/testing/testing.h"
#include "common/kernels/enqueue.h"
#include "common/kernels/kernels.h"
#include "common/kernels/layout.h"
#include "common/kernels/testing/unary_cases.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::kernels::cpu {
namespace {

using std::int64_t;
using std::uint8_t;
using testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// ---- The formulas.

template <typename T>
T Wrapped(__int128 x) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x));
}

double PythonFloorDivide(long double a, long double b) {
  if (b == 0) return static_cast<double>(a) / static_cast<double>(b);
  const long double rest = std::fmod(a, b);
  long double quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  return static_cast<double>(std::round(quotient));
}

// The element of the result, in the type of the result.
template <typename Out, typename T>
Out BinaryFormula(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::kEqual:
      return a == b;
    case BinaryOp::kNotEqual:
      return !(a == b);
    case BinaryOp::kLess:
      return a < b;
    case BinaryOp::kLessEqual:
      return a <= b;
    case BinaryOp::kGreater:
      return a > b;
    case BinaryOp::kGreaterEqual:
      return a >= b;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    const __int128 x = a;
    const __int128 y = b;
    switch (op) {
      case BinaryOp::kAdd:
        return static_cast<Out>(Wrapped<T>(x + y));
      case BinaryOp::kSubtract:
        return static_cast<Out>(Wrapped<T>(x - y));
      case BinaryOp::kMultiply:
        return static_cast<Out>(Wrapped<T>(x * y));
      case BinaryOp::kDivide:
        return static_cast<Out>(static_cast<float>(a) / static_cast<float>(b));
      case BinaryOp::kFloorDivide: {
        __int128 quotient = x / y;
        if (quotient * y != x && (x < 0) != (y < 0)) --quotient;
        return static_cast<Out>(Wrapped<T>(quotient));
      }
      case BinaryOp::kPow: {
        T result = 1;
        for (T i = 0; i < b; ++i) {
          result = Wrapped<T>(static_cast<__int128>(result) * x);
        }
        return static_cast<Out>(result);
      }
      case BinaryOp::kMaximum:
        return static_cast<Out>(std::max(a, b));
      case BinaryOp::kMinimum:
        return static_cast<Out>(std::min(a, b));
      default:
        break;
    }
  } else {
    const long double x = a;
    const long double y = b;
    switch (op) {
      case BinaryOp::kAdd:
        return static_cast<Out>(a + b);
      case BinaryOp::kSubtract:
        return static_cast<Out>(a - b);
      case BinaryOp::kMultiply:
        return static_cast<Out>(a * b);
      case BinaryOp::kDivide:
        return static_cast<Out>(a / b);
      case BinaryOp::kFloorDivide:
        return static_cast<Out>(PythonFloorDivide(x, y));
      case BinaryOp::kPow:
        return static_cast<Out>(std::pow(x, y));
      case BinaryOp::kMaximum:
        if (std::isnan(a) || std::isnan(b)) return static_cast<Out>(kNaN);
        return static_cast<Out>(std::max(a, b));
      case BinaryOp::kMinimum:
        if (std::isnan(a) || std::isnan(b)) return static_cast<Out>(kNaN);
        return static_cast<Out>(std::min(a, b));
      case BinaryOp::kReluGradient:
        return static_cast<Out>(b <= 0 ? T{0} : a);
      case BinaryOp::kTanhGradient:
        return static_cast<Out>(a * (1 - b * b));
      case BinaryOp::kSigmoidGradient:
        return static_cast<Out>(a * ((1 - b) * b));
      default:
        break;
    }
  }
  ADD_FAILURE() << "no formula for operation " << static_cast<int>(op);
  return Out{};
}

template <typename T>
T UnaryFormula(const UnaryCase& one, T a) {
  if constexpr (std::is_integral_v<T>) {
    return Wrapped<T>(one.integer(a));
  } else {
    return static_cast<T>(one.Exact(a));
  }
}

template <typename To, typename From>
To ConvertFormula(From x) {
  if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    const long double y = x;
    if (std::isnan(y)) return 0;
    if (y <= static_cast<long double>(std::numeric_limits<To>::min())) {
      return std::numeric_limits<To>::min();
    }
    if (y >= static_cast<long double>(std::numeric_limits<To>::max())) {
      return std::numeric_limits<To>::max();
    }
  }
  return static_cast<To>(x);
}

// Equal, or both NaN, or within `ulps` of each other.
template <typename T>
bool Agree(T a, T b, double ulps) {
  if constexpr (std::is_integral_v<T>) {
    return a == b;
  } else {
    if (a == b || (std::isnan(a) && std::isnan(b))) return true;
    return std::abs(a - b) <=
           static_cast<T>(ulps) * std::numeric_limits<T>::epsilon() *
               std::max(std::abs(b), std::numeric_limits<T>::min());
  }
}

// ---- Memory with guards around it.

constexpr unsigned char kPoison = 0xA5;

// n elements, `shift` of them away from the start of a cache line.
template <typename T>
class Guarded {
 public:
  explicit Guarded(int64_t n, int64_t shift = 1)
      : n_(n),
        shift_(shift),
        bytes_((n + shift) * sizeof(T) + 4 * kGuard, kPoison) {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    start_ = kGuard + (kGuard - address % kGuard) % kGuard + shift * sizeof(T);
  }
  T* data() { return reinterpret_cast<T*>(bytes_.data() + start_); }
  T Get(int64_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + start_ + i * sizeof(T), sizeof(T));
    return value;
  }
  void Set(int64_t i, T value) { data()[i] = value; }
  bool IsPoison(int64_t i) const {
    return std::all_of(bytes_.begin() + start_ + i * sizeof(T),
                       bytes_.begin() + start_ + (i + 1) * sizeof(T),
                       [](unsigned char c) { return c == kPoison; });
  }
  bool GuardsIntact() const {
    const auto poison = [](unsigned char c) { return c == kPoison; };
    return std::all_of(bytes_.begin(), bytes_.begin() + start_, poison) &&
           std::all_of(bytes_.begin() + start_ + n_ * sizeof(T), bytes_.end(),
                       poison);
  }
  int64_t size() const { return n_; }

 private:
  static constexpr std::size_t kGuard = 64;
  int64_t n_;
  int64_t shift_;
  std::vector<unsigned char> bytes_;
  std::size_t start_;
};

// ---- Numbers to compute on.

template <typename T>
T RandomNumber(std::mt19937_64& random) {
  if constexpr (std::is_floating_point_v<T>) {
    static const double kSpecial[] = {0.0,  -0.0,  1.0,   -1.0, 0.5,
                                      3.0,  -kInf, kInf,  kNaN, 1e-30,
                                      1e30, 100.0, -100.0};
    if (random() % 4 == 0) {
      return static_cast<T>(kSpecial[random() % std::size(kSpecial)]);
    }
    return static_cast<T>(std::normal_distribution<double>(0, 3)(random));
  } else if constexpr (std::is_same_v<T, int64_t>) {
    static const int64_t kSpecial[] = {0,
                                       1,
                                       -1,
                                       255,
                                       256,
                                       -300,
                                       std::numeric_limits<int64_t>::min(),
                                       std::numeric_limits<int64_t>::max()};
    if (random() % 4 == 0) return kSpecial[random() % std::size(kSpecial)];
    const int64_t small = static_cast<int64_t>(random() % 41) - 20;
    return random() % 2 == 0 ? small : static_cast<int64_t>(random());
  } else {
    return static_cast<T>(random());
  }
}

// A second operand that the operation accepts.
template <typename T>
T RandomDivisor(BinaryOp op, std::mt19937_64& random) {
  T x = RandomNumber<T>(random);
  if constexpr (std::is_integral_v<T>) {
    if (op == BinaryOp::kFloorDivide && x == 0) x = static_cast<T>(-1);
    if (op == BinaryOp::kPow) x = static_cast<T>(random() % 70);
  }
  return x;
}

// ---- Layouts.

int64_t Span(const Shape& shape, const Shape& strides) {
  int64_t last = 0;
  for (int d = 0; d < shape.rank(); ++d) last += (shape[d] - 1) * strides[d];
  return last + 1;
}

int64_t Offset(const Shape& shape, const Shape& strides, int64_t element) {
  int64_t offset = 0;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    offset += element % shape[d] * strides[d];
    element /= shape[d];
  }
  return offset;
}

struct LayoutCase {
  const char* name;
  Shape shape;
  Shape out;
  Shape a;
  Shape b;
};

const std::vector<LayoutCase>& LayoutCases() {
  static const std::vector<LayoutCase>* const kCases = new std::vector<
      LayoutCase>{
      {"one", {1}, {1}, {1}, {1}},
      {"two", {2}, {1}, {1}, {1}},
      {"seven", {7}, {1}, {1}, {1}},
      {"thirty-three", {33}, {1}, {1}, {1}},
      {"long", {20003}, {1}, {1}, {1}},
      {"every second", {1001}, {1}, {2}, {1}},
      {"to every third", {1001}, {3}, {1}, {1}},
      {"backwards", {101}, {1}, {-1}, {1}},
      {"small row", {5, 7}, {7, 1}, {7, 1}, {0, 1}},
      {"row", {41, 70}, {70, 1}, {70, 1}, {0, 1}},
      {"first is row", {41, 70}, {70, 1}, {0, 1}, {70, 1}},
      {"column", {41, 70}, {70, 1}, {70, 1}, {1, 0}},
      {"first is column", {41, 70}, {70, 1}, {1, 0}, {70, 1}},
      {"outer", {33, 65}, {65, 1}, {1, 0}, {0, 1}},
      {"all the same", {33, 65}, {65, 1}, {0, 0}, {65, 1}},
      {"two numbers", {33, 65}, {65, 1}, {0, 0}, {0, 0}},
      {"two columns", {33, 65}, {65, 1}, {1, 0}, {1, 0}},
      {"padded rows", {19, 40}, {64, 1}, {50, 1}, {41, 1}},
      {"transposed", {67, 45}, {45, 1}, {1, 67}, {45, 1}},
      {"both transposed", {67, 45}, {45, 1}, {1, 67}, {1, 67}},
      {"to transposed", {67, 45}, {1, 67}, {45, 1}, {45, 1}},
      {"all transposed", {67, 45}, {1, 67}, {1, 67}, {1, 67}},
      {"large transposed", {300, 211}, {211, 1}, {1, 300}, {0, 1}},
      {"short rows", {2000, 3}, {3, 1}, {3, 1}, {0, 1}},
      {"short and wide", {2, 40000}, {40000, 1}, {40000, 1}, {1, 0}},
      {"wide, scattered", {2, 20000}, {1, 2}, {20000, 1}, {1, 0}},
      {"tall", {20000, 2}, {2, 1}, {1, 20000}, {1, 0}},
      {"of a slice", {10, 10}, {1000, 100}, {10, 1}, {1, 10}},
      {"three dimensions", {4, 5, 6}, {30, 6, 1}, {1, 4, 20}, {6, 0, 1}},
      {"long inner", {3, 4, 50}, {200, 50, 1}, {50, 150, 1}, {0, 50, 1}},
      {"channels last", {3, 60, 37}, {2220, 37, 1}, {2220, 1, 60}, {0, 0, 1}},
      {"four", {3, 4, 5, 6}, {120, 30, 6, 1}, {1, 3, 12, 60}, {6, 0, 18, 1}},
      {"many planes",
       {50, 40, 4, 5},
       {800, 20, 5, 1},
       {1, 50, 10000, 2000},
       {0, 20, 5, 1}},
  };
  return *kCases;
}

// An input of a case: its memory, and the address of its first element.
template <typename T>
struct TestInput {
  TestInput(const Shape& shape, const Shape& strides,
            const std::function<T()>& next)
      : memory(std::abs(Span(shape, Absolute(strides)))) {
    for (int64_t i = 0; i < memory.size(); ++i) memory.Set(i, next());
    first = memory.data();
    for (int d = 0; d < shape.rank(); ++d) {
      if (strides[d] < 0) first -= (shape[d] - 1) * strides[d];
    }
  }
  static Shape Absolute(Shape strides) {
    for (int d = 0; d < strides.rank(); ++d) {
      strides[d] = std::abs(strides[d]);
    }
    return strides;
  }
  Guarded<T> memory;
  T* first;
};

class ElementwiseTest : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override { stream_ = MakeStream(GetParam()); }
  CpuStream& stream() { return static_cast<CpuStream&>(*stream_); }

  // Compares an output of a case with `expected`, called for each element.
  template <typename Out>
  static void Check(const Guarded<Out>& out, const LayoutCase& layout,
                    double ulps, const std::string& what,
                    const std::function<Out(int64_t)>& expected) {
    ASSERT_TRUE(out.GuardsIntact()) << what;
    std::vector<bool> written(out.size());
    for (int64_t i = 0; i < layout.shape.numel(); ++i) {
      const int64_t at = Offset(layout.shape, layout.out, i);
      written[at] = true;
      ASSERT_TRUE(Agree(out.Get(at), expected(i), ulps))
          << what << ", element " << i << ": " << +out.Get(at) << " instead of "
          << +expected(i);
    }
    for (int64_t i = 0; i < out.size(); ++i) {
      if (written[i]) continue;
      ASSERT_TRUE(out.IsPoison(i)) << what << ", gap " << i;
    }
  }

  std::unique_ptr<Stream> stream_;
  std::mt19937_64 random_{20240607};
};

template <typename F>
void ForEachDType(F f) {
  f(float{});
  f(double{});
  f(int64_t{});
  f(uint8_t{});
}

// Collapses `layout`; returns it, or null if no layout is needed.
const StridedLayout* Collapsed(StridedLayout& layout, int inputs) {
  return Collapse(layout, inputs) ? nullptr : &layout;
}

TEST_P(ElementwiseTest, UnaryOfEveryTypeAndLayout) {
  ForEachDType([&](auto zero) {
    using T = decltype(zero);
    for (const UnaryCase& one : UnaryCases()) {
      if (!OpTakes(one.op, DTypeOf<T>::value)) continue;
      for (const LayoutCase& layout : LayoutCases()) {
        TestInput<T> in(layout.shape, layout.a,
                        [&] { return RandomNumber<T>(random_); });
        Guarded<T> out(Span(layout.shape, layout.out));
        StridedLayout strided = {layout.shape, layout.out, {layout.a}};
        const StridedLayout* collapsed = Collapsed(strided, 1);
        Enqueue(stream(), OpLabel("test"),
                UnaryArgs{one.op, DTypeOf<T>::value, layout.shape.numel(),
                          out.data(), in.first, collapsed});
        stream().Synchronize();
        Check<T>(out, layout, one.ulps,
                 std::string(layout.name) + ", " + one.name, [&](int64_t i) {
                   return UnaryFormula(
                       one, in.first[Offset(layout.shape, layout.a, i)]);
                 });
      }
    }
  });
}

TEST_P(ElementwiseTest, BinaryOfEveryTypeAndLayout) {
  enum { kArrays, kFirst, kSecond, kKinds };
  ForEachDType([&](auto zero) {
    using T = decltype(zero);
    for (const auto& info : kOpInfos<BinaryOp>) {
      const BinaryOp op = info.op;
      if (!Contains(info.dtypes, DTypeOf<T>::value)) continue;
      for (const LayoutCase& layout : LayoutCases()) {
        for (int kind = 0; kind < kKinds; ++kind) {
          LayoutCase used = layout;
          const Shape zeros = Shape::Filled(layout.shape.rank(), 0);
          if (kind == kFirst) used.a = zeros;
          if (kind == kSecond) used.b = zeros;
          TestInput<T> a(used.shape, used.a,
                         [&] { return RandomNumber<T>(random_); });
          TestInput<T> b(used.shape, used.b,
                         [&] { return RandomDivisor<T>(op, random_); });
          BinaryArgs args = {op,      DTypeOf<T>::value, used.shape.numel(),
                             nullptr, {a.first, {}},     {b.first, {}},
                             nullptr};
          StridedLayout strided = {used.shape, used.out, {used.a, used.b}};
          if (kind == kFirst) args.a = {nullptr, *a.first};
          if (kind == kSecond) args.b = {nullptr, *b.first};
          args.layout = Collapsed(strided, 2);
          // A number beside a contiguous operand needs no layout.
          if (kind != kArrays && layout.shape.rank() == 1 &&
              layout.out[0] == 1 && layout.a[0] == 1 && layout.b[0] == 1) {
            args.layout = nullptr;
          }
          const std::string what = std::string(layout.name) + ", binary " +
                                   std::to_string(static_cast<int>(op)) + ", " +
                                   DTypeName(DTypeOf<T>::value) + ", kind " +
                                   std::to_string(kind);
          // A quotient too large for its last bit to be a unit may be rounded
          // in two ways.
          const double ulps = op == BinaryOp::kPow           ? 4
                              : op == BinaryOp::kFloorDivide ? 1
                                                             : 0;
          const auto run = [&](auto result) {
            using Out = decltype(result);
            Guarded<Out> out(Span(used.shape, used.out));
            args.out = out.data();
            Enqueue(stream(), OpLabel("test"), args);
            stream().Synchronize();
            Check<Out>(out, used, ulps, what, [&](int64_t i) {
              return BinaryFormula<Out>(op,
                                        a.first[Offset(used.shape, used.a, i)],
                                        b.first[Offset(used.shape, used.b, i)]);
            });
          };
          VisitDType(ResultDType(op, DTypeOf<T>::value), run);
        }
      }
    }
  });
}

TEST_P(ElementwiseTest, CopyBetweenAllTypesAndLayouts) {
  ForEachDType([&](auto from) {
    using In = decltype(from);
    ForEachDType([&](auto to) {
      using Out = decltype(to);
      for (const LayoutCase& layout : LayoutCases()) {
        TestInput<In> in(layout.shape, layout.a, [&] {
          In x = RandomNumber<In>(random_);
          if (std::is_floating_point_v<In> && random_() % 8 == 0) {
            // Numbers near the ends of the integers.
            static const double kEnds[] = {0x1p63, -0x1p63, 0x1p62, 1e19, -1e19,
                                           255.0,  255.9,   256.0,  -0.9, 0.9};
            x = static_cast<In>(kEnds[random_() % std::size(kEnds)]);
          }
          return x;
        });
        Guarded<Out> out(Span(layout.shape, layout.out));
        StridedLayout strided = {layout.shape, layout.out, {layout.a}};
        Enqueue(stream(), OpLabel("test"),
                CopyArgs{DTypeOf<Out>::value, DTypeOf<In>::value,
                         layout.shape.numel(), out.data(), in.first,
                         Collapsed(strided, 1)});
        stream().Synchronize();
        Check<Out>(out, layout, 0, std::string(layout.name) + ", copy",
                   [&](int64_t i) {
                     return ConvertFormula<Out>(
                         in.first[Offset(layout.shape, layout.a, i)]);
                   });
      }
    });
  });
}

TEST_P(ElementwiseTest, FillOfEveryTypeAndLayout) {
  ForEachDType([&](auto zero) {
    using T = decltype(zero);
    for (const LayoutCase& layout : LayoutCases()) {
      Guarded<T> out(Span(layout.shape, layout.out));
      StridedLayout strided = {layout.shape, layout.out, {}};
      Enqueue(stream(), OpLabel("test"),
              FillArgs{DTypeOf<T>::value, layout.shape.numel(), out.data(), 42,
                       Collapsed(strided, 0)});
      stream().Synchronize();
      Check<T>(out, layout, 0, std::string(layout.name) + ", fill",
               [](int64_t) { return T{42}; });
    }
  });
}

TEST_P(ElementwiseTest, WhereOfEveryTypeAndLayout) {
  ForEachDType([&](auto zero) {
    using T = decltype(zero);
    for (const LayoutCase& layout : LayoutCases()) {
      for (int kind = 0; kind < 4; ++kind) {
        LayoutCase used = layout;
        const Shape zeros = Shape::Filled(layout.shape.rank(), 0);
        if ((kind & 1) != 0) used.a = zeros;
        if ((kind & 2) != 0) used.b = zeros;
        // The condition has the strides of the case's output, or of its input.
        const Shape condition_strides = kind == 1 ? layout.b : layout.out;
        TestInput<uint8_t> condition(used.shape, condition_strides, [&] {
          return static_cast<uint8_t>(random_() % 3);
        });
        TestInput<T> a(used.shape, used.a,
                       [&] { return RandomNumber<T>(random_); });
        TestInput<T> b(used.shape, used.b,
                       [&] { return RandomNumber<T>(random_); });
        Guarded<T> out(Span(used.shape, used.out));
        StridedLayout strided = {
            used.shape, used.out, {condition_strides, used.a, used.b}};
        WhereArgs args = {DTypeOf<T>::value,    used.shape.numel(),
                          out.data(),           condition.first,
                          {a.first, {}},        {b.first, {}},
                          Collapsed(strided, 3)};
        if ((kind & 1) != 0) args.a = {nullptr, *a.first};
        if ((kind & 2) != 0) args.b = {nullptr, *b.first};
        Enqueue(stream(), OpLabel("test"), args);
        stream().Synchronize();
        Check<T>(
            out, used, 0,
            std::string(layout.name) + ", where " + std::to_string(kind),
            [&](int64_t i) {
              const bool first =
                  condition.first[Offset(used.shape, condition_strides, i)] !=
                  0;
              return first ? a.first[Offset(used.shape, used.a, i)]
                           : b.first[Offset(used.shape, used.b, i)];
            });
      }
    }
  });
}

TEST_P(ElementwiseTest, ArangeOfEveryType) {
  const LayoutCase layout = {"", {100003}, {1}, {}, {}};
  const int64_t n = layout.shape.numel();
  {
    Guarded<float> out(n);
    Enqueue(stream(), OpLabel("test"),
            ArangeArgs{DType::kFloat32, n, out.data(), -1.5, 0.1});
    stream().Synchronize();
    Check<float>(out, layout, 0, "float", [](int64_t i) {
      return static_cast<float>(-1.5 + static_cast<double>(i) * 0.1);
    });
  }
  {
    Guarded<double> out(n);
    Enqueue(stream(), OpLabel("test"),
            ArangeArgs{DType::kFloat64, n, out.data(), 1, -0.3});
    stream().Synchronize();
    Check<double>(out, layout, 0, "double",
                  [](int64_t i) { return 1 + static_cast<double>(i) * -0.3; });
  }
  {
    Guarded<int64_t> out(n);
    const int64_t large = (int64_t{1} << 53) + 1;
    Enqueue(stream(), OpLabel("test"),
            ArangeArgs{DType::kInt64, n, out.data(), large, -3});
    stream().Synchronize();
    Check<int64_t>(out, layout, 0, "int64",
                   [&](int64_t i) { return large - 3 * i; });
  }
  {
    Guarded<uint8_t> out(n);
    Enqueue(stream(), OpLabel("test"),
            ArangeArgs{DType::kUInt8, n, out.data(), 3, 2});
    stream().Synchronize();
    Check<uint8_t>(out, layout, 0, "uint8",
                   [](int64_t i) { return static_cast<uint8_t>(3 + 2 * i); });
  }
}

TEST_P(ElementwiseTest, NothingIsWrittenForNoElements) {
  Guarded<float> out(4);
  const float in[4] = {};
  Enqueue(stream(), OpLabel("test"),
          BinaryArgs{BinaryOp::kAdd,
                     DType::kFloat32,
                     0,
                     out.data(),
                     {in, {}},
                     {in, {}},
                     nullptr});
  Enqueue(stream(), OpLabel("test"),
          FillArgs{DType::kFloat32, 0, out.data(), 1, nullptr});
  Enqueue(stream(), OpLabel("test"),
          ArangeArgs{DType::kFloat32, 0, out.data(), 1, 1});
  Enqueue(
      stream(), OpLabel("test"),
      CopyArgs{DType::kFloat32, DType::kFloat32, 0, out.data(), in, nullptr});
  Enqueue(stream(), OpLabel("test"),
          BinaryArgs{BinaryOp::kFloorDivide,
                     DType::kInt64,
                     0,
                     out.data(),
                     {in, {}},
                     {nullptr, 0},
                     nullptr});
  stream().Synchronize();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(out.IsPoison(i));
}

// Outputs large enough for non-temporal stores, at every position in a line.
TEST_P(ElementwiseTest, LargeOutputsAtAnyAddress) {
  const int64_t n = 2'500'003;
  std::vector<float> a(n), b(n);
  for (int64_t i = 0; i < n; ++i) {
    a[i] = static_cast<float>(i % 1009) - 500;
    b[i] = static_cast<float>(i % 997) * 0.25f;
  }
  for (const int64_t shift : {0, 1, 15}) {
    Guarded<float> out(n, shift);
    Enqueue(stream(), OpLabel("test"),
            BinaryArgs{BinaryOp::kSubtract,
                       DType::kFloat32,
                       n,
                       out.data(),
                       {a.data(), {}},
                       {b.data(), {}},
                       nullptr});
    stream().Synchronize();
    ASSERT_TRUE(out.GuardsIntact());
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out.Get(i), a[i] - b[i]) << i;
    Enqueue(stream(), OpLabel("test"),
            CopyArgs{DType::kFloat32, DType::kFloat32, n, out.data(), a.data(),
                     nullptr});
    stream().Synchronize();
    ASSERT_TRUE(out.GuardsIntact());
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out.Get(i), a[i]) << i;
    Enqueue(stream(), OpLabel("test"),
            FillArgs{DType::kFloat32, n, out.data(), 2.5, nullptr});
    stream().Synchronize();
    ASSERT_TRUE(out.GuardsIntact());
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out.Get(i), 2.5f) << i;
  }
  for (const int64_t shift : {0, 7, 63}) {
    const int64_t bytes = 9'000'001;
    Guarded<uint8_t> out(bytes, shift);
    std::vector<double> x(bytes);
    for (int64_t i = 0; i < bytes; ++i) x[i] = static_cast<double>(i % 300);
    Enqueue(stream(), OpLabel("test"),
            BinaryArgs{BinaryOp::kGreater,
                       DType::kFloat64,
                       bytes,
                       out.data(),
                       {nullptr, 150.0},
                       {x.data(), {}},
                       nullptr});
    stream().Synchronize();
    ASSERT_TRUE(out.GuardsIntact());
    for (int64_t i = 0; i < bytes; ++i) ASSERT_EQ(out.Get(i), 150 > x[i]) << i;
  }
}

TEST_P(ElementwiseTest, LargeTransposes) {
  const int64_t rows = 1501, cols = 1203;
  std::vector<float> in(rows * cols);
  for (int64_t i = 0; i < rows * cols; ++i) in[i] = static_cast<float>(i);
  Guarded<float> out(rows * cols);
  const StridedLayout layout = {{rows, cols}, {cols, 1}, {{1, rows}}};
  Enqueue(stream(), OpLabel("test"),
          CopyArgs{DType::kFloat32, DType::kFloat32, rows * cols, out.data(),
                   in.data(), &layout});
  stream().Synchronize();
  ASSERT_TRUE(out.GuardsIntact());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      ASSERT_EQ(out.Get(r * cols + c), in[c * rows + r]);
    }
  }
}

TEST_P(ElementwiseTest, InPlace) {
  for (const int64_t n :
       {int64_t{1}, int64_t{17}, int64_t{1000}, int64_t{1'500'001}}) {
    Guarded<double> x(n);
    std::vector<double> y(n);
    for (int64_t i = 0; i < n; ++i) {
      x.Set(i, static_cast<double>(i % 101));
      y[i] = static_cast<double>(i % 7);
    }
    Enqueue(stream(), OpLabel("test"),
            BinaryArgs{BinaryOp::kSubtract,
                       DType::kFloat64,
                       n,
                       x.data(),
                       {y.data(), {}},
                       {x.data(), {}},
                       nullptr});
    Enqueue(stream(), OpLabel("test"),
            UnaryArgs{UnaryOp::kSquare, DType::kFloat64, n, x.data(), x.data(),
                      nullptr});
    Enqueue(stream(), OpLabel("test"),
            CopyArgs{DType::kFloat64, DType::kFloat64, n, x.data(), x.data(),
                     nullptr});
    stream().Synchronize();
    ASSERT_TRUE(x.GuardsIntact());
    for (int64_t i = 0; i < n; ++i) {
      const double d =
          static_cast<double>(i % 7) - static_cast<double>(i % 101);
      ASSERT_EQ(x.Get(i), d * d) << n << ", " << i;
    }
  }
  // A transposed view, changed in place.
  const int64_t rows = 90, cols = 70;
  Guarded<int64_t> x(rows * cols);
  std::vector<int64_t> y(rows * cols);
  for (int64_t i = 0; i < rows * cols; ++i) {
    x.Set(i, i);
    y[i] = 3 * i;
  }
  const StridedLayout layout = {
      {rows, cols}, {1, rows}, {{1, rows}, {cols, 1}}};
  Enqueue(stream(), OpLabel("test"),
          BinaryArgs{BinaryOp::kAdd,
                     DType::kInt64,
                     rows * cols,
                     x.data(),
                     {x.data(), {}},
                     {y.data(), {}},
                     &layout});
  stream().Synchronize();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      ASSERT_EQ(x.Get(c * rows + r), c * rows + r + 3 * (r * cols + c));
    }
  }
}

TEST_P(ElementwiseTest, FloorDivisionOfSpecialNumbers) {
  const double kNumbers[][3] = {
      {7, 2, 3},       {-7, 2, -4},          {7, -2, -4},     {-7, -2, 3},
      {1, 0.1, 9},     {0.3, 0.1, 2},        {-1, kInf, -1},  {1, kInf, 0},
      {1, -kInf, -1},  {-1, -kInf, 0},       {kInf, 2, kNaN}, {-kInf, 2, kNaN},
      {1, 0, kInf},    {-1, 0, -kInf},       {0, 0, kNaN},    {kNaN, 1, kNaN},
      {1, kNaN, kNaN}, {1e308, 1e-10, kInf}, {-5e-324, 3, -1}};
  for (const auto& numbers : kNumbers) {
    Guarded<double> out(1);
    Enqueue(stream(), OpLabel("test"),
            BinaryArgs{BinaryOp::kFloorDivide,
                       DType::kFloat64,
                       1,
                       out.data(),
                       {&numbers[0], {}},
                       {&numbers[1], {}},
                       nullptr});
    stream().Synchronize();
    EXPECT_TRUE(Agree(out.Get(0), numbers[2], 0))
        << numbers[0] << " // " << numbers[1] << " = " << out.Get(0);
  }
}

TEST_P(ElementwiseTest, PowersWithAnExponentForAll) {
  const int64_t n = 1000;
  std::vector<double> x(n);
  for (double& number : x) number = RandomNumber<double>(random_);
  for (const double exponent :
       {2.0, 3.0, 1.0, 0.0, 0.5, -1.0, 4.5, -2.0, 2.1, 1e-300}) {
    Guarded<double> out(n);
    Enqueue(stream(), OpLabel("test"),
            BinaryArgs{BinaryOp::kPow,
                       DType::kFloat64,
                       n,
                       out.data(),
                       {x.data(), {}},
                       {nullptr, exponent},
                       nullptr});
    stream().Synchronize();
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_TRUE(Agree(out.Get(i), std::pow(x[i], exponent), 4))
          << x[i] << " ** " << exponent << " = " << out.Get(i);
    }
  }
}

TEST_P(ElementwiseTest, AnExponentForAllFloatsKeepsItsDigits) {
  for (const double exponent : {2.1, -3.72606296886203, 16777217.0, 2.2e-308}) {
    for (const LayoutCase& layout : LayoutCases()) {
      TestInput<float> in(layout.shape, layout.a,
                          [&] { return RandomNumber<float>(random_); });
      Guarded<float> out(Span(layout.shape, layout.out));
      const Shape zeros = Shape::Filled(layout.shape.rank(), 0);
      StridedLayout strided = {layout.shape, layout.out, {layout.a, zeros}};
      Enqueue(stream(), OpLabel("test"),
              BinaryArgs{BinaryOp::kPow,
                         DType::kFloat32,
                         layout.shape.numel(),
                         out.data(),
                         {in.first, {}},
                         {nullptr, exponent},
                         Collapsed(strided, 2)});
      stream().Synchronize();
      Check<float>(
          out, layout, 1, std::string(layout.name) + ", power", [&](int64_t i) {
            const double x = in.first[Offset(layout.shape, layout.a, i)];
            return static_cast<float>(std::pow(x, exponent));
          });
    }
  }
}

TEST_P(ElementwiseTest, AnOperationThrowsForADTypeThatItDoesNotTake) {
  int64_t x[40] = {};
  int64_t out[40] = {};
  const StridedLayout transposed = {{5, 8}, {8, 1}, {{1, 5}}};
  const StridedLayout* const layouts[] = {&transposed, nullptr};
  for (const StridedLayout* const layout : layouts) {
    for (const auto& info : kOpInfos<UnaryOp>) {
      const auto enqueue = [&] {
        Enqueue(stream(), OpLabel("test"),
                UnaryArgs{info.op, DType::kInt64, 40, out, x, layout});
      };
      if (OpTakes(info.op, DType::kInt64)) {
        enqueue();
        continue;
      }
      try {
        enqueue();
        ADD_FAILURE() << info.name << " took int64";
      } catch (const std::invalid_argument& error) {
        EXPECT_THAT(error.what(), HasSubstr(std::string("[") + info.name +
                                            "] no kernel for int64"));
      }
    }
  }
  stream().Synchronize();
}

// The message of the error that Synchronize throws.
std::string LateError(CpuStream& stream) {
  try {
    stream.Synchronize();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST_P(ElementwiseTest, DivisionByZeroIsALateError) {
  const int64_t n = 1000;
  std::vector<int64_t> a(n, 12), b(n, 5), out(n);
  b[17] = 0;
  b[40] = 0;
  const auto divide = [&](Input divisor, const StridedLayout* layout) {
    Enqueue(stream(), OpLabel("test"),
            BinaryArgs{BinaryOp::kFloorDivide,
                       DType::kInt64,
                       n,
                       out.data(),
                       {a.data(), {}},
                       divisor,
                       layout});
    return LateError(stream());
  };
  EXPECT_THAT(divide({b.data(), {}}, nullptr),
              HasSubstr("division by zero at element 17"));
  EXPECT_THAT(divide({nullptr, 0}, nullptr),
              HasSubstr("division by zero at element 0"));
  EXPECT_EQ(divide({nullptr, 5}, nullptr), "nothing thrown");
  EXPECT_EQ(out[999], 2);
  // As (20, 50), the divisors transposed: b[40] is element (0, 2).
  const StridedLayout transposed = {{20, 50}, {50, 1}, {{50, 1}, {1, 20}}};
  EXPECT_THAT(divide({b.data(), {}}, &transposed),
              HasSubstr("division by zero at element 2"));
  const StridedLayout three = {
      {2, 10, 50}, {500, 50, 1}, {{500, 50, 1}, {10, 1, 20}}};
  EXPECT_THAT(divide({b.data(), {}}, &three),
              HasSubstr("division by zero at element 2"));
  // In place: nobody reads the result.
  std::vector<uint8_t> c(n, 3);
  c[5] = 0;
  Enqueue(stream(), OpLabel("test"),
          BinaryArgs{BinaryOp::kFloorDivide,
                     DType::kUInt8,
                     n,
                     c.data(),
                     {nullptr, 200},
                     {c.data(), {}},
                     nullptr});
  EXPECT_THAT(LateError(stream()), HasSubstr("division by zero at element 5"));
}

TEST_P(ElementwiseTest, NegativeExponentIsALateError) {
  const int64_t n = 100;
  std::vector<int64_t> a(n, 2), b(n, 5), out(n);
  b[7] = -2;
  const auto power = [&](Input exponent) {
    Enqueue(stream(), OpLabel("test"),
            BinaryArgs{BinaryOp::kPow,
                       DType::kInt64,
                       n,
                       out.data(),
                       {a.data(), {}},
                       exponent,
                       nullptr});
    return LateError(stream());
  };
  EXPECT_THAT(power({b.data(), {}}),
              HasSubstr("negative integer exponent -2 at element 7"));
  EXPECT_THAT(power({nullptr, -3}),
              HasSubstr("negative integer exponent -3 at element 0"));
  EXPECT_EQ(power({nullptr, 62}), "nothing thrown");
  EXPECT_EQ(out[0], int64_t{1} << 62);
}

// Any device of the table will do: all CPU devices are alike.
INSTANTIATE_TEST_SUITE_P(Cpu, ElementwiseTest,
                         testing::Values(Device(DeviceType::kCpu, 0)),
                         DeviceTestName);

}  // namespace
}  // namespace d2l::kernels::cpu
