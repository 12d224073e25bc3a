// Generated C++ against the operations themselves, bit for bit; a NaN is any
// NaN.

#include "common/graph/generated/cpp_code.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "common/base/interned.h"
#include "common/base/source_location.h"
#include "common/graph/captured.h"
#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/graph/ir_text.h"
#include "common/graph/passes.h"
#include "common/graph/trace.h"
#include "common/ops/elementwise_primitives.h"
#include "common/ops/ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

using testing::HasSubstr;
using testing::Not;
using Values = std::vector<Tensor>;

// As Bits, but that all NaN are one.
std::vector<std::string> Texts(const Values& values) {
  std::vector<std::string> texts;
  for (const Tensor& x : values) {
    texts.push_back(VisitDType(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      std::vector<T> elements = ToVector<T>(x);
      for (T& element : elements) {
        if (element != element) {
          element = std::numeric_limits<T>::quiet_NaN();
        }
      }
      return Bits(FromVector(elements, x.shape()));
    }));
  }
  return texts;
}

CapturedOptions Generating() {
  CapturedOptions options;
  options.generate_cpp = true;
  options.cache_directory = testing::TempDir() + "/generated_code";
  options.compile_seconds_limit = 300;
  return options;
}

int CountFused(const Graph& graph) {
  int count = 0;
  for (const Node& node : graph.main().nodes) {
    count += node.kind == NodeKind::kFused;
  }
  return count;
}

// Traces fn, compiles it and compares; the graph must have `regions` fused
// regions, or any number if that is negative.
void ExpectAsEager(const TensorFunction& fn, const Values& inputs,
                   int regions = 1) {
  Graph graph = Trace(fn, inputs);
  Optimize(graph);
  if (regions >= 0) {
    EXPECT_EQ(CountFused(graph), regions);
  }
  Captured captured(graph, Generating());
  ASSERT_EQ(captured.not_generated(), "") << captured.generated_source();
  EXPECT_THAT(captured.generated_source(), Not(HasSubstr("strips(")));
  const std::vector<std::string> eager = Texts(fn(inputs));
  // The second call is a replay.
  for (int call = 0; call < 2; ++call) {
    const std::vector<std::string> generated = Texts(captured.Run(inputs));
    ASSERT_EQ(generated.size(), eager.size());
    for (std::size_t i = 0; i < eager.size(); ++i) {
      ASSERT_EQ(generated[i], eager[i])
          << "result " << i << " of\n"
          << ToText(graph, false) << captured.generated_source();
    }
  }
}

// Numbers of all magnitudes, every special value, and small integers.
Tensor Numbers(std::mt19937& random, const Shape& shape, DType dtype) {
  return VisitDType(dtype, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> values(shape.numel());
    for (T& value : values) {
      if constexpr (std::is_floating_point_v<T>) {
        using Limits = std::numeric_limits<T>;
        static constexpr T kSpecial[] = {T(0.0),
                                         T(-0.0),
                                         T(1),
                                         T(-1),
                                         Limits::infinity(),
                                         -Limits::infinity(),
                                         Limits::quiet_NaN(),
                                         Limits::denorm_min(),
                                         -Limits::denorm_min(),
                                         Limits::min(),
                                         Limits::max(),
                                         -Limits::max(),
                                         Limits::epsilon()};
        const unsigned which = random() % 50;
        const auto number = static_cast<double>(random() % 20001) - 10000;
        value = which < 13 ? kSpecial[which] : static_cast<T>(number / 777);
      } else if constexpr (std::is_same_v<T, std::int64_t>) {
        static constexpr T kSpecial[] = {0, std::numeric_limits<T>::min(),
                                         std::numeric_limits<T>::max(), -1};
        const unsigned which = random() % 20;
        value = which < 4 ? kSpecial[which]
                          : static_cast<T>(random() % 2001) - 1000;
      } else {
        value = static_cast<T>(random());
      }
    }
    return FromVector(values, shape);
  });
}

DType AnyDType(std::mt19937& random) {
  static constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat32,
                                      DType::kFloat64, DType::kInt64,
                                      DType::kUInt8};
  return kDTypes[random() % 5];
}

// One random element-wise operation on two of the values.
Tensor AnyOperation(std::mt19937& random, const Values& values) {
  const auto any = [&]() -> const Tensor& {
    // Later ones more often.
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
      // These operands do not go together; others may.
    }
  }
  Values results = {values.back()};
  if (random() % 2 == 0) {
    results.push_back(values[arguments.size() + random() % operations]);
  }
  return results;
}

// Many functions in one program, so that the compiler starts once. Others with
// --gtest_random_seed.
TEST(CppCodeTest, RandomFunctionsAreAsEager) {
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
    for (const Shape& its :
         {shape, shape, Shape{shape[shape.rank() - 1]}, Shape{1}}) {
      inputs.push_back(Numbers(random, its, AnyDType(random)));
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

// The programs of the other executors' test. Those that write to arguments are
// not captured, and most have no fused region with results.
TEST(CppCodeTest, RandomProgramsAreAsEager) {
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
        return Texts(seen);
      };
      ASSERT_EQ(after([&](const Values& x) { return captured.Run(x); }),
                after(program.function()))
          << "seed " << seed << "\n"
          << captured.generated_source();
    }
  }
}

// Rows end within strips, at their ends, and beyond.
TEST(CppCodeTest, RowsAcrossTheEndsOfStrips) {
  const auto fn = [](const Values& in) {
    Values results;
    for (std::size_t i = 0; i < in.size(); i += 3) {
      results.push_back(Relu(in[i] * in[i + 1] + in[i + 2]));
      results.push_back(Tanh(in[i + 1] - in[i]) + in[i + 2]);
    }
    return results;
  };
  std::mt19937 random(1);
  Values inputs;
  for (const std::int64_t width : {1, 2, 511, 512, 513, 1025}) {
    for (const std::int64_t height : {1, 3, 200}) {
      inputs.push_back(Numbers(random, {height, width}, DType::kFloat32));
      inputs.push_back(Numbers(random, {width}, DType::kFloat32));
      inputs.push_back(Full({1}, -3));
    }
  }
  ExpectAsEager(fn, inputs, 36);
}

// Every special value beside every other.
TEST(CppCodeTest, SpecialValues) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> special = {
      0.0f, -0.0f, 1, -1, inf, -inf, std::nanf(""), 1e-45f, -1e-45f, 1e38f};
  std::vector<float> first, second;
  for (const float a : special) {
    for (const float b : special) {
      first.push_back(a);
      second.push_back(b);
    }
  }
  const auto fn = [](const Values& in) -> Values {
    // So that all of them are one region.
    const Tensor a = -in[0];
    const Tensor b = -in[1];
    return {a + b,
            a - b,
            a * b,
            a / b,
            Maximum(a, b),
            Minimum(a, b),
            a == b,
            a != b,
            a<b, a <= b, a>
                b,
            a >= b,
            Where(a < b, b, a),
            -a,
            Abs(a),
            Relu(a),
            Sqrt(a),
            Square(a),
            a + -0.0,
            0.0 - a,
            a * 1e-45,
            a / INFINITY,
            NAN + a,
            1 / a,
            Exp(a),
            Log(a),
            Sigmoid(a),
            Maximum(a, -0.0f + b)};
  };
  const auto n = static_cast<std::int64_t>(first.size());
  ExpectAsEager(fn, {FromVector(first, {n}), FromVector(second, {n})});
}

// Results large enough for non-temporal stores and for several cores, and one
// that is the memory of an argument of the region.
TEST(CppCodeTest, LargeChains) {
  const auto fn = [](const Values& in) -> Values {
    Tensor x = in[0];
    for (int i = 0; i < 5; ++i) x = Relu(x * 1.5 - in[1]) + 1;
    return {x, Where(x > 2, x, 0)};
  };
  std::mt19937 random(2);
  ExpectAsEager(fn, {Numbers(random, {1700, 1000}, DType::kFloat32),
                     Numbers(random, {1000}, DType::kFloat32)});
}

TEST(CppCodeTest, RegionsBetweenProducts) {
  std::mt19937 random(3);
  const Tensor w = Numbers(random, {40, 30}, DType::kFloat32);
  const Tensor b = Numbers(random, {30}, DType::kFloat32);
  const auto fn = [&](const Values& in) -> Values {
    const Tensor h = Tanh(MatMul(in[0], w) + b) * 2;
    return {Relu(MatMul(h, T(w)) - 1)};
  };
  ExpectAsEager(fn, {Numbers(random, {5, 40}, DType::kFloat32)}, 2);
}

// More values between loops than a function has buffers for, and an operation
// that has no code: strips run them, beside a region that is compiled.
TEST(CppCodeTest, RegionsThatHaveNoCodeAreStrips) {
  const auto fn = [](const Values& in) -> Values {
    Values all;
    for (int i = 0; i < 40; ++i) all.push_back(Exp(in[0] * (0.01 * i)));
    Tensor sum = all[0];
    for (int i = 39; i > 0; --i) sum = sum - all[i];
    return {sum, FloorDivide(in[1], 3.0) + 1, Relu(in[2] + 1)};
  };
  const Values inputs = {Rand({1000}), Rand({10}), Rand({20})};
  Graph graph = Trace(fn, inputs);
  Optimize(graph);
  ASSERT_EQ(CountFused(graph), 3);
  Captured captured(graph, Generating());
  EXPECT_EQ(captured.not_generated(), "");
  EXPECT_EQ(GenerateCpp(graph).regions[0].name, "");
  EXPECT_EQ(GenerateCpp(graph).regions[1].name, "");
  EXPECT_EQ(GenerateCpp(graph).regions[2].name, "main_2");
  EXPECT_EQ(Texts(captured.Run(inputs)), Texts(fn(inputs)));
}

// What is compiled, word for word.
TEST(CppCodeTest, PrintsALoop) {
  const auto fn = [](const Values& in) -> Values {
    return {Tanh(Relu(in[0] * 2 + in[1]))};
  };
  TraceOptions options;
  options.name = "f";
  Graph graph = Trace(fn, {Rand({3, 4}), Rand({4})}, options);
  Optimize(graph);
  EXPECT_THAT(GenerateCpp(graph).source,
              testing::AllOf(HasSubstr(R"(// f(v0, v1), in this order:
//   v2 = f_0(v0, v1)
//   return v2
)"),
                             HasSubstr(R"(
extern "C" void f_0(void* const* memory, const Loop* loops, int64_t n) {
  const float* const v0 = (const float*)memory[0];  // float32[3, 4]
  const float* const v1 = (const float*)memory[1];  // float32[4]
  float* const v5_out = (float*)memory[2];  // float32[3, 4]
  alignas(64) float v4_strip[512];
  INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const float v2 = v0[i] * 2.0f;
    const float v3 = v2 + v1[i];
    const float v4 = relu(v3);
    v4_strip[i] = v4;
  }
  loops[0](v5_out, v4_strip, nullptr, nullptr, n);  // tanh
}
)")));
}

// A program from a file may have any names.
TEST(CppCodeTest, NamesCannotEndACommentOrBeCode) {
  const Tensor type = TypeOf(ValueSpec{{4}, DType::kFloat32, Device()});
  const std::string evil = "a\n#error line\\\n*/ #error\r\"?\?/\n#error ";
  Function f("f");
  Graph graph;
  const int weight = graph.AddWeight(evil, type);
  const ValueId x = f.AddArgument(type, "return");
  const ValueId w = f.AddWeight(graph, weight);
  const ValueId sum = f.AddOp(BinaryPrimitive(kernels::BinaryOp::kAdd,
                                              BinaryPrimitive::Which::kNone, 0),
                              {x, w}, SourceLocation(Intern(evil), 7));
  f.returns = {f.AddOp(UnaryPrimitive(kernels::UnaryOp::kRelu), {sum},
                       SourceLocation(Intern(evil), 8))};
  graph.functions.push_back(f);
  const Tensor ones = Full({4}, 1);
  graph.Bind(evil, ones);
  Fuse(graph);
  Captured captured(graph, Generating());
  EXPECT_EQ(captured.not_generated(), "") << captured.generated_source();
  EXPECT_EQ(Texts(captured.Run({ones})), Texts({ones + ones}));
}

TEST(CppCodeTest, SaysWhyItIsNotGenerated) {
  const Tensor x = Rand({4});
  Graph two =
      Trace([](const Values& in) -> Values { return {Relu(in[0] + 1)}; }, {x});
  Optimize(two);
  Captured as_usual(two);
  EXPECT_EQ(as_usual.not_generated(), "it was not asked for");
  EXPECT_EQ(as_usual.generated_source(), "");
  const Graph one =
      Trace([](const Values& in) -> Values { return {in[0] + 1}; }, {x});
  EXPECT_EQ(Captured(one, Generating()).not_generated(),
            "no operations are fused");
  const auto writes = [](const Values& in) -> Values {
    Tensor target = in[0];
    target += 1;
    return {in[0]};
  };
  EXPECT_EQ(Captured(Trace(writes, {x}), Generating()).not_generated(),
            "it writes to an argument or a weight");
  // A compiler that is not there: strips run.
  ASSERT_EQ(setenv("CXX", "no-such-compiler", 1), 0);
  Captured without(two, Generating());
  ASSERT_EQ(unsetenv("CXX"), 0);
  EXPECT_THAT(without.not_generated(),
              HasSubstr("no no-such-compiler in PATH"));
  EXPECT_THAT(without.generated_source(), HasSubstr("relu("));
  EXPECT_EQ(Texts(without.Run({x})), Texts({Relu(x + 1)}));
}

}  // namespace
}  // namespace d2l::ir
