// The innermost code of gemm.cc, compiled once for each kind of vector: the
// micro-kernel, which computes a tile of c in registers, and the transposes of
// the copies that it reads. Included by files that include
// hwy/foreach_target.h.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "hwy/highway.h"

#if defined(D2L_COMMON_KERNELS_CPU_MATMUL_GEMM_TILE_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef D2L_COMMON_KERNELS_CPU_MATMUL_GEMM_TILE_INL_H_
#undef D2L_COMMON_KERNELS_CPU_MATMUL_GEMM_TILE_INL_H_
#else
#define D2L_COMMON_KERNELS_CPU_MATMUL_GEMM_TILE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The registers hold a tile's sums, a row of vectors of b and a number of a.
// There are 32 registers, or 16 on x86 before AVX-512.
constexpr int kVecs = 3;
constexpr int kRows = HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3 ? 4 : 8;

template <typename T>
using Tag = hn::ScalableTag<T>;
template <typename T>
constexpr std::int64_t kLanes = hn::MaxLanes(Tag<T>());

// ---- The first lanes of a vector.

#if HWY_MEM_OPS_MIGHT_FAULT

// Without masked loads, b must be readable up to the end of its last vector.
constexpr bool kMaskedLoads = false;

// The first n lanes, n from 1 on: through a copy.
template <typename T>
class FirstLanes {
 public:
  HWY_INLINE explicit FirstLanes(std::int64_t n) : n_(n) {}

  // The other lanes are 0.
  HWY_INLINE hn::Vec<Tag<T>> Load(const T* p) const {
    if (n_ == kLanes<T>) return hn::LoadU(Tag<T>(), p);
    HWY_ALIGN T lanes[kLanes<T>] = {};
    std::copy(p, p + n_, lanes);
    return hn::Load(Tag<T>(), lanes);
  }

  HWY_INLINE void Store(hn::Vec<Tag<T>> v, T* p) const {
    if (n_ == kLanes<T>) return hn::StoreU(v, Tag<T>(), p);
    HWY_ALIGN T lanes[kLanes<T>];
    hn::Store(v, Tag<T>(), lanes);
    std::copy(lanes, lanes + n_, p);
  }

 private:
  std::int64_t n_;
};

#else

constexpr bool kMaskedLoads = true;

// The first n lanes, n from 1 on: through a mask.
template <typename T>
class FirstLanes {
 public:
  HWY_INLINE explicit FirstLanes(std::int64_t n)
      : mask_(hn::FirstN(Tag<T>(), static_cast<std::size_t>(n))) {}

  // The other lanes are 0.
  HWY_INLINE hn::Vec<Tag<T>> Load(const T* p) const {
    return hn::MaskedLoad(mask_, Tag<T>(), p);
  }

  HWY_INLINE void Store(hn::Vec<Tag<T>> v, T* p) const {
    hn::BlendedStore(v, mask_, Tag<T>(), p);
  }

 private:
  hn::Mask<Tag<T>> mask_;
};

#endif  // HWY_MEM_OPS_MIGHT_FAULT

// ---- The micro-kernel.

// Element (i, p) of a is a[i * a_row + p * a_step], row p of b at b + p *
// b_step.
template <typename T>
struct TileArgs {
  std::int64_t k;
  const T* a;
  std::int64_t a_row, a_step;
  const T* b;
  std::int64_t b_step;
  T* c;
  std::int64_t ldc;
  std::int64_t last;  // columns in the last vector
  bool add;           // to what is in c
};

template <typename T, int kTileRows, int kTileVecs>
void Tile(const TileArgs<T>& tile) {
  const TileArgs<T> args = tile;  // c might be the same memory
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  const FirstLanes<T> last(args.last);
  const std::int64_t a_row = args.a_row;
  const T* HWY_RESTRICT a = args.a;
  const T* HWY_RESTRICT b = args.b;
  V sum[kTileRows][kTileVecs];
  HWY_UNROLL(8)
  for (int i = 0; i < kTileRows; ++i) {
    HWY_UNROLL(3)
    for (int j = 0; j < kTileVecs; ++j) sum[i][j] = hn::Zero(d);
  }
  for (std::int64_t p = 0; p < args.k; ++p) {
    V row[kTileVecs];
    HWY_UNROLL(3)
    for (int j = 0; j < kTileVecs; ++j) {
      row[j] = kMaskedLoads && j == kTileVecs - 1
                   ? last.Load(b + j * kLanes<T>)
                   : hn::LoadU(d, b + j * kLanes<T>);
    }
    HWY_UNROLL(8)
    for (int i = 0; i < kTileRows; ++i) {
      const V factor = hn::Set(d, a[i * a_row]);
      HWY_UNROLL(3)
      for (int j = 0; j < kTileVecs; ++j) {
        sum[i][j] = hn::MulAdd(factor, row[j], sum[i][j]);
      }
    }
    a += args.a_step;
    b += args.b_step;
  }
  HWY_UNROLL(8)
  for (int i = 0; i < kTileRows; ++i) {
    HWY_UNROLL(3)
    for (int j = 0; j < kTileVecs; ++j) {
      T* c = args.c + i * args.ldc + j * kLanes<T>;
      if (j < kTileVecs - 1) {
        if (args.add) sum[i][j] = hn::Add(hn::LoadU(d, c), sum[i][j]);
        hn::StoreU(sum[i][j], d, c);
      } else {
        if (args.add) sum[i][j] = hn::Add(last.Load(c), sum[i][j]);
        last.Store(sum[i][j], c);
      }
    }
  }
}

template <typename T>
using TileFunction = void (*)(const TileArgs<T>&);

// The micro-kernels of `vecs` vectors, the first for one row.
template <typename T, int... kRowsBefore>
HWY_INLINE TileFunction<T> TileOf(std::int64_t rows, std::int64_t vecs,
                                  std::integer_sequence<int, kRowsBefore...>) {
  static constexpr TileFunction<T> kTiles[][kVecs] = {
      {Tile<T, kRowsBefore + 1, 1>, Tile<T, kRowsBefore + 1, 2>,
       Tile<T, kRowsBefore + 1, 3>}...};
  return kTiles[rows - 1][vecs - 1];
}

// ---- Transposes.

// A square of kSquare rows and columns.
#if HWY_TARGET == HWY_SCALAR
template <typename T>
constexpr std::int64_t kSquare = 1;

template <typename T>
HWY_INLINE void TransposeSquare(const T* from, std::int64_t, T* to,
                                std::int64_t) {
  *to = *from;
}
#else
template <typename T>
constexpr std::int64_t kSquare = 16 / sizeof(T);

HWY_INLINE void TransposeSquare(const float* from, std::int64_t from_step,
                                float* to, std::int64_t to_step) {
  const hn::FixedTag<float, 4> d;
  const auto a = hn::LoadU(d, from);
  const auto b = hn::LoadU(d, from + from_step);
  const auto c = hn::LoadU(d, from + 2 * from_step);
  const auto e = hn::LoadU(d, from + 3 * from_step);
  const auto ab0 = hn::InterleaveLower(d, a, b);
  const auto ab2 = hn::InterleaveUpper(d, a, b);
  const auto ce0 = hn::InterleaveLower(d, c, e);
  const auto ce2 = hn::InterleaveUpper(d, c, e);
  hn::StoreU(hn::ConcatLowerLower(d, ce0, ab0), d, to);
  hn::StoreU(hn::ConcatUpperUpper(d, ce0, ab0), d, to + to_step);
  hn::StoreU(hn::ConcatLowerLower(d, ce2, ab2), d, to + 2 * to_step);
  hn::StoreU(hn::ConcatUpperUpper(d, ce2, ab2), d, to + 3 * to_step);
}

HWY_INLINE void TransposeSquare(const double* from, std::int64_t from_step,
                                double* to, std::int64_t to_step) {
  const hn::FixedTag<double, 2> d;
  const auto a = hn::LoadU(d, from);
  const auto b = hn::LoadU(d, from + from_step);
  hn::StoreU(hn::InterleaveLower(d, a, b), d, to);
  hn::StoreU(hn::InterleaveUpper(d, a, b), d, to + to_step);
}
#endif

// Copies the transpose of (columns, k) to (k, columns), whose rows are
// `to_step` apart.
template <typename T>
void CopyTransposed(const T* from, std::int64_t from_step, std::int64_t columns,
                    std::int64_t k, T* to, std::int64_t to_step) {
  constexpr std::int64_t kLine = 64 / sizeof(T);
  for (std::int64_t p0 = 0; p0 < k; p0 += kLine) {
    const std::int64_t end = std::min(k, p0 + kLine);
    std::int64_t j = 0;
    for (; j + kSquare<T> <= columns; j += kSquare<T>) {
      std::int64_t p = p0;
      for (; p + kSquare<T> <= end; p += kSquare<T>) {
        TransposeSquare(from + j * from_step + p, from_step,
                        to + p * to_step + j, to_step);
      }
      for (; p < end; ++p) {
        for (std::int64_t i = j; i < j + kSquare<T>; ++i) {
          to[p * to_step + i] = from[i * from_step + p];
        }
      }
    }
    for (; j < columns; ++j) {
      for (std::int64_t p = p0; p < end; ++p) {
        to[p * to_step + j] = from[j * from_step + p];
      }
    }
  }
}

// Copies rows of a, stored as its transpose, to groups of kRows.
template <typename T>
void PackTransposedA(const T* a, std::int64_t lda, std::int64_t k,
                     std::int64_t rows, T* to) {
  for (std::int64_t p = 0; p < k; ++p) {
    for (std::int64_t i = 0; i < rows; i += kRows) {
      const T* from = a + p * lda + i;
      T* group = to + i * k + p * kRows;
      if (rows - i >= kRows) {
        std::memcpy(group, from, kRows * sizeof(T));
      } else {
        std::copy(from, from + (rows - i), group);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif  // the toggled include guard
