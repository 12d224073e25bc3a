// Judges block_sum: the sums, races, and the banks of shared memory.

#include <algorithm>
#include <vector>

#include "common/base/console/language.h"
#include "common/exercise/exercise.h"
#include "common/exercise/kernel_run.h"
#include "common/exercise/probes.h"

namespace d2l {
namespace {

using BlockSum = void(float* sums, const float* x, int n);

void JudgeOne(Judging& judging, BlockSum* answer, int n, NumberKind kind) {
  constexpr int kThreads = 256;
  const int blocks = (n + kThreads - 1) / kThreads;
  CheckedArray<float> x(n), sums(blocks);
  Fill(x, RandomNumbers(n, 1, kind));
  // As a tree, so that no sum of large numbers hides a small one.
  std::vector<float> expected;
  for (int block = 0; block < blocks; ++block) {
    double sum = 0;
    for (int i = block * kThreads; i < std::min(n, (block + 1) * kThreads);
         ++i) {
      sum += x.data()[i];
    }
    expected.push_back(static_cast<float>(sum));
  }
  KernelRun run(
      judging, Say("%d numbers, %d blocks of %d threads", n, blocks, kThreads));
  run.Launch(answer, blocks, kThreads, sums.data(), x.data(), n);
  run.ExpectRight(
      sums, expected, 1e-3,
      "Every number of the block once: what do 2, 4 and 8 threads add, step by "
      "step?",
      [](const Finding& finding) {
        switch (finding.kind) {
          case FindingKind::kRace:
            if (finding.at.block != finding.before.block) {
              return "A static array is one for all blocks, in global memory, "
                     "and each block may overwrite what another one adds: "
                     "__shared__.";
            }
            return finding.shared
                       ? "A step adds what the step before has written, "
                         "partly by other threads: a barrier before each step."
                       : "All threads of the block store the sum, into one "
                         "element. One is enough, and it needs no barrier.";
          case FindingKind::kBarrier:
            return "Threads that do not add in this step have to come to the "
                   "barrier, too: put it beside the `if`, not into it.";
          case FindingKind::kUninitialised:
            return "Threads without a number take part in the sum: theirs is "
                   "0, and they have to write it.";
          default:
            return "";
        }
      });
  // Eight steps with three accesses each, and what comes before and behind.
  run.ExpectShortThreads(
      64,
      "One thread adds up what half of the threads could add at the same time: "
      "eight steps are enough for 256 numbers.");
  run.ExpectNoConflicts([](double) {
    return "Threads that add lie 2, 4, 8 words apart, and meet in a bank; and "
           "in each warp some work while others rest. Let the first half of "
           "the threads add the numbers of the second half.";
  });
  if (n == 1024) run.NoteFigures({4, 1, 0, 28});
}

void JudgeBlockSum(Judging& judging, BlockSum* answer) {
  for (const int n : {1024, 1000, 256, 1}) {
    JudgeOne(judging, answer, n, NumberKind::kMixed);
  }
  for (const NumberKind kind : kNumberKinds)
    JudgeOne(judging, answer, 70, kind);
}

D2L_JUDGE("block_sum", JudgeBlockSum);

}  // namespace
}  // namespace d2l
