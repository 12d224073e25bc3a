// Judges short_chain: the sum, the number of additions, and the depth of their
// dependency graph.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/base/console/language.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/lesson/cell/trace_program.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using SumOfAll = Tensor(const std::vector<Tensor>& xs);

// Records this thread's operations while it lives.
class Operations : private OpListener {
 public:
  int additions = 0;
  std::vector<std::string> others;

 private:
  void OnOp(const OpRecord& record) override {
    const std::string name = record.primitive->name();
    if (name == "add") {
      ++additions;
    } else if (std::count(others.begin(), others.end(), name) == 0) {
      others.push_back(name);
    }
  }

  const ScopedOpListener listen_{this};
};

void JudgeOne(Judging& judging, SumOfAll* answer, int count, unsigned seed) {
  const Device device = Devices().back().device;
  std::vector<Tensor> xs;
  std::vector<std::vector<float>> numbers;
  std::vector<float> expected(5);
  for (int i = 0; i < count; ++i) {
    numbers.push_back(RandomNumbers(expected.size(), seed + i));
    xs.push_back(FromVector(numbers.back(), {5}, device));
    for (int k = 0; k < 5; ++k) expected[k] += numbers.back()[k];
  }
  const std::string input = Say("%d tensors", count);
  Tensor sum;
  const Operations asked;
  const TracedProgram program = TraceProgram([&] { sum = answer(xs); });
  for (int i = 0; i < count; ++i) {
    judging.ExpectClose(Say("%s: number %d of them", input, i),
                        ToVector<float>(xs[i]), numbers[i], 0,
                        "+= writes to the memory of a tensor, here of the "
                        "caller's tensor. + makes a new tensor.");
  }
  judging.ExpectClose(input, ToVector<float>(sum), expected, 1e-5,
                      "Is every tensor added, and only once? The number of "
                      "tensors may be odd.");
  int depth = 0;
  while (1 << depth < count) ++depth;
  // The tensors themselves are a level of the graph.
  const int got = std::max(0, program.graph.depth() - 1);
  const std::string expected_chain =
      Say("%d additions, the longest chain has %d", count - 1, depth);
  if (asked.additions < count && !asked.others.empty()) {
    judging.Wrong(
        {input,
         Say("%d additions, and other operations: %s", asked.additions,
             absl::StrJoin(asked.others, ", ")),
         expected_chain,
         "Use `+` of two tensors only. Stack and Cat copy all tensors first, "
         "and a Sum is one operation, which runs on one device."});
  }
  if (got > depth || asked.additions != count - 1) {
    judging.Wrong(
        {input,
         Say("%d additions, the longest chain has %d", asked.additions, got),
         expected_chain,
         asked.additions >= count
             ? "n - 1 additions are enough. Adding zeros costs one more; let a "
               "tensor that is left over take part in the next round."
         : got == count - 1
             ? "Each addition waits for the one before it. Which ones could "
               "run at the same time?"
             : "The parts are added up at the same time, but within each part "
               "each addition waits for the one before it. Divide the parts as "
               "well."});
  }
  if (seed > 100) return;  // it is noted already
  judging.Note(
      Say("%2d tensors: a chain of %d, instead of %d", count, got, count - 1));
}

void JudgeSumOfAll(Judging& judging, SumOfAll* answer) {
  for (const int count : {8, 13, 2, 1, 33}) {
    JudgeOne(judging, answer, count, 10);
    JudgeOne(judging, answer, count, 110);
  }
}

D2L_JUDGE("short_chain", JudgeSumOfAll);

}  // namespace
}  // namespace d2l
