#include "common/graph/program_graph.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/device/stream.h"
#include "common/graph/ir.h"
#include "common/ops/primitive/record.h"

namespace d2l {
namespace {

// Finds nodes and edges by going through the operations in order.
class Builder {
 public:
  void Add(int op_index, const GraphOp& op) {
    std::map<int, EdgeKind> before;
    for (const ValueRecord& input : op.inputs) {
      for (const int node : SourcesOf(input)) {
        before.emplace(node, EdgeKind::kData);
      }
    }
    for (std::size_t i = 0; i < op.outputs.size() && !op.view; ++i) {
      const Memory& target = memory_[op.outputs[i].storage];
      for (const int reader : target.readers) {
        before.emplace(reader, EdgeKind::kWriteAfterRead);
      }
      // Any readers come after the writer already.
      if (target.readers.empty() && target.writer >= 0) {
        before.emplace(target.writer, EdgeKind::kWriteAfterWrite);
      }
    }

    const int node = static_cast<int>(nodes.size());
    nodes.push_back({op_index, op.outputs[0]});
    for (const auto& [from, kind] : before) edges.push_back({from, node, kind});

    if (op.view) {
      // A view reads no element, so no writer has to wait for it.
      views_[op.outputs[0].id] = node;
      return;
    }
    for (const ValueRecord& input : op.inputs) {
      memory_[input.storage].readers.push_back(node);
    }
    // This also forgets the readers, including this node: a later writer comes
    // after this node, which comes after them.
    for (const ValueRecord& output : op.outputs) {
      memory_[output.storage] = {node, {}};
    }
  }

  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;

 private:
  struct Memory {
    int writer = -1;           // the last one
    std::vector<int> readers;  // since then
  };

  // The nodes that must be done before the value can be read.
  std::vector<int> SourcesOf(const ValueRecord& value) {
    const int writer = memory_[value.storage].writer;
    const auto view = views_.find(value.id);
    if (view != views_.end()) {
      // The view was made after all earlier writes.
      if (writer > view->second) return {view->second, writer};
      return {view->second};
    }
    if (writer >= 0) return {writer};
    const auto [outside, is_new] =
        outside_.emplace(value.id, static_cast<int>(nodes.size()));
    if (is_new) nodes.push_back({-1, value});
    return {outside->second};
  }

  std::unordered_map<std::uint64_t, Memory> memory_;  // by storage
  std::unordered_map<std::uint64_t, int> views_;      // by value
  std::unordered_map<std::uint64_t, int> outside_;    // by value
};

}  // namespace

ProgramGraph::ProgramGraph(std::vector<GraphOp> ops,
                           std::vector<std::string> streams)
    : ops_(std::move(ops)), streams_(std::move(streams)) {
  Builder builder;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    builder.Add(static_cast<int>(i), ops_[i]);
  }
  nodes_ = std::move(builder.nodes);
  edges_ = std::move(builder.edges);
  Measure();
}

void ProgramGraph::Measure() {
  const std::size_t count = nodes_.size();
  levels_.assign(count, 0);
  std::vector<double> finish(count, 0);  // of the longest chain to the node
  std::vector<int> previous(count, -1);  // the node before it on that chain
  std::vector<double> start(count, 0);
  // Edges are sorted by their target, and a node comes after its sources.
  std::size_t edge = 0;
  std::vector<int> operations;  // by level
  int last = -1;
  for (std::size_t node = 0; node < count; ++node) {
    for (; edge < edges_.size() && edges_[edge].to == static_cast<int>(node);
         ++edge) {
      const int from = edges_[edge].from;
      levels_[node] = std::max(levels_[node], levels_[from] + 1);
      if (previous[node] < 0 || finish[from] > start[node]) {
        start[node] = finish[from];
        previous[node] = from;
      }
    }
    depth_ = std::max(depth_, levels_[node] + 1);
    operations.resize(depth_, 0);
    double seconds = 0;
    if (nodes_[node].op >= 0) {
      ++operations[levels_[node]];
      seconds = ops_[nodes_[node].op].seconds();
    }
    total_seconds_ += seconds;
    finish[node] = start[node] + seconds;
    if (last < 0 || finish[node] > finish[last]) last = static_cast<int>(node);
  }
  for (const int n : operations) width_ = std::max(width_, n);
  if (last < 0 || finish[last] == 0) return;  // nothing was measured
  critical_path_seconds_ = finish[last];
  for (int node = last; node >= 0; node = previous[node]) {
    critical_path_.push_back(node);
  }
  std::reverse(critical_path_.begin(), critical_path_.end());
}

void Tracer::OnOp(const OpRecord& record) {
  GraphOp op;
  op.name = record.primitive->name();
  op.primitive = record.primitive->Clone();
  for (const Tensor* input : record.inputs) {
    op.inputs.push_back(ToRecord(*input));
  }
  op.outputs.push_back(ToRecord(record.output));
  for (const Tensor* written : record.primitive->WrittenInputs(record.inputs)) {
    op.outputs.push_back(ToRecord(*written));
  }
  op.in_place = record.in_place;
  op.view = record.view;
  op.line =
      record.requested_by.known() ? record.requested_by : record.requested_at;
  op.number = record.number;
  if (record.stream != nullptr) {
    const std::string name = record.stream->name();
    const auto known = std::find(streams_.begin(), streams_.end(), name);
    op.stream = static_cast<int>(known - streams_.begin());
    if (known == streams_.end()) streams_.push_back(name);
  }
  ops_.push_back(std::move(op));
}

namespace ir {
namespace {

std::string NameOf(const Node& node) {
  if (node.kind == NodeKind::kCall) return "call";
  if (node.kind == NodeKind::kConstant) return "constant";
  if (node.kind != NodeKind::kFused) return node.op.primitive->name();
  std::string name = "fused";
  for (const Node& inner : node.body->nodes) {
    absl::StrAppend(&name, " ", inner.op.primitive->name());
  }
  return name;
}

}  // namespace

ProgramGraph ToProgramGraph(const Function& function) {
  const Storages storages(function);
  const auto record = [&](ValueId value) {
    const Tensor& type = function.type(value);
    return ValueRecord{static_cast<std::uint64_t>(value) + 1,
                       static_cast<std::uint64_t>(storages.root[value]) + 1, 0,
                       type.shape(), type.dtype()};
  };
  std::vector<GraphOp> ops;
  for (const Node& node : function.nodes) {
    // A weight is a value from outside, as an argument is.
    if (node.kind == NodeKind::kWeight) continue;
    // A call without results is not drawn.
    if (node.outputs.empty() && node.kind != NodeKind::kInPlace) continue;
    GraphOp op;
    op.name = NameOf(node);
    op.primitive = node.op.primitive;
    for (const ValueId value : node.inputs) op.inputs.push_back(record(value));
    for (const ValueId value : node.outputs) {
      op.outputs.push_back(record(value));
    }
    for (const ValueId value : WrittenBy(node)) {
      op.outputs.push_back(record(value));
    }
    op.in_place = node.kind == NodeKind::kInPlace;
    op.view = node.kind == NodeKind::kOp && IsView(*node.op.primitive);
    op.line = node.op.requested_by.known() ? node.op.requested_by
                                           : node.op.requested_at;
    ops.push_back(std::move(op));
  }
  return ProgramGraph(std::move(ops));
}

}  // namespace ir
}  // namespace d2l
