#include "chapters/auto_parallelism/schedule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/console/language.h"
#include "common/graph/program_graph.h"

namespace d2l {

int EarlyStarts(const ProgramGraph& graph) {
  const std::size_t count = graph.nodes().size();
  std::vector<std::vector<int>> needs(count);
  for (const GraphEdge& edge : graph.edges()) {
    needs[edge.to].push_back(edge.from);
  }
  int early = 0;
  // When a node's value is ready; for a view, when its memory is.
  std::vector<std::int64_t> ready(count, 0);
  for (std::size_t node = 0; node < count; ++node) {
    const int index = graph.nodes()[node].op;
    if (index < 0) continue;
    std::int64_t inputs = 0;
    for (const int need : needs[node]) inputs = std::max(inputs, ready[need]);
    const GraphOp& op = graph.ops()[index];
    const bool launched = op.stream >= 0;
    if (launched && (op.end == 0 || op.begin < inputs)) ++early;
    ready[node] = launched ? op.end : inputs;
  }
  return early;
}

Judgement FollowsTheData(const ProgramGraph& graph) {
  const std::vector<GraphOp>& ops = graph.ops();
  int across = 0;
  for (const GraphEdge& edge : graph.edges()) {
    const int from = graph.nodes()[edge.from].op;
    const int to = graph.nodes()[edge.to].op;
    if (from < 0 || to < 0) continue;
    const int from_stream = ops[from].stream;
    const int to_stream = ops[to].stream;
    across += from_stream >= 0 && to_stream >= 0 && from_stream != to_stream;
  }
  const int early = EarlyStarts(graph);
  Judgement schedule =
      Counted(early == 0,
              Say("%d dependencies, %d of them between streams",
                  graph.edges().size(), across),
              Say("%d of %d", early, ops.size()));
  if (early == 0 && across == 0) {
    schedule.verdict = Verdict::kInconclusive;
    schedule.reason = Say("All ran on one stream, which has only one order.");
  }
  return schedule;
}

}  // namespace d2l
