#include "common/graph/picture.h"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace d2l::ir {
namespace {

// For a node that is no primitive. It has a name, and cannot run.
class Named final : public Primitive {
 public:
  explicit Named(std::string name) : name_(std::move(name)) {}

  const char* name() const override { return name_.c_str(); }
  ValueSpec Infer(Inputs) const override { throw std::logic_error(name_); }
  std::uint64_t Launch(const LaunchContext&) const override {
    throw std::logic_error(name_);
  }
  std::unique_ptr<Primitive> Clone() const override {
    return std::make_unique<Named>(*this);
  }

 private:
  const std::string name_;
};

std::shared_ptr<const Primitive> PrimitiveOf(const Node& node) {
  if (node.kind == NodeKind::kCall) return std::make_shared<Named>("call");
  if (node.kind == NodeKind::kConstant) {
    return std::make_shared<Named>("constant");
  }
  if (node.kind != NodeKind::kFused) return node.op.primitive;
  std::string name = "fused";
  for (const Node& inner : node.body->nodes) {
    absl::StrAppend(&name, " ", inner.op.primitive->name());
  }
  return std::make_shared<Named>(std::move(name));
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
    // A call that returns nothing has nothing to be drawn by.
    if (node.outputs.empty() && node.kind != NodeKind::kInPlace) continue;
    GraphOp op;
    op.primitive = PrimitiveOf(node);
    for (const ValueId value : node.inputs) op.inputs.push_back(record(value));
    for (const ValueId value : node.outputs) {
      op.outputs.push_back(record(value));
    }
    if (node.kind == NodeKind::kInPlace) {
      op.outputs.push_back(record(node.target));
    }
    op.in_place = node.kind == NodeKind::kInPlace;
    op.view = node.kind == NodeKind::kOp && IsView(*node.op.primitive);
    op.line = node.op.requested_by.known() ? node.op.requested_by
                                           : node.op.requested_at;
    ops.push_back(std::move(op));
  }
  return ProgramGraph(std::move(ops));
}

}  // namespace d2l::ir
