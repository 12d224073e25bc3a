// Judges histogram: the counts, races, and the additions to global memory.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/base/console/language.h"
#include "common/exercise/exercise.h"
#include "common/exercise/kernel_run.h"
#include "common/exercise/probes.h"

namespace d2l {
namespace {

using Histogram = void(int* counts, const int* x, int n, int bins);

void JudgeOne(Judging& judging, Histogram* answer, int blocks, int n,
              int bins) {
  constexpr int kThreads = 128;
  CheckedArray<int> x(n), counts(bins);
  std::fill(counts.begin(), counts.end(), 0);
  const std::vector<float> random = RandomNumbers(n, 1);
  std::vector<int> expected(bins);
  for (int i = 0; i < n; ++i) {
    // Some bins are full, some empty, and the last ones are not.
    const int number = static_cast<int>(std::abs(random[i]));
    x.data()[i] =
        i % 7 == 0 ? bins - 1 - i % bins / 2 : std::min(number, bins - 1);
    ++expected[x.data()[i]];
  }
  KernelRun run(judging, Say("%d numbers, %d bins, %d blocks of %d threads", n,
                             bins, blocks, kThreads));
  run.Launch(answer, blocks, kThreads, counts.data(), x.data(), n, bins);
  run.ExpectRight(
      counts, expected, 0,
      "Each number is counted once, and each block adds all of its bins.",
      [](const Finding& finding) {
        if (finding.kind == FindingKind::kUninitialised) {
          return "There may be more bins than threads in a block: zero them in "
                 "a loop, as the last loop goes through them.";
        }
        if (!finding.shared) {
          return "Other blocks add to the same counts at the same time: "
                 "atomicAdd.";
        }
        return finding.at.line == finding.before.line
                   ? "++ reads, adds and writes; of two threads that do so at "
                     "the same time one count is lost. atomicAdd does all "
                     "three in one."
                   : "All of a block must be done with zeroing before one "
                     "counts, and a barrier is needed between counting and "
                     "reading the counts, too.";
      });
  const std::int64_t loads = run.GlobalAccesses(/*writes=*/false);
  if (loads > 2 * std::int64_t{n}) {
    run.Wrong(
        Say("the right counts, with %d loads of global memory", loads),
        Say("%d: one for each number", n),
        "Several threads read the same numbers, such as a thread for each "
        "bin that goes through all of them. Each number is the work of "
        "one thread.");
  }
  const std::int64_t additions = run.GlobalAccesses(/*writes=*/true);
  const std::int64_t enough = std::int64_t{1} * blocks * bins;
  if (additions > enough) {
    run.Wrong(Say("the right counts, with %d accesses of counts", additions),
              Say("%d: one for each block and bin", enough),
              "Atomic additions to one address go one after the other, and "
              "here all blocks meet in one memory. Count in shared memory "
              "first.");
  }
  run.ExpectShortThreads(
      8 * (n / (blocks * kThreads) + bins / kThreads + 2),
      "One thread counts what all of them could count at the same time: thread "
      "t takes every number whose place is t more than a multiple of all.");
  if (n == 3000) run.NoteFigures({3.989, 2, 3040, 15});
}

void JudgeHistogram(Judging& judging, Histogram* answer) {
  JudgeOne(judging, answer, 4, 3000, 10);
  JudgeOne(judging, answer, 3, 2001, 200);
  JudgeOne(judging, answer, 2, 1500, 256);
  JudgeOne(judging, answer, 1, 0, 3);
  JudgeOne(judging, answer, 2, 77, 1);
}

D2L_JUDGE("histogram", JudgeHistogram);

}  // namespace
}  // namespace d2l
