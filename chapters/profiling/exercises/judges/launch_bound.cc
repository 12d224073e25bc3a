// Judges launch_bound: the rows, how many operations were enqueued, and the
// time beside a loop.

#include <cmath>
#include <cstdint>
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

using Normalize = Tensor(const Tensor& x);

// Rows of m numbers, those of a row of one sign, so that no sum is near 0.
std::vector<float> RowsOfOneSign(std::int64_t count, int m, NumberKind kind) {
  std::vector<float> numbers = RandomNumbers(count, 1, kind);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const float size = std::abs(numbers[i]);
    numbers[i] = i / m % 2 == 0 ? size : -size;
  }
  return numbers;
}

void JudgeOne(const Judging& judging, Normalize* answer, int n, int m,
              NumberKind kind) {
  const std::vector<float> numbers =
      RowsOfOneSign(std::int64_t{n} * m, m, kind);
  LateTensors late({numbers}, {n, m}, Devices().back().device);
  const Tensor& x = late[0];
  const std::string input = Say("%d rows of %d numbers", n, m);
  Requests asked;
  const Tensor y = answer(x);
  const int operations = asked.operations, reads = asked.reads + asked.waits;
  late.Arrive();
  if (!y.defined() || y.shape() != x.shape()) {
    judging.Wrong(
        {input, "another shape", "the shape of x",
         "x / sums divides by the same number along a row only if sums is "
         "(n, 1): keep the dimension that is summed."});
  }
  std::vector<float> expected(numbers.size());
  for (int i = 0; i < n; ++i) {
    double sum = 0;
    for (int j = 0; j < m; ++j) sum += numbers[i * m + j];
    for (int j = 0; j < m; ++j) {
      expected[i * m + j] = static_cast<float>(numbers[i * m + j] / sum);
    }
  }
  const std::vector<float> got = ToVector<float>(y);
  std::vector<float> sizes = got, expected_sizes = expected;
  for (float& number : sizes) number = std::abs(number);
  for (float& number : expected_sizes) number = std::abs(number);
  judging.ExpectClose(input, got, expected, 1e-5,
                      AllClose(sizes, expected_sizes, 1e-5)
                          ? "A sum may be negative: divide by it as it is."
                          : "Each row has a sum of its own: sum along the "
                            "dimension 1, not all of x and not the columns.");
  judging.ExpectClose(Say("%s: x afterwards", input), ToVector<float>(x),
                      numbers, 0,
                      "This has changed x, which its owner still needs: /= "
                      "writes to the memory of x, and / makes a new tensor.");
  if (reads > 0) {
    judging.Wrong({input, Say("%d waits for a value of the device", reads),
                   "none",
                   "The sums can stay on the device: divide a tensor by a "
                   "tensor."});
  }
  if (operations > 5) {
    judging.Wrong({input, Say("%d operations", operations), "5 at most",
                   "A loop over rows enqueues work for each row. One operation "
                   "can sum all rows, and another divide them."});
  }
}

void JudgeNormalize(Judging& judging, Normalize* answer) {
  JudgeOne(judging, answer, 7, 5, NumberKind::kMixed);
  JudgeOne(judging, answer, 3, 3, NumberKind::kMixed);
  JudgeOne(judging, answer, 1, 9, NumberKind::kMixed);
  JudgeOne(judging, answer, 200, 1, NumberKind::kMixed);
  JudgeOne(judging, answer, 0, 4, NumberKind::kMixed);
  for (const NumberKind kind : kNumberKinds) {
    JudgeOne(judging, answer, 6, 8, kind);
  }
  if (!judging.timed()) return;

  const Device device = TryGpu();
  const Tensor x = FromVector(RowsOfOneSign(1000 * 10, 10, NumberKind::kMixed),
                              {1000, 10}, device);
  const auto loop = [&] {
    const Tensor y = Zeros({1000, 10}, device);
    for (int i = 0; i < 1000; ++i) y[i] = x[i] / Sum(x[i]);
  };
  const Alternative yours = {
      "yours, 1000 rows of 10", {device}, [&] { answer(x); }};
  judging.Race(yours, {{"a loop over the rows", {device}, loop},
                       1,
                       "This takes as long as a loop over the rows."});
  judging.Race(yours,
               {{"two operations", {device}, [&] { x / Sum(x, {1}, true); }},
                3,
                "Two operations are enough."});
}

D2L_JUDGE("launch_bound", JudgeNormalize);

}  // namespace
}  // namespace d2l
