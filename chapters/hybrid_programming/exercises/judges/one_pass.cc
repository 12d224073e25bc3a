// Judges one_pass by the results of the operations themselves for every kind of
// float.

#include "chapters/hybrid_programming/exercises/judges/one_pass.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/console/language.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using IsX = bool(const WithConstant& op);

constexpr float kNearlyOne = 1 + std::numeric_limits<float>::epsilon();
constexpr float kNearlyZero = 1e-30f;

// As C++ would print it, with the sign of zero.
std::string Number(double value) { return absl::StrFormat("%.9g", value); }

std::string Text(const WithConstant& op) {
  const std::string c = Number(op.constant);
  return op.on_the_left ? absl::StrFormat("%s %c x", c, op.operation)
                        : absl::StrFormat("x %c %s", op.operation, c);
}

Tensor Compute(const WithConstant& op, const Tensor& x) {
  const double c = op.constant;
  switch (op.operation) {
    case '+':
      return op.on_the_left ? c + x : x + c;
    case '-':
      return op.on_the_left ? c - x : x - c;
    case '*':
      return op.on_the_left ? c * x : x * c;
    case '/':
      return op.on_the_left ? c / x : x / c;
    default:
      return op.on_the_left ? Pow(c, x) : Pow(x, c);
  }
}

// One NaN is like another.
bool SameBits(float a, float b) {
  if (a != a || b != b) return a != a && b != b;
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

std::string LookAt(const WithConstant& op, float x) {
  if (op.constant == kNearlyOne || op.constant == kNearlyZero) {
    return "This constant is only close to one that can be left out, and not "
           "equal to it: compare with == only.";
  }
  if (op.on_the_left && op.operation != '+' && op.operation != '*') {
    return "On which side is the constant? 1 / x is not x / 1.";
  }
  if (x == 0 && op.constant == 0 && op.operation == '-') {
    return "x - -0.0 is x + 0.0, which turns -0.0 into 0.0. Which of the two "
           "zeros is the constant?";
  }
  if (x == 0 && op.constant == 0) {
    return "There are two zeros: -0.0 + 0.0 is 0.0. The sign of a zero hardly "
           "ever matters, but 1 / x shows it.";
  }
  return "Try the rule with 2, -3 and 0.5.";
}

void JudgeIsX(Judging& judging, IsX* answer) {
  using Limits = std::numeric_limits<float>;
  std::vector<float> floats = {-0.0f,
                               0.0f,
                               2.0f,
                               -3.0f,
                               0.5f,
                               Limits::infinity(),
                               -Limits::infinity(),
                               Limits::quiet_NaN(),
                               Limits::max(),
                               Limits::min(),
                               Limits::denorm_min()};
  const std::vector<float> random = RandomNumbers(1001, 4);
  floats.insert(floats.end(), random.begin(), random.end());
  const Tensor x =
      FromVector(floats, {static_cast<std::int64_t>(floats.size())}, TryGpu());
  std::vector<double> constants = {1.0,
                                   0.0,
                                   -0.0,
                                   2.0,
                                   -1.0,
                                   0.5,
                                   kNearlyOne,
                                   kNearlyZero,
                                   Limits::max(),
                                   Limits::infinity(),
                                   -Limits::infinity(),
                                   Limits::quiet_NaN()};
  for (const float c : DrawnNumbers()) constants.push_back(c);
  int left_out = 0, all = 0;
  for (const char operation : {'*', '/', '+', '-', '^'}) {
    for (const double c : constants) {
      for (const bool on_the_left : {false, true}) {
        const WithConstant op = {operation, c, on_the_left};
        const std::vector<float> results = ToVector<float>(Compute(op, x));
        std::size_t differs = floats.size();
        for (std::size_t i = floats.size(); i-- > 0;) {
          if (!SameBits(floats[i], results[i])) differs = i;
        }
        const bool is_x = differs == floats.size();
        const bool got = answer(op);
        if (got && !is_x) {
          judging.Wrong(
              {absl::StrFormat("%s, x = %s", Text(op), Number(floats[differs])),
               Say("x, which is %s", Number(floats[differs])),
               Number(results[differs]), LookAt(op, floats[differs])});
        }
        if (!got && is_x) {
          judging.Wrong(
              {Text(op), "the operation, computed", "x",
               operation == '+'
                   ? "The sum of two zeros is -0.0 only if both are -0.0. So "
                     "-0.0 can be left out of a sum, but 0.0 cannot."
                   : "This operation equals x for every x, so it can be left "
                     "out. A rule that is never applied is right, but "
                     "useless."});
        }
        ++all;
        left_out += got ? 1 : 0;
      }
    }
  }
  judging.Note(Say("Of %d operations with a constant %d can be left out.", all,
                   left_out));
}

D2L_JUDGE("one_pass", JudgeIsX);

}  // namespace
}  // namespace d2l
