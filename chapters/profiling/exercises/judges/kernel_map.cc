// Judges kernel_map: the numbers, which threads compute them, and a warp's
// memory requests.

#include <cstddef>
#include <vector>

#include "common/base/console/language.h"
#include "common/exercise/exercise.h"
#include "common/exercise/kernel_run.h"
#include "common/exercise/probes.h"

namespace d2l {
namespace {

using Axpy = void(float a, const float* x, float* y);

void JudgeOne(Judging& judging, Axpy* answer, int blocks, int threads, float a,
              NumberKind kind, bool first) {
  const std::size_t n = std::size_t{1} * blocks * threads;
  CheckedArray<float> x(n), y(n);
  Fill(x, RandomNumbers(n, 1, kind));
  Fill(y, RandomNumbers(n, 2, kind));
  std::vector<float> expected(n), product(n);
  for (std::size_t i = 0; i < n; ++i) {
    product[i] = a * x.data()[i];
    expected[i] = product[i] + y.data()[i];
  }
  KernelRun run(judging,
                Say("%d blocks of %d threads, a = %g", blocks, threads, a));
  run.Launch(answer, blocks, threads, a, x.data(), y.data());
  const std::vector<float> got(y.begin(), y.end());
  run.ExpectRight(
      y, expected, 1e-5,
      AllClose(got, product, 1e-6)
          ? "y is added to, not replaced: a x, and what was there before."
      : !first
          ? "With another a, or other numbers, these are wrong: a is what the "
            "caller gives, and there are NaNs, infinities and zeros."
          : "Thread i of all computes y[i], and nothing else.",
      [](const Finding& finding) {
        return finding.kind == FindingKind::kOutOfBounds
                   ? "The indices of n numbers begin at 0 and end at n - 1, "
                     "and so do the threads' numbers."
                   : "Every block has threads 0, 1, 2, ...: only together with "
                     "the block is that a number of its own. blockIdx.x says "
                     "which block this is, blockDim.x how many threads one "
                     "has.";
      });
  run.ExpectBusyLanes(
      "A GPU is fast because thousands of threads work. One number for each "
      "thread, and no loop.");
  run.ExpectShortThreads(
      8,
      "A GPU is fast because thousands of threads work. One number for each "
      "thread, and no loop.");
  run.ExpectCoalesced(
      "Threads that are neighbours, i and i + 1 of one block, should use "
      "neighbours in memory: then a warp needs 4 sectors for 32 numbers.");
  if (blocks == 6) run.NoteFigures({4, 4, 0, 3});
}

void JudgeMap(Judging& judging, Axpy* answer) {
  JudgeOne(judging, answer, 6, 64, 1.5f, NumberKind::kMixed, true);
  JudgeOne(judging, answer, 1, 32, 1.5f, NumberKind::kMixed, true);
  JudgeOne(judging, answer, 3, 256, 1.5f, NumberKind::kMixed, true);
  // Numbers of every kind, and an a that the answer cannot know.
  for (const float a : DrawnNumbers()) {
    for (const NumberKind kind : kNumberKinds) {
      JudgeOne(judging, answer, 2, 64, a, kind, false);
    }
  }
}

D2L_JUDGE("kernel_map", JudgeMap);

}  // namespace
}  // namespace d2l
