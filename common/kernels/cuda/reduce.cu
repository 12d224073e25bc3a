#include <cstddef>
#include <cstdint>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/index/reduce_plan.h"
#include "common/kernels/cuda/index/row_places.h"
#include "common/kernels/cuda/index/strided.h"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/reduce_ops.cuh"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/kernels/layout.h"
#include "common/kernels/op_tables.h"
#include "common/kernels/reductions.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {
namespace {

// The input of a reduction; the kernels differ by where its elements lie.
template <class OpOf>
struct Reduction {
  using Op = OpOf;
  using T = typename Op::T;

  typename Op::Out* out;
  const T* in;
  StridedDims<1> kept;   // from output to output
  std::int64_t divisor;  // of a mean

  __device__ const T* First(std::int64_t output) const {
    std::int64_t offset[1];
    kept.Offsets(output, offset);
    return in + offset[0];
  }
  __device__ void Store(std::int64_t output,
                        const typename Op::State& state) const {
    out[output] = Op::Finish(state, divisor);
  }
};

// The elements lie side by side.
template <class Op>
struct OfRun : Reduction<Op> {
  static constexpr bool runs = true;

  __device__ typename Op::State OfLane(std::int64_t output,
                                       const LaneWalk& walk,
                                       std::int64_t begin) const {
    return ReduceLane<Op, 4>(
        walk, begin, Contiguous<typename Op::T>{this->First(output) + begin});
  }
};

// The elements have one or two dimensions.
template <class Op>
struct OfRows : Reduction<Op> {
  static constexpr bool runs = false;
  RowPlaces places;

  __device__ typename Op::State OfLane(std::int64_t output,
                                       const LaneWalk& walk,
                                       std::int64_t begin) const {
    const auto* const first = this->First(output);
    RowPlaces::Walk place = places.From(begin + walk.Element(0, 0));
    return ReduceLane<Op, 2>(walk, begin, OneByOne{[&](std::int64_t) {
                               return first[place.Next()];
                             }});
  }
};

// The elements are rows that lie apart, each of whole steps side by side.
template <class Op>
struct OfRuns : Reduction<Op> {
  static constexpr bool runs = true;
  RowPlaces places;  // from step to step

  __device__ typename Op::State OfLane(std::int64_t output,
                                       const LaneWalk& walk,
                                       std::int64_t begin) const {
    const auto* const first = this->First(output);
    RowPlaces::Walk place = places.From(begin + walk.Element(0, 0));
    return ReduceLane<Op, 2>(walk, begin,
                             WholeSteps{[&](typename Op::T(&x)[kReduceStep]) {
                               LoadStep(first + place.Next(), x);
                             }});
  }
};

// The elements have more dimensions.
template <class Op>
struct OfDims : Reduction<Op> {
  static constexpr bool runs = false;
  StridedDims<1> reduced;

  __device__ typename Op::State OfLane(std::int64_t output,
                                       const LaneWalk& walk,
                                       std::int64_t begin) const {
    const auto* const first = this->First(output);
    return ReduceLane<Op, 1>(walk, begin, OneByOne{[&](std::int64_t i) {
                               std::int64_t offset[1];
                               reduced.Offsets(begin + i, offset);
                               return first[offset[0]];
                             }});
  }
};

// ---- On the host.

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
void Start(const CudaLaunch& launch, const ReduceArgs& args, void* workspace) {
  const ReduceLayout layout = LayoutOf(args);
  const std::int64_t outputs = layout.kept.numel();
  if (outputs == 0) return;
  const std::int64_t n = layout.reduced.numel();
  const ReducePlan plan = PlanFor(layout);
  const auto start = [&](const auto& reduction) {
    StartReduce(launch, plan, outputs, n, workspace, reduction);
  };
  const Reduction<Op> common = {
      static_cast<typename Op::Out*>(args.out),
      static_cast<const typename Op::T*>(args.in),
      MakeStridedDims<1>(layout.kept, {&layout.kept_strides}),
      args.op == ReduceOp::kMean ? n : 1};
  const int rank = layout.reduced.rank();
  const Shape& strides = layout.reduced_strides;
  if (!plan.columns && (rank == 0 || (rank == 1 && strides[0] == 1))) {
    start(OfRun<Op>{common});
  } else if (!plan.columns && rank == 2 && strides[1] == 1 &&
             layout.reduced[1] % kReduceStep == 0) {
    start(OfRuns<Op>{common, RowPlaces(layout.reduced[1], n, strides[0], 1,
                                       plan.Lanes() * kReduceStep)});
  } else if (rank <= 2) {
    const std::int64_t row = rank == 2 ? layout.reduced[1] : n;
    start(OfRows<Op>{common, RowPlaces(row, n, strides[0], strides[rank - 1],
                                       plan.Lanes())});
  } else {
    start(OfDims<Op>{
        common, MakeStridedDims<1>(layout.reduced, {&layout.reduced_strides})});
  }
}

}  // namespace

std::size_t WorkspaceBytes(const ReduceArgs& args) {
  const ReduceLayout layout = LayoutOf(args);
  const std::int64_t outputs = layout.kept.numel();
  if (outputs == 0) return 0;
  // ArgMax's states are the largest.
  return StateBytes(PlanFor(layout), outputs, sizeof(ArgMax<double>::State));
}

void Launch(const CudaLaunch& launch, const ReduceArgs& args, void* workspace) {
  if (!OpTakes(args.op, args.dtype)) ThrowNoLoop(OpName(args.op), args.dtype);
  VisitDType(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    switch (args.op) {
      case ReduceOp::kSum:
      case ReduceOp::kMean:
        return Start<Sum<T>>(launch, args, workspace);
      case ReduceOp::kMax:
        return Start<Max<T>>(launch, args, workspace);
      case ReduceOp::kMin:
        return Start<Min<T>>(launch, args, workspace);
      case ReduceOp::kArgMax:
        return Start<ArgMax<T>>(launch, args, workspace);
    }
  });
}

}  // namespace d2l::kernels::cuda
