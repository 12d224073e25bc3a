// Judges kernel_guard: the numbers, and the memory behind them.

#include <algorithm>
#include <vector>

#include "common/base/console/language.h"
#include "common/exercise/exercise.h"
#include "common/exercise/kernel_run.h"
#include "common/exercise/probes.h"

namespace d2l {
namespace {

using Axpy = void(float a, const float* x, float* y, int n);

constexpr int kThreads = 256;

void JudgeOne(Judging& judging, Axpy* answer, int n, float a, NumberKind kind,
              bool first) {
  const int blocks = n == 0 ? 1 : (n + kThreads - 1) / kThreads;
  CheckedArray<float> x(n), y(n);
  Fill(x, RandomNumbers(n, 1, kind));
  Fill(y, RandomNumbers(n, 2, kind));
  // Fills the memory behind the arrays, so that a write there is seen.
  constexpr int kBehind = 64;
  std::fill(x.end(), x.end() + kBehind, 1.f);
  std::fill(y.end(), y.end() + kBehind, 1.f);
  const std::vector<float> before(y.begin(), y.end());
  std::vector<float> expected(n);
  for (int i = 0; i < n; ++i) expected[i] = a * x.data()[i] + y.data()[i];
  KernelRun run(judging, Say("%d numbers, %d blocks of %d threads, a = %g", n,
                             blocks, kThreads, a));
  run.Launch(answer, blocks, kThreads, a, x.data(), y.data(), n);
  const auto written = kBehind - std::count(y.end(), y.end() + kBehind, 1.f);
  const bool last_is_as_before =
      n > 1 && y.end()[-1] == before[n - 1] && y.end()[-2] == expected[n - 2];
  run.ExpectRight(
      y, expected, 1e-5,
      last_is_as_before
          ? "The last number is left as it was. Its index is n - 1."
      : !first
          ? "With another a, or other numbers, these are wrong: a is what the "
            "caller gives, and there are NaNs, infinities and zeros."
          : "Threads of the last block that have a number must not be left "
            "out with those that have none.",
      [written](const Finding&) {
        return written == 1 ? "The last index is n - 1: thread n has no number."
                            : "Threads without a number of their own must do "
                              "nothing. Here they write what belongs to "
                              "somebody else, and nobody may notice for years.";
      });
  run.ExpectShortThreads(
      8,
      "A GPU is fast because thousands of threads work. One number for each "
      "thread, and no loop.");
  if (n == 1000) run.NoteFigures({3.906, 3.906, 0, 3});
}

void JudgeGuard(Judging& judging, Axpy* answer) {
  for (const int n : {1000, 512, 1, 0, 257}) {
    JudgeOne(judging, answer, n, -0.5f, NumberKind::kMixed, true);
  }
  for (const float a : DrawnNumbers()) {
    for (const NumberKind kind : kNumberKinds) {
      JudgeOne(judging, answer, 70, a, kind, false);
    }
  }
}

D2L_JUDGE("kernel_guard", JudgeGuard);

}  // namespace
}  // namespace d2l
