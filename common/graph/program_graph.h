// ProgramGraph: the dependencies between a program's operations; Tracer, which
// records them; and ToProgramGraph, which finds them in a function.
//
//   Tracer tracer;
//   {
//     ScopedOpListener listen(&tracer);
//     z = x * y + 2;
//   }
//   const ProgramGraph graph = tracer.Graph();
//   graph.depth();  // 3: inputs, mul, add
//   graph.ops()[0].name;  // "mul"
//   DrawGraph(graph, "z = x * y + 2").text;  // common/drawing
//
// A node is an operation, or a value that comes from outside the program. An
// edge says that one operation must run before another:
//   data               the later reads what the earlier wrote. Through memory
//                      too: a view shares that of its base, and an operation in
//                      place writes to it.
//   write after read   the later overwrites what the earlier reads
//   write after write  the later overwrites what the earlier wrote
// Two nodes have at most one edge, the first of these kinds. An edge that
// follows from others may be missing. Sharing a stream is no edge: it orders
// operations, but is no dependency of the program.
// Operations keep their primitives, with typed attributes; drawing makes the
// labels. Operations may also be made by hand.
//
// An ir::Function is drawn as
//
//   ir::Optimize(graph, [](const std::string& pass, const ir::Graph& g) {
//     std::cout << DrawGraph(ir::ToProgramGraph(g.main()), pass).text;
//   });
//
// Thread-safety: a value; const methods may be called at the same time. A
// Tracer is for one thread.

#ifndef D2L_COMMON_GRAPH_PROGRAM_GRAPH_H_
#define D2L_COMMON_GRAPH_PROGRAM_GRAPH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/source_location.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"

namespace d2l {

namespace ir {
struct Function;
}

struct GraphOp {
  std::string name;
  std::shared_ptr<const Primitive> primitive;  // null if it is none
  std::vector<ValueRecord> inputs;
  // At least one; in place, the target. Then the inputs that it writes.
  std::vector<ValueRecord> outputs;
  bool in_place = false;
  bool view = false;
  SourceLocation line;       // the user's, where a layer made the request
  int stream = -1;           // in streams(); -1 if nothing is launched
  std::uint64_t number = 0;  // in its stream
  // The times of its run, in nanoseconds; 0 without a run or a measurement.
  std::int64_t begin = 0;
  std::int64_t end = 0;

  double seconds() const { return 1e-9 * static_cast<double>(end - begin); }
};

struct GraphNode {
  int op = -1;             // in ops(); -1 for a value from outside
  ValueRecord value = {};  // the value, or the operation's first one
};

enum class EdgeKind { kData, kWriteAfterRead, kWriteAfterWrite };

struct GraphEdge {
  int from = 0;  // in nodes(); less than `to`
  int to = 0;
  EdgeKind kind = EdgeKind::kData;
};

class ProgramGraph {
 public:
  // `ops` are in an order in which they may run; `streams` are names.
  explicit ProgramGraph(std::vector<GraphOp> ops,
                        std::vector<std::string> streams = {});

  const std::vector<GraphOp>& ops() const { return ops_; }
  const std::vector<std::string>& streams() const { return streams_; }
  // A node comes after all nodes that it depends on.
  const std::vector<GraphNode>& nodes() const { return nodes_; }
  const std::vector<GraphEdge>& edges() const { return edges_; }

  // For each node the number of edges on the longest path to it.
  const std::vector<int>& levels() const { return levels_; }
  // The number of levels.
  int depth() const { return depth_; }
  // The most operations on one level, which could run at the same time. (A set
  // of independent operations may span levels and be larger.)
  int width() const { return width_; }

  // The times of operations, as measured on the devices: along the longest
  // chain, and all together. 0 if nothing ran.
  double critical_path_seconds() const { return critical_path_seconds_; }
  double total_seconds() const { return total_seconds_; }
  // The nodes of that chain, in order.
  const std::vector<int>& critical_path() const { return critical_path_; }

 private:
  void Measure();

  std::vector<GraphOp> ops_;
  std::vector<std::string> streams_;
  std::vector<GraphNode> nodes_;
  std::vector<GraphEdge> edges_;
  std::vector<int> levels_;
  std::vector<int> critical_path_;
  int depth_ = 0;
  int width_ = 0;
  double critical_path_seconds_ = 0;
  double total_seconds_ = 0;
};

// Records the operations that a thread requests, as plain data. It keeps no
// tensor alive and measures no times: a profiler that runs at the same time
// does (see TraceProgram in common/lesson/cell/trace_program.h). It listens to
// one thread.
class Tracer : public OpListener {
 public:
  void OnOp(const OpRecord& record) override;

  // In the order of the requests. Callers may fill in times.
  std::vector<GraphOp>& ops() { return ops_; }
  // The names of the streams that operations ran on, in the order of first use.
  const std::vector<std::string>& streams() const { return streams_; }

  ProgramGraph Graph() const { return ProgramGraph(ops_, streams_); }

 private:
  std::vector<GraphOp> ops_;
  std::vector<std::string> streams_;
};

namespace ir {

// A fused region is one node, named after its operations: "fused mul add relu".
ProgramGraph ToProgramGraph(const Function& function);

}  // namespace ir
}  // namespace d2l

#endif  // D2L_COMMON_GRAPH_PROGRAM_GRAPH_H_
