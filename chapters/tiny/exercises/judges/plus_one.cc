// Judges plus_one: are the numbers right, by one operation without a wait?

#include <cstddef>
#include <string>
#include <vector>

#include "common/base/console/language.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using PlusOne = Tensor(const Tensor& x);

void JudgeOne(const Judging& judging, PlusOne* answer, std::size_t n,
              NumberKind kind) {
  std::vector<float> numbers = RandomNumbers(n, 1, kind);
  LateTensors late({numbers}, {static_cast<int>(n)}, Devices().back().device);
  const std::string input = Say("%d numbers", n);
  const Requests asked;
  const Tensor y = answer(late[0]);
  if (asked.reads + asked.waits > 0 || late.Arrive()) {
    judging.Wrong({input, "a wait for the device", "none",
                   "A read of the result waits for it."});
  }
  if (asked.operations > 1) {
    judging.Wrong({input, Say("%d operations", asked.operations), "1",
                   "A number needs no tensor of its own to be added."});
  }
  for (float& number : numbers) number += 1;
  judging.ExpectClose(input, ToVector<float>(y), numbers, 1e-6,
                      "Each element is one more than that of x.");
}

void JudgePlusOne(Judging& judging, PlusOne* answer) {
  for (const std::size_t n : {5, 1001, 0}) {
    JudgeOne(judging, answer, n, NumberKind::kMixed);
  }
  for (const NumberKind kind : kNumberKinds) JudgeOne(judging, answer, 7, kind);
}

D2L_JUDGE("plus_one", JudgePlusOne);

}  // namespace
}  // namespace d2l
