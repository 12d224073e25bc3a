// For tests of programs: random ones, and comparisons bit for bit, in which
// any two NaN are equal.
//
//   const RandomProgram program(seed, device);
//   ir::Graph graph = ir::Trace(program.function(), program.Arguments(0));
//
// A random program is a function that requests the same operations each time:
// views, writes in place, random numbers, all dtypes, special values, odd and
// empty sizes.

#ifndef D2L_COMMON_GRAPH_IR_TESTING_H_
#define D2L_COMMON_GRAPH_IR_TESTING_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/graph/ir.h"
#include "common/graph/trace.h"
#include "common/kernels/op_tables.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitives.h"

namespace d2l::ir {

// "float32[2] 3f800000 nan": the type and the bits of each value. Which NaN an
// operation gives depends on the processor, and on whether a pass left it out.
inline std::string Bits(const Tensor& x) {
  std::string text = TypeToString(TypeOf(ValueSpec{x.shape(), x.dtype(), {}}));
  VisitDType(x.dtype(), [&](auto zero) {
    for (const auto value : ToVector<decltype(zero)>(x)) {
      if (value != value) {
        text += " nan";
        continue;
      }
      unsigned char bytes[sizeof(value)];
      std::memcpy(bytes, &value, sizeof(value));
      text += ' ';
      for (std::size_t i = sizeof(value); i-- > 0;) {
        text += "0123456789abcdef"[bytes[i] >> 4];
        text += "0123456789abcdef"[bytes[i] & 15];
      }
    }
  });
  return text;
}

inline std::vector<std::string> Bits(const std::vector<Tensor>& tensors) {
  std::vector<std::string> all;
  for (const Tensor& x : tensors) all.push_back(Bits(x));
  return all;
}

// A program with one of each kind of node.
inline Graph EveryKindOfNode() {
  const auto add = [](BinaryPrimitive::Which which, Scalar number) {
    return BinaryPrimitive(kernels::BinaryOp::kAdd, which, number);
  };
  const BinaryPrimitive sum = add(BinaryPrimitive::Which::kNone, 0);
  const BinaryPrimitive one_more = add(BinaryPrimitive::Which::kSecond, 1.0);
  const BinaryPrimitive from_zero = add(BinaryPrimitive::Which::kFirst, -0.0);
  const Tensor type = TypeOf(ValueSpec{{2, 3}, DType::kFloat32, Device()});
  Graph graph;
  Function twice("twice");
  const ValueId t = twice.AddArgument(type, "x");
  twice.returns = {twice.AddOp(sum, {t, t}, {"a \"b\".cc", 7})};
  graph.functions.push_back(twice);
  // A saved constant cannot have this name then.
  const Tensor strided = T(Full({3, 2}, 5));
  const int weight = graph.AddWeight("constant.0", strided);
  Function main("main");
  const ValueId x = main.AddArgument(type, "x");
  main.AddWeight(graph, weight);
  const ValueId c = main.AddConstant(
      FromVector<float>({1, -0.0F, INFINITY,
                         std::numeric_limits<float>::quiet_NaN(), 1e30F, 0.1F},
                        {2, 3}));
  const ValueId y = main.AddCall(graph, 0, {x}, {"main.cc", 2})[0];
  main.AddInPlace(one_more, {y}, y, {"main.cc", 3});
  Node fused;
  fused.kind = NodeKind::kFused;
  fused.inputs = {x, y};
  Function body;
  const ValueId a = body.AddArgument(type, "a");
  const ValueId b = body.AddArgument(type, "b");
  body.returns = {body.AddOp(from_zero, {body.AddOp(sum, {a, b}, {})}, {})};
  fused.body = std::make_shared<const Function>(body);
  main.returns = {main.Add(fused).outputs[0], c, y};
  graph.functions.push_back(main);
  return graph;
}

class RandomProgram {
 public:
  RandomProgram(unsigned seed, Device device) : seed_(seed), device_(device) {
    std::mt19937 random(seed * 2 + 1);
    for (int i = 0; i < 2; ++i) {
      weights_.push_back(Numbers(random, {2, 3}, DType::kFloat32));
      initial_.push_back(Clone(weights_.back()));
    }
  }

  TensorFunction function() const {
    return [this](const std::vector<Tensor>& x) { return Call(x); };
  }
  // Each version has other numbers of the same types. The weights have their
  // first values.
  std::vector<Tensor> Arguments(unsigned version) const {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      Tensor target = weights_[i];
      CopyTo(initial_[i], target);
    }
    std::mt19937 types(seed_);
    std::mt19937 random(seed_ + 1000003 * (version + 1));
    std::vector<Tensor> arguments;
    for (int i = 0; i < 3; ++i) {
      const Shape shape = AnyShape(types);
      const DType dtype = AnyDType(types);
      Tensor x = Numbers(random, shape, dtype);
      // Some arguments are not contiguous.
      if (types() % 4 == 0 && x.dim() == 2) x = T(x);
      arguments.push_back(x);
    }
    return arguments;
  }
  const std::vector<Tensor>& weights() const { return weights_; }

 private:
  static int Below(std::mt19937& random, int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  }
  static DType AnyDType(std::mt19937& random) {
    static constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat32,
                                        DType::kFloat32, DType::kFloat64,
                                        DType::kInt64,   DType::kUInt8};
    return kDTypes[Below(random, 6)];
  }
  static Shape AnyShape(std::mt19937& random) {
    static const Shape kShapes[] = {{2, 3}, {2, 3}, {3},      {2, 3},
                                    {1},    {},     {1, 3},   {2, 1},
                                    {3, 2}, {0, 3}, {5, 521}, {521}};
    return kShapes[Below(random, 12)];
  }

  // Includes special values.
  Tensor Numbers(std::mt19937& random, const Shape& shape, DType dtype) const {
    static constexpr double kSpecial[] = {
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        3.0,
        1e30,
        -2.0,
        1e-40,
        255.0,
        std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()};
    return VisitDType(dtype, [&](auto zero) {
      using T = decltype(zero);
      std::vector<T> values(shape.numel());
      for (T& value : values) {
        if (std::is_floating_point_v<T>) {
          const int which = Below(random, 40);
          value = which < 13 ? static_cast<T>(kSpecial[which])
                             : static_cast<T>(Below(random, 2001) - 1000) / 128;
          // Of this NaN all arithmetic makes another one, as a GPU's does of
          // every NaN.
          if (which == 13) value = std::numeric_limits<T>::signaling_NaN();
        } else {
          value = static_cast<T>(Below(random, 7));
        }
      }
      return FromVector(values, shape, device_);
    });
  }

  std::vector<Tensor> Call(const std::vector<Tensor>& arguments) const {
    std::mt19937 random(seed_ * 7 + 3);
    std::vector<Tensor> values = arguments;
    values.insert(values.end(), weights_.begin(), weights_.end());
    const int operations = 3 + Below(random, 18);
    for (int i = 0; i < operations;) {
      try {
        Step(random, values);
        ++i;
      } catch (const std::invalid_argument&) {
        // The operation refuses these operands; it may take others.
      }
    }
    std::vector<Tensor> results;
    const int count = 1 + Below(random, 3);
    for (int i = 0; i < count; ++i) {
      // Prefers the last values.
      const int n = static_cast<int>(values.size());
      results.push_back(values[n - 1 - Below(random, Below(random, n) + 1)]);
    }
    return results;
  }

  void Step(std::mt19937& random, std::vector<Tensor>& values) const {
    const auto any = [&]() -> Tensor& {
      return values[Below(random, static_cast<int>(values.size()))];
    };
    Tensor& x = any();
    Tensor& y = any();
    const auto add = [&](const Tensor& value) { values.push_back(value); };
    static constexpr double kScalars[] = {1, 1.0, 0, 0.0, -0.0, 2, 0.5, -1, 3};
    const double scalar = kScalars[Below(random, 9)];
    const auto dim = [&](const Tensor& x) {
      return Below(random, x.dim() == 0 ? 1 : x.dim());
    };
    switch (Below(random, 34)) {
      case 0:
        return add(x + y);
      case 1:
        return add(x - y);
      case 2:
        return add(x * y);
      case 3:
        return add(x / y);
      case 4:
        return add(Maximum(x, y));
      case 5:
        return add(x < y);
      case 6:
        return add(x >= y);
      case 7:
        return add(x * scalar);
      case 8:
        return add(x + scalar);
      case 9:
        return add(x - scalar);
      case 10:
        return add(scalar - x);
      case 11:
        return add(x / 1);
      case 12:
        return add(-x);
      case 13:
        return add(Relu(x));
      case 14:
        return add(Tanh(x));
      case 15:
        return add(Relu(Relu(x)));
      case 16:
        return add(-(-x));
      case 17:
        return add(Where(x > y, x, scalar));
      case 18:
        return add(To(x, AnyDType(random)));
      case 19:
        return add(Transpose(x, 0, dim(x)));
      case 20:
        return add(Slice(x, dim(x), 1));
      case 21:
        return add(Transpose(Transpose(x, 0, dim(x)), 0, dim(x)));
      case 22:
        return add(Unsqueeze(x, 0));
      case 23:
        return add(Sum(x, {dim(x)}));
      case 24:
        return add(Softmax(x, dim(x)));
      case 25:
        return add(MatMul(x, y));
      case 26:
        return add(Contiguous(x));
      case 27:
        x += y;
        return;
      case 28:
        x *= scalar;
        return;
      case 29:
        x[Range{0, 1}] = scalar;
        return;
      case 30:
        return add(Rand({2, 3}, device_));
      case 31:
        return add(RandInt(0, 5, {3}, device_));
      case 32:
        return add(Full(AnyShape(random), scalar, device_, AnyDType(random)));
      default:
        return add(Numbers(random, {2, 3}, AnyDType(random)));
    }
  }

  const unsigned seed_;
  const Device device_;
  std::vector<Tensor> weights_;
  std::vector<Tensor> initial_;
};

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_IR_TESTING_H_
