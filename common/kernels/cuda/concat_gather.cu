#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/index/gather_plan.h"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/kernels/kernels.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {
namespace {

// Calls f(Unit{}) with a type of that many bytes.
template <typename F>
void VisitUnit(int bytes, F f) {
  switch (bytes) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    case 8:
      return f(std::uint64_t{});
    default:
      return f(uint4{});
  }
}

// ---- Cat.

// The most pieces of one launch, which fit the 4 KB of a kernel's parameters.
constexpr int kPartsAtOnce = 48;
struct CatParts {
  CatPart part[kPartsAtOnce];
};
static_assert(sizeof(CatParts) <= 3584, "");

// Blocks (·, y) copy part y. The output overlaps no piece, so loads may
// overtake stores.
template <typename Unit>
__global__ void __launch_bounds__(kThreads)
    CatKernel(Unit* __restrict__ out, std::int64_t out_row, CatParts parts) {
  const CatPart& part = parts.part[blockIdx.y];
  const Unit* __restrict__ const in = static_cast<const Unit*>(part.data);
#pragma unroll 4
  for (std::int64_t e = ThreadInGrid(); e < part.units; e += ThreadsOfGrid()) {
    out[part.Target(e, out_row)] = in[e];
  }
}

template <typename Unit>
void Cat(const CudaLaunch& launch, const CatArgs& args) {
  constexpr std::int64_t kUnit = sizeof(Unit);
  std::int64_t out_row = 0;
  for (const CatPiece& piece : args.pieces) out_row += piece.bytes / kUnit;
  CatParts parts;
  int count = 0;
  std::int64_t most = 0;
  std::int64_t begin = 0;
  const auto flush = [&] {
    if (count == 0) return;
    const LaunchGeometry geometry = GeometryFor(most, launch.multiprocessors);
    StartKernel(CatKernel<Unit>,
                dim3(geometry.blocks, static_cast<unsigned>(count)),
                geometry.threads, launch.stream, static_cast<Unit*>(args.out),
                out_row, parts);
    count = 0;
    most = 0;
  };
  for (const CatPiece& piece : args.pieces) {
    const std::int64_t row = piece.bytes / kUnit;
    const std::int64_t units = args.outer * row;
    if (units == 0) continue;
    parts.part[count++] = {piece.data, units, begin, Splitter(row, units)};
    begin += row;
    most = std::max(most, units);
    if (count == kPartsAtOnce) flush();
  }
  flush();
}

// ---- Index.

// out is null if the kernel only checks the indices.
template <typename Unit>
__global__ void __launch_bounds__(kThreads)
    IndexKernel(Unit* out, const Unit* in, const std::int64_t* index,
                IndexMap map, ErrorReporter errors) {
  for (std::int64_t e = ThreadInGrid(); e < map.units; e += ThreadsOfGrid()) {
    const IndexMap::UnitSource unit = map.At(e);
    const std::int64_t picked = index[unit.position];
    const bool good = picked >= 0 && picked < map.size;
    if (!good) {
      ReportError(errors, DeviceError::kIndexOutOfRange, unit.position, picked,
                  map.size);
    }
    if (out != nullptr) out[e] = good ? in[map.Source(unit, picked)] : Unit{};
  }
}

template <typename Unit>
void Pick(const CudaLaunch& launch, const IndexArgs& args, IndexMap map,
          void* out) {
  if (map.units == 0) return;
  StartGrid(launch, map.units, 1, IndexKernel<Unit>, static_cast<Unit*>(out),
            static_cast<const Unit*>(args.in), args.index, map, launch.errors);
}

// ---- IndexAdd, with one index for a whole row. The positions that are added
// to the same row form a chain, in order: `next` leads from each position to
// the following one of the same index, or to count, and `follows` marks the
// positions that are not the first of their chain. The search takes count^2 / 2
// comparisons if all indices differ, and about count * size if many are equal.

__global__ void __launch_bounds__(kThreads)
    LinkKernel(std::int64_t* next, std::uint8_t* follows,
               const std::int64_t* index, std::int64_t count, std::int64_t size,
               ErrorReporter errors) {
  for (std::int64_t i = ThreadInGrid(); i < count; i += ThreadsOfGrid()) {
    const std::int64_t row = index[i];
    if (row < 0 || row >= size) {
      ReportError(errors, DeviceError::kIndexOutOfRange, i, row, size);
      follows[i] = 1;  // the position belongs to no chain
      continue;
    }
    std::int64_t other = i + 1;
    while (other < count && index[other] != row) ++other;
    next[i] = other;
    if (other < count) follows[other] = 1;
  }
}

// The thread of an element of a chain's first row adds up the chain.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    AddChainsKernel(T* __restrict__ out, const T* __restrict__ source,
                    const std::int64_t* __restrict__ index,
                    const std::int64_t* __restrict__ next,
                    const std::uint8_t* __restrict__ follows,
                    std::int64_t count, IndexMap map) {
  for (std::int64_t e = ThreadInGrid(); e < map.units; e += ThreadsOfGrid()) {
    const IndexMap::UnitSource unit = map.At(e);
    const std::int64_t i = unit.position;
    if (follows[i] != 0) continue;
    T* const to = out + map.Source(unit, index[i]);
    T sum = *to;
    for (std::int64_t p = i; p < count; p = next[p]) {
      sum += source[e + (p - i) * map.inner];
    }
    *to = sum;
  }
}

// ---- With an index for each element: each thread has a column, (o, ·, j), of
// its thread.

// Blocks of a multiprocessor: without this number ptxas spills registers.
constexpr int kColumnBlocks = 4;

template <typename T>
__global__ void __launch_bounds__(kThreads, kColumnBlocks)
    AddColumnsKernel(T* out, const T* __restrict__ source,
                     const std::int64_t* __restrict__ index,
                     std::int64_t columns, std::int64_t size,
                     std::int64_t count, std::int64_t inner, Splitter by_inner,
                     ErrorReporter errors) {
  for (std::int64_t c = ThreadInGrid(); c < columns; c += ThreadsOfGrid()) {
    std::int64_t j;
    const std::int64_t o = by_inner.Split(c, &j);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t position = (o * count + i) * inner + j;
      const std::int64_t row = index[position];
      if (row < 0 || row >= size) {
        ReportError(errors, DeviceError::kIndexOutOfRange, position, row, size);
        continue;
      }
      out[(o * size + row) * inner + j] += source[position];
    }
  }
}

// With inner == 1 a column is a row of memory, in which neighbouring threads
// would read far apart: the block reads pieces of its rows into shared memory,
// neighbours side by side, and each thread adds up its own. A piece is a sector
// of floats.
constexpr int kPiece = 8;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    AddRowsKernel(T* out, const T* __restrict__ source,
                  const std::int64_t* __restrict__ index, std::int64_t rows,
                  std::int64_t size, std::int64_t count, ErrorReporter errors) {
  // The length of a row is odd, so that 32 rows begin in 32 banks.
  __shared__ std::int64_t to[kThreads][kPiece + 1];
  __shared__ T term[kThreads][kPiece + 1];
  const auto thread = static_cast<int>(threadIdx.x);
  const auto threads = static_cast<int>(blockDim.x);
  for (std::int64_t top = ThreadInGrid() - thread; top < rows;
       top += ThreadsOfGrid()) {
    for (std::int64_t left = 0; left < count; left += kPiece) {
#pragma unroll
      for (int k = 0; k < kPiece; ++k) {
        const int t = k * threads + thread;
        const int row = t / kPiece, i = t % kPiece;
        if (top + row >= rows || left + i >= count) continue;
        const std::int64_t position = (top + row) * count + left + i;
        to[row][i] = index[position];
        term[row][i] = source[position];
      }
      __syncthreads();
      const std::int64_t o = top + thread;
      const std::int64_t last =
          o < rows ? min(count - left, std::int64_t{kPiece}) : 0;
      for (int i = 0; i < last; ++i) {
        const std::int64_t row = to[thread][i];
        if (row < 0 || row >= size) {
          ReportError(errors, DeviceError::kIndexOutOfRange,
                      o * count + left + i, row, size);
          continue;
        }
        out[o * size + row] += term[thread][i];
      }
      __syncthreads();  // before the next piece is read
    }
  }
}

// A single column also has one index for each row; chains give it more threads.
bool HasChains(const IndexAddArgs& args) {
  return args.op == IndexOp::kSelect || args.outer * args.inner == 1;
}

template <typename T>
void AddChains(const CudaLaunch& launch, const IndexAddArgs& args,
               void* workspace) {
  auto* const next = static_cast<std::int64_t*>(workspace);
  auto* const follows = reinterpret_cast<std::uint8_t*>(next + args.count);
  Launch(launch, FillArgs{DType::kUInt8, args.count, follows, 0, nullptr});
  StartGrid(launch, args.count, 1, LinkKernel, next, follows, args.index,
            args.count, args.size, launch.errors);
  const IndexMap map = MakeIndexMap(/*gather=*/false, args.outer, args.size,
                                    args.count, args.inner);
  if (map.units == 0) return;
  StartGrid(launch, map.units, 1, AddChainsKernel<T>, static_cast<T*>(args.out),
            static_cast<const T*>(args.source), args.index, next, follows,
            args.count, map);
}

template <typename T>
void AddColumns(const CudaLaunch& launch, const IndexAddArgs& args) {
  const std::int64_t columns = args.outer * args.inner;
  if (columns == 0) return;
  if (args.inner == 1) {
    StartGrid(launch, columns, 1, AddRowsKernel<T>, static_cast<T*>(args.out),
              static_cast<const T*>(args.source), args.index, columns,
              args.size, args.count, launch.errors);
    return;
  }
  StartGrid(launch, columns, 1, AddColumnsKernel<T>, static_cast<T*>(args.out),
            static_cast<const T*>(args.source), args.index, columns, args.size,
            args.count, args.inner, Splitter(args.inner, columns),
            launch.errors);
}

}  // namespace

void Launch(const CudaLaunch& launch, const CatArgs& args) {
  WidestUnit unit;
  unit.Add(args.out);
  for (const CatPiece& piece : args.pieces) {
    if (piece.bytes == 0) continue;
    unit.Add(piece.bytes);
    unit.Add(piece.data);
  }
  VisitUnit(unit.bytes(),
            [&](auto zero) { Cat<decltype(zero)>(launch, args); });
}

void Launch(const CudaLaunch& launch, const IndexArgs& args) {
  const std::int64_t row = args.inner * args.element_size;
  if (args.op == IndexOp::kSelect && args.outer * row == 0) {
    // There is nothing to copy, but a wrong index is still an error.
    Pick<std::uint8_t>(launch, args,
                       MakeIndexMap(false, 1, args.size, args.count, 1),
                       nullptr);
    return;
  }
  WidestUnit unit;
  unit.Add(args.out);
  unit.Add(args.in);
  // Each element that is gathered has an index of its thread.
  const bool gather = args.op == IndexOp::kGather;
  unit.Add(gather ? args.element_size : row);
  const std::int64_t bytes = gather ? args.element_size : unit.bytes();
  const IndexMap map = MakeIndexMap(gather, args.outer, args.size, args.count,
                                    gather ? args.inner : row / bytes);
  VisitUnit(static_cast<int>(bytes), [&](auto zero) {
    Pick<decltype(zero)>(launch, args, map, args.out);
  });
}

std::size_t WorkspaceBytes(const IndexAddArgs& args) {
  return HasChains(args)
             ? static_cast<std::size_t>(args.count) * (sizeof(std::int64_t) + 1)
             : 0;
}

void Launch(const CudaLaunch& launch, const IndexAddArgs& args,
            void* workspace) {
  if (args.count == 0) return;
  VisitFloat(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    if (HasChains(args)) {
      AddChains<T>(launch, args, workspace);
    } else {
      AddColumns<T>(launch, args);
    }
  });
}

}  // namespace d2l::kernels::cuda
