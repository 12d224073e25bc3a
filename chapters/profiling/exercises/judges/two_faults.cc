// Judges two_faults: the numbers, and both faults.

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/console/language.h"
#include "common/exercise/exercise.h"
#include "common/exercise/kernel_run.h"
#include "common/exercise/probes.h"

namespace d2l {
namespace {

using Blur = void(float* y, const float* x, int n);

void JudgeOne(Judging& judging, Blur* answer, int n, NumberKind kind) {
  constexpr int kThreads = 64;
  const int blocks = n == 0 ? 1 : (n + kThreads - 1) / kThreads;
  CheckedArray<float> x(n), y(n);
  Fill(x, RandomNumbers(n, 1, kind));
  std::vector<float> expected(n);
  for (int i = 0; i < n; ++i) {
    const float left = i > 0 ? x.data()[i - 1] : 0;
    const float right = i + 1 < n ? x.data()[i + 1] : 0;
    expected[i] = (left + x.data()[i] + right) / 3;
  }
  KernelRun run(
      judging, Say("%d numbers, %d blocks of %d threads", n, blocks, kThreads));
  run.Launch(answer, blocks, kThreads, y.data(), x.data(), n);
  run.ExpectRight(
      y, expected, 1e-6,
      "The neighbour of a block's first or last number belongs to the next "
      "block: it is in x, not in this block's shared memory.",
      [](const Finding& finding) {
        switch (finding.kind) {
          case FindingKind::kOutOfBounds:
            return "There is no number before the first, nor behind the last. "
                   "They count as 0.";
          case FindingKind::kBarrier:
            return "One fault is left: threads without a number are gone when "
                   "the others wait for all.";
          case FindingKind::kUninitialised:
            return "The last number's right neighbour is the word of a thread "
                   "that has no number. It has to write 0.";
          case FindingKind::kRace:
            return "A thread reads what its neighbours have written: all must "
                   "have written first.";
          default:
            return "";
        }
      });
  run.ExpectShortThreads(
      16,
      "A GPU is fast because thousands of threads work. One number for each "
      "thread, and no loop.");
  const std::int64_t loads = run.GlobalAccesses(/*writes=*/false);
  const std::int64_t enough = n + 2 * std::int64_t{blocks};
  if (n == 128) run.NoteFigures({3, 4, 0, 8});
  if (loads <= enough) return;
  run.Wrong(Say("the right values, with %d loads of global memory", loads),
            absl::StrCat(enough),
            "A number is loaded once, into the block's shared memory, where "
            "three threads use it.");
}

void JudgeBlur(Judging& judging, Blur* answer) {
  for (const int n : {128, 200, 64, 65, 1, 0}) {
    JudgeOne(judging, answer, n, NumberKind::kMixed);
  }
  for (const NumberKind kind : kNumberKinds)
    JudgeOne(judging, answer, 70, kind);
}

D2L_JUDGE("two_faults", JudgeBlur);

}  // namespace
}  // namespace d2l
