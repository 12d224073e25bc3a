// Which thread adds which elements in a reduction, and in which order.
//
//   const ReducePlan plan = PlanReduce(outputs, n, /*columns=*/false);
//   const LaneWalk walk(plan.lane_bits, lane, /*runs=*/true, segment_length);
//   for (std::int64_t step = 0; step < walk.full_steps(); ++step) {
//     …  // elements walk.Element(step, 0) to walk.Element(step, 3)
//   }
//   …    // of step full_steps(), only the first walk.rest()
//
// A block has `lanes` threads for each of several outputs. A lane takes four
// elements in a step, each into a sum of its own; the sums of a lane are
// merged, then those of the lanes, as a tree. If there are few outputs, each
// output's elements are cut into segments, one for a block, and a second kernel
// merges the segments' results.
//
// All of this follows from the layout alone, so a result is the same bits on
// every GPU. Pure functions.

#ifndef D2L_COMMON_KERNELS_CUDA_INDEX_REDUCE_PLAN_H_
#define D2L_COMMON_KERNELS_CUDA_INDEX_REDUCE_PLAN_H_

#include <algorithm>
#include <cstdint>

#include "common/kernels/host_device.h"

namespace d2l::kernels::cuda {

// Threads of a block.
inline constexpr int kReduceThreadBits = 8;
inline constexpr int kReduceThreads = 1 << kReduceThreadBits;
// Elements that a lane takes in a step.
inline constexpr int kReduceStep = 4;

struct ReducePlan {
  // Neighbouring threads have neighbouring outputs, not neighbouring elements.
  bool columns;
  int lane_bits;         // an output has 2^lane_bits lanes
  std::int64_t blocks;   // for all outputs
  std::int64_t segment;  // elements
  std::int64_t segments;

  D2L_HOST_DEVICE int Lanes() const { return 1 << lane_bits; }
  // The outputs of a block.
  D2L_HOST_DEVICE int Outputs() const { return kReduceThreads >> lane_bits; }

  D2L_HOST_DEVICE int LaneOf(int thread) const {
    return columns ? thread >> (kReduceThreadBits - lane_bits)
                   : thread & (Lanes() - 1);
  }
  D2L_HOST_DEVICE int OutputOf(int thread) const {
    return columns ? thread & (Outputs() - 1) : thread >> lane_bits;
  }
  // The distance from one lane of an output to the next, in threads.
  D2L_HOST_DEVICE int LaneStride() const { return columns ? Outputs() : 1; }
};

// The elements of one lane, out of `length`.
class LaneWalk {
 public:
  // With `runs`, the four elements of a step lie side by side; otherwise the
  // lanes' elements do.
  D2L_HOST_DEVICE LaneWalk(int lane_bits, int lane, bool runs,
                           std::int64_t length)
      : lane_bits_(lane_bits), lane_(lane), runs_(runs) {
    if (runs) {
      const std::int64_t whole = length / kReduceStep;
      full_steps_ = StepsUpTo(whole);
      // The rest at the end, if it belongs to this lane.
      const std::int64_t turn = whole & ((std::int64_t{1} << lane_bits) - 1);
      rest_ = turn == lane ? static_cast<int>(length % kReduceStep) : 0;
    } else {
      const std::int64_t elements = StepsUpTo(length);
      full_steps_ = elements / kReduceStep;
      rest_ = static_cast<int>(elements % kReduceStep);
    }
  }

  D2L_HOST_DEVICE std::int64_t full_steps() const { return full_steps_; }
  D2L_HOST_DEVICE int rest() const { return rest_; }
  // The number of the j-th element of a step.
  D2L_HOST_DEVICE std::int64_t Element(std::int64_t step, int j) const {
    return runs_ ? ((step << lane_bits_) + lane_) * kReduceStep + j
                 : ((step * kReduceStep + j) << lane_bits_) + lane_;
  }

 private:
  // How many of items 0 to count - 1, dealt out in turn, this lane gets.
  D2L_HOST_DEVICE std::int64_t StepsUpTo(std::int64_t count) const {
    return count > lane_ ? ((count - lane_ - 1) >> lane_bits_) + 1 : 0;
  }

  int lane_bits_;
  int lane_;
  bool runs_;
  std::int64_t full_steps_;
  int rest_;
};

namespace internal {

inline std::int64_t CeilDiv(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0);
}

// The least b with 2^b >= n; at most `most`.
inline int Bits(std::int64_t n, int most) {
  int bits = 0;
  while (bits < most && (std::int64_t{1} << bits) < n) ++bits;
  return bits;
}

}  // namespace internal

// One segment for each output.
inline ReducePlan PlanWhole(std::int64_t outputs, std::int64_t n,
                            bool columns) {
  using internal::Bits;
  using internal::CeilDiv;
  // Many outputs give work to all threads, and fewer lanes have less to merge.
  constexpr std::int64_t kMany = 2048;
  const std::int64_t steps = outputs >= kMany ? 4 : 1;
  int lane_bits = Bits(CeilDiv(n, kReduceStep * steps), kReduceThreadBits);
  if (columns) {
    // A warp of neighbouring outputs, if there are that many.
    constexpr int kWarpBits = 5;
    lane_bits =
        std::min(lane_bits, kReduceThreadBits - Bits(outputs, kWarpBits));
  }
  return {columns, lane_bits, CeilDiv(outputs, kReduceThreads >> lane_bits), n,
          1};
}

// `outputs` is at least 1.
inline ReducePlan PlanReduce(std::int64_t outputs, std::int64_t n,
                             bool columns) {
  using internal::CeilDiv;
  // This many blocks keep the largest GPU busy.
  constexpr std::int64_t kBlocks = 1024;
  // A second kernel is only worth it for this many segments of this many steps.
  constexpr std::int64_t kLeastSegments = 5;
  constexpr std::int64_t kLeastSteps = 4;
  ReducePlan plan = PlanWhole(outputs, n, columns);
  const std::int64_t step = std::int64_t{plan.Lanes()} * kReduceStep;
  const std::int64_t segments =
      std::min(CeilDiv(kBlocks, plan.blocks), CeilDiv(n, step * kLeastSteps));
  if (segments >= kLeastSegments) {
    plan.segment = CeilDiv(CeilDiv(n, segments), step) * step;
    plan.segments = CeilDiv(n, plan.segment);
  }
  return plan;
}

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_INDEX_REDUCE_PLAN_H_
