#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/index/reduce_plan.h"
#include "common/kernels/cuda/index/strided.h"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/reduce_ops.cuh"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/kernels/layout.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {
namespace {

// What a kernel needs to know of a reduction.
struct Problem {
  ReducePlan plan;
  StridedDims<1> kept;
  StridedDims<1> reduced;
  std::int64_t outputs;
  std::int64_t n;
  bool runs;  // the reduced elements of an output lie side by side
};

// The four elements of a step, from `first` on.
template <typename T>
__device__ void LoadRun(const T* first, T (&x)[kReduceStep]) {
  using Run = Vector<T, kReduceStep>;
  if (reinterpret_cast<std::uintptr_t>(first) % alignof(Run) == 0) {
    const Run run = *reinterpret_cast<const Run*>(first);
#pragma unroll
    for (int j = 0; j < kReduceStep; ++j) x[j] = run.at[j];
  } else {
#pragma unroll
    for (int j = 0; j < kReduceStep; ++j) x[j] = first[j];
  }
}

// Elements that lie side by side.
template <typename T>
struct RunLoader {
  const LaneWalk& walk;
  const T* in;

  __device__ void operator()(std::int64_t step, T (&x)[kReduceStep]) const {
    LoadRun(in + walk.Element(step, 0), x);
  }
  __device__ T operator()(std::int64_t element) const { return in[element]; }
};

// Elements a stride apart.
template <typename T>
struct StrideLoader {
  const LaneWalk& walk;
  const T* in;
  std::int64_t stride;

  __device__ void operator()(std::int64_t step, T (&x)[kReduceStep]) const {
#pragma unroll
    for (int j = 0; j < kReduceStep; ++j) x[j] = (*this)(walk.Element(step, j));
  }
  __device__ T operator()(std::int64_t element) const {
    return in[element * stride];
  }
};

// Elements of several dimensions.
template <typename T>
struct DimsLoader {
  const LaneWalk& walk;
  const T* in;
  const StridedDims<1>& dims;
  std::int64_t begin;

  __device__ void operator()(std::int64_t step, T (&x)[kReduceStep]) const {
#pragma unroll 1  // seldom, and a lot of code
    for (int j = 0; j < kReduceStep; ++j) x[j] = (*this)(walk.Element(step, j));
  }
  __device__ T operator()(std::int64_t element) const {
    std::int64_t offset[1];
    dims.Offsets(begin + element, offset);
    return in[offset[0]];
  }
};

template <class Op>
__device__ typename Op::State ReduceSegment(const Problem& problem,
                                            const typename Op::T* in,
                                            std::int64_t begin,
                                            std::int64_t length, int lane) {
  using T = typename Op::T;
  const LaneWalk walk(problem.plan.lane_bits, lane, problem.runs, length);
  if (problem.runs) {
    return ReduceLane<Op, 4>(walk, begin, RunLoader<T>{walk, in + begin});
  }
  if (problem.reduced.rank <= 1) {
    const std::int64_t stride = problem.reduced.stride[0][0];
    return ReduceLane<Op, 2>(
        walk, begin, StrideLoader<T>{walk, in + begin * stride, stride});
  }
  return ReduceLane<Op, 1>(walk, begin,
                           DimsLoader<T>{walk, in, problem.reduced, begin});
}

// Block (x, y): segment y of outputs from x * plan.Outputs() on. With one
// segment the results go to out, else the states to `states`, segment by
// segment.
template <class Op>
__global__ void __launch_bounds__(kReduceThreads)
    ReduceKernel(typename Op::Out* out, typename Op::State* states,
                 const typename Op::T* in, Problem problem) {
  __shared__ typename Op::State shared[kReduceThreads];
  const ReducePlan& plan = problem.plan;
  const int lane = plan.LaneOf(threadIdx.x);
  const std::int64_t output =
      static_cast<std::int64_t>(blockIdx.x) * plan.Outputs() +
      plan.OutputOf(threadIdx.x);
  const std::int64_t begin = blockIdx.y * plan.segment;
  const std::int64_t left = problem.n - begin;
  typename Op::State state = Op::Nothing();
  if (output < problem.outputs) {
    std::int64_t offset[1];
    problem.kept.Offsets(output, offset);
    state = ReduceSegment<Op>(problem, in + offset[0], begin,
                              left < plan.segment ? left : plan.segment, lane);
  }
  state = MergeLanes<Op>(plan, state, shared);
  if (lane != 0 || output >= problem.outputs) return;
  if (plan.segments == 1) {
    out[output] = Op::Finish(state, problem.n);
  } else {
    states[blockIdx.y * problem.outputs + output] = state;
  }
}

// The states of all segments of each output. n: reduced elements.
template <class Op>
__global__ void __launch_bounds__(kReduceThreads)
    MergeKernel(typename Op::Out* out, const typename Op::State* states,
                ReducePlan plan, std::int64_t outputs, std::int64_t segments,
                std::int64_t n) {
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
  if (lane == 0 && output < outputs) out[output] = Op::Finish(state, n);
}

// ---- On the host.

// Neighbouring outputs lie side by side, and the elements of one do not.
bool HasColumns(const ReduceLayout& layout) {
  const int kept = layout.kept.rank();
  const int reduced = layout.reduced.rank();
  if (kept == 0 || layout.kept_strides[kept - 1] != 1) return false;
  return reduced == 0 || layout.reduced_strides[reduced - 1] != 1;
}

// args.layout, with the reduced dimensions in the order of memory where it does
// not matter.
ReduceLayout LayoutOf(const ReduceArgs& args) {
  ReduceLayout layout = *args.layout;
  if (args.op != ReduceOp::kArgMax) SortReduced(layout);
  return layout;
}

ReducePlan PlanFor(const ReduceLayout& layout) {
  return PlanReduce(layout.kept.numel(), layout.reduced.numel(),
                    HasColumns(layout));
}

template <class Op>
void Run(const CudaLaunch& launch, const ReduceArgs& args, void* scratch) {
  using State = typename Op::State;
  auto* const out = static_cast<typename Op::Out*>(args.out);
  const ReduceLayout layout = LayoutOf(args);
  const int rank = layout.reduced.rank();
  Problem problem;
  problem.outputs = layout.kept.numel();
  if (problem.outputs == 0) return;
  problem.n = layout.reduced.numel();
  problem.plan = PlanFor(layout);
  problem.kept = MakeStridedDims<1>(layout.kept, {&layout.kept_strides});
  problem.reduced =
      MakeStridedDims<1>(layout.reduced, {&layout.reduced_strides});
  problem.runs = !problem.plan.columns &&
                 (rank == 0 || (rank == 1 && layout.reduced_strides[0] == 1));
  const dim3 blocks(static_cast<unsigned>(problem.plan.blocks),
                    static_cast<unsigned>(problem.plan.segments));
  StartKernel(ReduceKernel<Op>, blocks, kReduceThreads, launch.stream, out,
              static_cast<State*>(scratch),
              static_cast<const typename Op::T*>(args.in), problem);
  if (problem.plan.segments == 1) return;
  const ReducePlan merge = PlanWhole(problem.outputs, problem.plan.segments,
                                     /*columns=*/true);
  StartKernel(MergeKernel<Op>, static_cast<unsigned>(merge.blocks),
              kReduceThreads, launch.stream, out,
              static_cast<const State*>(scratch), merge, problem.outputs,
              problem.plan.segments, problem.n);
}

template <typename T>
void RunOf(const CudaLaunch& launch, const ReduceArgs& args, void* scratch) {
  switch (args.op) {
    case ReduceOp::kSum:
      return Run<Sum<T>>(launch, args, scratch);
    case ReduceOp::kMean:
      if constexpr (std::is_floating_point_v<T>) {
        return Run<Mean<T>>(launch, args, scratch);
      }
      ThrowNoLoop(OpName(args.op), args.dtype);
    case ReduceOp::kMax:
      return Run<Max<T>>(launch, args, scratch);
    case ReduceOp::kMin:
      return Run<Min<T>>(launch, args, scratch);
    case ReduceOp::kArgMax:
      return Run<ArgMax<T>>(launch, args, scratch);
  }
}

}  // namespace

std::size_t ScratchBytes(const ReduceArgs& args) {
  const ReduceLayout layout = LayoutOf(args);
  const std::int64_t outputs = layout.kept.numel();
  if (outputs == 0) return 0;
  const ReducePlan plan = PlanFor(layout);
  // ArgMax's are the largest.
  return plan.segments == 1
             ? 0
             : static_cast<std::size_t>(plan.segments * outputs) *
                   sizeof(ArgMax<double>::State);
}

void Launch(const CudaLaunch& launch, const ReduceArgs& args, void* scratch) {
  VisitDType(args.dtype,
             [&](auto zero) { RunOf<decltype(zero)>(launch, args, scratch); });
}

}  // namespace d2l::kernels::cuda
