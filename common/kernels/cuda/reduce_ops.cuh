// The kernels of reductions. A reduction is a value R of a struct with
//   Op                             of reductions.h
//   OfLane(output, walk, begin)    the state of one lane of a segment: the
//                                  elements of the walk, counted from `begin`
//   Store(output, state)           the result
//   runs                           whether a lane's steps lie side by side
//
//   StartReduce(launch, plan, outputs, n, states, R{…});
//
// For .cu files.

#ifndef D2L_COMMON_KERNELS_CUDA_REDUCE_OPS_CUH_
#define D2L_COMMON_KERNELS_CUDA_REDUCE_OPS_CUH_

#include <cstddef>
#include <cstdint>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/index/reduce_plan.h"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/kernels/reductions.h"

namespace d2l::kernels::cuda {

// The blocks that have to fit on a multiprocessor; two where a state has two
// numbers, which take more registers. Without this number ptxas limits itself
// to 64 registers a thread, or fewer, and spills some.
inline constexpr int kReduceBlocks = 3;

// Steps until parts are merged into the state: there are few roundings to
// float.
inline constexpr int kReduceChain = 16;

// Merges the parts of a step into the state.
template <class Op>
__device__ inline void Flush(typename Op::State& state,
                             typename Op::Part (&part)[kReduceStep]) {
  Op::Merge(part[0], part[1]);
  Op::Merge(part[2], part[3]);
  Op::Merge(part[0], part[2]);
  Op::Merge(state, static_cast<typename Op::State>(part[0]));
}

// The elements of a step, which lie side by side: one load, if it is aligned.
template <typename T>
__device__ inline void LoadStep(const T* first, T (&x)[kReduceStep]) {
  using StepVector = Vector<T, kReduceStep>;
  if (reinterpret_cast<std::uintptr_t>(first) % alignof(StepVector) == 0) {
    const StepVector step = *reinterpret_cast<const StepVector*>(first);
#pragma unroll
    for (int j = 0; j < kReduceStep; ++j) x[j] = step.at[j];
  } else {
#pragma unroll
    for (int j = 0; j < kReduceStep; ++j) x[j] = first[j];
  }
}

// For ReduceLane: element(i) is element i. The walk has no runs.
template <typename Element>
struct OneByOne {
  static constexpr bool has_rest = true;
  Element element;

  __device__ auto operator()(std::int64_t i) { return element(i); }
  template <typename T>
  __device__ void Step(const LaneWalk& walk, std::int64_t step,
                       T (&x)[kReduceStep]) {
#pragma unroll
    for (int j = 0; j < kReduceStep; ++j) x[j] = element(walk.Element(step, j));
  }
};
template <typename Element>
OneByOne(Element) -> OneByOne<Element>;

// For ReduceLane: next(x) loads the elements of the next step to x. The walk
// has runs, and no rest.
template <typename Next>
struct WholeSteps {
  static constexpr bool has_rest = false;
  Next next;

  template <typename T>
  __device__ void Step(const LaneWalk&, std::int64_t, T (&x)[kReduceStep]) {
    next(x);
  }
};
template <typename Next>
WholeSteps(Next) -> WholeSteps<Next>;

// For ReduceLane: elements that lie side by side. The walk has runs.
template <typename T>
struct Contiguous {
  static constexpr bool has_rest = true;
  const T* in;

  __device__ T operator()(std::int64_t i) const { return in[i]; }
  __device__ void Step(const LaneWalk& walk, std::int64_t step,
                       T (&x)[kReduceStep]) const {
    LoadStep(in + walk.Element(step, 0), x);
  }
};

// Reduces one segment of one output by one lane; its elements are counted from
// `begin`. load.Step is called for each full step of the walk, then load(i) for
// each element of the rest. The loads of kUnroll steps are under way together.
template <class Op, int kUnroll, typename Load>
__device__ typename Op::State ReduceLane(const LaneWalk& walk,
                                         std::int64_t begin, Load load) {
  using T = typename Op::T;
  using Part = typename Op::Part;
  typename Op::State state = Op::Nothing();
  for (std::int64_t step = 0; step < walk.full_steps();) {
    Part part[kReduceStep] = {Op::NoElement(), Op::NoElement(), Op::NoElement(),
                              Op::NoElement()};
    const std::int64_t left = walk.full_steps() - step;
    const int chain =
        left < kReduceChain ? static_cast<int>(left) : kReduceChain;
#pragma unroll kUnroll
    for (int c = 0; c < chain; ++c, ++step) {
      T x[kReduceStep];
      load.Step(walk, step, x);
#pragma unroll
      for (int j = 0; j < kReduceStep; ++j) {
        Op::Add(part[j], x[j], begin + walk.Element(step, j));
      }
    }
    Flush<Op>(state, part);
  }
  if constexpr (Load::has_rest) {
    // Each element has its own sum, as in a full step.
    Part part[kReduceStep] = {Op::NoElement(), Op::NoElement(), Op::NoElement(),
                              Op::NoElement()};
#pragma unroll
    for (int j = 0; j < kReduceStep - 1; ++j) {
      if (j < walk.rest()) {
        const std::int64_t element = walk.Element(walk.full_steps(), j);
        Op::Add(part[j], load(element), begin + element);
      }
    }
    Flush<Op>(state, part);
  }
  return state;
}

// Merges the lanes' states: lane 0 of an output returns the state of all its
// lanes, which is also at its place in `shared`. Every thread of the block
// calls it; other threads read `shared` after another __syncthreads().
template <class Op>
__device__ typename Op::State MergeLanes(const ReducePlan& plan,
                                         typename Op::State state,
                                         typename Op::State* shared) {
  const int lane = plan.LaneOf(threadIdx.x);
  const int stride = plan.LaneStride();
  shared[threadIdx.x] = state;
  for (int half = plan.Lanes() / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) {
      Op::Merge(state, shared[threadIdx.x + half * stride]);
      shared[threadIdx.x] = state;
    }
  }
  return state;
}

// Block (x, y) reduces segment y of the outputs from x * plan.Outputs() on. A
// single segment stores the results; several store `states`, segment by
// segment.
template <class R>
__global__ void __launch_bounds__(
    kReduceThreads, sizeof(typename R::Op::State) > 8 ? 2 : kReduceBlocks)
    ReduceKernel(R reduction, ReducePlan plan, std::int64_t outputs,
                 std::int64_t n, typename R::Op::State* states) {
  using Op = typename R::Op;
  __shared__ typename Op::State shared[kReduceThreads];
  const int lane = plan.LaneOf(threadIdx.x);
  const std::int64_t output =
      static_cast<std::int64_t>(blockIdx.x) * plan.Outputs() +
      plan.OutputOf(threadIdx.x);
  const std::int64_t begin = blockIdx.y * plan.segment;
  const std::int64_t left = n - begin;
  typename Op::State state = Op::Nothing();
  if (output < outputs) {
    const LaneWalk walk(plan.lane_bits, lane, reduction.runs,
                        left < plan.segment ? left : plan.segment);
    state = reduction.OfLane(output, walk, begin);
  }
  state = MergeLanes<Op>(plan, state, shared);
  if (lane != 0 || output >= outputs) return;
  if (plan.segments == 1) {
    reduction.Store(output, state);
  } else {
    states[blockIdx.y * outputs + output] = state;
  }
}

// Merges the states of all segments of each output.
template <class R>
__global__ void __launch_bounds__(kReduceThreads)
    MergeKernel(R reduction, ReducePlan plan, std::int64_t outputs,
                std::int64_t segments, const typename R::Op::State* states) {
  using Op = typename R::Op;
  __shared__ typename Op::State shared[kReduceThreads];
  const int lane = plan.LaneOf(threadIdx.x);
  const std::int64_t output =
      static_cast<std::int64_t>(blockIdx.x) * plan.Outputs() +
      plan.OutputOf(threadIdx.x);
  typename Op::State state = Op::Nothing();
  if (output < outputs) {
    for (std::int64_t s = lane; s < segments; s += plan.Lanes()) {
      Op::Merge(state, states[s * outputs + output]);
    }
  }
  state = MergeLanes<Op>(plan, state, shared);
  if (lane == 0 && output < outputs) reduction.Store(output, state);
}

// ---- On the host.

// How much memory StartReduce needs for states; 0 for most.
inline std::size_t StateBytes(const ReducePlan& plan, std::int64_t outputs,
                              std::size_t state_size) {
  return plan.segments == 1
             ? 0
             : static_cast<std::size_t>(plan.segments * outputs) * state_size;
}

// n is the number of elements of each output.
template <class R>
void StartReduce(const CudaLaunch& launch, const ReducePlan& plan,
                 std::int64_t outputs, std::int64_t n, void* states,
                 const R& reduction) {
  if (outputs == 0) return;
  auto* const parts = static_cast<typename R::Op::State*>(states);
  const dim3 blocks(static_cast<unsigned>(plan.blocks),
                    static_cast<unsigned>(plan.segments));
  StartKernel(ReduceKernel<R>, blocks, kReduceThreads, launch.stream, reduction,
              plan, outputs, n, parts);
  if (plan.segments == 1) return;
  const ReducePlan merge = PlanWhole(outputs, plan.segments, /*columns=*/true);
  StartKernel(MergeKernel<R>, static_cast<unsigned>(merge.blocks),
              kReduceThreads, launch.stream, reduction, merge, outputs,
              plan.segments, parts);
}

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_REDUCE_OPS_CUH_
