// Judges tiled_product: the product at odd sizes, how often memory is read, and
// the banks.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/console/language.h"
#include "common/exercise/exercise.h"
#include "common/exercise/kernel_run.h"
#include "common/exercise/probes.h"

namespace d2l {
namespace {

using Product = void(float* c, const float* a, const float* b, int m, int k,
                     int n);

void JudgeOne(Judging& judging, Product* answer, int m, int k, int n,
              NumberKind kind) {
  constexpr int kTile = 16;
  CheckedArray<float> a(std::size_t{1} * m * k), b(std::size_t{1} * k * n);
  CheckedArray<float> c(std::size_t{1} * m * n);
  Fill(a, RandomNumbers(m * k, 1, kind));
  Fill(b, RandomNumbers(k * n, 2));
  std::vector<float> expected;
  double largest = 1;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int p = 0; p < k; ++p) {
        const double product =
            double{a.data()[i * k + p]} * b.data()[p * n + j];
        sum += product;
        if (std::isfinite(product)) {
          largest = std::max(largest, std::abs(product));
        }
      }
      expected.push_back(static_cast<float>(sum));
    }
  }
  const dim3 blocks((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
  KernelRun run(judging, Say("(%d, %d) times (%d, %d), %d x %d blocks of %d x "
                             "%d",
                             m, k, k, n, blocks.x, blocks.y, kTile, kTile));
  run.Launch(answer, blocks, dim3(kTile, kTile), c.data(), a.data(), b.data(),
             m, k, n);
  run.ExpectRight(
      c, expected, 1e-6 * largest,
      "c[row][column] is the sum of a[row][p] * b[p][column] over all p, tile "
      "by tile; what lies beyond the edge counts as 0.",
      [](const Finding& finding) {
        switch (finding.kind) {
          case FindingKind::kRace:
            return "Two barriers in each turn: one between loading a tile and "
                   "using it, one between using it and loading the next.";
          case FindingKind::kBarrier:
            return "A thread without an element of c still loads numbers that "
                   "others use, and comes to every barrier.";
          case FindingKind::kUninitialised:
            return "Beyond the edge of a matrix there is nothing to load, and "
                   "the tile keeps what was there. Write 0 there.";
          default:
            return "";
        }
      });
  // A number of a is loaded once for each column of blocks, one of b once for
  // each row of them.
  const std::int64_t loads = run.GlobalAccesses(/*writes=*/false);
  const std::int64_t enough =
      std::int64_t{1} * m * k * blocks.x + std::int64_t{1} * k * n * blocks.y;
  if (loads > enough) {
    run.Wrong(
        Say("the right values, with %d loads of global memory", loads),
        absl::StrCat(enough),
        "16 threads of a block need the same number of a, and 16 the same "
        "of b. Load it once, into shared memory.");
  }
  run.ExpectNoConflicts(
      [](double) {
        return "threadIdx.x runs from thread to thread, so it should be the "
               "last index of a tile where 32 threads use 32 words. One word "
               "that all of them read is no conflict.";
      },
      /*allowed=*/1);  // a row of 17 words instead of 16
  if (k == 48) run.NoteFigures({4, 4, 0, 109});
}

void JudgeProduct(Judging& judging, Product* answer) {
  JudgeOne(judging, answer, 32, 48, 32, NumberKind::kMixed);
  for (const NumberKind kind : kNumberKinds) {
    JudgeOne(judging, answer, 20, 37, 33, kind);
  }
  JudgeOne(judging, answer, 1, 5, 1, NumberKind::kMixed);
}

D2L_JUDGE("tiled_product", JudgeProduct);

}  // namespace
}  // namespace d2l
