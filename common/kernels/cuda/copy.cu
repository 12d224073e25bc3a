// Kernels that only need the size of elements: fills, copies within a device,
// choices between two operands. Also conversions and sequences.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/index/transposition.h"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/kernels/functors.h"
#include "common/tensor/dtype.h"
#include "common/tensor/scalar.h"

namespace d2l::kernels::cuda {
namespace {

// ---- Fills, sequences and choices.

template <typename Bits>
struct Constant {
  Bits bits;
  __device__ Bits operator()(std::int64_t) const { return bits; }
};

// As on the CPU: computed in double, or in integers that wrap around.
template <typename T>
struct Sequence {
  using Computed =
      std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  Computed start;
  Computed step;

  __device__ T operator()(std::int64_t i) const {
    return static_cast<T>(start + static_cast<Computed>(i) * step);
  }
};

// The bits of a number of type T.
template <typename T>
BitsOf<T> BitsOfNumber(const Scalar& scalar) {
  const T number = scalar.To<T>();
  BitsOf<T> bits;
  std::memcpy(&bits, &number, sizeof(number));
  return bits;
}

template <typename T>
ArrayOrNumber<BitsOf<T>> ArrayOrNumberOf(const Input& input) {
  return {static_cast<const BitsOf<T>*>(input.data),
          input.data == nullptr ? BitsOfNumber<T>(input.scalar) : BitsOf<T>{0}};
}

// ---- Copies of the same type.

constexpr int kTileRows = 8;  // of threads; each takes several rows of a tile

template <typename Bits>
__global__ void __launch_bounds__(kTransposedTile* kTileRows)
    TransposeKernel(Bits* out, const Bits* in, Transposition turn) {
  // One column more than the tile, so that a column's elements differ in banks.
  __shared__ Bits tile[kTransposedTile][kTransposedTile + 1];
  const int x = threadIdx.x;
  const std::int64_t across = turn.TilesAcross();
  const std::int64_t per_matrix = across * turn.TilesDown();
  for (std::int64_t t = blockIdx.x; t < turn.Tiles(); t += gridDim.x) {
    const std::int64_t b = t / per_matrix;
    const std::int64_t row = t % per_matrix / across * kTransposedTile;
    const std::int64_t column = t % across * kTransposedTile;
    const Bits* const from = in + b * turn.in_batch;
    Bits* const to = out + b * turn.out_batch;
#pragma unroll
    for (int y = threadIdx.y; y < kTransposedTile; y += kTileRows) {
      if (row + x < turn.rows && column + y < turn.columns) {
        tile[y][x] = from[row + x + (column + y) * turn.in_column];
      }
    }
    __syncthreads();
#pragma unroll
    for (int y = threadIdx.y; y < kTransposedTile; y += kTileRows) {
      if (row + y < turn.rows && column + x < turn.columns) {
        to[(row + y) * turn.out_row + column + x] = tile[x][y];
      }
    }
    __syncthreads();  // before the next tile is read
  }
}

template <typename Bits>
void Move(const CudaLaunch& launch, const CopyArgs& args) {
  Bits* const out = static_cast<Bits*>(args.out);
  const Bits* const in = static_cast<const Bits*>(args.in);
  StridedLayout layout = *args.layout;
  Transposition turn;
  if (!SortAndCollapse(layout, 1) && FindTransposition(layout, &turn)) {
    const std::int64_t most = launch.multiprocessors * kBlocksPerMultiprocessor;
    const dim3 threads(kTransposedTile, kTileRows);
    StartKernel(TransposeKernel<Bits>,
                static_cast<unsigned>(std::min(turn.Tiles(), most)), threads,
                launch.stream, out, in, turn);
    return;
  }
  Elementwise(launch, IgnoreIndex<Same>(), args.numel, out, args.layout,
              Order::kAny, ArrayOrNumber<Bits>{in, 0});
}

// ---- Copies from type to type.

template <typename Out, typename In>
void Convert(const CudaLaunch& launch, const CopyArgs& args) {
  Elementwise(launch, IgnoreIndex<ConvertTo<Out>>(), args.numel,
              static_cast<Out*>(args.out), args.layout, Order::kAny,
              ArrayOrNumber<In>{static_cast<const In*>(args.in), In{}});
}

}  // namespace

void Launch(const CudaLaunch& launch, const FillArgs& args) {
  VisitDType(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    Elementwise(launch, Constant<BitsOf<T>>{BitsOfNumber<T>(args.value)},
                args.numel, static_cast<BitsOf<T>*>(args.out), args.layout,
                Order::kAny);
  });
}

void Launch(const CudaLaunch& launch, const ArangeArgs& args) {
  VisitDType(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    Sequence<T> sequence;
    if constexpr (std::is_floating_point_v<T>) {
      sequence = {args.start.To<double>(), args.step.To<double>()};
    } else {
      sequence = {static_cast<std::uint64_t>(args.start.To<std::int64_t>()),
                  static_cast<std::uint64_t>(args.step.To<std::int64_t>())};
    }
    Elementwise(launch, sequence, args.numel, static_cast<T*>(args.out),
                nullptr, Order::kOfLayout);
  });
}

void Launch(const CudaLaunch& launch, const CopyArgs& args) {
  if (args.numel == 0) return;
  if (args.out_dtype != args.in_dtype) {
    VisitDType(args.out_dtype, [&](auto out) {
      VisitDType(args.in_dtype, [&](auto in) {
        using Out = decltype(out);
        using In = decltype(in);
        if constexpr (!std::is_same_v<Out, In>) Convert<Out, In>(launch, args);
      });
    });
    return;
  }
  const std::size_t size = DTypeSize(args.out_dtype);
  if (args.layout == nullptr) {
    if (args.out == args.in) return;
    // Default, because either address may be another GPU's, or pinned host
    // memory. cudaGetLastError reports a failure.
    static_cast<void>(cudaMemcpyAsync(
        args.out, args.in, static_cast<std::size_t>(args.numel) * size,
        cudaMemcpyDefault, launch.stream));
    return;
  }
  VisitDType(args.out_dtype,
             [&](auto zero) { Move<BitsOf<decltype(zero)>>(launch, args); });
}

void Launch(const CudaLaunch& launch, const WhereArgs& args) {
  const ArrayOrNumber<std::uint8_t> condition = {
      static_cast<const std::uint8_t*>(args.condition), 0};
  VisitDType(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    Elementwise(launch, IgnoreIndex<Select>(), args.numel,
                static_cast<BitsOf<T>*>(args.out), args.layout, Order::kAny,
                condition, ArrayOrNumberOf<T>(args.a),
                ArrayOrNumberOf<T>(args.b));
  });
}

}  // namespace d2l::kernels::cuda
