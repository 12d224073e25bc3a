// Random programs of views and writes in place, under one tape and several,
// against a slow, obvious version: every place in memory holds its derivatives
// beside its value. A tape may refuse a program; it must not be wrong.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/autograd/tape.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using Numbers = std::vector<double>;  // of derivatives, or of values

constexpr int kWatched = 9;  // elements, of two tensors

// A tensor, and where its elements are.
struct Handle {
  Tensor tensor;
  int memory;
  // The tensors whose derivatives change together: a tensor and its views. A
  // tensor detached from it shares its values, but not its derivatives.
  int family;
  std::vector<int> places;
};

std::vector<int> PlacesOf(const Tensor& x) {
  std::vector<int> places;
  for (const Position& position : PositionsIn(x.shape())) {
    std::int64_t place = x.offset();
    for (int i = 0; i < x.dim(); ++i) place += position[i] * x.strides()[i];
    places.push_back(static_cast<int>(place));
  }
  return places;
}

class RandomProgram {
 public:
  // watched: the values of the two tensors. constants: with parts that are
  // detached, or made under a guard.
  RandomProgram(unsigned seed, const Numbers& watched, bool constants,
                Device device)
      : random_(seed), constants_(constants), device_(device) {
    const auto unit_slopes = [](int i) {
      Numbers slopes(kWatched);
      slopes[i] = 1;
      return slopes;
    };
    for (int i = 0; i < kWatched; ++i) {
      if (i == 0) AddMemory({2, 3});
      if (i == 6) AddMemory({3});
      Handle& x = handles_.back();
      values_[x.memory][i % 6] = watched[i];
      slopes_[x.family][i % 6] = unit_slopes(i);
    }
    for (Handle& x : handles_) Write(x);
    for (const Shape& shape : {Shape{2, 3}, Shape{3}, Shape{4, 3}}) {
      AddMemory(shape);
      for (double& value : values_.back()) value = Number();
      Write(handles_.back());
    }
    // Views that no tape has seen; those of watched tensors are constants.
    for (int i = 0; i < 5; ++i) {
      const Handle x = i == 0 ? handles_[0] : Any();
      const bool of_watched = x.memory < 2;
      if (!of_watched || constants_) AddView(x, /*constant=*/of_watched);
    }
  }

  std::vector<Tensor> watched() const {
    return {handles_[0].tensor, handles_[1].tensor};
  }

  void Run() {
    const int steps = 3 + Below(8);
    for (int i = 0; i < steps; ++i) AddStep();
  }

  // A sum of some tensors, and its derivatives.
  std::pair<Tensor, Numbers> Loss() {
    Tensor loss;
    Numbers slopes(kWatched);
    for (int i = 0; i <= Below(3); ++i) {
      const Handle& x = Any();
      const double weight = Number();
      const Tensor part = Sum(x.tensor * x.tensor) * weight;
      loss = loss.defined() ? loss + part : part;
      for (const int place : x.places) {
        Add(slopes, slopes_[x.family][place],
            2 * weight * values_[x.memory][place]);
      }
    }
    return {loss, slopes};
  }

  void CheckValues() const {
    for (const Handle& x : handles_) {
      const std::vector<double> values = ValuesOf(x.tensor);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double expected = values_[x.memory][x.places[i]];
        ASSERT_NEAR(values[i], expected, 1e-11 * (1 + std::abs(expected)));
      }
    }
  }

  std::string text() const { return text_; }

 private:
  int Below(int end) { return static_cast<int>(random_() % end); }
  double Number() { return (Below(2) ? 1 : -1) * (0.4 + 0.01 * Below(100)); }
  Handle& Any() { return handles_[Below(static_cast<int>(handles_.size()))]; }
  static void Add(Numbers& sum, const Numbers& x, double factor) {
    for (int i = 0; i < kWatched; ++i) sum[i] += factor * x[i];
  }

  void AddMemory(const Shape& shape) {
    const Tensor x = Zeros(shape, device_, DType::kFloat64);
    handles_.push_back({x, static_cast<int>(values_.size()),
                        static_cast<int>(slopes_.size()), PlacesOf(x)});
    values_.emplace_back(x.numel());
    slopes_.emplace_back(x.numel(), Numbers(kWatched));
  }

  // Gives the tensor the values.
  void Write(const Handle& x) {
    CopyTo(FromVector<double>(values_[x.memory], x.tensor.shape(), device_),
           x.tensor);
  }

  int NewFamily(int memory) {
    slopes_.emplace_back(values_[memory].size(), Numbers(kWatched));
    return static_cast<int>(slopes_.size()) - 1;
  }

  void AddView(Handle x, bool constant) {
    const Tensor t = x.tensor;
    const int dim = t.dim() == 0 ? 0 : Below(t.dim());
    const int kind = t.dim() == 0 ? 5 : Below(6);
    Tensor view;
    if (kind == 0) {
      view = Slice(t, dim, Below(2), 9, 1 + Below(2));
    } else if (kind == 1 && t.size(dim) > 0) {
      view = Select(t, dim, Below(static_cast<int>(t.size(dim))));
    } else if (kind == 2 && t.is_contiguous()) {
      view = View(t, {-1});
    } else if (kind == 3) {
      view = Transpose(t, 0, -1);
    } else if (kind == 4) {
      view = t.dim() == 2 ? Tensor(t[{kAll, kAll}]) : T(t);
    } else {
      view = Expand(t, t.shape());
    }
    // Some of these are the tensor itself, unless a guard makes it a constant.
    if (view.numel() == 0 || view.id() == t.id()) return;
    x.tensor = view;
    x.places = PlacesOf(view);
    if (constant || Guarded()) x.family = NewFamily(x.memory);
    handles_.push_back(x);
    text_ += " view";
  }

  void AddDetached() {
    Handle x = Any();
    x.tensor = Detach(x.tensor);
    x.family = NewFamily(x.memory);
    handles_.push_back(x);
    text_ += " detach";
  }

  static bool Guarded() { return internal::no_grad_guards > 0; }

  // An operation on some elements: their values and derivatives.
  using Rule = std::function<double(double a, double b, double& slope_of_a,
                                    double& slope_of_b)>;
  struct Operation {
    const char* name;
    std::function<Tensor(const Tensor&, const Tensor&)> make;
    std::function<void(Tensor&, const Tensor&)> write;
    Rule rule;
  };
  static const std::vector<Operation>& Operations() {
    using T = Tensor;
    static const auto& operations = *new std::vector<Operation>{
        {"add", [](const T& a, const T& b) { return a + b; },
         [](T& a, const T& b) { a += b; },
         [](double a, double b, double& da, double& db) {
           da = db = 1;
           return a + b;
         }},
        {"mul", [](const T& a, const T& b) { return a * b; },
         [](T& a, const T& b) { a *= b; },
         [](double a, double b, double& da, double& db) {
           da = b;
           db = a;
           return a * b;
         }},
        {"div", [](const T& a, const T& b) { return a / (b * b + 1); },
         [](T& a, const T& b) { a /= b * b + 1; },
         [](double a, double b, double& da, double& db) {
           const double c = b * b + 1;
           da = 1 / c;
           db = -a / (c * c) * 2 * b;
           return a / c;
         }},
        {"tanh", [](const T& a, const T&) { return Tanh(a); },
         [](T& a, const T&) { ApplyUnaryInPlace(kernels::UnaryOp::kTanh, a); },
         [](double a, double, double& da, double& db) {
           const double y = std::tanh(a);
           da = 1 - y * y;
           db = 0;
           return y;
         }},
        {"abs", [](const T& a, const T&) { return Abs(a); },
         [](T& a, const T&) { ApplyUnaryInPlace(kernels::UnaryOp::kAbs, a); },
         [](double a, double, double& da, double& db) {
           da = a < 0 ? -1 : a > 0;
           db = 0;
           return std::abs(a);
         }},
        {"gelu of", [](const T& a, const T&) { return Gelu(a); },
         [](T& a, const T& b) { CopyTo(Gelu(b), a); },
         [](double a, double, double& da, double& db) {
           const double cdf = 0.5 * std::erfc(-a / std::sqrt(2.0));
           da = cdf + a * std::exp(-a * a / 2) / std::sqrt(2 * std::acos(-1.0));
           db = 0;
           return a * cdf;
         }},
        {"fill", [](const T& a, const T&) { return a * 0 + 0.7; },
         [](T& a, const T&) { FillInPlace(a, 0.7); },
         [](double, double, double& da, double& db) {
           da = db = 0;
           return 0.7;
         }},
        {"copy", [](const T& a, const T&) { return Clone(a); },
         [](T& a, const T& b) { CopyTo(b, a); },
         [](double, double b, double& da, double& db) {
           da = 0;
           db = 1;
           return b;
         }},
    };
    return operations;
  }

  // Another of a's shape, or a itself.
  const Handle& Like(const Handle& a) {
    for (int i = 0; i < 8; ++i) {
      const Handle& b = Any();
      if (b.tensor.shape() == a.tensor.shape()) return b;
    }
    return a;
  }

  void Compute() {
    const Handle a = Any(), b = Like(a);
    const Operation& op =
        Operations()[Below(static_cast<int>(Operations().size()))];
    text_ += std::string(" ") + op.name;
    const bool copies = std::string(op.name) == "copy";
    const Result result = Calculate(op, a, copies ? a : b);
    AddMemory(a.tensor.shape());
    Handle& y = handles_.back();
    y.tensor = op.make(a.tensor, b.tensor);
    Store(result, y);
  }

  void ComputeInPlace() {
    Handle a = Any(), b = Like(a);
    const std::set<int> places(a.places.begin(), a.places.end());
    if (places.size() < a.places.size()) return;  // repeats elements
    if (a.memory == b.memory && a.places != b.places) {
      for (const int place : b.places) {
        if (places.count(place) != 0) return;  // overlaps
      }
    }
    if (!Guarded() && (a.tensor.id() == handles_[0].tensor.id() ||
                       a.tensor.id() == handles_[1].tensor.id())) {
      return;  // never allowed
    }
    const Operation& op =
        Operations()[Below(static_cast<int>(Operations().size()))];
    text_ += std::string(" ") + op.name + "_";
    const bool of_b = std::string(op.name) == "gelu of";
    const Result result = Calculate(op, of_b ? b : a, b);
    op.write(a.tensor, b.tensor);
    Store(result, a);
  }

  struct Result {
    Numbers values;
    std::vector<Numbers> slopes;
  };
  Result Calculate(const Operation& op, const Handle& a, const Handle& b) {
    Result result;
    for (std::size_t i = 0; i < a.places.size(); ++i) {
      double da = 0, db = 0;
      result.values.push_back(op.rule(values_[a.memory][a.places[i]],
                                      values_[b.memory][b.places[i]], da, db));
      result.slopes.emplace_back(kWatched);
      Add(result.slopes.back(), slopes_[a.family][a.places[i]], da);
      Add(result.slopes.back(), slopes_[b.family][b.places[i]], db);
    }
    return result;
  }
  void Store(const Result& result, const Handle& y) {
    for (std::size_t i = 0; i < y.places.size(); ++i) {
      values_[y.memory][y.places[i]] = result.values[i];
      // What is written under a guard changes no derivative.
      if (!Guarded()) slopes_[y.family][y.places[i]] = result.slopes[i];
    }
  }

  void AddStep() {
    std::optional<NoGradGuard> guard;
    if (constants_ && Below(6) == 0) {
      guard.emplace();
      text_ += " guarded:";
    }
    switch (Below(constants_ ? 7 : 6)) {
      case 0:
      case 1:
        return Compute();
      case 2:
      case 3:
        return ComputeInPlace();
      case 6:
        return AddDetached();
      default:
        return AddView(Any(), /*constant=*/false);
    }
  }

  std::mt19937 random_;
  const bool constants_;
  const Device device_;
  std::vector<Numbers> values_;               // of a memory, by place
  std::vector<std::vector<Numbers>> slopes_;  // of a family, by place
  std::vector<Handle> handles_;
  std::string text_;
};

Numbers SomeNumbers(unsigned seed) {
  std::mt19937 random(seed);
  Numbers numbers;
  for (int i = 0; i < kWatched; ++i) {
    numbers.push_back((i % 2 ? 1 : -1) *
                      (0.3 + 1e-3 * static_cast<double>(random() % 1000)));
  }
  return numbers;
}

void ExpectNear(const Numbers& got, const Numbers& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], expected[i], tolerance * (1 + std::abs(expected[i])))
        << i;
  }
}

Numbers Concatenated(const std::vector<Tensor>& tensors) {
  Numbers all;
  for (const Tensor& x : tensors) {
    for (const double value : ValuesOf(x)) all.push_back(value);
  }
  return all;
}

class TapeProgramsTest : public DeviceTest {};
INSTANTIATE_FOR_ALL_DEVICES(TapeProgramsTest);

TEST_P(TapeProgramsTest, AreRightOrRefused) {
  constexpr unsigned kPrograms = 2000;
  int right = 0;
  for (unsigned seed = 0; seed < kPrograms && !HasFailure(); ++seed) {
    RandomProgram program(seed, SomeNumbers(seed), /*constants=*/true,
                          device());
    const std::vector<Tensor> watched = program.watched();
    GradientTape both(watched);
    GradientTape second({watched[1]});
    try {
      program.Run();
      const auto [loss, slopes] = program.Loss();
      SCOPED_TRACE(std::to_string(seed) + ":" + program.text());
      program.CheckValues();
      bool depends = false;
      for (const double slope : slopes) depends = depends || slope != 0;
      for (GradientTape* tape : {&second, &both}) {
        try {
          const bool all = tape == &both;
          ExpectNear(Concatenated(tape->Backward(loss)),
                     all ? slopes : Numbers(slopes.begin() + 6, slopes.end()),
                     1e-9);
        } catch (const std::invalid_argument&) {
          // The loss depends on nothing that is watched.
          EXPECT_FALSE(tape == &both && depends);
        }
      }
      right += depends;
    } catch (const std::logic_error&) {
    }
  }
  EXPECT_GT(right, static_cast<int>(kPrograms) / 8);
}

TEST_P(TapeProgramsTest, HaveSecondDerivatives) {
  constexpr unsigned kPrograms = 300;
  int right = 0;
  for (unsigned seed = 0; seed < kPrograms && !HasFailure(); ++seed) {
    const Numbers numbers = SomeNumbers(seed);
    RandomProgram program(seed, numbers, /*constants=*/false, device());
    const std::vector<Tensor> watched = program.watched();
    std::vector<Tensor> weights;
    for (const Tensor& x : watched)
      weights.push_back(Rand(x.shape(), device(), DType::kFloat64));
    Numbers got;
    try {
      GradientTape outer(watched);
      Tensor sum;
      {
        GradientTape inner(watched);
        program.Run();
        const std::vector<Tensor> slopes = inner.Backward(program.Loss().first);
        sum = Sum(slopes[0] * weights[0]) + Sum(slopes[1] * weights[1]);
      }
      got = Concatenated(outer.Backward(sum));
    } catch (const std::logic_error&) {
      continue;
    }
    SCOPED_TRACE(std::to_string(seed) + ":" + program.text());
    const Numbers factors = Concatenated(weights);
    constexpr double kStep = 1e-5;
    Numbers expected;
    for (int i = 0; i < kWatched; ++i) {
      const auto moved = [&](double step) {
        Numbers at = numbers;
        at[i] += step;
        RandomProgram same(seed, at, /*constants=*/false, device());
        same.Run();
        const Numbers slopes = same.Loss().second;
        double total = 0;
        for (int j = 0; j < kWatched; ++j) total += slopes[j] * factors[j];
        return total;
      };
      expected.push_back((moved(kStep) - moved(-kStep)) / (2 * kStep));
    }
    ExpectNear(got, expected, 1e-6);
    ++right;
  }
  EXPECT_GT(right, static_cast<int>(kPrograms) / 8);
}

}  // namespace
}  // namespace d2l
