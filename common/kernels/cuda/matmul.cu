// Products, by a library or, if they take less time than the library's launch
// (IsSmallProduct), by a kernel of our own, which is correct for any sizes: the
// products of an element of c are added up from the first to the last, each
// with one rounding.

#include <algorithm>
#include <cstdint>

#include "common/kernels/cuda/index/gemm_call.h"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/kernels/math.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {
namespace {

// The part of each operand that a block holds: all of k for a (100, 100)
// product, so that it waits for memory once and not for each slice.
constexpr int kSlice = 128;
// Threads of a block; each computes two elements of c, one under the other.
constexpr int kThreadRows = kSmallTile / 2;

// The blocks that a multiprocessor's registers are to hold. Without this number
// ptxas takes registers for two.
template <typename T>
constexpr int kSmallBlocks = sizeof(T) == 4 ? 6 : 3;

// An operand: element (i, j) is data[i row + j column].
template <typename T>
struct Matrix {
  const T* data;
  std::int64_t row, column;
  std::int64_t batch;  // from one matrix to the next
};

// An element of a tile: l is the index of the summed dimension, i the other
// one.
struct TileIndex {
  int i, l;
};

// What a thread loads of a tile: an element in each of kSmallTile rounds, from
// `first` on, `next` further each time. Neighbouring threads load along the
// side that lies in memory.
struct Rounds {
  TileIndex first, next;

  __device__ Rounds(int thread, bool along_l)
      : first(along_l ? TileIndex{0, thread}
                      : TileIndex{thread % kSmallTile, thread / kSmallTile}),
        next(along_l ? TileIndex{1, 0} : TileIndex{0, kThreadRows}) {
    static_assert(kSmallTile * kThreadRows == kSlice, "a thread for each l");
  }
  __device__ TileIndex At(int round) const {
    return {first.i + round * next.i, first.l + round * next.l};
  }
};

// Loads an element in each round from a tile whose last element is `last`. Each
// address is made of the one before: all of them at a time would take more
// registers than the elements. Outside of a matrix a thread loads its last
// element inside again, without a branch: the elements of c computed from them
// are not stored.
template <typename T>
__device__ void Load(T (&loaded)[kSmallTile], const T* tile,
                     std::int64_t i_stride, std::int64_t l_stride,
                     const Rounds& rounds, TileIndex last) {
  const T* from = tile + min(rounds.first.i, last.i) * i_stride +
                  min(rounds.first.l, last.l) * l_stride;
  const std::int64_t step = rounds.next.i * i_stride + rounds.next.l * l_stride;
  const int inside =
      rounds.next.i > 0 ? last.i : (last.l - rounds.first.l) / kThreadRows;
#pragma unroll
  for (int round = 0; round < kSmallTile; ++round) {
    loaded[round] = *from;
    if (round < inside) from += step;
  }
}

template <typename T>
__global__ void __launch_bounds__(kSmallTile* kThreadRows, kSmallBlocks<T>)
    SmallProductKernel(T* c, std::int64_t ldc, std::int64_t c_batch,
                       Matrix<T> a, Matrix<T> b, std::int64_t m, std::int64_t n,
                       std::int64_t k, std::int64_t tiles) {
  // One more column, so that the elements of a column lie in different banks.
  __shared__ T left[kSmallTile][kSlice + 1];
  __shared__ T right[kSlice][kSmallTile + 1];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const int thread = y * kSmallTile + x;
  const std::int64_t tiles_across = (n + kSmallTile - 1) / kSmallTile;
  const std::int64_t of_matrix =
      (m + kSmallTile - 1) / kSmallTile * tiles_across;
  for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const std::int64_t matrix = t / of_matrix;
    const std::int64_t row = t % of_matrix / tiles_across * kSmallTile;
    const std::int64_t column = t % tiles_across * kSmallTile;
    const T* const a_tile = a.data + matrix * a.batch + row * a.row;
    const T* const b_tile = b.data + matrix * b.batch + column * b.column;
    const int last_row =
        static_cast<int>((m - row < kSmallTile ? m - row : kSmallTile) - 1);
    const int last_column = static_cast<int>(
        (n - column < kSmallTile ? n - column : kSmallTile) - 1);
    T upper = 0;
    T lower = 0;
    for (std::int64_t begin = 0; begin < k; begin += kSlice) {
      const int depth =
          k - begin < kSlice ? static_cast<int>(k - begin) : kSlice;
      const T* const a_slice = a_tile + begin * a.column;
      const T* const b_slice = b_tile + begin * b.row;
      const bool a_along = a.column == 1;
      const bool b_along = b.column != 1;
      if (depth > kSlice / 2) {
        // All loads are under way before the thread waits for the first.
        const Rounds a_rounds(thread, a_along);
        const Rounds b_rounds(thread, b_along);
        T from_a[kSmallTile];
        T from_b[kSmallTile];
        Load(from_a, a_slice, a.row, a.column, a_rounds, {last_row, depth - 1});
        Load(from_b, b_slice, b.column, b.row, b_rounds,
             {last_column, depth - 1});
#pragma unroll
        for (int round = 0; round < kSmallTile; ++round) {
          const TileIndex in_a = a_rounds.At(round);
          const TileIndex in_b = b_rounds.At(round);
          left[in_a.i][in_a.l] = from_a[round];
          right[in_b.l][in_b.i] = from_b[round];
        }
      } else {
#pragma unroll 4
        for (int e = thread; e < kSmallTile * depth; e += kSlice) {
          const TileIndex across = {e % kSmallTile, e / kSmallTile};
          const TileIndex along = {e / depth, e % depth};
          const TileIndex in_a = a_along ? along : across;
          const TileIndex in_b = b_along ? along : across;
          left[in_a.i][in_a.l] =
              a_slice[min(in_a.i, last_row) * a.row + in_a.l * a.column];
          right[in_b.l][in_b.i] =
              b_slice[in_b.l * b.row + min(in_b.i, last_column) * b.column];
        }
      }
      __syncthreads();
#pragma unroll 8
      for (int l = 0; l < depth; ++l) {
        const T factor = right[l][x];
        upper = math::Fma(left[y][l], factor, upper);
        lower = math::Fma(left[y + kThreadRows][l], factor, lower);
      }
      __syncthreads();  // before the next slice, or tile, is loaded
    }
    if (column + x < n) {
      T* const to = c + matrix * c_batch + row * ldc + column + x;
      if (row + y < m) to[y * ldc] = upper;
      if (row + y + kThreadRows < m) to[(y + kThreadRows) * ldc] = lower;
    }
  }
}

template <typename T>
void Run(const CudaLaunch& launch, const MatMulArgs& args) {
  const auto matrix = [](const void* data, bool transpose, std::int64_t ld,
                         std::int64_t batch) {
    const T* const first = static_cast<const T*>(data);
    return transpose ? Matrix<T>{first, 1, ld, batch}
                     : Matrix<T>{first, ld, 1, batch};
  };
  const std::int64_t tiles = SmallTiles(args);
  constexpr std::int64_t kBlocksOfMultiprocessor = 16;
  const std::int64_t blocks =
      std::min(tiles, launch.multiprocessors * kBlocksOfMultiprocessor);
  StartKernel(SmallProductKernel<T>, static_cast<unsigned>(blocks),
              dim3(kSmallTile, kThreadRows), launch.stream,
              static_cast<T*>(args.c), args.ldc, args.c_stride,
              matrix(args.a, args.transpose_a, args.lda, args.a_stride),
              matrix(args.b, args.transpose_b, args.ldb, args.b_stride), args.m,
              args.n, args.k, tiles);
}

}  // namespace

void Launch(const CudaLaunch& launch, const MatMulArgs& args) {
  if (args.m == 0 || args.n == 0 || args.batch == 0) return;
  const MatMulArgs product = Unbatched(args);
  if (!IsSmallProduct(product)) {
    return LaunchBlasGemm(launch, product.dtype, MakeGemmCall(product));
  }
  VisitFloat(product.dtype,
             [&](auto zero) { Run<decltype(zero)>(launch, product); });
}

}  // namespace d2l::kernels::cuda
