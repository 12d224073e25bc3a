#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/graph/passes/passes.h"
#include "common/graph/trace.h"
#include "common/ops/ops.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

using Values = std::vector<Tensor>;

// NaN, infinities, zeros of both signs, the smallest and the largest.
Tensor SpecialValues(DType dtype) {
  const Tensor x =
      FromVector<float>({0.f, -0.f, 1.f, -1.f, 1e-45f, -1e-45f, 3.4e38f,
                         -3.4e38f, std::numeric_limits<float>::infinity(),
                         -std::numeric_limits<float>::infinity(),
                         std::numeric_limits<float>::quiet_NaN(),
                         // Of which arithmetic makes another NaN.
                         std::numeric_limits<float>::signaling_NaN()},
                        {3, 4});
  return To(x, dtype);
}

// The number of fn's operations that remain. The concatenation copies every
// bit, and gives the result its own memory.
int Left(const std::function<Tensor(const Tensor&)>& fn,
         DType dtype = DType::kFloat32) {
  const Values inputs = {SpecialValues(dtype)};
  Graph graph = Trace(
      [&](const Values& in) -> Values { return {Cat({fn(in[0])})}; }, inputs);
  const std::vector<std::string> before = Bits(ir::Run(graph, inputs));
  Simplify(graph);
  EXPECT_NO_THROW(Verify(graph));
  RemoveDeadCode(graph);
  EXPECT_EQ(Bits(ir::Run(graph, inputs)), before) << ToText(graph);
  return CountOperations(graph) - 1;
}

TEST(SimplifyTest, LeavesOutWhatChangesNoBit) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    EXPECT_EQ(Left([](const Tensor& x) { return x * 1; }, dtype), 0);
    EXPECT_EQ(Left([](const Tensor& x) { return 1.0 * x; }, dtype), 0);
    EXPECT_EQ(Left([](const Tensor& x) { return x / 1; }, dtype), 0);
    EXPECT_EQ(Left([](const Tensor& x) { return x - 0; }, dtype), 0);
    EXPECT_EQ(Left([](const Tensor& x) { return x - 0.0; }, dtype), 0);
    EXPECT_EQ(Left([](const Tensor& x) { return x + -0.0; }, dtype), 0);
    EXPECT_EQ(Left([](const Tensor& x) { return -0.0 + x; }, dtype), 0);
    EXPECT_EQ(Left([](const Tensor& x) { return -(-x); }, dtype), 0);
    EXPECT_EQ(Left([](const Tensor& x) { return -(-(x * 1) - 0); }, dtype), 0);
    EXPECT_EQ(Left([](const Tensor& x) { return Relu(Relu(x)); }, dtype), 1);
  }
  for (const DType dtype : {DType::kInt64, DType::kUInt8}) {
    EXPECT_EQ(Left([](const Tensor& x) { return x * 1; }, dtype), 0);
    EXPECT_EQ(Left([](const Tensor& x) { return x - 0; }, dtype), 0);
    EXPECT_EQ(Left([](const Tensor& x) { return -(-x); }, dtype), 0);
  }
}

TEST(SimplifyTest, KeepsWhatMayChangeABit) {
  EXPECT_EQ(Left([](const Tensor& x) { return x + 0; }), 1);
  EXPECT_EQ(Left([](const Tensor& x) { return x + 0.0; }), 1);
  EXPECT_EQ(Left([](const Tensor& x) { return x - -0.0; }), 1);
  EXPECT_EQ(Left([](const Tensor& x) { return 0 - x; }), 1);
  EXPECT_EQ(Left([](const Tensor& x) { return x * 0; }), 1);
  EXPECT_EQ(Left([](const Tensor& x) { return x - x; }), 1);
  EXPECT_EQ(Left([](const Tensor& x) { return 1 / x; }), 1);
  EXPECT_EQ(Left([](const Tensor& x) { return Relu(-Relu(x)); }), 3);
  EXPECT_EQ(Left([](const Tensor& x) { return (x + 1e30) - 1e30; }), 2);
  // Integers become floats.
  EXPECT_EQ(Left([](const Tensor& x) { return x / 1; }, DType::kInt64), 1);
}

TEST(SimplifyTest, ViewsThatLeadBack) {
  const auto views = [](const std::function<Tensor(const Tensor&)>& fn) {
    Graph graph = Trace([&](const Values& in) -> Values { return {fn(in[0])}; },
                        {Ones({3, 4})});
    Simplify(graph);
    EXPECT_NO_THROW(Verify(graph));
    RemoveDeadCode(graph);
    return graph.main().nodes.size();
  };
  EXPECT_EQ(views([](const Tensor& x) { return T(T(x)); }), 0u);
  EXPECT_EQ(views([](const Tensor& x) {
              return Reshape(Reshape(x, {12}), {3, 4});
            }),
            0u);
  EXPECT_EQ(views([](const Tensor& x) { return Squeeze(Unsqueeze(x, 0), 0); }),
            0u);
  EXPECT_EQ(views([](const Tensor& x) { return T(Slice(T(x), 0, 1)); }), 3u);
  EXPECT_EQ(views([](const Tensor& x) { return Slice(T(T(x)), 0, 1); }), 1u);
}

// The result of x*1 has its own memory, and so has a value that is written.
TEST(SimplifyTest, ResultsAndWrittenValuesStay) {
  const auto fn = [](const Values& in) -> Values {
    Tensor written = in[0] * 1;
    written += 5;
    return {T(in[0] * 1), written + 1};
  };
  Graph graph = Trace(fn, {Ones({3, 4})});
  Simplify(graph);
  EXPECT_EQ(CountOperations(graph), 4);
  const Tensor x = Ones({3, 4});
  Values results = ir::Run(graph, {x});
  results[0] += 5;
  EXPECT_EQ(Bits(x), Bits(Ones({3, 4})));
}

// The value is written between the two; the second negation does not see it.
TEST(SimplifyTest, AWriteBetweenTwoNegations) {
  const auto fn = [](const Values& in) -> Values {
    Tensor x = in[0] * 2;
    const Tensor negative = -x;
    x += 5;
    return {-negative + 1};
  };
  const Values inputs = {Ones({3})};
  Graph graph = Trace(fn, inputs);
  Simplify(graph);
  EXPECT_EQ(Bits(ir::Run(graph, inputs)), Bits(fn(inputs)));
}

// A view of a slice has another offset than a view of a new tensor.
TEST(SimplifyTest, SlicesTimesOne) {
  Left([](const Tensor& x) { return Slice(Slice(x, 0, 1) * 1, 0, 1); });
  Left([](const Tensor& x) { return T(x) * 1 - 1; });
}

}  // namespace
}  // namespace d2l::ir
