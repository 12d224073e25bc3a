// Every rule against differences, in double precision, on every device and for
// operands that lie in memory in every way; and against PyTorch, where the
// gradient is a matter of definition: gradient_golden.json, made by
// tests/make_gradient_golden.py.

#include "common/autograd/gradient_rules.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/autograd/tape.h"
#include "common/base/source_location.h"
#include "common/kernels/testing/unary_cases.h"
#include "common/ops/nn/functional.h"
#include "common/ops/nn/primitives.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/primitive/record.h"
#include "common/ops/testing/testing.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace d2l {
namespace {

using kernels::Domain;
using kernels::GradientReads;
using kernels::UnaryCase;
using kernels::UnaryCases;
using Values = std::vector<Tensor>;
using Function = std::function<Tensor(const Values&)>;

struct Case {
  const char* name;
  std::vector<Shape> shapes;
  Function f;
  // The values that the function gets, far from places without a derivative:
  // `values`, or, if there are none, random ones.
  Domain domain = Domain::kAll;
  std::vector<double> values = {};
};

Tensor Index(const std::vector<std::int64_t>& values, const Shape& shape,
             Device device) {
  return FromVector<std::int64_t>(values, shape, device);
}

// The gradients of f's result for all the tensors, one after the other.
Tensor SlopesOf(const std::function<Tensor()>& f, const Values& x) {
  GradientTape tape(x);
  Values slopes = tape.Backward(Sum(f()));
  for (Tensor& slope : slopes) slope = Reshape(slope, {-1});
  return Cat(slopes);
}

// A function that uses x twice.
Tensor Twice(const Tensor& x) { return x * x + Exp(x); }

// The functions of one operand.
std::vector<Case> UnaryFunctions() {
  std::vector<Case> cases;
  for (const UnaryCase& one : UnaryCases()) {
    const auto f = [op = one.op](const Values& x) {
      return Apply(UnaryPrimitive(op), {&x[0]}, SourceLocation::Current());
    };
    cases.push_back({one.name, {{2, 3}}, f, one.domain});
    const auto count = static_cast<std::int64_t>(one.points.size());
    cases.push_back({one.name, {{count}}, f, one.domain, one.points});
  }
  return cases;
}

std::vector<Case> OtherFunctions() {
  return {
      // Of one operand.
      {"exp of a scalar", {{}}, [](const Values& x) { return Exp(x[0]); }},
      {"exp of nothing", {{0, 3}}, [](const Values& x) { return Exp(x[0]); }},
      // Of two.
      {"add", {{2, 3}, {2, 3}}, [](const Values& x) { return x[0] + x[1]; }},
      {"add, both broadcast",
       {{2, 1}, {3}},
       [](const Values& x) { return x[0] + x[1]; }},
      {"add to nothing",
       {{0, 3}, {1, 3}},
       [](const Values& x) { return x[0] + x[1]; }},
      {"sub",
       {{2, 3}, {1, 3}},
       [](const Values& x) { return (x[0] - x[1]) + (3 - x[0]) - 2; }},
      {"mul", {{2, 3}, {2, 1}}, [](const Values& x) { return x[0] * x[1]; }},
      {"mul by scalars", {{4}}, [](const Values& x) { return 3 * x[0] * 0.5; }},
      {"mul by itself", {{4}}, [](const Values& x) { return x[0] * x[0]; }},
      {"div", {{2, 3}, {3}}, [](const Values& x) { return x[0] / x[1]; }},
      {"div, scalars",
       {{4}},
       [](const Values& x) { return 2 / x[0] + x[0] / 3; }},
      {"pow",
       {{2, 3}, {3}},
       [](const Values& x) { return Pow(x[0], x[1]); },
       Domain::kPositive},
      {"pow 3", {{4}}, [](const Values& x) { return Pow(x[0], 3); }},
      {"pow 0.5",
       {{4}},
       [](const Values& x) { return Pow(x[0], 0.5); },
       Domain::kPositive},
      {"pow 0", {{4}}, [](const Values& x) { return Pow(x[0], 0) + x[0]; }},
      {"pow of 2", {{4}}, [](const Values& x) { return Pow(2, x[0]); }},
      {"maximum",
       {{2, 3}, {3}},
       [](const Values& x) { return Maximum(x[0], x[1]); }},
      {"maximum, scalar",
       {{5}},
       [](const Values& x) { return Maximum(x[0], 0.1) + Maximum(-1, x[0]); }},
      {"minimum",
       {{2, 3}, {2, 1}},
       [](const Values& x) { return Minimum(x[0], x[1]); }},
      {"minimum, scalar",
       {{5}},
       [](const Values& x) { return Minimum(x[0], 0.1) * Minimum(1, x[0]); }},
      {"where",
       {{2, 3}, {3}},
       [](const Values& x) { return Where(x[0] > x[1], x[0], x[1] * 2); }},
      {"where, scalars",
       {{2, 3}},
       [](const Values& x) {
         return Where(x[0] > 0, x[0], 5) * Where(x[0] > 0.7, -5, x[0]);
       }},
      {"where, the condition broadcast",
       {{2, 3}, {1}},
       [](const Values& x) {
         return Where(Slice(x[0], 0, 0, 1) > 0, x[1], x[0]);
       }},
      // A value that is used again.
      {"x + f(x)", {{4}}, [](const Values& x) { return x[0] + Exp(x[0]); }},
      {"f(x) used twice",
       {{4}},
       [](const Values& x) {
         const Tensor y = Twice(x[0]);
         return y + y * Sum(y);
       }},
      {"x + x", {{4}}, [](const Values& x) { return x[0] + x[0]; }},
      // Products.
      {"matmul",
       {{2, 3}, {3, 4}},
       [](const Values& x) { return MatMul(x[0], x[1]); }},
      {"matmul, transposed",
       {{3, 2}, {4, 3}},
       [](const Values& x) { return MatMul(T(x[0]), T(x[1])); }},
      {"matmul by itself",
       {{3, 3}},
       [](const Values& x) { return MatMul(x[0], x[0]); }},
      {"dot", {{3}, {3}}, [](const Values& x) { return Dot(x[0], x[1]); }},
      {"vector by matrix",
       {{3}, {3, 2}},
       [](const Values& x) { return MatMul(x[0], x[1]); }},
      {"matrix by vector",
       {{2, 3}, {3}},
       [](const Values& x) { return MatMul(x[0], x[1]); }},
      {"vector by matrices",
       {{3}, {2, 3, 2}},
       [](const Values& x) { return MatMul(x[0], x[1]); }},
      {"matrices by vector",
       {{2, 2, 3}, {3}},
       [](const Values& x) { return MatMul(x[0], x[1]); }},
      {"matrices by matrix",
       {{2, 2, 3}, {3, 2}},
       [](const Values& x) { return MatMul(x[0], x[1]); }},
      {"batches broadcast",
       {{2, 1, 2, 3}, {2, 3, 2}},
       [](const Values& x) { return MatMul(x[0], x[1]); }},
      {"matmul of nothing",
       {{2, 0}, {0, 3}},
       [](const Values& x) { return MatMul(x[0], x[1]); }},
      {"matmul of no rows",
       {{0, 2}, {2, 3}},
       [](const Values& x) { return MatMul(x[0], x[1]); }},
      // Reductions.
      {"sum", {{2, 3}}, [](const Values& x) { return Sum(x[0]); }},
      {"sum of some",
       {{2, 3, 2}},
       [](const Values& x) {
         return Sum(x[0], {0, -1});
       }},
      {"sum, kept",
       {{2, 3}},
       [](const Values& x) { return Sum(x[0], 1, true) * x[0]; }},
      {"sum of nothing",
       {{2, 0}},
       [](const Values& x) { return Sum(x[0], 1); }},
      {"mean", {{2, 3}}, [](const Values& x) { return Mean(x[0]); }},
      {"mean of some",
       {{2, 3, 2}},
       [](const Values& x) { return Mean(x[0], {1}); }},
      {"mean of none", {{0, 3}}, [](const Values& x) { return Mean(x[0], 1); }},
      {"amax", {{2, 3}}, [](const Values& x) { return Max(x[0]); }},
      {"amax of some",
       {{2, 3, 2}},
       [](const Values& x) {
         return Max(x[0], {0, -1});
       }},
      {"amin", {{2, 3}}, [](const Values& x) { return Min(x[0], 1, true); }},
      {"softmax", {{2, 3}}, [](const Values& x) { return Softmax(x[0], 1); }},
      {"softmax, another dimension",
       {{2, 3, 2}},
       [](const Values& x) { return Softmax(x[0], -2); }},
      {"log_softmax",
       {{2, 3}},
       [](const Values& x) { return LogSoftmax(x[0], -1); }},
      // Networks.
      {"conv2d",
       {{2, 2, 3, 3}, {2, 2, 2, 2}, {2}},
       [](const Values& x) { return Conv2d(x[0], x[1], x[2]); }},
      {"conv2d, strided, padded",
       {{1, 1, 4, 5}, {2, 1, 2, 3}},
       [](const Values& x) {
         Conv2dOptions options;
         options.stride = Size2d(2, 1);
         options.padding = Size2d(1, 2);
         return Conv2d(x[0], x[1], {}, options);
       }},
      {"conv2d of no images",
       {{0, 1, 3, 3}, {1, 1, 2, 2}, {1}},
       [](const Values& x) { return Conv2d(x[0], x[1], x[2]); }},
      {"conv2d's gradients",
       {{2, 1, 3, 3}, {2, 1, 2, 2}, {2, 2, 2, 2}},
       [](const Values& x) {
         const Tensor images = Contiguous(x[0]);
         const Tensor weight = Contiguous(x[1]);
         const Tensor dy = Contiguous(x[2]);
         const auto at = SourceLocation::Current();
         const Conv2dBackwardPrimitive of_x(false, {}, images.shape());
         const Conv2dBackwardPrimitive of_weight(true, {}, weight.shape());
         const Tensor dw = Apply(of_weight, {&dy, &images}, at);
         return Apply(of_x, {&dy, &weight}, at) * Sum(dw * dw);
       }},
      // Views.
      {"view",
       {{2, 3}},
       [](const Values& x) {
         return Exp(Reshape(x[0], {3, -1}));
       }},
      {"transpose",
       {{2, 3, 2}},
       [](const Values& x) { return Exp(Transpose(x[0], 0, -1)); }},
      {"squeeze",
       {{2, 1, 1}},
       [](const Values& x) { return Squeeze(x[0]) + Squeeze(x[0], 1); }},
      {"unsqueeze",
       {{3}},
       [](const Values& x) { return Unsqueeze(x[0], -1) * x[0]; }},
      {"expand",
       {{3, 1}},
       [](const Values& x) {
         return Expand(x[0], {2, 3, 2});
       }},
      {"slice",
       {{5, 2}},
       [](const Values& x) { return Exp(Slice(x[0], 0, 1, -1)); }},
      {"slice from the end",
       {{5}},
       [](const Values& x) { return Slice(x[0], -1, -3) * 2; }},
      {"slice, stepped",
       {{2, 5}},
       [](const Values& x) { return Exp(Slice(x[0], 1, 1, 5, 2)); }},
      {"slice of nothing",
       {{4}},
       [](const Values& x) { return Slice(x[0], 0, 9, 2) + Sum(x[0]); }},
      {"select",
       {{3, 2}},
       [](const Values& x) {
         return Select(x[0], 0, -1) * Select(x[0], 0, 1);
       }},
      {"select of columns",
       {{2, 3, 2}},
       [](const Values& x) { return Select(x[0], -2, 1) * 3; }},
      {"slice, stepped to the end",
       {{2, 5, 2}},
       [](const Values& x) { return Slice(x[0], 1, -5, 5, 3); }},
      {"slice, a step beyond the end",
       {{5}},
       [](const Values& x) { return Slice(x[0], 0, 3, 5, 1LL << 62); }},
      {"slice of eight dimensions",
       {{1, 2, 1, 1, 3, 1, 1, 1}},
       [](const Values& x) { return Slice(x[0], 4, 0, 3, 2); }},
      {"split",
       {{5}},
       [](const Values& x) {
         const Values pieces = Split(x[0], 2);
         return pieces[0] * pieces[1] + pieces[2];
       }},
      // Copies, joining, picking.
      {"clone", {{2, 3}}, [](const Values& x) { return Clone(x[0]); }},
      {"contiguous",
       {{2, 3}},
       [](const Values& x) { return Contiguous(T(x[0])); }},
      {"to and fro",
       {{3}},
       [](const Values& x) {
         const Tensor copy = To(x[0], OtherDevice(x[0].device()));
         return To(copy * copy, x[0].device()) * x[0];
       }},
      {"copy in place",
       {{3}, {2, 3}},
       [](const Values& x) {
         Tensor y = x[1] * 2;
         CopyTo(x[0], y);  // broadcast
         return y * x[1];
       }},
      {"cat",
       {{2, 1}, {2, 0}, {2, 2}},
       [](const Values& x) {
         return Cat({x[0], x[1], x[2], x[0]}, 1);
       }},
      {"stack",
       {{2}, {2}},
       [](const Values& x) {
         return Stack({x[0], x[1]}, -1);
       }},
      {"gather",
       {{2, 3}},
       [](const Values& x) {
         return Exp(
             Gather(x[0], 1, Index({2, 2, 0, 1}, {2, 2}, x[0].device())));
       }},
      {"gather, another dimension",
       {{2, 3}},
       [](const Values& x) {
         return Gather(x[0], 0, Index({1, 0, 1}, {1, 3}, x[0].device()));
       }},
      {"index_select",
       {{3, 2}},
       [](const Values& x) {
         return IndexSelect(x[0], 0, Index({2, 0, 2, 2}, {4}, x[0].device()));
       }},
      {"index_select of columns",
       {{2, 3}},
       [](const Values& x) {
         return IndexSelect(x[0], -1, Index({1, 1}, {2}, x[0].device()));
       }},
      {"index_select of none",
       {{3, 2}},
       [](const Values& x) {
         return IndexSelect(x[0], 0, Index({}, {0}, x[0].device()));
       }},
      // Networks.
      {"avg_pool2d",
       {{1, 2, 4, 4}},
       [](const Values& x) { return Exp(AvgPool2d(x[0], 2)); }},
      {"avg_pool2d, overlapping",
       {{2, 3, 5}},
       [](const Values& x) {
         return Exp(AvgPool2d(x[0], {2, 3}, Size2d(1, 2), {1, 0}));
       }},
      {"max_pool2d",
       {{1, 2, 4, 4}},
       [](const Values& x) { return Exp(MaxPool2d(x[0], 2)); }},
      {"max_pool2d, overlapping",
       {{2, 3, 5}},
       [](const Values& x) { return Exp(MaxPool2d(x[0], 3, 2, 1)); }},
      {"batch_norm, training",
       {{3, 2, 2}, {2}, {2}},
       [](const Values& x) {
         const Device device = x[0].device();
         return Exp(BatchNorm(x[0], x[1], x[2],
                              Zeros({2}, device, DType::kFloat64),
                              Ones({2}, device, DType::kFloat64), true));
       }},
      {"batch_norm",
       {{3, 2, 2}, {2}, {2}},
       [](const Values& x) {
         const Device device = x[0].device();
         return Exp(BatchNorm(x[0], x[1], x[2],
                              Ones({2}, device, DType::kFloat64),
                              Full({2}, 3, device, DType::kFloat64), false));
       }},
      {"batch_norm of nothing, training",
       {{0, 2, 2}, {2}, {2}},
       [](const Values& x) {
         const Tensor ones = Ones({2}, x[0].device(), DType::kFloat64);
         return BatchNorm(x[0], x[1], x[2], Clone(ones), Clone(ones), true);
       }},
      {"batch_norm, of constants",
       {{2}},
       [](const Values& x) {
         const Device device = x[0].device();
         const Tensor images =
             Reshape(Arange(8, device, DType::kFloat64), {2, 2, 2});
         const Tensor ones = Ones({2}, device, DType::kFloat64);
         return BatchNorm(images, x[0], ones, Clone(ones), Clone(ones), true);
       }},
      {"cross_entropy",
       {{3, 4}},
       [](const Values& x) {
         return CrossEntropy(x[0], Index({2, 0, 3}, {3}, x[0].device()));
       }},
      {"index_add",
       {{3, 2}, {4, 2}},
       [](const Values& x) {
         return Exp(
             IndexAdd(x[0], 0, Index({2, 0, 2, 2}, {4}, x[0].device()), x[1]));
       }},
      {"scatter_add",
       {{2, 3}, {2, 2}},
       [](const Values& x) {
         return Exp(ScatterAdd(
             x[0], -1, Index({2, 2, 0, 1}, {2, 2}, x[0].device()), x[1]));
       }},
      {"scatter_add, a shorter index",
       {{3, 3, 2}, {2, 3, 3}},
       [](const Values& x) {
         return Exp(ScatterAdd(
             x[0], 1, Index({2, 2, 0, 1}, {2, 2, 1}, x[0].device()), x[1]));
       }},
      // Functions that are gradients: this tests their third derivatives.
      {"the gradient of max_pool2d",
       {{1, 3, 3}},
       [](const Values& x) {
         return SlopesOf([&] { return Exp(MaxPool2d(x[0], 2, 1, 1)); }, x);
       }},
      {"the gradients of batch_norm, training",
       {{2, 2, 2}, {2}, {2}},
       [](const Values& x) {
         const Tensor ones = Ones({2}, x[0].device(), DType::kFloat64);
         return SlopesOf(
             [&] {
               return Exp(
                   BatchNorm(x[0], x[1], x[2], Clone(ones), Clone(ones), true));
             },
             x);
       }},
      {"axpby",
       {{3}, {3}},
       [](const Values& x) {
         const Tensor y = x[0] * 2;
         AxpbyInPlace(y, 3, x[1], 0.5);
         return y * x[1];
       }},
      {"axpby of lists",
       {{3}, {3}},
       [](const Values& x) {
         const Tensor y = x[0] * 2, z = x[1] * 3;
         AxpbyInPlace({y, z}, 3, {x[1], x[0]}, 0.5);
         return y * z;
       }},
      // In place, on values of the tape's own.
      {"in place",
       {{3}, {3}},
       [](const Values& x) {
         Tensor y = x[0] * x[1];
         y += x[0];
         y *= 3;
         y -= x[1];
         ApplyUnaryInPlace(kernels::UnaryOp::kTanh, y);
         return y * x[0];
       }},
      {"div in place",
       {{3}, {3}},
       [](const Values& x) {
         Tensor y = x[0] * 2;
         ApplyUnaryInPlace(kernels::UnaryOp::kRelu, y);
         Tensor z = y + 1;
         z /= x[1];
         return z * x[0];
       }},
      {"filled in place",
       {{3}},
       [](const Values& x) {
         Tensor y = x[0] * 2;
         FillInPlace(y, 7);
         return y * x[0];
       }},
      {"a sum that begins with a constant",
       {{3}},
       [](const Values& x) {
         Tensor y = ZerosLike(x[0]);
         y += x[0];
         y += Exp(x[0]);
         return y;
       }},
  };
}

const std::vector<Case>& Cases() {
  static const auto& cases = *new std::vector<Case>([] {
    std::vector<Case> all = UnaryFunctions();
    for (Case& one : OtherFunctions()) all.push_back(std::move(one));
    return all;
  }());
  return cases;
}

// Distinct, unevenly spaced numbers, none near 0 or another.
std::vector<double> DistinctValues(const Case& one, const Shape& shape,
                                   std::mt19937& random,
                                   std::vector<double>& unused) {
  if (!one.values.empty()) return one.values;
  if (unused.empty()) {
    std::uniform_real_distribution<double> jitter(0, 0.02);
    for (int i = 0; i < 64; ++i)
      unused.push_back(0.2 + 0.04 * i + jitter(random));
    std::shuffle(unused.begin(), unused.end(), random);
  }
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    const bool negative = one.domain == Domain::kAll && random() % 2 == 0;
    values.push_back(negative ? -unused.back() : unused.back());
    unused.pop_back();
  }
  return values;
}

// Sum(f(x) * weights), the weights different for each element of the result.
double WeightedSum(const Tensor& y) {
  const std::vector<double> values = ValuesOf(y);
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += values[i] * std::sin(static_cast<double>(i + 1));
  }
  return sum;
}
Tensor WeightsFor(const Tensor& y) {
  std::vector<double> weights;
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    weights.push_back(std::sin(static_cast<double>(i + 1)));
  }
  return FromVector<double>(weights, y.shape(), y.device());
}

void CheckGradients(const Case& one, Device device, Placement placement) {
  std::mt19937 random(7);
  std::vector<double> unused;
  std::vector<std::vector<double>> numbers;
  const auto place = [&](std::size_t i) {
    return Place(numbers[i], one.shapes[i], device, DType::kFloat64, placement);
  };
  Values inputs;
  for (std::size_t i = 0; i < one.shapes.size(); ++i) {
    numbers.push_back(DistinctValues(one, one.shapes[i], random, unused));
    inputs.push_back(place(i));
  }
  GradientTape tape(inputs);
  const Tensor y = one.f(inputs);
  const Values gradients = tape.Backward(y, WeightsFor(y));
  ASSERT_EQ(gradients.size(), inputs.size());
  constexpr double kStep = 1e-5;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_EQ(gradients[i].shape(), inputs[i].shape());
    ASSERT_TRUE(gradients[i].is_contiguous());
    const std::vector<double> got = ValuesOf(gradients[i]);
    for (std::size_t j = 0; j < got.size(); ++j) {
      const double x = numbers[i][j];
      const auto at = [&](double value) {
        numbers[i][j] = value;
        Values moved = inputs;
        moved[i] = place(i);
        return WeightedSum(one.f(moved));
      };
      const double expected = (at(x + kStep) - at(x - kStep)) / (2 * kStep);
      numbers[i][j] = x;
      EXPECT_NEAR(got[j], expected, 1e-7 * (1 + std::abs(expected)))
          << "input " << i << ", element " << j;
    }
  }
}

// The gradients of the sum of f(x) * f(x) * weights and all x * x * x. For
// every function, they depend on x.
Values GradientsOfSquares(const Case& one, const Values& inputs) {
  GradientTape tape(inputs);
  const Tensor y = one.f(inputs);
  Tensor loss = Sum(y * y * WeightsFor(y));
  for (const Tensor& x : inputs) loss = loss + Sum(x * x * x);
  return tape.Backward(loss);
}

// Fails for operations that name a rule's line, not that of the forward pass.
class ForwardLines : public OpListener {
 public:
  void OnOp(const OpRecord& record) override {
    const std::string line = record.requested_at.ToString();
    EXPECT_NE(line.find("gradient_rules_test.cc"), line.npos)
        << record.primitive->name() << " at " << line;
  }
};

void CheckSecondGradients(const Case& one, Device device) {
  std::mt19937 random(11);
  std::vector<double> unused;
  std::vector<std::vector<double>> numbers;
  Values inputs;
  for (const Shape& shape : one.shapes) {
    numbers.push_back(DistinctValues(one, shape, random, unused));
    inputs.push_back(FromVector<double>(numbers.back(), shape, device));
  }
  GradientTape outer(inputs);
  ForwardLines forward_lines;
  std::optional<ScopedOpListener> listen(std::in_place, &forward_lines);
  Tensor sum;
  for (const Tensor& slope : GradientsOfSquares(one, inputs)) {
    const Tensor part = Sum(slope * WeightsFor(slope));
    sum = sum.defined() ? sum + part : part;
  }
  const Values gradients = outer.Backward(sum);
  listen.reset();
  constexpr double kStep = 1e-5;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<double> got = ValuesOf(gradients[i]);
    ASSERT_EQ(got.size(), numbers[i].size());
    for (std::size_t j = 0; j < got.size(); ++j) {
      const auto moved = [&](double step) {
        std::vector<double> values = numbers[i];
        values[j] += step;
        Values at = inputs;
        at[i] = FromVector<double>(values, one.shapes[i], device);
        double total = 0;
        for (const Tensor& slope : GradientsOfSquares(one, at)) {
          total += WeightedSum(slope);
        }
        return total;
      };
      const double expected = (moved(kStep) - moved(-kStep)) / (2 * kStep);
      EXPECT_NEAR(got[j], expected, 1e-6 * (1 + std::abs(expected)))
          << "input " << i << ", element " << j;
    }
  }
}

class GradientRulesTest : public DeviceTest {};
INSTANTIATE_FOR_ALL_DEVICES(GradientRulesTest);

TEST_P(GradientRulesTest, AgreeWithDifferences) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.name);
    for (const Placement placement : kPlacements) {
      SCOPED_TRACE(PlacementName(placement));
      CheckGradients(one, device(), placement);
    }
  }
}

TEST_P(GradientRulesTest, GradientsOfGradientsAgreeWithDifferences) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.name);
    ASSERT_NO_THROW(CheckSecondGradients(one, device()));
  }
}

// Gelu's derivative of order `order`.
Tensor GeluDerivative(int order, const Tensor& x) {
  if (order == 0) return Gelu(x);
  GradientTape tape({x});
  const Tensor y = GeluDerivative(order - 1, x);
  return tape.Backward(Sum(y))[0];
}

TEST_P(GradientRulesTest, GeluHasItsDerivativesAtZeroAndEverywhere) {
  const std::vector<double> numbers = {0,    -0.0, 1e-30, -1e-12, 1e-8, -1e-6,
                                       1e-3, 0.5,  -0.9,  -3.0,   6.0,  -8.0,
                                       12.0, 40.0, -40.0, 1e10,   -1e12};
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const Tensor x = To(FromVector<double>(numbers, {17}, device()), dtype);
    const double relative = dtype == DType::kFloat32 ? 1e-5 : 1e-13;
    for (int order = 1; order <= 4; ++order) {
      const std::vector<double> got = ValuesOf(GeluDerivative(order, x));
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const double at = ValuesOf(x)[i];
        const double cdf = 0.5 * std::erfc(-at / std::sqrt(2.0));
        const double pdf =
            std::exp(-at * at / 2) / std::sqrt(2 * std::acos(-1.0));
        const double slopes[] = {cdf + (pdf == 0 ? 0 : at * pdf),
                                 pdf * (2 - at * at),
                                 pdf * (at * at * at - 4 * at),
                                 pdf * (-std::pow(at, 4) + 7 * at * at - 4)};
        const double expected = pdf == 0 && order > 1 ? 0 : slopes[order - 1];
        EXPECT_NEAR(got[i], expected,
                    relative * (1 + at * at) * std::abs(expected) + 1e-37)
            << DTypeName(dtype) << " " << at << ", order " << order;
      }
    }
  }
}

// The results are PyTorch's.
TEST_P(GradientRulesTest, OfNaN) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const Tensor x =
      FromVector<double>({1, kNaN, kNaN, 2, 5, 3, 7, 7}, {2, 4}, device());
  const auto slopes_of = [&](const std::function<Tensor()>& f) {
    return SlopesOf([&] { return Reshape(f(), {-1}); }, {x});
  };
  const std::vector<double> nan_and_equals = {kNaN, kNaN, kNaN, kNaN,
                                              0,    0,    0.5,  0.5};
  EXPECT_TRUE(Matches(slopes_of([&] { return Max(x, 1); }), {8},
                      DType::kFloat64, nan_and_equals));
  EXPECT_TRUE(Matches(slopes_of([&] { return -Max(-x, 1) + Min(x, 1); }), {8},
                      DType::kFloat64, {kNaN, kNaN, kNaN, kNaN, 0, 2, 0, 0}));
  // The last NaN of a window, the first of its largest.
  EXPECT_TRUE(Matches(
      slopes_of([&] { return MaxPool2d(Unsqueeze(x, 0), Size2d(1, 4)); }), {8},
      DType::kFloat64, {0, 0, 1, 0, 0, 0, 1, 0}));
}

// Overwriting a result or an operand disturbs only the gradients that read it.
TEST_P(GradientRulesTest, WhatIsNotReadMayBeOverwritten) {
  struct OneCase {
    const char* name;
    bool reads_result, reads_a, reads_b;
    std::function<Tensor(const Tensor& a, const Tensor& b)> f;
  };
  using T = Tensor;
  std::vector<OneCase> cases = {
      {"add", false, false, false,
       [](const T& a, const T& b) { return a + b; }},
      {"mul", false, true, true, [](const T& a, const T& b) { return a * b; }},
      {"div", false, true, true, [](const T& a, const T& b) { return a / b; }},
      {"div by a number", false, false, false,
       [](const T& a, const T&) { return a / 2; }},
      {"a number div", false, true, false,
       [](const T& a, const T&) { return 2 / a; }},
      {"pow", true, true, true,
       [](const T& a, const T& b) { return Pow(a, b); }},
      {"pow 3", false, true, false,
       [](const T& a, const T&) { return Pow(a, 3); }},
      {"pow of 3", true, false, false,
       [](const T& a, const T&) { return Pow(3, a); }},
      {"maximum", false, true, true,
       [](const T& a, const T& b) { return Maximum(a, b); }},
      {"where", false, false, false,
       [](const T& a, const T& b) { return Where(a > b, a, b); }},
      {"matmul", false, true, true,
       [](const T& a, const T& b) { return MatMul(a, b); }},
      {"sum", false, false, false,
       [](const T& a, const T&) { return Sum(a, 1); }},
      {"amax", true, true, false,
       [](const T& a, const T&) { return Max(a, 1); }},
      {"softmax", true, false, false,
       [](const T& a, const T&) { return Softmax(a, 1); }},
      {"index_add", false, false, false,
       [](const T& a, const T& b) {
         return IndexAdd(a, 0, Index({1, 0}, {2}, a.device()), b);
       }},
  };
  for (const UnaryCase& one : UnaryCases()) {
    cases.push_back({one.name, one.gradient_reads == GradientReads::kResult,
                     one.gradient_reads == GradientReads::kOperand, false,
                     [op = one.op](const T& a, const T&) {
                       return Apply(UnaryPrimitive(op), {&a},
                                    SourceLocation::Current());
                     }});
  }
  for (const OneCase& one : cases) {
    for (int what = 0; what < 3; ++what) {
      SCOPED_TRACE(std::string(one.name) + ", " + std::to_string(what));
      const Tensor x = Rand({2, 2}, device(), DType::kFloat64) + 0.5;
      GradientTape tape({x});
      Tensor a = x * 2, b = x + 1;
      Tensor y = one.f(a, b);
      const Tensor loss = Sum(y);
      (what == 0 ? y : what == 1 ? a : b) += 1;
      const bool reads = what == 0   ? one.reads_result
                         : what == 1 ? one.reads_a
                                     : one.reads_b;
      if (reads) {
        EXPECT_THROW(tape.Backward(loss), std::logic_error);
      } else {
        EXPECT_NO_THROW(tape.Backward(loss));
      }
    }
  }
}

// The names of all primitives whose gradients the cases need.
class Names : public OpListener {
 public:
  void OnOp(const OpRecord& record) override {
    if (FindGradientRule(*record.primitive) == nullptr) return;
    if (!IsFloatingPoint(record.output.dtype())) return;
    names.insert(record.primitive->name());
  }
  std::set<std::string> names;
};

// A primitive that is added makes this fail until it has a rule and a case, or
// is listed among those without.
TEST(GradientRules, EveryPrimitiveHasOneOrStandsHere) {
  Names met;
  {
    const ScopedOpListener listen(&met);
    for (const Case& one : Cases()) {
      Values inputs;
      for (const Shape& shape : one.shapes) {
        inputs.push_back(Rand(shape, Device(), DType::kFloat64));
      }
      GradientTape tape(inputs);
      const Tensor y = one.f(inputs);
      tape.Backward(y, WeightsFor(y));
    }
  }
  // Of integers, or made from nothing, or without a useful derivative.
  const std::set<std::string> without = {"argmax",
                                         "arange",
                                         "empty",
                                         "eye",
                                         "fill",
                                         "floor_divide",
                                         "full",
                                         "ones",
                                         "rand",
                                         "randint",
                                         "randn",
                                         "zeros",
                                         "eq",
                                         "ne",
                                         "lt",
                                         "le",
                                         "gt",
                                         "ge",
                                         "batch_norm_stats"};
  for (const std::string& name : PrimitiveNames()) {
    EXPECT_NE(met.names.count(name) != 0, without.count(name) != 0) << name;
  }
}

// The functions of tests/make_gradient_golden.py, by their names there.
const std::map<std::string, Function>& GoldenFunctions() {
  static const auto& functions = *new std::map<std::string, Function>{
      {"abs", [](const Values& x) { return Abs(x[0]); }},
      {"relu", [](const Values& x) { return Relu(x[0]); }},
      {"sqrt", [](const Values& x) { return Sqrt(x[0]); }},
      {"tanh", [](const Values& x) { return Tanh(x[0]); }},
      {"sigmoid", [](const Values& x) { return Sigmoid(x[0]); }},
      {"gelu", [](const Values& x) { return Gelu(x[0]); }},
      {"amax", [](const Values& x) { return Max(x[0], 1); }},
      {"amin", [](const Values& x) { return Min(x[0]); }},
      {"maximum", [](const Values& x) { return Maximum(x[0], x[1]); }},
      {"minimum", [](const Values& x) { return Minimum(x[0], x[1]); }},
      {"pow 0", [](const Values& x) { return Pow(x[0], 0); }},
      {"pow 2", [](const Values& x) { return Pow(x[0], 2); }},
      {"pow", [](const Values& x) { return Pow(x[0], x[1]); }},
      {"pow of 0", [](const Values& x) { return Pow(0, x[0]); }},
      {"where",
       [](const Values& x) { return Where(x[0] > 0, Sqrt(x[0]), x[0]); }},
      {"div", [](const Values& x) { return x[0] / x[1]; }},
      {"softmax", [](const Values& x) { return Softmax(x[0], 1); }},
      {"log_softmax", [](const Values& x) { return LogSoftmax(x[0], 1); }},
      {"matmul", [](const Values& x) { return MatMul(x[0], x[1]); }},
      {"conv2d", [](const Values& x) { return Conv2d(x[0], x[1], x[2]); }},
      {"conv2d, strided",
       [](const Values& x) {
         return Conv2d(x[0], x[1], {}, {Size2d(2, 1), Size2d(1, 2)});
       }},
      {"mlp",
       [](const Values& x) {
         return LogSoftmax(MatMul(Relu(MatMul(x[0], T(x[1])) + x[2]), T(x[3])),
                           1);
       }},
      {"avg_pool2d",
       [](const Values& x) {
         return AvgPool2d(x[0], {3, 2}, Size2d(1, 2), {1, 0});
       }},
      {"max_pool2d", [](const Values& x) { return MaxPool2d(x[0], 2); }},
      {"max_pool2d, overlapping",
       [](const Values& x) { return MaxPool2d(x[0], 3, 1, 1); }},
      {"batch_norm",
       [](const Values& x) {
         const Tensor mean = Full({2}, 0.5, Device(), DType::kFloat64);
         const Tensor variance = Full({2}, 2, Device(), DType::kFloat64);
         const Tensor y = BatchNorm(x[0], x[1], x[2], mean, variance, true);
         return Cat({Reshape(y, {-1}), mean, variance}, 0);
       }},
      {"cross_entropy",
       [](const Values& x) {
         return CrossEntropy(x[0], Index({3, 0, 1}, {3}, Device()));
       }},
      {"index_add",
       [](const Values& x) {
         return IndexAdd(x[0], 0, Index({2, 0, 2}, {3}, Device()), x[1]);
       }},
      {"scatter_add",
       [](const Values& x) {
         return ScatterAdd(x[0], 1, Index({2, 2, 0, 1}, {2, 2}, Device()),
                           x[1]);
       }},
  };
  return functions;
}

Tensor FromGolden(const nlohmann::json& golden) {
  std::vector<double> values;
  for (const nlohmann::json& text : golden.at("values")) {
    values.push_back(std::stod(text.get<std::string>()));
  }
  return FromVector<double>(
      values, Shape(golden.at("shape").get<std::vector<std::int64_t>>()));
}

TEST(GradientRules, AgreeWithPyTorch) {
  std::ifstream file("common/autograd/gradient_golden.json");
  ASSERT_TRUE(file) << "gradient_golden.json is not among the test's data";
  const nlohmann::json golden = nlohmann::json::parse(file);
  std::set<std::string> met;
  for (const nlohmann::json& one : golden.at("cases")) {
    const std::string name = one.at("name");
    SCOPED_TRACE(name);
    met.insert(name);
    Values inputs;
    for (const nlohmann::json& x : one.at("inputs")) {
      inputs.push_back(FromGolden(x));
    }
    GradientTape tape(inputs);
    const Tensor y = GoldenFunctions().at(name)(inputs);
    const Tolerance tolerance = {1e-12, 1e-14, /*equal_nan=*/true};
    const auto expect_golden = [&](const Tensor& got,
                                   const nlohmann::json& to) {
      const Tensor expected = FromGolden(to);
      ASSERT_EQ(got.shape(), expected.shape());
      EXPECT_TRUE(AllClose(got, expected, tolerance))
          << got << "\nexpected " << expected;
    };
    expect_golden(y, one.at("result"));
    const Values gradients = tape.Backward(y, WeightsFor(y));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      SCOPED_TRACE("input " + std::to_string(i));
      expect_golden(gradients[i], one.at("gradients").at(i));
    }
  }
  EXPECT_EQ(met.size(), GoldenFunctions().size());
}

}  // namespace
}  // namespace d2l
