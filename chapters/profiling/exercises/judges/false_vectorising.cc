// Judges false_vectorising: are these squares of random numbers, each its own,
// and how many operations were enqueued?

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/lesson/cell/cell.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using Squares = Tensor(int count, Device device);

void JudgeOne(const Judging& judging, Squares* answer, int count,
              Device device) {
  const std::string input = Say("count = %d", count);
  Requests asked;
  const Tensor y = answer(count, device);
  const int operations = asked.operations, of_the_host = asked.of_the_host;
  if (!y.defined() || y.shape() != Shape{count, 10, 10}) {
    judging.Wrong({input, "another shape",
                   absl::StrFormat("(%d, 10, 10)", count),
                   "One matrix of 10 x 10 for each count."});
  }
  if (y.device() != device) {
    judging.Wrong({input, y.device().ToString(), device.ToString(),
                   "Make the random numbers on the argument's device: "
                   "Rand(shape, device)."});
  }
  const std::vector<float> squares = ToVector<float>(y);
  double mean = 0, roots = 0;
  for (const float square : squares) {
    if (!(square >= 0 && square < 1)) {
      judging.Wrong({input, absl::StrFormat("%g", square), "0 to 1",
                     "Rand draws from [0, 1)."});
    }
    mean += square / squares.size();
    roots += std::sqrt(square) / squares.size();
  }
  if (count >= 100) {
    const std::set<float> different(squares.begin(), squares.end());
    // Some of the 2^24 possible values come twice.
    if (different.size() < squares.size() * 0.9) {
      judging.Wrong({input, Say("%d different numbers", different.size()),
                     Say("about %d", squares.size()),
                     "Each matrix is drawn anew: a matrix that is repeated is "
                     "not random."});
    }
    // The mean of x * x is 1/3, that of its root 1/2. Of 10,000 numbers, six
    // standard deviations are 0.018.
    if (std::abs(mean - 1. / 3) > 0.02 || std::abs(roots - 0.5) > 0.02) {
      judging.Wrong(
          {input, Say("a mean of %.3f", mean), "0.333",
           std::abs(mean - 0.5) < 0.02
               ? "These are the numbers as drawn, not squares: "
                 "multiply each by itself."
               : "The mean of x * x is 1/3. That of the product of "
                 "two draws is 1/4: draw once, and keep the tensor."});
    }
    if (ToVector<float>(answer(count, device)) == squares) {
      judging.Wrong({input, "the same numbers again", "others in each call",
                     "A seed that is set in the function, or a tensor that is "
                     "kept in it, makes all calls alike."});
    }
  }
  if (of_the_host > 0) {
    judging.Wrong({input, "numbers of the host", "none",
                   "The host has drawn the numbers, one by one. Rand has the "
                   "device draw them."});
  }
  if (operations > 3) {
    judging.Wrong({input, Say("%d operations", operations), "3 at most",
                   "The loop has moved, and still enqueues each matrix: draw "
                   "all of them at once."});
  }
}

void JudgeSquares(Judging& judging, Squares* answer) {
  for (const int count : {1000, 100, 1, 0}) {
    JudgeOne(judging, answer, count, Devices().back().device);
  }
  JudgeOne(judging, answer, 2, Devices()[1].device);
  if (!judging.timed()) return;
  const Device device = TryGpu();
  const auto one_by_one = [&] {
    for (int j = 0; j < 1000; ++j) {
      const Tensor x = Rand({10, 10}, device);
      const Tensor y = x * x;
    }
  };
  const auto at_once = [&] {
    const Tensor x = Rand({1000, 10, 10}, device);
    const Tensor y = x * x;
  };
  const Alternative yours = {
      "yours, 1000 matrices", {device}, [&] { answer(1000, device); }};
  judging.Race(yours, {{"one by one", {device}, one_by_one},
                       1,
                       "This takes as long as one by one."});
  judging.Race(
      yours,
      {{"all at once", {device}, at_once}, 2, "Two operations are enough."});
}

D2L_JUDGE("false_vectorising", JudgeSquares);

}  // namespace
}  // namespace d2l
