#include "common/graph/generated/cpp_code.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "common/base/source_location.h"
#include "common/graph/captured.h"
#include "common/graph/generated/generated_testing.h"
#include "common/graph/ir.h"
#include "common/graph/passes/passes.h"
#include "common/graph/trace.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitives.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

using testing::HasSubstr;
using Values = std::vector<Tensor>;

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

// Every special value together with every other.
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
    // This makes all operations one region.
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
            Maximum(a, -0.0f + b),
            Minimum(in[2], a),
            Maximum(a, in[3]),
            Maximum(in[3], a),
            Minimum(in[3], a)};
  };
  const auto n = static_cast<std::int64_t>(first.size());
  ExpectAsEager(fn, {FromVector(first, {n}), FromVector(second, {n}),
                     Full({1}, 0.0), Full({1}, -0.0)});
}

// Results large enough for non-temporal stores and for several cores, and a
// result in the memory of an argument of the region.
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

// A region with more values between loops than a function has buffers for, and
// an operation without code: strips run both, and another region is compiled.
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
  EXPECT_EQ(Bits(captured.Run(inputs)), Bits(fn(inputs)));
}

// The compiled source, word for word.
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
  const Tensor ones = Full({4}, 1);
  const int weight = graph.AddWeight(evil, ones);
  const ValueId x = f.AddArgument(type, "return");
  const ValueId w = f.AddWeight(graph, weight);
  const ValueId sum = f.AddOp(BinaryPrimitive(kernels::BinaryOp::kAdd,
                                              BinaryPrimitive::Which::kNone, 0),
                              {x, w}, SourceLocation(Intern(evil), 7));
  f.returns = {f.AddOp(UnaryPrimitive(kernels::UnaryOp::kRelu), {sum},
                       SourceLocation(Intern(evil), 8))};
  graph.functions.push_back(f);
  Fuse(graph);
  Captured captured(graph, Generating());
  EXPECT_EQ(captured.not_generated(), "") << captured.generated_source();
  EXPECT_EQ(Bits(captured.Run({ones})[0]), Bits(ones + ones));
}

TEST(CppCodeTest, SaysWhyItIsNotGenerated) {
  const Tensor x = Rand({4});
  Graph two =
      Trace([](const Values& in) -> Values { return {Relu(in[0] + 1)}; }, {x});
  Optimize(two);
  Captured as_usual(two);
  EXPECT_EQ(as_usual.not_generated(), "it was not requested");
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
            "it writes to an argument");
  // The compiler does not exist: strips run.
  ASSERT_EQ(setenv("CXX", "no-such-compiler", 1), 0);
  Captured without(two, Generating());
  ASSERT_EQ(unsetenv("CXX"), 0);
  EXPECT_THAT(without.not_generated(),
              HasSubstr("no no-such-compiler, which CXX names"));
  EXPECT_THAT(without.generated_source(), HasSubstr("relu("));
  EXPECT_EQ(Bits(without.Run({x})[0]), Bits(Relu(x + 1)));
}

}  // namespace
}  // namespace d2l::ir
