#include "common/graph/trace.h"

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/base/source_location.h"
#include "common/device/device_table.h"
#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/ops/ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Values = std::vector<Tensor>;

std::string ErrorOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "none";
}

TEST(TraceTest, KeepsOperationsAndRunsThem) {
  Values results;
  TraceOptions options;
  options.results = &results;
  const Tensor x = Full({2}, 3);
  const Graph graph = Trace(
      [](const Values& in) -> Values {
        return {in[0] * in[0], in[0] + 1};
      },
      {x}, options);
  EXPECT_THAT(Bits(results),
              ElementsAre(Bits(Full({2}, 9)), Bits(Full({2}, 4))));
  EXPECT_EQ(CountOperations(graph), 2);
  EXPECT_THAT(Bits(ir::Run(graph, {Full({2}, 5)})),
              ElementsAre(Bits(Full({2}, 25)), Bits(Full({2}, 6))));
}

TEST(TraceTest, OneTensorMayBeTwoArguments) {
  const Tensor x = Full({2}, 3);
  const Graph graph =
      Trace([](const Values& in) -> Values { return {in[0] - in[1]}; }, {x, x});
  EXPECT_THAT(Bits(ir::Run(graph, {Full({2}, 5), Full({2}, 1)})),
              ElementsAre(Bits(Full({2}, 4))));
}

TEST(TraceTest, WeightsAreReferences) {
  Tensor w = Full({2}, 10);
  const Graph graph =
      Trace([&](const Values& in) -> Values { return {in[0] * w}; },
            {Ones({2})}, {"f", {{"w", w}}});
  ASSERT_EQ(graph.weights.size(), 1u);
  EXPECT_EQ(graph.weights[0].name, "w");
  w += 1;
  EXPECT_THAT(Bits(ir::Run(graph, {Full({2}, 2)})),
              ElementsAre(Bits(Full({2}, 22))));
}

TEST(TraceTest, TheHostsNumbersAreThoseOfTheTrace) {
  float number = 5;
  const auto fn = [&](const Values& in) -> Values {
    Tensor c = FromVector<float>({number, number}, {2});
    const Tensor sum = in[0] + c;
    c += 100;  // the constant stays what it is
    return {sum, c};
  };
  const Graph graph = Trace(fn, {Ones({2})});
  number = 6;
  for (int run = 0; run < 2; ++run) {
    EXPECT_THAT(Bits(ir::Run(graph, {Ones({2})})),
                ElementsAre(Bits(Full({2}, 6)), Bits(Full({2}, 105))));
  }
}

TEST(TraceTest, ABranchIsFrozen) {
  bool twice = true;
  const auto fn = [&](const Values& in) -> Values {
    return {twice ? in[0] * 2 : in[0]};
  };
  const Graph graph = Trace(fn, {Ones({2})});
  twice = false;
  EXPECT_THAT(Bits(ir::Run(graph, {Ones({2})})),
              ElementsAre(Bits(Full({2}, 2))));
}

TEST(TraceTest, AReadThrowsAndNamesBothLines) {
  int made = 0;
  int read = 0;
  const std::string error = ErrorOf([&] {
    Trace(
        [&](const Values& in) -> Values {
          made = __LINE__ + 1;
          const Tensor y = in[0] * 2;
          read = __LINE__ + 1;
          if (Item<double>(y) > 0) return {y};
          return {in[0]};
        },
        {Ones({1})});
  });
  EXPECT_THAT(error, HasSubstr(SourceLocation(__FILE__, made).ToString()));
  EXPECT_THAT(error, HasSubstr(SourceLocation(__FILE__, read).ToString()));
  EXPECT_THAT(error, HasSubstr("[item]"));
  EXPECT_THAT(ErrorOf([] {
                Trace(
                    [](const Values& in) -> Values {
                      ToVector<float>(in[0]);
                      return {};
                    },
                    {Ones({1})});
              }),
              HasSubstr("It is an argument of the trace"));
}

TEST(TraceTest, WaitingLetsNoValueIn) {
  const Graph graph = Trace(
      [](const Values& in) -> Values {
        const Tensor y = in[0] * 2;
        WaitToRead(y);
        return {y};
      },
      {Ones({1})});
  EXPECT_EQ(CountOperations(graph), 1);
}

TEST(TraceTest, RefusesSeveralStreams) {
  const Device other(DeviceType::kCpu, 1);
  EXPECT_THAT(ErrorOf([&] {
                Trace(
                    [&](const Values& in) -> Values {
                      return {in[0] + 1, Ones({2}, other)};
                    },
                    {Ones({2})});
              }),
              HasSubstr("operations on two streams, cpu:0 and cpu:1"));
}

TEST(TraceTest, RefusesUndefinedTensors) {
  const auto identity = [](const Values& in) -> Values { return in; };
  EXPECT_THAT(ErrorOf([&] { Trace(identity, {Tensor()}); }),
              HasSubstr("[trace] an operand is an undefined tensor"));
  EXPECT_THAT(ErrorOf([&] {
                Trace([](const Values&) -> Values { return {Tensor()}; }, {});
              }),
              HasSubstr("returns an undefined tensor"));
}

TEST(InterpreterTest, WhatIsReturnedIsTheCallersOwn) {
  const Graph graph = Trace(
      [](const Values& in) -> Values {
        return {in[0], FromVector<float>({1}, {1})};
      },
      {Ones({1})});
  const Tensor x = Ones({1});
  Values first = ir::Run(graph, {x});
  EXPECT_EQ(first[0].storage().get(), x.storage().get());
  first[1] += 5;
  EXPECT_THAT(Bits(ir::Run(graph, {x})[1]), Bits(Ones({1})));
}

TEST(InterpreterTest, RefusesOtherArguments) {
  const Graph graph = Trace(
      [](const Values& in) -> Values { return {in[0] + 1}; }, {Ones({2, 3})});
  EXPECT_THAT(ErrorOf([&] { ir::Run(graph, {}); }),
              HasSubstr("[main] 1 arguments wanted; got 0"));
  EXPECT_THAT(ErrorOf([&] { ir::Run(graph, {Tensor()}); }),
              HasSubstr("got an undefined tensor"));
  EXPECT_THAT(ErrorOf([&] {
                ir::Run(graph, {Ones({3, 2})});
              }),
              HasSubstr("argument 0 is float32[2, 3]; got float32[3, 2]"));
  EXPECT_THAT(ErrorOf([&] {
                ir::Run(graph, {T(Ones({3, 2}))});
              }),
              HasSubstr("got float32[2, 3] strides (1, 2)"));
  Graph other = graph;
  other.AddWeight("w", Ones({2}));
  EXPECT_THAT(ErrorOf([&] { other.AddWeight("w", Ones({3})); }),
              HasSubstr("the weight \"w\" is float32[2] in one place and "
                        "float32[3] in another"));
}

}  // namespace
}  // namespace d2l::ir
