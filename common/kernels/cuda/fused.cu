// Several element-wise operations as one kernel, which interprets their
// program: values between two operations stay in shared memory.
//
// A step is decoded once for a thread's four elements, and is the same for all
// threads, so it costs a few jumps; and running a program needs no compiler.

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/kernels/functors.h"
#include "common/kernels/op_tables.h"

namespace d2l::kernels::cuda {
namespace {

constexpr int kElements = 4;
using Quad = Vector<float, kElements>;
using Ref = FusedArgs::Ref;
using Step = FusedArgs::Step;

// The indices of a thread's elements, of which the first `count` exist. The
// first is loaded again for each of the others, to avoid branches between
// loads.
struct ElementIndices {
  std::uint32_t index[kElements];
  int count;
};

__device__ Quad Same4(float x) {
  Quad quad;
#pragma unroll
  for (int j = 0; j < kElements; ++j) quad.at[j] = x;
  return quad;
}

template <typename T>
__device__ Quad Gather(const void* data,
                       const std::uint32_t (&index)[kElements]) {
  Quad quad;
#pragma unroll
  for (int j = 0; j < kElements; ++j) {
    quad.at[j] = static_cast<float>(static_cast<const T*>(data)[index[j]]);
  }
  return quad;
}

__device__ Quad LoadRef(const FusedArgs& args, Ref ref,
                        const ElementIndices& elements,
                        const Quad (*slots)[kThreads]) {
  if (ref.kind == Ref::kSlot) return slots[ref.index][threadIdx.x];
  if (ref.kind == Ref::kNumber) return Same4(args.numbers[ref.index]);
  if (ref.kind == Ref::kNone) return Same4(0);
  const FusedArgs::Memory& memory = args.memory[ref.index];
  std::uint32_t index[kElements];
#pragma unroll
  for (int j = 0; j < kElements; ++j) {
    index[j] = ref.kind == Ref::kOne ? 0 : elements.index[j];
    if (ref.kind == Ref::kRow) index[j] %= memory.period;
  }
  return memory.is_uint8 ? Gather<std::uint8_t>(memory.data, index)
                         : Gather<float>(memory.data, index);
}

__device__ void StoreRef(const FusedArgs& args, Ref ref,
                         const ElementIndices& elements,
                         Quad (*slots)[kThreads], const Quad& quad) {
  if (ref.kind == Ref::kSlot) {
    slots[ref.index][threadIdx.x] = quad;
    return;
  }
  const FusedArgs::Memory& memory = args.memory[ref.index];
#pragma unroll
  for (int j = 0; j < kElements; ++j) {
    if (j >= elements.count) return;
    const std::uint32_t i = elements.index[j];
    if (memory.is_uint8) {
      static_cast<std::uint8_t*>(memory.data)[i] =
          static_cast<std::uint8_t>(quad.at[j]);
    } else {
      static_cast<float*>(memory.data)[i] = quad.at[j];
    }
  }
}

template <typename F, typename... In>
__device__ Quad Each(F f, const In&... in) {
  Quad quad;
#pragma unroll
  for (int j = 0; j < kElements; ++j) {
    quad.at[j] = static_cast<float>(f(in.at[j]...));
  }
  return quad;
}

// Applies the row of the table that belongs to op.
template <typename Op, int... kRow, typename... In>
__device__ Quad ByRow(int op, std::integer_sequence<int, kRow...>,
                      const In&... in) {
  Quad quad = {};
  const auto compute = [&](auto row) {
    using F = typename std::tuple_element_t<
        decltype(row)::value,
        std::remove_const_t<decltype(OpTable<Op>::kRows)>>::Functor;
    if constexpr (!std::is_same_v<F, Power>) quad = Each(F(), in...);
    return true;
  };
  static_cast<void>(
      ((op == kRow && compute(std::integral_constant<int, kRow>())) || ...));
  return quad;
}

template <typename Op, typename... In>
__device__ Quad ByOp(int op, const In&... in) {
  return ByRow<Op>(
      op, std::make_integer_sequence<int, static_cast<int>(Op::kCount)>(),
      in...);
}

__device__ Quad Compute(const Step& step, const Quad& a, const Quad& b,
                        const Quad& c) {
  switch (step.kind) {
    case Step::kUnary:
      return ByOp<UnaryOp>(step.op, a);
    case Step::kBinary:
      return ByOp<BinaryOp>(step.op, a, b);
    case Step::kWhere:
      return Each([](float condition, float x,
                     float y) { return condition != 0 ? x : y; },
                  a, b, c);
    case Step::kToUInt8:
      return Each(ConvertTo<std::uint8_t>(), a);
    case Step::kCopy:
      break;
  }
  return a;
}

__global__ void __launch_bounds__(kThreads) FusedKernel(FusedArgs args) {
  // A thread uses its own column, so no thread waits for another.
  __shared__ Quad slots[FusedArgs::kMaxSlots][kThreads];
  const auto numel = static_cast<std::uint32_t>(args.numel);
  const std::uint32_t tile = kElements * blockDim.x;
  for (std::uint32_t begin = blockIdx.x * tile; begin < numel;
       begin += gridDim.x * tile) {
    ElementIndices elements = {};
#pragma unroll
    for (int j = 0; j < kElements; ++j) {
      const std::uint32_t index = begin + j * blockDim.x + threadIdx.x;
      elements.count += index < numel ? 1 : 0;
      elements.index[j] = index < numel ? index : elements.index[0];
    }
    if (elements.count == 0) return;
    for (int s = 0; s < args.steps; ++s) {
      const Step& step = args.step[s];
      StoreRef(args, step.out, elements, slots,
               Compute(step, LoadRef(args, step.in[0], elements, slots),
                       LoadRef(args, step.in[1], elements, slots),
                       LoadRef(args, step.in[2], elements, slots)));
    }
  }
}

}  // namespace

void Launch(const CudaLaunch& launch, const FusedArgs& args) {
  if (args.numel == 0) return;
  StartGrid(launch, args.numel, kElements, FusedKernel, args);
}

}  // namespace d2l::kernels::cuda
