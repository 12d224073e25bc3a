#include <cstdint>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/kernels/philox.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {
namespace {

// The elements of a block, made by one thread.
template <typename Element, void (*kTransform)(const PhiloxBlock&, Element*)>
struct RealNumbers {
  using T = Element;
  static constexpr int kElements = kElementsPerBlock<T>;

  __device__ void operator()(const PhiloxBlock& block, T* out) const {
    kTransform(block, out);
  }
};

// Word has 64 bits for a range beyond 2^32.
template <typename Element, typename Word>
struct WholeNumbers {
  using T = Element;
  static constexpr int kElements = kElementsPerBlock<Word>;
  std::int64_t low;
  std::uint64_t range;

  __device__ void operator()(const PhiloxBlock& block, T* out) const {
    Word words[kElements];
    Words(block, words);
    for (int i = 0; i < kElements; ++i) {
      out[i] = static_cast<T>(static_cast<std::int64_t>(
          static_cast<std::uint64_t>(low) + Scaled(words[i], range)));
    }
  }
};

// A thread makes whole blocks. If `aligned`, it stores a block at once.
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
  StartGrid(launch, args.numel, Numbers::kElements, RandomKernel<Numbers>,
            numbers, static_cast<T*>(args.out), args.numel, args.state,
            aligned);
}

template <typename T>
void MakeReal(const CudaLaunch& launch, const RandomArgs& args) {
  if (args.op == RandomOp::kUniform) {
    Make(launch, args, RealNumbers<T, Uniforms>());
  } else {
    Make(launch, args, RealNumbers<T, Normals>());
  }
}

}  // namespace

void Launch(const CudaLaunch& launch, const RandomArgs& args) {
  if (args.op != RandomOp::kInteger) {
    return VisitFloat(
        args.dtype, [&](auto zero) { MakeReal<decltype(zero)>(launch, args); });
  }
  VisitDType(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    if (args.range > std::uint64_t{1} << 32) {
      Make(launch, args, WholeNumbers<T, std::uint64_t>{args.low, args.range});
    } else {
      Make(launch, args, WholeNumbers<T, std::uint32_t>{args.low, args.range});
    }
  });
}

}  // namespace d2l::kernels::cuda
