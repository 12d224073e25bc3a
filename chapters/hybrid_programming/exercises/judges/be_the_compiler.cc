// Judges be_the_compiler: are the results the same, and which operations were
// enqueued?

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/console/language.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using Shortened = Tensor(const Tensor& a, const Tensor& b);

// How many operations of each name this thread enqueues while it lives.
class Names : private OpListener {
 public:
  std::map<std::string, int> count;

 private:
  void OnOp(const OpRecord& record) override {
    ++count[record.primitive->name()];
  }

  ScopedOpListener listener_{this};
};

void JudgeOne(const Judging& judging, Shortened* answer, std::size_t n,
              NumberKind kind) {
  const std::vector<float> a = RandomNumbers(n, 1, kind);
  const std::vector<float> b = RandomNumbers(n, 2, kind);
  std::vector<float> expected;
  for (std::size_t i = 0; i < n; ++i) {
    expected.push_back((a[i] + b[i]) * (a[i] + b[i]));
  }
  LateTensors late({a, b}, {static_cast<std::int64_t>(n)},
                   Devices().back().device);
  Requests asked;
  Names names;
  const Tensor got = answer(late[0], late[1]);
  const std::string input = Say("%d numbers", n);
  if (late.Arrive() || asked.reads > 0) {
    judging.Wrong({input, "a value was read", "operations on tensors only",
                   "A compiler does not see the numbers: it leaves operations, "
                   "which the device does."});
  }
  const int operations = asked.operations;
  if (asked.of_the_host > 0) {
    judging.Wrong({input, "numbers of the host", "2 operations",
                   "A host that looks into a device's memory finds old values "
                   "there. Enqueue operations instead."});
  }
  judging.ExpectClose(input, ToVector<float>(got), expected, 0,
                      "Bit for bit: floats are rounded after each operation, "
                      "so other operations give other last digits. Keep the "
                      "sum and the product as they are.");
  judging.ExpectClose(Say("%d numbers, a afterwards", n),
                      ToVector<float>(late[0]), a, 0,
                      "+= writes into the caller's tensor: make a new one.");
  if (operations <= 2) return;
  judging.Wrong(
      {input, Say("%d operations", operations), "2 operations",
       names.count["sub"] > 0 ? "Which statement uses f? A value that no "
                                "statement uses need not be computed."
       : names.count["add"] > 1
           ? "e and g are the same: compute it once, and use it twice."
           : "One sum and one product are enough."});
}

void JudgeShortened(Judging& judging, Shortened* answer) {
  for (const std::size_t n : {5, 1001, 1, 0}) {
    JudgeOne(judging, answer, n, NumberKind::kMixed);
  }
  for (const NumberKind kind : kNumberKinds) JudgeOne(judging, answer, 7, kind);
}

D2L_JUDGE("be_the_compiler", JudgeShortened);

}  // namespace
}  // namespace d2l
