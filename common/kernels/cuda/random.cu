#include <cstdint>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/index/random_blocks.h"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {
namespace {

// A thread makes whole blocks. aligned: a block's elements are stored at once.
template <class Numbers>
__global__ void __launch_bounds__(kThreads)
    RandomKernel(Numbers numbers, typename Numbers::T* out, std::int64_t n,
                 RandomState state, bool aligned) {
  using T = typename Numbers::T;
  constexpr int kElements = Numbers::kElements;
  const std::int64_t blocks = (n + kElements - 1) / kElements;
  for (std::int64_t b = ThreadInGrid(); b < blocks; b += ThreadsOfGrid()) {
    Vector<T, kElements> made;
    numbers(Philox(state.seed, state.offset + static_cast<std::uint64_t>(b)),
            made.at);
    const std::int64_t first = b * kElements;
    if (aligned && first + kElements <= n) {
      *reinterpret_cast<Vector<T, kElements>*>(out + first) = made;
      continue;
    }
#pragma unroll
    for (int j = 0; j < kElements; ++j) {
      if (first + j < n) out[first + j] = made.at[j];
    }
  }
}

template <class Numbers>
void Make(const CudaLaunch& launch, const RandomArgs& args, Numbers numbers) {
  using T = typename Numbers::T;
  if (args.numel == 0) return;
  const bool aligned = reinterpret_cast<std::uintptr_t>(args.out) %
                           alignof(Vector<T, Numbers::kElements>) ==
                       0;
  const LaunchGeometry geometry =
      GeometryFor(args.numel, launch.multiprocessors, Numbers::kElements);
  StartKernel(RandomKernel<Numbers>, geometry.blocks, geometry.threads,
              launch.stream, numbers, static_cast<T*>(args.out), args.numel,
              args.state, aligned);
}

template <template <typename> class Numbers>
void MakeReal(const CudaLaunch& launch, const RandomArgs& args) {
  if (args.dtype == DType::kFloat64) {
    Make(launch, args, Numbers<double>());
  } else {
    Make(launch, args, Numbers<float>());
  }
}

}  // namespace

void Launch(const CudaLaunch& launch, const RandomArgs& args) {
  switch (args.op) {
    case RandomOp::kUniform:
      return MakeReal<UniformNumbers>(launch, args);
    case RandomOp::kNormal:
      return MakeReal<NormalNumbers>(launch, args);
    case RandomOp::kInteger:
      break;
  }
  VisitDType(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    if (args.range > std::uint64_t{1} << 32) {
      Make(launch, args, IntegerNumbers<T, true>{args.low, args.range});
    } else {
      Make(launch, args, IntegerNumbers<T, false>{args.low, args.range});
    }
  });
}

}  // namespace d2l::kernels::cuda
