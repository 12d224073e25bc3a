// Judges wait_for_less: is the sum right, is it enqueued before the other work,
// and is only the sum waited for?

#include <cstddef>
#include <functional>
#include <numeric>
#include <optional>
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

using SumFirst = double(const Tensor& x, const std::function<void()>& more);

void JudgeSumFirst(Judging& judging, SumFirst* answer) {
  const Device device = Devices().back().device;
  for (const std::size_t n : {5, 1001, 1, 0}) {
    const std::vector<float> numbers = RandomNumbers(n, 1);
    const Tensor x = FromVector(numbers, {static_cast<int>(n)}, device);
    const std::string input =
        Say("%d numbers, and more() enqueues long work", n);
    Requests asked;
    std::optional<Gate> gate;
    int calls = 0, operations = 0, reads = 0;
    const double got = answer(x, [&] {
      if (++calls > 1) return;
      operations = asked.operations;
      reads = asked.reads + asked.waits;
      gate.emplace(CurrentStream(device));
    });
    if (!gate.has_value()) {
      judging.Wrong({input, "more() was not called", "one call",
                     "The other work has to be enqueued as well."});
    }
    const bool waited = gate->TimedOut();
    gate->Open();
    if (calls > 1) {
      judging.Wrong({input, Say("%d calls of more()", calls), "one call",
                     "Each call enqueues the other work once more."});
    }
    if (reads > 0) {
      judging.Wrong({input, "a wait before more() was called", "none",
                     "While you wait, you cannot enqueue the other work, and "
                     "the device is idle. Enqueue first, read later."});
    }
    if (operations == 0) {
      judging.Wrong({input, "the sum was enqueued behind the other work",
                     "before it",
                     "A stream does operations in the order in which they were "
                     "enqueued: enqueue the sum before you call more()."});
    }
    if (waited) {
      judging.Wrong(
          {input, "the sum was returned after the other work was done",
           "before the other work was done",
           "Synchronize waits for everything that was enqueued on the device. "
           "A call that reads one tensor waits for that tensor only."});
    }
    if (asked.reads + asked.waits == 0) {
      judging.Wrong({input, "a number that was read without a wait", "the sum",
                     "Sum returns once its work is enqueued; the sum is in "
                     "memory only after the stream has computed it. Item waits "
                     "for the sum and reads it."});
    }
    const double sum = std::accumulate(numbers.begin(), numbers.end(), 0.0);
    judging.ExpectClose(input, {static_cast<float>(got)},
                        {static_cast<float>(sum)}, 1e-4,
                        n == 0 ? "The sum of no elements is 0."
                               : "Sum(x) is the sum of all elements.");
  }

  const Tensor x = Rand({100'000}, device), a = Rand({300, 300}, device);
  const auto more = [&] {
    for (int i = 0; i < 10; ++i) MatMul(a, a);
  };
  const auto nothing = [] {};  // the time ends when the call returns
  judging.Race({"your sum, with 10 products behind it",
                {device},
                [&] { answer(x, more); },
                nothing},
               {{"enqueue, enqueue more, read",
                 {device},
                 [&] {
                   const Tensor sum = Sum(x);
                   more();
                   Item(sum);
                 },
                 nothing},
                2,
                "This time should contain only the sum of 100,000 numbers."});
}

D2L_JUDGE("wait_for_less", JudgeSumFirst);

}  // namespace
}  // namespace d2l
