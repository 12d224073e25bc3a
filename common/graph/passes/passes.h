// Passes: rewrite a program so that it computes the same results with less
// work: bit for bit, except that a NaN may have another sign and payload.
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
// Each pass is a function that takes a valid graph and leaves a valid one.
// Pinned values (ir.h) stay as they are, and so do random operations and those
// that may fail late, in their order.
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

// Replaces calls by the bodies of the called functions; only main remains.
void Inline(Graph& graph);

// Computes values that depend on constants and creations only, with the
// operations themselves, if the result has at most kMaxFoldedBytes. Does not
// use weights, whose values may change.
inline constexpr std::int64_t kMaxFoldedBytes = 4096;
void Fold(Graph& graph);

// Replaces fused regions and calls by their operations, for executors and files
// that have none. `which` selects the regions.
void Unfuse(
    Graph& graph, absl::FunctionRef<bool(const Function& body)> which =
                      [](const Function&) { return true; });

// Uses the result of an operation again instead of computing it twice.
void MergeCommonSubexpressions(Graph& graph);

// Removes operations whose results nothing uses.
void RemoveDeadCode(Graph& graph);

// Removes x*1, x/1, x-0, x+(-0.0), --x, relu(relu(x)), and views that lead back
// to their origin. Only what is exact for every x: not x+0, which makes 0.0 of
// -0.0, not x*0 and x-x, which are not 0 for infinities and NaN, and no other
// order of additions. Of a NaN a GPU's arithmetic makes 0x7fffffff, and a CPU's
// a quiet NaN; without the operation it stays as it is.
void Simplify(Graph& graph);

// Makes fused regions of chains of element-wise operations.
void Fuse(Graph& graph);

// The places of a program's values in one arena. Values that are not needed at
// the same time share memory. An element-wise operation, a softmax or a fused
// region writes in place if an operand's memory has the result's size and is
// not used again.
struct MemoryPlan {
  std::vector<std::int64_t> offset;  // by Storages::root; multiples of 64
  std::int64_t arena_bytes = 0;
  int in_place = 0;  // operations that write to an operand's memory
};

// `wanted` says for each value whether its root's memory lies in the arena. An
// argument in the arena is there from the start.
MemoryPlan PlanMemory(const Function& function, const Storages& storages,
                      const std::vector<bool>& wanted);

// The plan of all values that the program makes, except constants.
MemoryPlan PlanMemory(const Function& function);

// The most bytes that the values made by the program need at once, each in its
// own memory, as the interpreter runs it.
std::int64_t PeakBytes(const Graph& graph);

struct PassReport {
  std::string name;
  int operations = 0;           // after the pass
  std::int64_t peak_bytes = 0;  // most bytes of the program's own values
  double seconds = 0;           // of the pass

  std::string ToString() const;
};

// Runs all passes in their order. The first report describes the program before
// the passes, the last one the program with its values in one arena
// (PlanMemory). `observe` gets each pass's name and the graph after it, to draw
// it.
std::vector<PassReport> Optimize(
    Graph& graph,
    const std::function<void(const std::string&, const Graph&)>& observe = {});

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_PASSES_PASSES_H_
