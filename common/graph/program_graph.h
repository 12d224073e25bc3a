// ProgramGraph: what depends on what in a recorded program.
//
//   ProgramGraph graph(Record([&] { z = x * y + 2; }));
//   graph.depth();                  // 3: inputs, mul, add
//   graph.critical_path_seconds();  // no order of work is faster than this
//   cell.Show(DrawGraph(graph, "z = x * y + 2"));  // common/drawing
//
// A node is an operation, or a value that comes from outside the recording. An
// edge says that one operation cannot run before another is done:
//   data               it reads what the other wrote. Through memory too: a
//                      view shares that of its base, and an operation in
//                      place writes to it.
//   write after read   it overwrites what the other still has to read
//   write after write  it overwrites what the other wrote
// Two nodes have one edge at most, the first of these kinds. An edge that
// follows from others may be missing. That operations share a stream is no
// edge: it orders them, but nothing in the program asks for that.
//
// Thread-safety: a value; const methods may be called at the same time. It
// owns a copy of the recording.

#ifndef D2L_COMMON_GRAPH_PROGRAM_GRAPH_H_
#define D2L_COMMON_GRAPH_PROGRAM_GRAPH_H_

#include <vector>

#include "common/lesson/recorder.h"
#include "common/ops/record.h"

namespace d2l {

struct GraphNode {
  int op = -1;             // in recording().ops; -1 for a value from outside
  ValueRecord value = {};  // what it makes or is
};

enum class EdgeKind { kData, kWriteAfterRead, kWriteAfterWrite };

struct GraphEdge {
  int from = 0;  // in nodes(); less than `to`
  int to = 0;
  EdgeKind kind = EdgeKind::kData;
};

class ProgramGraph {
 public:
  explicit ProgramGraph(Recording recording);

  const Recording& recording() const { return recording_; }
  // A node comes after all that it depends on.
  const std::vector<GraphNode>& nodes() const { return nodes_; }
  const std::vector<GraphEdge>& edges() const { return edges_; }

  // For each node the number of edges on the longest path that leads to it.
  const std::vector<int>& levels() const { return levels_; }
  // How many levels there are.
  int depth() const { return depth_; }
  // The most operations on one level: how many could run side by side. (Not
  // the widest set of independent operations, which may span levels.)
  int width() const { return width_; }

  // The times of operations, as measured on the devices: along the longest
  // chain, and all together. 0 if nothing ran.
  double critical_path_seconds() const { return critical_path_seconds_; }
  double total_seconds() const { return total_seconds_; }
  // The nodes of that chain, in order.
  const std::vector<int>& critical_path() const { return critical_path_; }

 private:
  void Measure();

  Recording recording_;
  std::vector<GraphNode> nodes_;
  std::vector<GraphEdge> edges_;
  std::vector<int> levels_;
  std::vector<int> critical_path_;
  int depth_ = 0;
  int width_ = 0;
  double critical_path_seconds_ = 0;
  double total_seconds_ = 0;
};

}  // namespace d2l

#endif  // D2L_COMMON_GRAPH_PROGRAM_GRAPH_H_
