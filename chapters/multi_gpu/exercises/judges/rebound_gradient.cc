// Judges rebound_gradient: what do other tensors with the same memory see?

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/console/language.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using AllReduceBook = void(std::vector<Tensor>& data);

// Says what went wrong with the addition if a gradient is neither the sum nor
// the device's own.
std::string WhichSum(const std::vector<float>& seen,
                     const std::vector<float>& sum,
                     const std::vector<std::vector<float>>& gradients) {
  std::vector<float> scaled = seen;
  for (float& number : scaled) number *= static_cast<float>(gradients.size());
  if (AllClose(scaled, sum, 1e-4)) {
    return "That is the mean. The book's allreduce adds up, and does not "
           "divide.";
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    std::vector<float> with = seen;
    for (std::size_t k = 0; k < with.size(); ++k) with[k] += gradients[i][k];
    if (!AllClose(with, sum, 1e-4)) continue;
    return Say(
        "The gradient of device %d is missing in the sum: go through "
        "all devices, however many there are.",
        i);
  }
  return "A device's gradient was added more than once.";
}

void JudgeOne(const Judging& judging, AllReduceBook* answer, std::size_t ranks,
              std::size_t n, NumberKind kind) {
  const std::string input = Say("%d numbers on each of %d devices", n, ranks);
  std::vector<std::vector<float>> gradients;
  std::vector<float> sum(n, 0.f);
  std::vector<Tensor> data;
  for (std::size_t i = 0; i < ranks; ++i) {
    gradients.push_back(RandomNumbers(n, static_cast<unsigned>(i + 1), kind));
    for (std::size_t k = 0; k < n; ++k) sum[k] += gradients[i][k];
    data.push_back(FromVector(gradients[i], {static_cast<std::int64_t>(n)},
                              Devices()[i].device));
  }
  const std::vector<Tensor> held = data;  // the same memory
  const Requests asked;
  answer(data);
  if (asked.reads > 0 || asked.of_the_host > 0) {
    judging.Wrong({input, "a value was read", "operations on tensors only",
                   "ToVector takes the numbers by way of the host, and "
                   "waits until they are computed. To(x, device) copies "
                   "from one device to another, and does not wait."});
  }
  if (data.size() != ranks) {
    judging.Wrong({input, Say("%d tensors", data.size()),
                   Say("%d tensors", ranks),
                   "Change the memory of the tensors, not their list."});
  }
  for (std::size_t i = 0; i < ranks; ++i) {
    const std::vector<float> seen = ToVector<float>(held[i]);
    if (AllClose(seen, sum, 1e-4)) continue;
    std::string look = WhichSum(seen, sum, gradients);
    if (AllClose(ToVector<float>(data[i]), sum, 1e-4)) {
      look =
          "The sum is in data, but the network holds another handle to the old "
          "memory, and that memory did not change: `data[i] = y` binds the "
          "name to other memory. `+=` and CopyTo write into the old memory.";
    } else if (AllClose(seen, gradients[i], 1e-4)) {
      look = Say("Device %d still has its own gradient.", i);
    }
    judging.ExpectClose(Say("%s: the gradient of device %d", input, i), seen,
                        sum, 1e-4, look);
  }
}

void JudgeAllReduceBook(Judging& judging, AllReduceBook* answer) {
  for (std::size_t ranks = 1; ranks <= Devices().size(); ++ranks) {
    for (const std::size_t n : {5, 1001, 0}) {
      JudgeOne(judging, answer, ranks, n, NumberKind::kMixed);
    }
    for (const NumberKind kind :
         {NumberKind::kTiny, NumberKind::kWithNan, NumberKind::kWithInfinity}) {
      JudgeOne(judging, answer, ranks, 7, kind);
    }
  }
}

D2L_JUDGE("rebound_gradient", JudgeAllReduceBook);

}  // namespace
}  // namespace d2l
