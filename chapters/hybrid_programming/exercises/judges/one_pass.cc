// Judges one_pass: by what the operations themselves make of every kind of
// float.

#include "chapters/hybrid_programming/exercises/judges/one_pass.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/lesson/language.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using IsX = bool(const WithConstant& op);

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
  if (op.on_the_left && op.operation != '+' && op.operation != '*') {
    return "On which side is the constant? 1 / x is not x / 1.";
  }
  if (x == 0) {
    return "There are two zeros: -0.0 + 0.0 is 0.0. Nearly always the sign "
           "does not matter, and 1 / x shows it.";
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
  int left_out = 0;
  for (const char operation : {'*', '/', '-', '+', '^'}) {
    for (const double c : {1.0, 0.0, -0.0, 2.0, -1.0, 0.5}) {
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
          judging.Wrong({Text(op), "the operation, computed", "x",
                         "That is x for every x: it could have been left out. "
                         "A rule that never fires is right, and useless."});
        }
        left_out += got ? 1 : 0;
      }
    }
  }
  judging.Note(
      Say("Of 60 operations with a constant %d can be left out.", left_out));
}

D2L_JUDGE("one_pass", JudgeIsX);

}  // namespace
}  // namespace d2l
