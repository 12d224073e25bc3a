// CapturedPlan: what a Captured program does in the same way on every stream:
// where each value is, which steps a call launches anew, and its strips.
// Only captured.cc uses it. A value; const methods may be called at the same
// time.

#ifndef D2L_COMMON_GRAPH_CAPTURED_PLAN_H_
#define D2L_COMMON_GRAPH_CAPTURED_PLAN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/graph/ir.h"
#include "common/graph/passes/memory_plan.h"
#include "common/graph/strips.h"
#include "common/kernels/cpu/elementwise_loops.h"

namespace d2l::ir {

// A fused region's C++; without a function it runs as strips.
struct CompiledRegion {
  RegionFn function = nullptr;
  std::vector<kernels::cpu::LoopFn> loops;
};

struct CapturedPlan {
  // Where the memory of a value is.
  enum class Place : std::uint8_t {
    kNowhere,   // it is never used
    kArena,     // also of small arguments and results, which are copied
    kProgram,   // a weight or a constant
    kArgument,  // of the call
    kResult,    // made by the call
  };
  struct Result {
    ValueId root;
    bool copied;
  };

  // program: without calls. compiled: of its fused regions, in their order;
  // empty if none is. max_copied_bytes: up to this size arguments and results
  // are copied; negative if nothing is launched by a call, so that all are,
  // also arguments that are not contiguous.
  CapturedPlan(const Function& program,
               const std::vector<CompiledRegion>& compiled,
               std::int64_t max_copied_bytes);

  // Whether each call has other addresses, or other numbers, for it.
  bool IsLaunched(const Node& node) const;

  const Function function;
  const Storages storages;
  std::vector<Place> places;  // by value
  MemoryPlan memory;
  std::vector<Result> results;
  std::vector<std::shared_ptr<const Strips>> strips;  // by node
};

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_CAPTURED_PLAN_H_
