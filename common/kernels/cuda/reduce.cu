#include <cstddef>
#include <cstdint>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/index/reduce_plan.h"
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

// Elements anywhere. kept: from output to output; reduced: from element to
// element.
template <class OpOf>
struct Strided {
  using Op = OpOf;
  using T = typename Op::T;

  typename Op::Out* out;
  const T* in;
  StridedDims<1> kept;
  StridedDims<1> reduced;
  std::int64_t divisor;  // of a mean
  bool runs;

  __device__ typename Op::State OfLane(std::int64_t output,
                                       const LaneWalk& walk,
                                       std::int64_t begin) const {
    std::int64_t offset[1];
    kept.Offsets(output, offset);
    const T* const from = in + offset[0];
    if (runs)
      return ReduceLane<Op, 4>(walk, begin, Contiguous<T>{from + begin});
    if (reduced.rank <= 1) {
      const std::int64_t stride = reduced.stride[0][0];
      const T* const first = from + begin * stride;
      return ReduceLane<Op, 2>(
          walk, begin, [=](std::int64_t i) { return first[i * stride]; });
    }
    return ReduceLane<Op, 1>(walk, begin, [&](std::int64_t i) {
      std::int64_t place[1];
      reduced.Offsets(begin + i, place);
      return from[place[0]];
    });
  }
  __device__ void Store(std::int64_t output,
                        const typename Op::State& state) const {
    out[output] = Op::Finish(state, divisor);
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
  const int rank = layout.reduced.rank();
  const bool runs =
      !plan.columns &&
      (rank == 0 || (rank == 1 && layout.reduced_strides[0] == 1));
  StartReduce(
      launch, plan, outputs, n, workspace,
      Strided<Op>{static_cast<typename Op::Out*>(args.out),
                  static_cast<const typename Op::T*>(args.in),
                  MakeStridedDims<1>(layout.kept, {&layout.kept_strides}),
                  MakeStridedDims<1>(layout.reduced, {&layout.reduced_strides}),
                  args.op == ReduceOp::kMean ? n : 1, runs});
}

}  // namespace

std::size_t WorkspaceBytes(const ReduceArgs& args) {
  const ReduceLayout layout = LayoutOf(args);
  const std::int64_t outputs = layout.kept.numel();
  if (outputs == 0) return 0;
  // ArgMax's are the largest.
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
