#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <unordered_map>
#include <vector>

#include "common/graph/passes/passes.h"
#include "common/ops/primitive/primitives.h"

namespace d2l::ir {
namespace {

constexpr std::int64_t kAlignment = 64;

std::int64_t Rounded(std::int64_t bytes) {
  return (std::max<std::int64_t>(bytes, 1) + kAlignment - 1) / kAlignment *
         kAlignment;
}

// Gives each value the first place that is large enough.
class Arena {
 public:
  std::int64_t Take(std::int64_t bytes) {
    std::int64_t at = bytes_;
    auto gap = gaps_.begin();
    while (gap != gaps_.end() && gap->second < bytes) ++gap;
    if (gap != gaps_.end()) {
      at = gap->first;
      const std::int64_t rest = gap->second - bytes;
      gap = gaps_.erase(gap);
      if (rest > 0) gaps_.emplace_hint(gap, at + bytes, rest);
    } else if (!gaps_.empty() && End(*gaps_.rbegin()) == bytes_) {
      at = gaps_.rbegin()->first;  // the last gap, made longer
      gaps_.erase(at);
    }
    used_[at] = bytes;
    bytes_ = std::max(bytes_, at + bytes);
    return at;
  }
  void Return(std::int64_t at) {
    auto gap = gaps_.emplace(at, used_.extract(at).mapped()).first;
    const auto next = std::next(gap);
    if (next != gaps_.end() && End(*gap) == next->first) {
      gap->second += next->second;
      gaps_.erase(next);
    }
    if (gap == gaps_.begin()) return;
    const auto before = std::prev(gap);
    if (End(*before) != at) return;
    before->second += gap->second;
    gaps_.erase(gap);
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  using Sizes = std::map<std::int64_t, std::int64_t>;  // by place
  static std::int64_t End(const Sizes::value_type& part) {
    return part.first + part.second;
  }

  std::unordered_map<std::int64_t, std::int64_t> used_;  // sizes, by place
  Sizes gaps_;                                           // no two side by side
  std::int64_t bytes_ = 0;
};

// Whether a fused region writes the result only after its last read of the
// argument.
bool WritesAfterReading(const Function& body, ValueId argument,
                        ValueId result) {
  for (auto node = body.nodes.rbegin(); node != body.nodes.rend(); ++node) {
    // One operation may read the argument and write the result, by element.
    if (node->outputs[0] == result) return true;
    if (std::find(node->inputs.begin(), node->inputs.end(), argument) !=
        node->inputs.end()) {
      return false;
    }
  }
  return false;
}

// Whether output number `output` of the node may overwrite the inputs with that
// root: each of these must be all of the memory's elements, in order.
bool MayOverwrite(const Function& function, const Storages& storages,
                  const Node& node, std::size_t output, ValueId root) {
  const Tensor& to = function.type(node.outputs[output]);
  const Tensor& from = function.type(root);
  if (from.numel() != to.numel() ||
      DTypeSize(from.dtype()) != DTypeSize(to.dtype())) {
    return false;
  }
  if (node.kind != NodeKind::kFused && !IsFusable(node, function) &&
      dynamic_cast<const SoftmaxPrimitive*>(node.op.primitive.get()) ==
          nullptr) {
    return false;
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId value = node.inputs[i];
    if (storages.root[value] != root) continue;
    const Tensor& type = function.type(value);
    if (!type.is_contiguous() || type.shape() != to.shape()) return false;
    if (node.kind == NodeKind::kFused &&
        !WritesAfterReading(*node.body, node.body->arguments[i],
                            node.body->returns[output])) {
      return false;
    }
  }
  return true;
}

}  // namespace

MemoryPlan PlanMemory(const Function& function, const Storages& storages,
                      const std::vector<bool>& wanted) {
  MemoryPlan plan;
  plan.offset.assign(function.values.size(), -1);
  Arena arena;
  const std::vector<int> last = LastUses(function, storages);
  const auto place = [&](ValueId value) {
    plan.offset[value] = arena.Take(Rounded(SpanOf(function.type(value))));
  };
  for (const ValueId value : function.arguments) {
    if (wanted[value]) place(value);
  }
  for (std::size_t i = 0; i < function.nodes.size(); ++i) {
    const Node& node = function.nodes[i];
    // The roots that this node uses last, and that still have memory.
    std::vector<ValueId> dying;
    for (const ValueId value : node.inputs) {
      const ValueId root = storages.root[value];
      if (wanted[root] && last[root] == static_cast<int>(i) &&
          std::find(dying.begin(), dying.end(), root) == dying.end()) {
        dying.push_back(root);
      }
    }
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId output = node.outputs[k];
      if (storages.root[output] != output || !wanted[output]) continue;
      const auto overwritten =
          std::find_if(dying.begin(), dying.end(), [&](ValueId root) {
            return MayOverwrite(function, storages, node, k, root);
          });
      if (overwritten == dying.end()) {
        place(output);
        continue;
      }
      plan.offset[output] = plan.offset[*overwritten];
      dying.erase(overwritten);
      ++plan.in_place;
    }
    for (const ValueId root : dying) arena.Return(plan.offset[root]);
    for (const ValueId output : node.outputs) {  // outputs that nothing uses
      if (wanted[output] && storages.root[output] == output &&
          last[output] == static_cast<int>(i)) {
        arena.Return(plan.offset[output]);
      }
    }
    if (node.kind == NodeKind::kInPlace) {
      const ValueId root = storages.root[node.target];
      const bool is_input =
          std::any_of(node.inputs.begin(), node.inputs.end(),
                      [&](ValueId v) { return storages.root[v] == root; });
      if (wanted[root] && last[root] == static_cast<int>(i) && !is_input) {
        arena.Return(plan.offset[root]);
      }
    }
  }
  plan.arena_bytes = arena.bytes();
  return plan;
}

MemoryPlan PlanMemory(const Function& function) {
  const Storages storages(function);
  std::vector<bool> wanted(function.values.size(), false);
  for (const Node& node : function.nodes) {
    if (node.kind == NodeKind::kConstant) continue;
    for (const ValueId value : node.outputs) {
      wanted[value] =
          storages.root[value] == value && !storages.external(value);
    }
  }
  return PlanMemory(function, storages, wanted);
}

std::int64_t PeakBytes(const Graph& graph) {
  std::vector<std::int64_t> of_function;
  for (const Function& function : graph.functions) {
    const Storages storages(function);
    const std::vector<int> last = LastUses(function, storages);
    std::vector<std::int64_t> freed(function.nodes.size() + 1, 0);
    std::int64_t live = 0;
    std::int64_t peak = 0;
    for (std::size_t i = 0; i < function.nodes.size(); ++i) {
      const Node& node = function.nodes[i];
      for (const ValueId value : node.outputs) {
        if (storages.root[value] != value || storages.external(value) ||
            node.kind == NodeKind::kConstant) {
          continue;
        }
        live += BytesOf(function.type(value));
        freed[last[value]] += BytesOf(function.type(value));
      }
      const std::int64_t inside =
          node.kind == NodeKind::kCall ? of_function[node.index] : 0;
      peak = std::max(peak, live + inside);
      live -= freed[i];
    }
    of_function.push_back(peak);
  }
  return of_function.back();
}

}  // namespace d2l::ir
