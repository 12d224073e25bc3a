// Cell: a matrix product in five steps.

#include "chapters/profiling/ladders/product_ladder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <random>
#include <vector>

#include "chapters/profiling/profiled_runs.h"
#include "common/base/machine.h"
#include "common/kernels/cpu/matmul/gemm.h"
#include "common/kernels/cpu/vector_targets.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"

// Compiles the code below once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "chapters/profiling/ladders/product_ladder.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

#ifndef D2L_CHAPTERS_PROFILING_LADDERS_PRODUCT_LADDER_ONCE_
#define D2L_CHAPTERS_PROFILING_LADDERS_PRODUCT_LADDER_ONCE_
namespace d2l::profiling {
namespace {

// %% d2l/product-ladder
// c = a b, of (m, k) and (k, n). Each step does the same multiplications.

// Step 1, three loops: each element of c is a row of a times a column of b. The
// next number of the column is in another row of b: in another cache line.
void Naive(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
           const float* b, float* c) {
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t p = 0; p < k; ++p) sum += a[i * k + p] * b[p * n + j];
      c[i * n + j] = sum;
    }
  }
}

// %% d2l/product-ladder
// Step 2, blocks: 64 KiB of b serve all rows of a before they leave the cache,
// and the inner loop goes along rows of b and c, from left to right.
void InBlocks(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
              const float* b, float* c) {
  constexpr std::int64_t kDepth = 64, kWidth = 256;
  std::fill_n(c, m * n, 0.0f);
  for (std::int64_t p0 = 0; p0 < k; p0 += kDepth) {
    for (std::int64_t j0 = 0; j0 < n; j0 += kWidth) {
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t p = p0; p < std::min(k, p0 + kDepth); ++p) {
          for (std::int64_t j = j0; j < std::min(n, j0 + kWidth); ++j) {
            c[i * n + j] += a[i * k + p] * b[p * n + j];
          }
        }
      }
    }
  }
}

// %% d2l/product-ladder
// Step 3, packed: a and b are first copied into the order in which they are
// read, and a tile of c is finished before it is written: 6 x 16 sums.
constexpr std::int64_t kRows = 6, kColumns = 16;

// The sums of a tile. Step p reads kRows numbers of a and kColumns of b.
void Tile(std::int64_t k, const float* a, const float* b, float* tile) {
  float sum[kRows * kColumns] = {};
  for (std::int64_t p = 0; p < k; ++p) {
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t j = 0; j < kColumns; ++j) {
        sum[i * kColumns + j] += a[p * kRows + i] * b[p * kColumns + j];
      }
    }
  }
  std::copy_n(sum, kRows * kColumns, tile);
}

// %% d2l/product-ladder
// Copies `count` lines of k numbers in groups of `width` lines. Step p of a
// group is number p of each of its lines; the last group ends in lines of 0.
std::vector<float> Pack(const float* from, std::int64_t count,
                        std::int64_t line_step, std::int64_t k,
                        std::int64_t number_step, std::int64_t width) {
  const std::int64_t groups = (count + width - 1) / width;
  std::vector<float> to(static_cast<std::size_t>(groups * width * k));
  for (std::int64_t i = 0; i < count; ++i) {
    float* const line = to.data() + i / width * width * k + i % width;
    for (std::int64_t p = 0; p < k; ++p) {
      line[p * width] = from[i * line_step + p * number_step];
    }
  }
  return to;
}

// %% d2l/product-ladder
void InTiles(void (*compute)(std::int64_t k, const float* a, const float* b,
                             float* tile),
             std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
             const float* b, float* c) {
  const std::vector<float> packed_a = Pack(a, m, k, k, 1, kRows);
  const std::vector<float> packed_b = Pack(b, n, 1, k, n, kColumns);
  float tile[kRows * kColumns];
  for (std::int64_t j = 0; j < n; j += kColumns) {
    for (std::int64_t i = 0; i < m; i += kRows) {
      compute(k, packed_a.data() + i * k, packed_b.data() + j * k, tile);
      for (std::int64_t r = 0; r < std::min(kRows, m - i); ++r) {
        std::copy_n(tile + r * kColumns, std::min(kColumns, n - j),
                    c + (i + r) * n + j);
      }
    }
  }
}
// %%

}  // namespace
}  // namespace d2l::profiling
#endif  // D2L_CHAPTERS_PROFILING_LADDERS_PRODUCT_LADDER_ONCE_

HWY_BEFORE_NAMESPACE();
namespace d2l::profiling {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// %% d2l/product-ladder
// Step 4, vectors: Tile, with the sums in vectors that stay in registers, and a
// multiplication and an addition of 4, 8 or 16 of them in one instruction.
void VectorTile(std::int64_t k, const float* a, const float* b, float* tile) {
  const hn::CappedTag<float, kColumns> d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  constexpr std::int64_t kVecs = kColumns / kLanes;
  hn::Vec<decltype(d)> sum[kRows][kVecs];
  HWY_UNROLL(6)
  for (std::int64_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (std::int64_t v = 0; v < kVecs; ++v) sum[i][v] = hn::Zero(d);
  }
  for (std::int64_t p = 0; p < k; ++p) {
    HWY_UNROLL(4)
    for (std::int64_t v = 0; v < kVecs; ++v) {
      const auto y = hn::LoadU(d, b + p * kColumns + v * kLanes);
      HWY_UNROLL(6)
      for (std::int64_t i = 0; i < kRows; ++i) {
        sum[i][v] = hn::MulAdd(hn::Set(d, a[p * kRows + i]), y, sum[i][v]);
      }
    }
  }
  HWY_UNROLL(6)
  for (std::int64_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (std::int64_t v = 0; v < kVecs; ++v) {
      hn::StoreU(sum[i][v], d, tile + i * kColumns + v * kLanes);
    }
  }
}
// %%

}  // namespace HWY_NAMESPACE
}  // namespace d2l::profiling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::profiling {
namespace {

HWY_EXPORT(VectorTile);

void Packed(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
            const float* b, float* c) {
  InTiles(Tile, m, n, k, a, b, c);
}

void Vectorised(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                const float* b, float* c) {
  InTiles(HWY_DYNAMIC_DISPATCH(VectorTile), m, n, k, a, b, c);
}

// %% d2l/product-ladder
// Step 5, what tensors use (common/kernels/cpu/matmul/gemm.cc): blocks of k,
// too, so that the packed b stays in the second cache; tiles as wide as the
// machine's registers; no copy of what is small or already in order.
void Gemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
          const float* b, float* c) {
  kernels::cpu::Gemm<float>({false, false, m, n, k, a, k, b, n, c, n});
}
// %%

std::vector<float> RandomMatrix(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(count));
  std::generate(x.begin(), x.end(), [&] { return normal(random); });
  return x;
}

// Of a product with odd sides, against sums in double precision.
void CheckSteps(Cell& cell) {
  constexpr std::int64_t m = 67, n = 259, k = 130;
  const std::vector<float> a = RandomMatrix(m * k, 1);
  const std::vector<float> b = RandomMatrix(k * n, 2);
  std::vector<float> expected(m * n);
  for (std::int64_t i = 0; i < m * n; ++i) {
    double sum = 0;
    for (std::int64_t p = 0; p < k; ++p) {
      sum += double{a[i / n * k + p]} * b[p * n + i % n];
    }
    expected[i] = static_cast<float>(sum);
  }
  for (const ProductStep& step : ProductSteps()) {
    std::vector<float> c(m * n);
    step.multiply(m, n, k, a.data(), b.data(), c.data());
    cell.CheckClose(step.name, c, expected, 1e-4);
  }
}

// The times of all steps with n x n matrices, `times` products each.
Timings TimeSteps(Cell& cell, std::int64_t n, int times) {
  const std::vector<float> a = RandomMatrix(n * n, 1);
  const std::vector<float> b = RandomMatrix(n * n, 2);
  std::vector<float> c(a.size());
  std::vector<Alternative> steps;
  for (const ProductStep& step : ProductSteps()) {
    steps.push_back({step.name, {}, Loop(times, [&, n] {
                       step.multiply(n, n, n, a.data(), b.data(), c.data());
                     })});
  }
  cell.At("n", static_cast<double>(n));
  const Timings t = cell.TimeInterleaved(steps);
  cell.AtNoPlace();
  return t;
}

// %% d2l/product-ladder, measured
// ProductSteps: the five functions. TimeSteps stands above this cell.
void ProductLadder(Cell& cell) {
  CheckSteps(cell);
  const int small = 32, large = cell.BySize(128, 500, 1000);
  const int times = 32;  // as one is too short for a clock
  const Timings in_cache = TimeSteps(cell, small, times);
  const Timings t = TimeSteps(cell, large, 1);
  std::cout << Say("  n = %d           time   GFLOP/s  of the step before\n",
                   large);
  for (std::size_t i = 0; i < t.size(); ++i) {
    const double seconds = t[i].completion.value.median;
    std::cout << Say(
        "  %s %9s %9.3g%s\n", Padded(t[i].completion.label, 14), Took(t[i]),
        2e-9 * large * large * large / seconds,
        i == 0 ? ""
               : Say("  %s as fast",
                     FormatFactor(t[i - 1].completion.value.median / seconds)));
  }
  const auto gain = [&](const Phrase& label, const Timings& of) {
    return RatioPerRepeat(label, of["three loops"].completion,
                          of["blocks"].completion);
  };
  cell.Claim(
      Worded("With n = %d blocks are faster than three loops: {}.", large),
      Both(Faster(t["blocks"], t["three loops"], kClearly),
           Less(gain("gain in the cache", in_cache), gain("gain", t)),
           Say("than with n = %d, whose b fits the L1 cache", small)),
      Say("%s and %s; b has %s, the L1 cache %s.", Took(t["blocks"]),
          Took(t["three loops"]), FormatBytes(4L * large * large),
          FormatBytes(CacheBytes(1).value_or(0))));
  cell.Claim("With vectors the same tiles are faster: {}.",
             Faster(t["vectors"], t["packed tiles"], kClearly),
             Say("%s and %s.", Took(t["vectors"]), Took(t["packed tiles"])));
}
// %%
D2L_CELL("d2l/product-ladder", ProductLadder);

// ---- Benchmarks, at the course's size.

MakeHostWork LadderStep(std::size_t i) {
  return [i] {
    constexpr std::size_t n = 250;
    return [multiply = ProductSteps()[i].multiply,
            a = std::vector<float>(n * n, 0.5f),
            c = std::vector<float>(n * n)]() mutable {
      multiply(n, n, n, a.data(), a.data(), c.data());
    };
  };
}

[[maybe_unused]] const bool benchmarks[] = {
    BenchmarkHost("BM_d2l_product_ladder_ThreeLoops_Host", 2 * 250 * 250 * 250,
                  LadderStep(0)),
    BenchmarkHost("BM_d2l_product_ladder_Gemm_Host", 2 * 250 * 250 * 250,
                  LadderStep(4)),
};

}  // namespace

const std::vector<ProductStep>& ProductSteps() {
  static const auto& steps =
      *new std::vector<ProductStep>{{"three loops", Naive},
                                    {"blocks", InBlocks},
                                    {"packed tiles", Packed},
                                    {"vectors", Vectorised},
                                    {"Gemm", Gemm}};
  return steps;
}

}  // namespace d2l::profiling

#endif  // HWY_ONCE
