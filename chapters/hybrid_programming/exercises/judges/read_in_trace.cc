// Judges read_in_trace: a program that was traced with good numbers runs with
// bad ones.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
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

using CheckedSqrt = std::vector<Tensor>(const Tensor& x);

std::string LookAtCount(const std::vector<float>& count,
                        const std::string& look) {
  if (count.size() != 1) return look;
  if (count[0] == 0) {
    return "The check is lost: no result says that there are negative "
           "elements.";
  }
  if (count[0] > 0 && count[0] < 1) {
    return "That is a fraction, not a count: Mean divides by the number of "
           "elements, Sum does not.";
  }
  return look;
}

void Compare(Judging& judging, const std::string& input,
             const std::vector<Tensor>& got, const std::vector<float>& x,
             const std::string& look =
                 "Count the elements that are negative: 1 for each, 0 for "
                 "others.") {
  if (got.size() != 2) {
    judging.Wrong({input, Say("%d tensors", got.size()), "2 tensors",
                   "The roots first, then the count."});
  }
  float negative = 0;
  std::vector<float> expected, roots = ToVector<float>(got[0]);
  for (std::size_t i = 0; i < x.size(); ++i) {
    expected.push_back(x[i] >= 0 ? std::sqrt(x[i]) : 0);
    if (x[i] < 0) ++negative;
    if (x[i] >= 0 || i >= roots.size()) continue;
    if (!std::isnan(roots[i])) {
      judging.Wrong({input + Say(", the roots"),
                     Say("%.7g at index %d", roots[i], i), "nan",
                     "The root of a negative number is NaN: compute Sqrt(x) "
                     "without changing x."});
    }
    roots[i] = 0;  // NaN is equal to nothing
  }
  judging.ExpectClose(input + Say(", the roots"), roots, expected, 1e-5,
                      got[0].numel() == 1 && got[1].numel() != 1
                          ? "The roots first, then the count."
                          : "Sqrt(x), of all elements.");
  const std::vector<float> count = ToVector<float>(got[1]);
  judging.ExpectClose(input + Say(", the count"), count, {negative}, 0,
                      LookAtCount(count, look));
}

void JudgeCheckedSqrt(Judging& judging, CheckedSqrt* answer) {
  for (const std::size_t n : {7, 1001, 1, 0}) {
    const std::vector<float> bad = RandomNumbers(n, 3);
    std::vector<float> good = bad;
    for (float& value : good) value = std::abs(value);
    const ir::Graph graph = TraceAnswer(
        judging, answer, good,
        "While the program is traced there is no value to read. Return the "
        "count as a tensor: the caller can read it later.");
    Compare(judging, Say("%d numbers, none negative", n),
            answer(OnDevice(good)), good);
    const std::string some = Say("%d numbers, some negative", n);
    const Tensor x = OnDevice(bad);
    Compare(judging, some, answer(x), bad);
    judging.ExpectClose(Say("%s: x afterwards", some), ToVector<float>(x), bad,
                        0, "x is the caller's: Sqrt(x) makes a new tensor.");
    for (const NumberKind kind :
         {NumberKind::kHuge, NumberKind::kTiny, NumberKind::kNegative}) {
      std::vector<float> others = RandomNumbers(n, 4, kind);
      if (n > 0) others[0] = -1;
      Compare(judging, some, answer(OnDevice(others)), others,
              "A number is negative if it is below 0, however little.");
    }
    Compare(judging,
            Say("%d numbers, some negative, in a program that was traced with "
                "no negative number",
                n),
            ir::Run(graph, {OnDevice(bad)}), bad);
  }
  using Limits = std::numeric_limits<float>;
  const std::vector<float> zeros = {0.f, -0.f, 4.f, -4.f, 0.f};
  Compare(judging, Say("zeros, 4 and -4"), answer(OnDevice(zeros)), zeros,
          "Zero is not negative, and -0.0 is not, either.");
  const std::vector<float> others = {Limits::quiet_NaN(), Limits::infinity(),
                                     -Limits::infinity(), -1.f};
  Compare(judging, Say("NaN, infinity, -infinity and -1"),
          answer(OnDevice(others)), others,
          "NaN is not negative: x < 0 is false for NaN. Count elements of x, "
          "not of its root.");
}

D2L_JUDGE("read_in_trace", JudgeCheckedSqrt);

}  // namespace
}  // namespace d2l
