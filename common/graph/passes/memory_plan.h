// PlanMemory: where the values of a program lie in one arena, so that those
// which are not needed at the same time share memory.
//
//   ir::MemoryPlan plan = ir::PlanMemory(graph.main());
//   plan.arena_bytes;  // how large the arena is
//
// Where an operand's memory is not used again and is of the result's size, an
// element-wise operation, a softmax or a fused region writes in place.
//
// A pure function.

#ifndef D2L_COMMON_GRAPH_PASSES_MEMORY_PLAN_H_
#define D2L_COMMON_GRAPH_PASSES_MEMORY_PLAN_H_

#include <cstdint>
#include <vector>

#include "common/graph/ir.h"

namespace d2l::ir {

struct MemoryPlan {
  std::vector<std::int64_t> offset;  // by Storages::root; multiples of 64
  std::int64_t arena_bytes = 0;
  int in_place = 0;  // operations that write to an operand's memory
};

// wanted: by value, whether the memory of that root lies in the arena. An
// argument that does is there from the start.
MemoryPlan PlanMemory(const Function& function, const Storages& storages,
                      const std::vector<bool>& wanted);

// The same of all values that the program makes and that are no constants.
MemoryPlan PlanMemory(const Function& function);

// The most bytes that the values which the program makes need at once, each in
// memory of its own, as the interpreter runs it.
std::int64_t PeakBytes(const Graph& graph);

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_PASSES_MEMORY_PLAN_H_
