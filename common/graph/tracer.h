// Tracer: records the operations that a thread requests, as plain data.
//
//   Tracer tracer;
//   {
//     ScopedOpListener listen(&tracer);
//     z = x * y + 2;
//   }
//   const ProgramGraph graph = tracer.Graph();
//   graph.ops()[0].primitive->name();  // "mul"
//
// It keeps no tensor alive and takes no times: a profiler that runs meanwhile
// does that (see TraceProgram in common/lesson/trace_program.h).
//
// Thread-safety: none. It listens to one thread.

#ifndef D2L_COMMON_GRAPH_TRACER_H_
#define D2L_COMMON_GRAPH_TRACER_H_

#include <string>
#include <vector>

#include "common/graph/program_graph.h"
#include "common/ops/primitive/record.h"

namespace d2l {

class Tracer : public OpListener {
 public:
  void OnOp(const OpRecord& record) override;

  // In the order of their requests. Times may be filled in.
  std::vector<GraphOp>& ops() { return ops_; }
  // The names of the streams that operations ran on, as they first appeared.
  const std::vector<std::string>& streams() const { return streams_; }

  ProgramGraph Graph() const { return ProgramGraph(ops_, streams_); }

 private:
  std::vector<GraphOp> ops_;
  std::vector<std::string> streams_;
};

}  // namespace d2l

#endif  // D2L_COMMON_GRAPH_TRACER_H_
