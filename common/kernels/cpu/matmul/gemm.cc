#include "common/kernels/cpu/matmul/gemm.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/vector_targets.h"

// Compiles what follows once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/kernels/cpu/matmul/gemm.cc"
#include "hwy/foreach_target.h"
//
#include "common/kernels/cpu/matmul/gemm_tile-inl.h"
#include "hwy/highway.h"

// The product is computed as in BLIS (Van Zee and van de Geijn, 2015): five
// loops around a micro-kernel, which computes a tile of c in registers.
//
//   loop 5  blocks of c's columns, kBlockBytes wide        Product::Compute
//     loop 4  pieces of k, kGemmDepth deep                 Product::Compute
//       copy the block of b to panels, a panel per tile    Product::PackB
//       loop 3  groups of kBlockRows rows                  Product::AddRows
//         copy the rows of a, if a is stored transposed    PackTransposedA
//         loop 2  strips of kRows rows                     Product::AddRows
//           loop 1  panels of up to kVecs vectors          Product::AddStrip
//             the micro-kernel: add a tile's products      Tile
//
// A packed block of b stays in the second cache, a strip of a in the first. A
// device's cores share a block: first they copy it together, then each takes
// strips. A small b is read where it is, because a copy would cost more than
// it saves; so is an a that is not transposed.
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

inline constexpr std::int64_t kBlockBytes = 2112;  // of a row of b's block
inline constexpr std::int64_t kBlockRows = 192;    // of a transposed a
inline constexpr std::int64_t kInPlaceBytes = 48 << 10;  // of b, or of a
// The number of multiplications that take as long as copying an element of b.
inline constexpr std::int64_t kPackCost = 32;

constexpr std::int64_t CeilDiv(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// The grain (parallel_for.h) of units of `each` multiplications.
constexpr std::int64_t Grain(std::int64_t each) {
  return std::max<std::int64_t>(1, kGemmGrain / each);
}

// The calling thread's memory for a packed block of b and packed rows of a.
struct Packed {
  alignas(4096) std::byte b[kGemmDepth * kBlockBytes];
  alignas(4096) std::byte a[kGemmDepth * kBlockRows * sizeof(double)];

  static Packed& OfThread() {
    thread_local const std::unique_ptr<Packed> workspace(new Packed);
    return *workspace;
  }
};

}  // namespace d2l::kernels::cpu
#endif  // D2L_COMMON_KERNELS_CPU_GEMM_ONCE_

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// How the columns of a block are cut into panels: as evenly as whole vectors
// allow, because a narrow tile waits for its own sums.
template <typename T>
class Panels {
 public:
  HWY_INLINE explicit Panels(std::int64_t columns)
      : columns_(columns),
        vecs_(CeilDiv(columns, kLanes<T>)),
        count_(CeilDiv(vecs_, kVecs)),
        narrow_(count_ == 1 ? vecs_ : vecs_ / count_),
        wide_(vecs_ - count_ * narrow_) {}

  std::int64_t count() const { return count_; }
  // Vectors of panel q; the first ones are a vector wider than the others.
  std::int64_t vecs(std::int64_t q) const { return narrow_ + (q < wide_); }
  std::int64_t width(std::int64_t q) const { return vecs(q) * kLanes<T>; }
  // The first column of panel q.
  std::int64_t begin(std::int64_t q) const {
    return (q * narrow_ + std::min(q, wide_)) * kLanes<T>;
  }
  // Columns in the last vector of panel q.
  std::int64_t last(std::int64_t q) const {
    return q < count_ - 1 ? kLanes<T> : columns_ - (vecs_ - 1) * kLanes<T>;
  }

 private:
  std::int64_t columns_, vecs_, count_, narrow_, wide_;
};

// ---- The loops.

// The part that loops 5 and 4 cut out: columns [j, j + columns) of c, and [p, p
// + depth) of k.
template <typename T>
struct Block {
  std::int64_t j, columns;
  std::int64_t p, depth;
  Panels<T> panels;
  std::int64_t first_packed;  // panels before this one are read in place
};

template <typename T>
class Product {
 public:
  explicit Product(const GemmArgs<T>& args)
      : args_(args),
        packed_b_(reinterpret_cast<T*>(Packed::OfThread().b)),
        pack_b_(args.transpose_b ||
                (args.m >= 3 * kRows && args.n * args.k > kInPlace &&
                 args.ldb > kVecs * kLanes<T>)),  // else b is a panel
        pack_a_(args.transpose_a && args.n > kVecs * kLanes<T> &&
                args.m * args.k > kInPlace) {}

  // Loops 5 and 4.
  HWY_INLINE void Compute() const {
    for (std::int64_t j = 0; j < args_.n; j += kBlockColumns) {
      const std::int64_t columns = std::min(kBlockColumns, args_.n - j);
      Block<T> block = {j, columns, 0, 0, Panels<T>(columns), 0};
      block.first_packed = FirstPacked(block.panels);
      for (; block.p < args_.k; block.p += kGemmDepth) {
        block.depth = std::min(kGemmDepth, args_.k - block.p);
        AddBlock(block);
      }
    }
  }

 private:
  static constexpr std::int64_t kSize = sizeof(T);
  static constexpr std::int64_t kInPlace = kInPlaceBytes / kSize;
  static constexpr std::int64_t kBlockColumns =
      kBlockBytes / kSize / kLanes<T> * kLanes<T>;
  // The fewest rows of b that one thread packs: a cache line of the transpose.
  static constexpr std::int64_t kPackRows = 64 / kSize;

  std::int64_t FirstPacked(const Panels<T>& panels) const {
    if (pack_b_) return 0;
    const bool readable =
        kMaskedLoads || panels.last(panels.count() - 1) == kLanes<T>;
    return panels.count() - (readable ? 0 : 1);
  }

  HWY_INLINE void AddBlock(const Block<T>& block) const {
    const std::int64_t work = args_.m * block.columns * block.depth;
    const bool alone = work < 2 * kGemmGrain;
    if (block.first_packed < block.panels.count()) {
      if (alone) {
        PackB(block, 0, block.depth);
      } else {
        ParallelFor(CeilDiv(block.depth, kPackRows),
                    Grain(kPackRows * block.columns * kPackCost),
                    [this, &block](std::int64_t begin, std::int64_t end) {
                      PackB(block, begin * kPackRows,
                            std::min(end * kPackRows, block.depth));
                    });
      }
    }
    if (alone) return AddRows(block, 0, args_.m);
    ParallelFor(
        CeilDiv(args_.m, kRows), Grain(kRows * block.columns * block.depth),
        [this, &block](std::int64_t begin, std::int64_t end) {
          CallAddRows(block, begin * kRows, std::min(end * kRows, args_.m));
        });
  }

  // Copies rows [begin, end) of the block of b to its panels, which lie one
  // after the other. The last panel is filled up with zeros to whole vectors,
  // which the micro-kernel reads.
  void PackB(const Block<T>& block, std::int64_t begin,
             std::int64_t end) const {
    const Panels<T>& panels = block.panels;
    const T* const b = BlockOfB(block);
    if (args_.transpose_b) {
      for (std::int64_t q = 0; q < panels.count(); ++q) {
        const std::int64_t width = panels.width(q);
        const std::int64_t filled = width - kLanes<T> + panels.last(q);
        T* const panel = packed_b_ + panels.begin(q) * block.depth;
        CopyTransposed(b + panels.begin(q) * args_.ldb + begin, args_.ldb,
                       filled, end - begin, panel + begin * width, width);
        if (kMaskedLoads || filled == width) continue;
        for (std::int64_t p = begin; p < end; ++p) {
          std::fill(panel + p * width + filled, panel + (p + 1) * width, T{0});
        }
      }
      return;
    }
    const Tag<T> d;
    const FirstLanes<T> last(panels.last(panels.count() - 1));
    for (std::int64_t p = begin; p < end; ++p) {
      for (std::int64_t q = block.first_packed; q < panels.count(); ++q) {
        const T* from = b + p * args_.ldb + panels.begin(q);
        T* to = packed_b_ + panels.begin(q) * block.depth + p * panels.width(q);
        for (std::int64_t v = panels.vecs(q); v > 1; --v) {
          hn::Store(hn::LoadU(d, from), d, to);
          from += kLanes<T>;
          to += kLanes<T>;
        }
        hn::Store(q < panels.count() - 1 ? hn::LoadU(d, from) : last.Load(from),
                  d, to);
      }
    }
  }

  // Called by a lambda. The lambda is compiled for any processor, so no
  // function compiled for this kind of vector can be inlined into it.
  HWY_NOINLINE void CallAddRows(const Block<T>& block, std::int64_t begin,
                                std::int64_t end) const {
    AddRows(block, begin, end);
  }

  // Loops 3 and 2, for rows [begin, end) of c.
  HWY_INLINE void AddRows(const Block<T>& block, std::int64_t begin,
                          std::int64_t end) const {
    for (std::int64_t i0 = begin; i0 < end; i0 += kBlockRows) {
      const std::int64_t rows = std::min(kBlockRows, end - i0);
      const T* a = args_.a + (args_.transpose_a ? block.p * args_.lda + i0
                                                : i0 * args_.lda + block.p);
      std::int64_t a_row = args_.transpose_a ? 1 : args_.lda;
      std::int64_t a_step = args_.transpose_a ? args_.lda : 1;
      std::int64_t a_strip = kRows * a_row;
      if (pack_a_) {
        T* const packed = reinterpret_cast<T*>(Packed::OfThread().a);
        PackTransposedA(a, args_.lda, block.depth, rows, packed);
        a = packed;
        a_step = kRows;
        a_strip = kRows * block.depth;
      }
      for (std::int64_t i = 0; i < rows; i += kRows) {
        AddStrip(block, i0 + i, std::min<std::int64_t>(kRows, rows - i), a,
                 a_row, a_step);
        a += a_strip;
      }
    }
  }

  // Loop 1, for rows [i, i + rows) of c.
  HWY_INLINE void AddStrip(const Block<T>& block, std::int64_t i,
                           std::int64_t rows, const T* a, std::int64_t a_row,
                           std::int64_t a_step) const {
    TileArgs<T> tile;
    tile.k = block.depth;
    tile.a = a;
    tile.a_row = a_row;
    tile.a_step = a_step;
    tile.ldc = args_.ldc;
    tile.add = block.p > 0 || args_.accumulate;
    for (std::int64_t q = 0; q < block.panels.count(); ++q) {
      const std::int64_t j = block.panels.begin(q);
      const bool in_place = q < block.first_packed;
      tile.b = in_place ? BlockOfB(block) + j : packed_b_ + j * block.depth;
      tile.b_step = in_place ? args_.ldb : block.panels.width(q);
      tile.c = args_.c + i * args_.ldc + block.j + j;
      tile.last = block.panels.last(q);
      TileOf<T>(rows, block.panels.vecs(q),
                std::make_integer_sequence<int, kRows>())(tile);
    }
  }

  const T* BlockOfB(const Block<T>& block) const {
    return args_.b + (args_.transpose_b ? block.j * args_.ldb + block.p
                                        : block.p * args_.ldb + block.j);
  }

  const GemmArgs<T>& args_;
  T* const packed_b_;
  const bool pack_b_;
  const bool pack_a_;
};

void GemmFloats(const GemmArgs<float>& args) { Product(args).Compute(); }
void GemmDoubles(const GemmArgs<double>& args) { Product(args).Compute(); }

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {
namespace {

HWY_EXPORT(GemmFloats);
HWY_EXPORT(GemmDoubles);

// The cores share the columns of a wide or small c in multiples of this.
constexpr std::int64_t kSlab = 32;
// From so many rows on it costs little that the cores, which pack a block of b
// together, fetch each other's half of it.
constexpr std::int64_t kTall = 512;

void Compute(const GemmArgs<float>& args) {
  HWY_DYNAMIC_DISPATCH(GemmFloats)(args);
}
void Compute(const GemmArgs<double>& args) {
  HWY_DYNAMIC_DISPATCH(GemmDoubles)(args);
}

}  // namespace

template <typename T>
void Gemm(const GemmArgs<T>& args) {
  if (args.m <= 0 || args.n <= 0) return;
  if (args.k <= 0) {
    if (args.accumulate) return;
    for (std::int64_t i = 0; i < args.m; ++i) {
      std::fill_n(args.c + i * args.ldc, args.n, T{0});
    }
    return;
  }
  if (args.m == 1 && args.n > 1 && args.transpose_b) {
    // Computes the transposed product, whose left matrix is not stored
    // transposed: nothing is copied, and the sums are the same.
    return Gemm<T>({false, !args.transpose_a, args.n, 1, args.k, args.b,
                    args.ldb, args.a, args.lda, args.c, 1, args.accumulate});
  }
  // The cores share each block if c is tall, if b need not be packed, or if
  // there are fewer slabs than cores.
  constexpr std::int64_t kInPlace = kInPlaceBytes / std::int64_t{sizeof(T)};
  const bool packs = args.transpose_b || args.n * args.k > kInPlace;
  const bool rows = args.m >= args.n && (args.m >= kTall || !packs ||
                                         args.n < kSlab * ParallelForCores());
  if (rows || args.m * args.n * args.k < 2 * kGemmGrain) return Compute(args);
  ParallelFor(CeilDiv(args.n, kSlab), Grain(kSlab * args.m * args.k),
              [&args](std::int64_t begin, std::int64_t end) {
                GemmArgs<T> slab = args;
                slab.n = std::min(end * kSlab, args.n) - begin * kSlab;
                slab.b += begin * kSlab * (args.transpose_b ? args.ldb : 1);
                slab.c += begin * kSlab;
                Compute(slab);
              });
}

template void Gemm(const GemmArgs<float>& args);
template void Gemm(const GemmArgs<double>& args);

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
