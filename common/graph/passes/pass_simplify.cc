#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "common/graph/passes/passes.h"
#include "common/kernels/op_tables.h"
#include "common/ops/primitive/primitives.h"

namespace d2l::ir {
namespace {

using kernels::BinaryOp;
using kernels::UnaryOp;
using Which = BinaryPrimitive::Which;

// Whether the result is the operand, of that dtype: bit for bit, or both are
// NaN, whose sign and payload depend on the processor.
bool IsIdentity(const BinaryPrimitive& binary, DType dtype) {
  if (binary.which == Which::kNone) return false;
  const double number = binary.scalar.To<double>();
  const bool second = binary.which == Which::kSecond;
  switch (binary.op) {
    case BinaryOp::kMultiply:
      return number == 1;
    case BinaryOp::kDivide:  // gives floats for integers
      return second && number == 1 && IsFloatingPoint(dtype);
    case BinaryOp::kSubtract:  // -0.0 - 0.0 is -0.0
      return second && number == 0 &&
             (!std::signbit(number) || !IsFloatingPoint(dtype));
    case BinaryOp::kAdd:  // 0.0 + -0.0 is 0.0, and -0.0 + -0.0 is -0.0
      return number == 0 && std::signbit(number) && IsFloatingPoint(dtype);
    default:
      return false;
  }
}

class Simplifier {
 public:
  explicit Simplifier(Function& function)
      : function_(function), storages_(function) {}

  void Run() {
    const std::size_t count = function_.values.size();
    map_.resize(count);
    std::iota(map_.begin(), map_.end(), 0);
    made_by_.assign(count, -1);
    for (std::size_t i = 0; i < function_.nodes.size(); ++i) {
      Node& node = function_.nodes[i];
      for (ValueId& value : node.inputs) value = map_[value];
      for (const ValueId value : node.outputs) {
        made_by_[value] = static_cast<int>(i);
      }
      if (node.kind != NodeKind::kOp || storages_.touches_pinned(node)) {
        continue;
      }
      map_[node.outputs[0]] = SameAs(node);
    }
    ReplaceUses(map_, function_);
  }

 private:
  // The node that made the value; null if there is none.
  const Node* MakerOf(ValueId value) const {
    return made_by_[value] < 0 ? nullptr : &function_.nodes[made_by_[value]];
  }

  // An earlier value that is equal to the node's value, or that value itself.
  ValueId SameAs(const Node& node) const {
    const ValueId self = node.outputs[0];
    const Primitive& primitive = *node.op.primitive;
    if (IsView(primitive)) return SameView(self);
    // A value that the program returns has its own memory.
    if (storages_.escapes(self)) return self;
    if (const auto* binary = dynamic_cast<const BinaryPrimitive*>(&primitive)) {
      const ValueId x = node.inputs[0];
      return IsIdentity(*binary, function_.type(x).dtype()) && IsPlain(x)
                 ? x
                 : self;
    }
    if (const auto* unary = dynamic_cast<const UnaryPrimitive*>(&primitive)) {
      const ValueId x = node.inputs[0];
      const Node* const inner_node = MakerOf(x);
      const auto* inner =
          inner_node == nullptr || inner_node->kind != NodeKind::kOp
              ? nullptr
              : dynamic_cast<const UnaryPrimitive*>(
                    inner_node->op.primitive.get());
      if (inner == nullptr || inner->op != unary->op) return self;
      if (unary->op == UnaryOp::kRelu) return x;
      const ValueId innermost = inner_node->inputs[0];
      // A pinned value may have been written in between.
      if (unary->op == UnaryOp::kNegative && IsPlain(innermost) &&
          !storages_.pinned(innermost)) {
        return innermost;
      }
    }
    return self;
  }

  // Whether the value's layout is that of an operation's result: types inferred
  // from that (views, layouts) are then right for the value, too.
  bool IsPlain(ValueId value) const {
    const Tensor& type = function_.type(value);
    return type.offset() == 0 &&
           type.strides() == ContiguousStrides(type.shape());
  }

  // A base of the view that has the same type, or the view itself.
  ValueId SameView(ValueId view) const {
    const Tensor& type = function_.type(view);
    ValueId base = view;
    for (;;) {
      const Node* const maker = MakerOf(base);
      if (maker == nullptr || maker->kind != NodeKind::kOp ||
          !IsView(*maker->op.primitive)) {
        return view;
      }
      base = maker->inputs[0];
      const Tensor& base_type = function_.type(base);
      if (base_type.shape() == type.shape() &&
          base_type.strides() == type.strides() &&
          base_type.offset() == type.offset()) {
        return base;
      }
    }
  }

  Function& function_;
  const Storages storages_;
  std::vector<ValueId> map_;
  std::vector<int> made_by_;  // the index of the node
};

}  // namespace

void Simplify(Graph& graph) {
  for (Function& function : graph.functions) Simplifier(function).Run();
}

}  // namespace d2l::ir
