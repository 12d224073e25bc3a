#include <cstddef>
#include <cstdint>

#include "common/device/cuda/launch_geometry.h"
#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/index/gather_plan.h"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/nn/for_each.cuh"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/kernels/kernels.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {
namespace {

// ---- IndexAdd, with one index for a whole row. What goes to the same row is
// a chain, in order: `next` leads from each position to the following one of
// the same index, or to count, and `follows` says which are not a chain's
// first. The search is count^2 / 2 comparisons where no two indices are alike,
// and about count * size of them where many are.

__global__ void __launch_bounds__(kThreads)
    LinkKernel(std::int64_t* next, std::uint8_t* follows,
               const std::int64_t* index, std::int64_t count, std::int64_t size,
               ErrorReporter errors) {
  for (std::int64_t i = ThreadInGrid(); i < count; i += ThreadsOfGrid()) {
    const std::int64_t row = index[i];
    if (row < 0 || row >= size) {
      ReportError(errors, DeviceError::kIndexOutOfRange, i, row, size);
      follows[i] = 1;  // is left out
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
    const IndexMap::Place place = map.At(e);
    const std::int64_t i = place.position;
    if (follows[i] != 0) continue;
    T* const to = out + map.Source(place, index[i]);
    T sum = *to;
    for (std::int64_t p = i; p < count; p = next[p]) {
      sum += source[e + (p - i) * map.inner];
    }
    *to = sum;
  }
}

// ---- With an index for each element: a thread has a column, (o, ·, j), to
// itself.

template <typename T>
__global__ void __launch_bounds__(kThreads)
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

// One column has one index for each row, too; as chains it has more threads.
bool HasChains(const IndexAddArgs& args) {
  return args.op == IndexOp::kSelect || args.outer * args.inner == 1;
}

template <typename T>
void AddChains(const CudaLaunch& launch, const IndexAddArgs& args,
               void* scratch) {
  auto* const next = static_cast<std::int64_t*>(scratch);
  auto* const follows = reinterpret_cast<std::uint8_t*>(next + args.count);
  Launch(launch, FillArgs{DType::kUInt8, args.count, follows, 0, nullptr});
  LaunchGeometry geometry = GeometryFor(args.count, launch.multiprocessors);
  StartKernel(LinkKernel, geometry.blocks, geometry.threads, launch.stream,
              next, follows, args.index, args.count, args.size, launch.errors);
  const IndexMap map = MakeIndexMap(/*gather=*/false, args.outer, args.size,
                                    args.count, args.inner);
  if (map.units == 0) return;
  geometry = GeometryFor(map.units, launch.multiprocessors);
  StartKernel(AddChainsKernel<T>, geometry.blocks, geometry.threads,
              launch.stream, static_cast<T*>(args.out),
              static_cast<const T*>(args.source), args.index, next, follows,
              args.count, map);
}

template <typename T>
void AddColumns(const CudaLaunch& launch, const IndexAddArgs& args) {
  const std::int64_t columns = args.outer * args.inner;
  if (columns == 0) return;
  const LaunchGeometry geometry = GeometryFor(columns, launch.multiprocessors);
  StartKernel(AddColumnsKernel<T>, geometry.blocks, geometry.threads,
              launch.stream, static_cast<T*>(args.out),
              static_cast<const T*>(args.source), args.index, columns,
              args.size, args.count, args.inner, Splitter(args.inner, columns),
              launch.errors);
}

// ---- Axpby.

template <typename T>
struct Scale {
  T alpha;
  __device__ T operator()(std::int64_t, T x) const { return alpha * x; }
};

template <typename T>
struct ScaleAndAdd {
  T alpha, beta;
  __device__ T operator()(std::int64_t, T x, T y) const {
    return alpha * x + beta * y;
  }
};

}  // namespace

std::size_t ScratchBytes(const IndexAddArgs& args) {
  return HasChains(args)
             ? static_cast<std::size_t>(args.count) * (sizeof(std::int64_t) + 1)
             : 0;
}

void Launch(const CudaLaunch& launch, const IndexAddArgs& args, void* scratch) {
  if (args.count == 0) return;
  VisitFloat(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    if (HasChains(args)) {
      AddChains<T>(launch, args, scratch);
    } else {
      AddColumns<T>(launch, args);
    }
  });
}

void Launch(const CudaLaunch& launch, const AxpbyArgs& args) {
  if (args.numel == 0) return;
  VisitFloat(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* const out = static_cast<T*>(args.out);
    const Operand<T> x = {static_cast<const T*>(args.x), T{}};
    const T alpha = static_cast<T>(args.alpha);
    const T beta = static_cast<T>(args.beta);
    if (args.beta == 0) {
      LaunchContiguous(launch, Scale<T>{alpha}, args.numel, out, x);
    } else {
      LaunchContiguous(launch, ScaleAndAdd<T>{alpha, beta}, args.numel, out, x,
                       Operand<T>{out, T{}});
    }
  });
}

}  // namespace d2l::kernels::cuda
