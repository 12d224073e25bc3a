// Passes: rewrite a program so that it computes the same, bit for bit, with
// less.
//
//   ir::Graph graph = ir::Trace(fn, {x});
//   for (const ir::PassReport& report : ir::Optimize(graph)) {
//     std::cout << report.ToString() << "\n";
//   }
//   // fuse: 1 operations, 36 bytes at the peak, 0.002 ms
//
//   ir::MemoryPlan plan = ir::PlanMemory(graph.main());
//   plan.arena_bytes;  // how large the arena is
//
// Each pass is a function that takes a valid graph and leaves one. What is
// pinned (ir.h) stays as it is, and so do random operations and those that may
// fail late, in their order.
//
// Errors: Inline throws std::invalid_argument for a program of more than
// kMaxNodes operations; folding throws what the operations throw. Pure
// functions otherwise.

#ifndef D2L_COMMON_GRAPH_PASSES_PASSES_H_
#define D2L_COMMON_GRAPH_PASSES_PASSES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/graph/ir.h"

namespace d2l::ir {

// Puts the bodies of functions where they are called; main is left.
void Inline(Graph& graph);

// Computes what depends on constants and creations only, with the operations
// themselves, if the result has at most kMaxFoldedBytes. Never weights, whose
// values may change.
inline constexpr std::int64_t kMaxFoldedBytes = 4096;
void Fold(Graph& graph);

// Puts the operations of fused regions and calls back, for executors and files
// that have none. which: of which regions.
void Unfuse(
    Graph& graph, absl::FunctionRef<bool(const Function& body)> which =
                      [](const Function&) { return true; });

// Uses the result of an operation again instead of computing it twice.
void MergeCommonSubexpressions(Graph& graph);

// Leaves out what nothing uses.
void RemoveDeadCode(Graph& graph);

// x*1, x/1, x-0, x+(-0.0), --x, relu(relu(x)), and views that lead back to
// where they began. Only what is exact for every x: not x+0, which makes 0.0 of
// -0.0, not x*0 and x-x, which are not 0 for infinities and NaN, and no other
// order of additions.
void Simplify(Graph& graph);

// Makes fused regions of chains of element-wise operations.
void Fuse(Graph& graph);

// Where the values of a program lie in one arena, so that those which are not
// needed at the same time share memory. Where an operand's memory is not used
// again and is of the result's size, an element-wise operation, a softmax or a
// fused region writes in place.
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

struct PassReport {
  std::string name;
  int operations = 0;           // after the pass
  std::int64_t peak_bytes = 0;  // that the program's own values need at once
  double seconds = 0;           // that the pass took

  std::string ToString() const;
};

// All of them in their order. The first report is of the program as it came,
// the last of it with its values in one arena (PlanMemory). observe: called
// with the name of each pass and the graph after it, to draw it.
std::vector<PassReport> Optimize(
    Graph& graph,
    const std::function<void(const std::string&, const Graph&)>& observe = {});

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_PASSES_PASSES_H_
