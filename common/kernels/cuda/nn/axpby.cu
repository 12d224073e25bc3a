#include <cstdint>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/launch.h"

namespace d2l::kernels::cuda {
namespace {

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

// ---- Several arrays.

// Its blocks are those from the end of the part before up to `end`.
template <typename T>
struct Part {
  T* out;
  const T* x;
  std::int64_t head;
  std::int64_t vectors;
  std::int32_t tail;
  std::uint32_t end;
};

// The most parts of one launch, which fit the 4 KB of a kernel's parameters.
constexpr int kPartsAtOnce = 96;
template <typename T>
struct Parts {
  ScaleAndAdd<T> f;
  int count;
  Part<T> part[kPartsAtOnce];
};
static_assert(sizeof(Parts<double>) <= 4096, "");
static_assert(kPartsAtOnce <= 128, "the search begins with steps of 64");

template <typename T>
__global__ void __launch_bounds__(kThreads) AxpbyListKernel(Parts<T> parts) {
  // A binary search, the same in all threads, for the first end behind the
  // block.
  int k = 0;
  for (int step = 64; step > 0; step /= 2) {
    if (k + step < parts.count && parts.part[k + step - 1].end <= blockIdx.x) {
      k += step;
    }
  }
  const std::uint32_t begin = k == 0 ? 0 : parts.part[k - 1].end;
  const Part<T>& part = parts.part[k];
  constexpr int kSize = kVectorSize<T>;
  ComputeContiguous<kSize>(
      std::int64_t{blockIdx.x - begin} * blockDim.x + threadIdx.x,
      std::int64_t{part.end - begin} * blockDim.x, parts.f, part.out,
      VectorSplit{part.head, part.vectors, part.tail, kSize},
      ArrayOrNumber<T>{part.x, T{}}, ArrayOrNumber<T>{part.out, T{}});
}

template <typename T>
void LaunchList(const CudaLaunch& launch, const AxpbyListArgs& args) {
  constexpr int kSize = kVectorSize<T>;
  Parts<T> parts = {};
  parts.f = {static_cast<T>(args.alpha), static_cast<T>(args.beta)};
  std::uint32_t blocks = 0;
  const auto flush = [&] {
    if (parts.count == 0) return;
    StartKernel(AxpbyListKernel<T>, blocks, kThreads, launch.stream, parts);
    parts.count = 0;
    blocks = 0;
  };
  for (const AxpbyPart& part : args.parts) {
    if (part.numel == 0) continue;
    Alignment alignment(kSize);
    alignment.Add(part.out, sizeof(T));
    alignment.Add(part.x, sizeof(T));
    const VectorSplit split = SplitVectors(part.numel, alignment);
    const bool vectors = split.vectors > 0;
    blocks +=
        GeometryFor(vectors ? split.vectors : part.numel,
                    launch.multiprocessors, vectors ? kVectorsAtOnce<kSize> : 1)
            .blocks;
    parts.part[parts.count++] = {static_cast<T*>(part.out),
                                 static_cast<const T*>(part.x),
                                 split.head,
                                 split.vectors,
                                 static_cast<std::int32_t>(split.tail),
                                 blocks};
    if (parts.count == kPartsAtOnce) flush();
  }
  flush();
}

}  // namespace

void Launch(const CudaLaunch& launch, const AxpbyListArgs& args) {
  if (args.beta == 0) {  // then out is not read
    for (const AxpbyPart& part : args.parts) {
      Launch(launch, AxpbyArgs{args.dtype, part.numel, args.alpha, args.beta,
                               part.out, part.x});
    }
    return;
  }
  VisitFloat(args.dtype,
             [&](auto zero) { LaunchList<decltype(zero)>(launch, args); });
}

void Launch(const CudaLaunch& launch, const AxpbyArgs& args) {
  if (args.numel == 0) return;
  VisitFloat(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* const out = static_cast<T*>(args.out);
    const ArrayOrNumber<T> x = {static_cast<const T*>(args.x), T{}};
    const T alpha = static_cast<T>(args.alpha);
    const T beta = static_cast<T>(args.beta);
    if (args.beta == 0) {
      LaunchContiguous(launch, Scale<T>{alpha}, args.numel, out, x);
    } else {
      LaunchContiguous(launch, ScaleAndAdd<T>{alpha, beta}, args.numel, out, x,
                       ArrayOrNumber<T>{out, T{}});
    }
  });
}

}  // namespace d2l::kernels::cuda
