#include "common/graph/passes/passes.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/timer.h"
#include "common/graph/passes/memory_plan.h"

namespace d2l::ir {

std::string PassReport::ToString() const {
  return absl::StrFormat("%s: %d operations, %d bytes at the peak, %.3f ms",
                         name, operations, peak_bytes, 1e3 * seconds);
}

std::vector<PassReport> Optimize(
    Graph& graph,
    const std::function<void(const std::string&, const Graph&)>& observe) {
  struct Pass {
    const char* name;
    void (*run)(Graph&);
  };
  // Folding and simplifying leave code that is dead; what is dead would keep
  // groups from being fused.
  static constexpr Pass kPasses[] = {
      {"as it came", [](Graph&) {}},
      {"inline", Inline},
      {"fold", Fold},
      {"simplify", Simplify},
      {"common subexpressions", MergeCommonSubexpressions},
      {"dead code", RemoveDeadCode},
      {"fuse", Fuse},
  };
  std::vector<PassReport> reports;
  for (const Pass& pass : kPasses) {
    const Timer timer;
    pass.run(graph);
    const double seconds = timer.Seconds();
    reports.push_back(
        {pass.name, CountOperations(graph), PeakBytes(graph), seconds});
    if (observe) observe(pass.name, graph);
  }
  const Timer timer;
  const MemoryPlan plan = PlanMemory(graph.main());
  reports.push_back({"memory plan", reports.back().operations, plan.arena_bytes,
                     timer.Seconds()});
  return reports;
}

}  // namespace d2l::ir
