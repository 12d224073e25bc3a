// Judges frozen_branch as a function, then as a program that was traced with
// one input and runs with others.

#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "chapters/hybrid_programming/exercises/judges/traced.h"
#include "common/base/console/language.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/graph/ir.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using HalveOrDouble = Tensor(const Tensor& x);

struct Input {
  std::string what;
  std::vector<float> x;
  std::string look;
};

std::vector<Input> Inputs(std::size_t n) {
  std::vector<float> positive = RandomNumbers(n, 1);
  const float sum = std::accumulate(positive.begin(), positive.end(), 0.f);
  positive[0] += std::abs(sum) + 1;
  std::vector<float> negative = positive;
  for (float& value : negative) value = -value;
  std::vector<float> nothing(n, 0.f);
  if (n > 1) nothing[0] = 3, nothing[1] = -3;
  const std::string one_sum =
      "The sum decides for all elements: compare Sum(x), not x.";
  std::vector<Input> inputs = {
      {Say("a positive sum"), positive, one_sum},
      {Say("a negative sum"), negative, one_sum},
      {Say("the sum 0"), nothing, "A sum of 0 is not positive: x is doubled."}};
  std::vector<float> tiny(n, 0.f), nan = positive;
  tiny[n / 2] = 1e-30f;
  nan[n / 2] = std::numeric_limits<float>::quiet_NaN();
  inputs.push_back({Say("the sum 1e-30"), tiny,
                    "A sum is positive if it is above 0, however little."});
  inputs.push_back({Say("the sum NaN"), nan,
                    "NaN is not positive: `sum > 0` is false for NaN."});
  // One arm is infinite, or both are.
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float first : {2e38f, -2e38f, kInfinity, -kInfinity}) {
    std::vector<float> large(n, 0.f);
    if (n > 1) large[1] = 1;
    large[0] = first;
    inputs.push_back(
        {Say("%g as the first", first), large,
         "0 * infinity is NaN. Let Where choose a branch: a sum of both "
         "branches, one of them times 0, is not the same."});
  }
  return inputs;
}

void JudgeHalveOrDouble(Judging& judging, HalveOrDouble* answer) {
  for (const std::size_t n : {5, 1001, 1}) {
    const std::vector<Input> inputs = Inputs(n);
    // Traced with the first input, run with all.
    const ir::Graph graph = TraceAnswer(
        judging,
        [&](const Tensor& x) { return std::vector<Tensor>{answer(x)}; },
        inputs[0].x,
        "A program that runs reads no values: what an `if` decided during "
        "tracing stays decided. Where takes both branches as tensors.");
    for (const Input& input : inputs) {
      const float sum = std::accumulate(input.x.begin(), input.x.end(), 0.f);
      std::vector<float> expected = input.x;
      for (float& value : expected) value *= sum > 0 ? 0.5f : 2.f;
      const Tensor x = OnDevice(input.x);
      judging.ExpectClose(Say("%d numbers with %s", n, input.what),
                          ToVector<float>(answer(x)), expected, 1e-6,
                          input.look);
      judging.ExpectClose(
          Say("%d numbers with %s: x itself afterwards", n, input.what),
          ToVector<float>(x), input.x, 0,
          "x belongs to the caller. After y = x, y is the same memory under "
          "another name, and y *= 2 writes into it: return a new tensor.");
      judging.ExpectClose(
          Say("%d numbers with %s, in a program that was traced with %s", n,
              input.what, inputs[0].what),
          ToVector<float>(ir::Run(graph, {x})[0]), expected, 1e-6,
          "The program keeps the branch that was taken while it was traced.");
    }
  }
}

D2L_JUDGE("frozen_branch", JudgeHalveOrDouble);

}  // namespace
}  // namespace d2l
