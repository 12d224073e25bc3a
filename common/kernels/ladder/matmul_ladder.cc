#include "common/kernels/ladder/matmul_ladder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/kernels/cpu/vector_targets.h"

// Compiles what follows once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/kernels/ladder/matmul_ladder.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

#ifndef D2L_COMMON_KERNELS_LADDER_MATMUL_LADDER_ONCE_
#define D2L_COMMON_KERNELS_LADDER_MATMUL_LADDER_ONCE_
namespace d2l::kernels::ladder {

// A tile of c: 6 x 16 floats are 12 of the 16 registers of AVX2.
inline constexpr std::int64_t kRows = 6;
inline constexpr std::int64_t kColumns = 16;

}  // namespace d2l::kernels::ladder
#endif  // D2L_COMMON_KERNELS_LADDER_MATMUL_LADDER_ONCE_

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::ladder {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// PlainTile (below) with vectors. Unrolled, it keeps the sums in registers.
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

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::ladder
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::ladder {
namespace {

HWY_EXPORT(VectorTile);

// The sums of kRows rows of a and kColumns columns of b, both packed.
void PlainTile(std::int64_t k, const float* a, const float* b, float* tile) {
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

using Tile = void (*)(std::int64_t k, const float* a, const float* b,
                      float* tile);

void MatMulOfTiles(Tile compute, std::int64_t m, std::int64_t n, std::int64_t k,
                   const float* a, const float* b, float* c) {
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

}  // namespace

void MatMulNaive(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                 const float* b, float* c) {
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t p = 0; p < k; ++p) sum += a[i * k + p] * b[p * n + j];
      c[i * n + j] = sum;
    }
  }
}

void MatMulTiled(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                 const float* b, float* c) {
  constexpr std::int64_t kDepth = 64, kWidth = 256;  // 64 KiB of b
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

void MatMulPacked(std::int64_t m, std::int64_t n, std::int64_t k,
                  const float* a, const float* b, float* c) {
  MatMulOfTiles(PlainTile, m, n, k, a, b, c);
}

void MatMulVectorised(std::int64_t m, std::int64_t n, std::int64_t k,
                      const float* a, const float* b, float* c) {
  MatMulOfTiles(HWY_DYNAMIC_DISPATCH(VectorTile), m, n, k, a, b, c);
}

}  // namespace d2l::kernels::ladder

#endif  // HWY_ONCE
