#include "common/kernels/cpu/gemm.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

// Compiles what follows once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/kernels/cpu/gemm.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

// The product is cut into tiles of c that fit the registers: kRows rows of
// kVecs vectors. A tile goes through k and takes, at each step, kVecs vectors
// of b and one number from each of its rows of a. What is around it sees to it
// that these come from a near cache:
//   - k is cut into pieces of kGemmDepth, n into pieces of kBlockBytes. Such a
//     block of b is at home in the second cache, and is first copied so that a
//     tile reads it from one end to the other (a panel per tile);
//   - then each kRows rows of a, which stay in the first cache, meet all the
//     panels. They are read where they are, unless a is stored as its
//     transpose: then their numbers are far apart, and are copied too.
// A small b is read where it is: a copy would cost more than it saves.
//
// Why not a BLAS library: on the machine this was tuned on, with AVX-512, the
// speed of float products of n x n matrices is that of OpenBLAS 0.3.21 times
// 1.0 for n up to 100, 1.13 at 256, 1.03 at 1000 and 0.96 at 2000; with b
// transposed, twice up to 32 and 1.2 at 100; with a transposed, 0.9 from 64 on.
// oneDNN 2.6 reaches 0.9 at 100, 1.1 at 256 and 1.0 from 1000 on, and MKL, in
// PyTorch, 0.85, 1.15 and 1.1. And here the bits are the same whatever the
// number of cores.

#ifndef D2L_COMMON_KERNELS_CPU_GEMM_ONCE_
#define D2L_COMMON_KERNELS_CPU_GEMM_ONCE_
namespace d2l::kernels::cpu {

// In the workspace: a block of b, and behind it rows of a.
inline constexpr std::int64_t kBlockBytes = 2112;  // of a row of the block
inline constexpr std::int64_t kBlockRows = 192;    // of a transposed a
inline constexpr std::int64_t kInPlaceBytes = 48 << 10;  // of b, or of a
inline constexpr std::int64_t kWorkspaceBytes =
    kGemmDepth *
    (kBlockBytes + kBlockRows * static_cast<std::int64_t>(sizeof(double)));

}  // namespace d2l::kernels::cpu
#endif  // D2L_COMMON_KERNELS_CPU_GEMM_ONCE_

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A tile's sums, a row of vectors of b and a number of a fill the registers:
// 32, or 16 before AVX-512.
constexpr int kVecs = 3;
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3
constexpr int kRows = 4;
#else
constexpr int kRows = 8;
#endif

template <typename T>
using Tag = hn::ScalableTag<T>;
template <typename T>
constexpr std::int64_t kLanes = hn::MaxLanes(Tag<T>());
// Columns of a tile.
template <typename T>
constexpr std::int64_t kColumns = kVecs* kLanes<T>;

constexpr std::int64_t CeilDiv(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// The first n lanes of a vector, n from 1 on.
template <typename T>
class First {
 public:
  HWY_INLINE explicit First(std::int64_t n)
#if HWY_MEM_OPS_MIGHT_FAULT
      : n_(n){}
#else
      : mask_(hn::FirstN(Tag<T>(), static_cast<std::size_t>(n))) {
  }
#endif

        // The other lanes are 0.
        HWY_INLINE hn::Vec<Tag<T>> Load(const T* p) const {
#if HWY_MEM_OPS_MIGHT_FAULT
    if (n_ == kLanes<T>) return hn::LoadU(Tag<T>(), p);
    HWY_ALIGN T lanes[kLanes<T>] = {};
    std::copy(p, p + n_, lanes);
    return hn::Load(Tag<T>(), lanes);
#else
    return hn::MaskedLoad(mask_, Tag<T>(), p);
#endif
  }

  HWY_INLINE void Store(hn::Vec<Tag<T>> v, T* p) const {
#if HWY_MEM_OPS_MIGHT_FAULT
    if (n_ == kLanes<T>) {
      hn::StoreU(v, Tag<T>(), p);
    } else {
      HWY_ALIGN T lanes[kLanes<T>];
      hn::Store(v, Tag<T>(), lanes);
      std::copy(lanes, lanes + n_, p);
    }
#else
    hn::BlendedStore(v, mask_, Tag<T>(), p);
#endif
  }

 private:
#if HWY_MEM_OPS_MIGHT_FAULT
  std::int64_t n_;
#else
  hn::Mask<Tag<T>> mask_;
#endif
};

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
  const First<T> last(args.last);
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
#if HWY_MEM_OPS_MIGHT_FAULT
      row[j] = hn::LoadU(d, b + j * kLanes<T>);  // b has been padded
#else
      row[j] = j < kTileVecs - 1 ? hn::LoadU(d, b + j * kLanes<T>)
                                 : last.Load(b + j * kLanes<T>);
#endif
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

// [rows - 1][vectors - 1]
template <typename T>
constexpr TileFunction<T> kTiles[][kVecs] = {
    {Tile<T, 1, 1>, Tile<T, 1, 2>, Tile<T, 1, 3>},
    {Tile<T, 2, 1>, Tile<T, 2, 2>, Tile<T, 2, 3>},
    {Tile<T, 3, 1>, Tile<T, 3, 2>, Tile<T, 3, 3>},
    {Tile<T, 4, 1>, Tile<T, 4, 2>, Tile<T, 4, 3>},
#if !HWY_ARCH_X86 || HWY_TARGET <= HWY_AVX3
    {Tile<T, 5, 1>, Tile<T, 5, 2>, Tile<T, 5, 3>},
    {Tile<T, 6, 1>, Tile<T, 6, 2>, Tile<T, 6, 3>},
    {Tile<T, 7, 1>, Tile<T, 7, 2>, Tile<T, 7, 3>},
    {Tile<T, 8, 1>, Tile<T, 8, 2>, Tile<T, 8, 3>},
#endif
};

// How many vectors the next tile takes of `columns` that are left: as even as
// they can be shared out, because a narrow tile waits for its own sums.
template <typename T>
HWY_INLINE std::int64_t NextVecs(std::int64_t columns) {
  const std::int64_t vecs = CeilDiv(columns, kLanes<T>);
  return vecs <= kVecs ? vecs : CeilDiv(vecs, CeilDiv(vecs, kVecs));
}

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

// Copies (k, columns) to panels, one behind the other, each as wide as a tile
// takes it; the last is filled up to whole vectors, with zeros where the tile
// will read them.
template <typename T>
void PackB(const T* b, std::int64_t ldb, std::int64_t k, std::int64_t columns,
           T* to) {
  const Tag<T> d;
  const First<T> last((columns - 1) % kLanes<T> + 1);
  for (std::int64_t p = 0; p < k; ++p) {
    const T* row = b + p * ldb;
    for (std::int64_t j = 0; j < columns;) {
      const std::int64_t width = NextVecs<T>(columns - j) * kLanes<T>;
      T* panel = to + j * k + p * width;
      const std::int64_t end = j + width;
      for (; j < end; j += kLanes<T>) {
        hn::Store(columns - j >= kLanes<T> ? hn::LoadU(d, row + j)
                                           : last.Load(row + j),
                  d, panel);
        panel += kLanes<T>;
      }
    }
  }
}

// The same of b stored as its transpose.
template <typename T>
void PackTransposedB(const T* b, std::int64_t ldb, std::int64_t k,
                     std::int64_t columns, T* to) {
  for (std::int64_t j = 0; j < columns;) {
    const std::int64_t width = NextVecs<T>(columns - j) * kLanes<T>;
    const std::int64_t filled = std::min(width, columns - j);
    T* panel = to + j * k;
    CopyTransposed(b + j * ldb, ldb, filled, k, panel, width);
#if HWY_MEM_OPS_MIGHT_FAULT
    if (filled < width) {
      for (std::int64_t p = 0; p < k; ++p) {
        std::fill(panel + p * width + filled, panel + (p + 1) * width, T{0});
      }
    }
#endif
    j += width;
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

template <typename T>
HWY_INLINE void GemmOf(const GemmArgs<T>& args, void* workspace) {
  if (args.m == 0) return;  // the loop below is over n
  constexpr std::int64_t kBlockColumns = kBlockBytes /
                                         static_cast<std::int64_t>(sizeof(T)) /
                                         kLanes<T> * kLanes<T>;
  T* const packed_b = static_cast<T*>(workspace);
  T* const packed_a = packed_b + kGemmDepth * kBlockColumns;
  constexpr std::int64_t kInPlace =
      kInPlaceBytes / static_cast<std::int64_t>(sizeof(T));
  const bool pack_b =
      args.transpose_b || (args.m >= 3 * kRows && args.n * args.k > kInPlace);
  const bool pack_a =
      args.transpose_a && args.n > kColumns<T> && args.m * args.k > kInPlace;

  TileArgs<T> tile;
  tile.ldc = args.ldc;
  for (std::int64_t j0 = 0; j0 < args.n; j0 += kBlockColumns) {
    const std::int64_t columns = std::min(kBlockColumns, args.n - j0);
    std::int64_t p0 = 0;
    do {  // once if k is 0: c becomes 0
      const std::int64_t k = std::min(kGemmDepth, args.k - p0);
      tile.k = k;
      tile.add = p0 > 0;
      const T* b = args.transpose_b ? args.b + j0 * args.ldb + p0
                                    : args.b + p0 * args.ldb + j0;
      std::int64_t direct = columns;  // so many of them are read in place
      if (args.transpose_b) {
        PackTransposedB(b, args.ldb, k, columns, packed_b);
        direct = 0;
      } else if (pack_b) {
        PackB(b, args.ldb, k, columns, packed_b);
        direct = 0;
#if HWY_MEM_OPS_MIGHT_FAULT
      } else if (columns % kLanes<T> != 0) {
        // The last tile reads whole vectors.
        direct = 0;
        while (columns - direct > kColumns<T>) {
          direct += NextVecs<T>(columns - direct) * kLanes<T>;
        }
        PackB(b + direct, args.ldb, k, columns - direct, packed_b + direct * k);
#endif
      }
      for (std::int64_t i0 = 0; i0 < args.m; i0 += kBlockRows) {
        const std::int64_t rows = std::min(kBlockRows, args.m - i0);
        const T* a = args.transpose_a ? args.a + p0 * args.lda + i0
                                      : args.a + i0 * args.lda + p0;
        if (pack_a) PackTransposedA(a, args.lda, k, rows, packed_a);
        for (std::int64_t i = 0; i < rows; i += kRows) {
          const std::int64_t tile_rows =
              std::min<std::int64_t>(kRows, rows - i);
          if (pack_a) {
            tile.a = packed_a + i * k;
            tile.a_row = 1;
            tile.a_step = kRows;
          } else {
            tile.a_row = args.transpose_a ? 1 : args.lda;
            tile.a_step = args.transpose_a ? args.lda : 1;
            tile.a = a + i * tile.a_row;
          }
          for (std::int64_t j = 0; j < columns;) {
            const std::int64_t vecs = NextVecs<T>(columns - j);
            const std::int64_t width = vecs * kLanes<T>;
            tile.b = j < direct ? b + j : packed_b + j * k;
            tile.b_step = j < direct ? args.ldb : width;
            tile.c = args.c + (i0 + i) * args.ldc + j0 + j;
            tile.last = std::min(kLanes<T>, columns - j - (width - kLanes<T>));
            kTiles<T>[tile_rows - 1][vecs - 1](tile);
            j += width;
          }
        }
      }
      p0 += kGemmDepth;
    } while (p0 < args.k);
  }
}

void GemmFloats(const GemmArgs<float>& args, void* workspace) {
  GemmOf(args, workspace);
}
void GemmDoubles(const GemmArgs<double>& args, void* workspace) {
  GemmOf(args, workspace);
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {
namespace {

constexpr std::align_val_t kPage{4096};

struct FreeWorkspace {
  void operator()(void* p) const { ::operator delete(p, kPage); }
};

void* Workspace() {
  thread_local std::unique_ptr<void, FreeWorkspace> workspace;
  if (workspace == nullptr) {
    workspace.reset(::operator new(kWorkspaceBytes, kPage));
  }
  return workspace.get();
}

}  // namespace

HWY_EXPORT(GemmFloats);
HWY_EXPORT(GemmDoubles);

template <typename T>
void Gemm(const GemmArgs<T>& args) {
  if (args.m == 1 && args.n > 1 && args.transpose_b) {
    // The transpose of it all, whose left matrix is not: nothing is to be
    // copied, and the sums are the same.
    return Gemm<T>({false, !args.transpose_a, args.n, 1, args.k, args.b,
                    args.ldb, args.a, args.lda, args.c, 1});
  }
  if constexpr (std::is_same_v<T, double>) {
    HWY_DYNAMIC_DISPATCH(GemmDoubles)(args, Workspace());
  } else {
    HWY_DYNAMIC_DISPATCH(GemmFloats)(args, Workspace());
  }
}

template void Gemm(const GemmArgs<float>& args);
template void Gemm(const GemmArgs<double>& args);

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
