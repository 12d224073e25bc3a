// Judges matrix_product: against sums in double, then against each rung.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/lesson/cell/cell.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using Product = void(const float* a, const float* b, float* c, int m, int k,
                     int n);

// Rung 1: element by element.
void ByElements(const float* a, const float* b, float* c, int m, int k, int n) {
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int p = 0; p < k; ++p) sum += a[i * k + p] * b[p * n + j];
      c[i * n + j] = sum;
    }
  }
}

// Rung 2: row by row, as the memory lies.
void ByRows(const float* a, const float* b, float* c, int m, int k, int n) {
  std::fill(c, c + m * n, 0.f);
  for (int i = 0; i < m; ++i) {
    for (int p = 0; p < k; ++p) {
      for (int j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
    }
  }
}

// Rung 3: packed tiles of 4 x 4, whose sums stay in registers.
void ByTiles(const float* a, const float* b, float* c, int m, int k, int n) {
  std::vector<float> columns(4 * k);
  for (int j = 0; j < n; j += 4) {
    for (int p = 0; p < k; ++p) {
      for (int q = 0; q < 4; ++q) {
        columns[4 * p + q] = j + q < n ? b[p * n + j + q] : 0;
      }
    }
    for (int i = 0; i < m; ++i) {
      float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
      for (int p = 0; p < k; ++p) {
        const float x = a[i * k + p];
        s0 += x * columns[4 * p];
        s1 += x * columns[4 * p + 1];
        s2 += x * columns[4 * p + 2];
        s3 += x * columns[4 * p + 3];
      }
      const float sums[] = {s0, s1, s2, s3};
      std::copy(sums, sums + std::min(4, n - j), c + i * n + j);
    }
  }
}

// The operations of one thread in a second, on Vecs that stay in registers:
// enough Vecs to hide that each operation waits for the one before.
double OperationsPerSecond() {
  using Vec = float __attribute__((vector_size(16)));
  constexpr int kVecs = 12, kSteps = 200'000;
  double best = 0;
  for (int repeat = 0; repeat < 9; ++repeat) {
    Vec sums[kVecs] = {};
    const Vec factor = Vec{} + 0.5f, addend = Vec{} + 1.f;
    const Timer timer;
    for (int i = 0; i < kSteps; ++i) {
#pragma GCC unroll 12
      for (int r = 0; r < kVecs; ++r) sums[r] = sums[r] * factor + addend;
    }
    const double seconds = timer.Seconds();
    float total = 0;
    for (const Vec& sum : sums) total += sum[0];
    // The sums tend to 2. The test uses them, so that they are computed.
    if (total < 2.1f * kVecs)
      best = std::max(best, 8. * kVecs * kSteps / seconds);
  }
  return best;
}

void JudgeOne(const Judging& judging, Product* answer, int m, int k, int n,
              NumberKind kind) {
  constexpr float kBefore = 1000;
  const std::vector<float> a = RandomNumbers(m * k, 1, kind);
  const std::vector<float> b = RandomNumbers(k * n, 2);
  const std::string input = Say("a is (%d, %d), b is (%d, %d)", m, k, k, n);
  Fenced memory(m * n, kBefore);
  const float* const c = memory.data();
  answer(a.data(), b.data(), memory.data(), m, k, n);
  if (!memory.Whole()) {
    judging.Wrong(
        {input, "a write beside the array", "none",
         "An index is below 0, or too large for the last row or tile."});
  }
  for (int i = 0; i < m * n; ++i) {
    double sum = 0, size = 0;  // of the addends together
    for (int p = 0; p < k; ++p) {
      const double product = double{a[i / n * k + p]} * b[p * n + i % n];
      sum += product;
      if (std::isfinite(product)) size += std::abs(product);
    }
    if (AllClose({c[i]}, {static_cast<float>(sum)}, 0)) continue;
    const double tolerance = 1e-5 * size;
    if (std::abs(c[i] - sum) <= tolerance) continue;
    const char* look =
        "The rows of b lie one after the other: the element in row p and "
        "column j is b[p * n + j].";
    if (!std::isfinite(sum)) {
      look =
          "A NaN, or an infinity, counts as any number does: the sum that it "
          "is in is NaN, or infinite, too.";
    } else if (k == 0) {
      look =
          "Where k is 0 there is nothing to add up, and each sum is 0: begin "
          "with that.";
    } else if (c[i] == kBefore) {
      look =
          "Nobody wrote this element. Do the tiles cover the edge, where fewer "
          "rows or columns are left?";
    } else if (std::abs(c[i] - sum - kBefore) <= tolerance + 1e-3) {
      look = "c has old values: begin the sums with 0.";
    }
    judging.Wrong({input, Say("%.7g in row %d, column %d", c[i], i / n, i % n),
                   absl::StrFormat("%.7g", sum), look});
  }
}

void JudgeProduct(Judging& judging, Product* answer) {
  struct Sizes {
    int m, k, n;
  };
  for (const auto& [m, k, n] :
       {Sizes{8, 4, 8}, Sizes{3, 5, 7}, Sizes{17, 33, 9}, Sizes{1, 1, 1},
        Sizes{4, 0, 3}, Sizes{0, 3, 2}}) {
    JudgeOne(judging, answer, m, k, n, NumberKind::kMixed);
  }
  for (const NumberKind kind : kNumberKinds) {
    JudgeOne(judging, answer, 9, 6, 10, kind);
  }

  if (!judging.timed()) return;

  constexpr int kSize = 260;
  const std::vector<float> a = RandomNumbers(kSize * kSize, 1);
  const std::vector<float> b = RandomNumbers(kSize * kSize, 2);
  std::vector<float> c(kSize * kSize);
  const auto run = [&](Product* product) {
    return [&a, &b, &c, product] {
      product(a.data(), b.data(), c.data(), kSize, kSize, kSize);
    };
  };
  const Alternative yours = {"yours, 260 x 260", {}, run(answer)};
  judging.Race(yours,
               {{"rung 1: element by element", {}, run(ByElements)},
                0.9,
                "The inner loop goes down a column of b: each step is in "
                "another cache line. Which order of the loops goes along rows "
                "only?"});
  judging.Race(yours,
               {{"rung 2: row by row", {}, run(ByRows)},
                0.75,
                "Each product reads and writes c in memory. Keep the sums of "
                "some columns in variables, and pack those columns of b side "
                "by side."});
  judging.Race(yours,
               {{"rung 3: packed tiles", {}, run(ByTiles)},
                0.8,
                "One number of a is used for a few products only, and each "
                "instruction does one. Use Vec, and a tile of several rows."});
  const Tensor x = FromVector(a, {kSize, kSize});
  const Tensor y = FromVector(b, {kSize, kSize});
  judging.Race(
      yours,
      {{"rung 4: MatMul of this course", {Device()}, [&] { MatMul(x, y); }},
       20,
       "A tile of eight rows and one Vec leaves registers for "
       "all its sums.",
       2. * kSize * kSize * kSize / OperationsPerSecond(),
       "bound: Vecs in registers"});
}

D2L_JUDGE("matrix_product", JudgeProduct);

}  // namespace
}  // namespace d2l
