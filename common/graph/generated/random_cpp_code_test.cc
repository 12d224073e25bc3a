// Random functions and programs as generated C++, compared bit for bit with the
// operations themselves; all NaN are equal.

#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/graph/captured.h"
#include "common/graph/generated/generated_testing.h"
#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/graph/passes/passes.h"
#include "common/graph/trace.h"
#include "common/ops/ops.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

using Values = std::vector<Tensor>;

DType AnyDType(std::mt19937& random) {
  static constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat32,
                                      DType::kFloat64, DType::kInt64,
                                      DType::kUInt8};
  return kDTypes[random() % 5];
}

// One random element-wise operation on two of the values.
Tensor AnyOperation(std::mt19937& random, const Values& values) {
  const auto any = [&]() -> const Tensor& {
    // Prefers later values.
    return values[values.size() - 1 -
                  random() % (random() % values.size() + 1)];
  };
  const Tensor x = any();
  const Tensor y = any();
  const double numbers[] = {0.5, -0.0, 2, 1e-3, 7.25};
  const double number = numbers[random() % 5];
  switch (random() % 30) {
    case 0:
      return x + y;
    case 1:
      return x - y;
    case 2:
      return x * y;
    case 3:
      return x / y;
    case 4:
      return Maximum(x, y);
    case 5:
      return Minimum(x, y);
    case 6:
      return x == y;
    case 7:
      return x != y;
    case 8:
      return x < y;
    case 9:
      return x <= y;
    case 10:
      return x > y;
    case 11:
      return x >= y;
    case 12:
      return -x;
    case 13:
      return Abs(x);
    case 14:
      return Relu(x);
    case 15:
      return Square(x);
    case 16:
      return Sqrt(x);
    case 17:
      return Exp(x);
    case 18:
      return Log(x);
    case 19:
      return Tanh(x);
    case 20:
      return Sigmoid(x);
    case 21:
      return Gelu(x);
    case 22:
      return To(x, AnyDType(random));
    case 23:
      return Where(x, y, y);
    case 24:
      return Where(x > y, x, 3);
    case 25:
      return Where(x > y, -1, y);
    case 26:
      return number - x;
    case 27:
      return x * number;
    case 28:
      return x + 3;
    default:
      return x / number;
  }
}

// A function of arguments of one shape, a row and a number.
Values AnyFunction(unsigned seed, const Values& arguments) {
  std::mt19937 random(seed);
  Values values = arguments;
  const unsigned operations = 2 + random() % 12;
  for (unsigned i = 0; i < operations;) {
    try {
      values.push_back(AnyOperation(random, values));
      ++i;
    } catch (const std::invalid_argument&) {
      // The operation refuses these operands; it may take others.
    }
  }
  Values results = {values.back()};
  if (random() % 2 == 0) {
    results.push_back(values[arguments.size() + random() % operations]);
  }
  return results;
}

// Many functions in one program, so that the compiler starts once.
// --gtest_random_seed changes the functions.
TEST(RandomCppCodeTest, RandomFunctionsAreAsEager) {
  constexpr int kFunctions = 150;
  constexpr int kArguments = 4;
  static const Shape kShapes[] = {{2, 3},   {7},       {1},       {3, 1},
                                  {3, 511}, {5, 512},  {3, 513},  {2, 1025},
                                  {2, 0},   {1, 2000}, {40, 1, 9}};
  static const unsigned seed =
      1000 * testing::UnitTest::GetInstance()->random_seed();
  std::mt19937 random(seed);
  Values inputs;
  for (int i = 0; i < kFunctions; ++i) {
    const Shape& shape = kShapes[random() % 11];
    for (const Shape& argument_shape :
         {shape, shape, Shape{shape[shape.rank() - 1]}, Shape{1}}) {
      inputs.push_back(Numbers(random, argument_shape, AnyDType(random)));
    }
  }
  const auto fn = [](const Values& in) {
    Values results;
    for (unsigned i = 0; i < kFunctions; ++i) {
      const auto first = in.begin() + i * kArguments;
      const Values some = AnyFunction(seed + i, {first, first + kArguments});
      results.insert(results.end(), some.begin(), some.end());
    }
    return results;
  };
  ExpectAsEager(fn, inputs, -1);
}

// The programs of the other executors' test. Programs that write to arguments
// are not captured, and most have no fused region with results.
TEST(RandomCppCodeTest, RandomProgramsAreAsEager) {
  constexpr int kPrograms = 25;
  int programs = 0;
  for (unsigned seed = 0; programs < kPrograms; ++seed) {
    ASSERT_LT(seed, 1000u);
    const RandomProgram program(seed, Device());
    Graph graph = Trace(program.function(), program.Arguments(0));
    Optimize(graph);
    if (CountFused(graph) == 0 || !Captured(graph).not_captured().empty()) {
      continue;
    }
    ++programs;
    Captured captured(graph, Generating());
    ASSERT_EQ(captured.not_generated(), "") << captured.generated_source();
    for (unsigned version = 0; version < 2; ++version) {
      const auto after = [&](const auto& call) {
        const Values arguments = program.Arguments(version);
        ManualSeed(7);
        Values seen = call(arguments);
        seen.insert(seen.end(), program.weights().begin(),
                    program.weights().end());
        return Bits(seen);
      };
      ASSERT_EQ(after([&](const Values& x) { return captured.Run(x); }),
                after(program.function()))
          << "seed " << seed << "\n"
          << captured.generated_source();
    }
  }
}

}  // namespace
}  // namespace d2l::ir
