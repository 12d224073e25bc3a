#include "common/graph/fused_args.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/ops/primitive/primitives.h"

namespace d2l::ir {
namespace {

using kernels::BinaryOp;
using kernels::FusedArgs;
using Ref = FusedArgs::Ref;
using Step = FusedArgs::Step;

bool IsHeld(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kUInt8;
}

class Builder {
 public:
  explicit Builder(const Function& body)
      : body_(body), shape_(body.type(body.nodes[0].outputs[0]).shape()) {}

  std::optional<FusedArgs> Build() {
    if (shape_.numel() > std::numeric_limits<std::int32_t>::max() ||
        body_.nodes.size() > FusedArgs::kMaxSteps ||
        body_.arguments.size() + body_.returns.size() > FusedArgs::kMaxMemory) {
      return std::nullopt;
    }
    args_.numel = shape_.numel();
    for (const ValueId value : body_.arguments) AddMemory(value);
    for (const ValueId value : body_.returns) AddMemory(value);
    std::vector<std::size_t> last_use(body_.values.size(), 0);
    for (std::size_t i = 0; i < body_.nodes.size(); ++i) {
      for (const ValueId value : body_.nodes[i].inputs) last_use[value] = i;
    }
    for (std::size_t i = 0; i < body_.nodes.size() && fits_; ++i) {
      const Node& node = body_.nodes[i];
      Step step = {};
      if (!Describe(node, step)) return std::nullopt;
      // A step reads all of its operands before it writes.
      for (const ValueId value : node.inputs) {
        const auto slot = slot_of_.find(value);
        if (slot == slot_of_.end() || last_use[value] != i) continue;
        free_.push_back(slot->second);
        slot_of_.erase(slot);
      }
      step.out = Define(node.outputs[0]);
      args_.step[args_.steps++] = step;
    }
    if (!fits_) return std::nullopt;
    return args_;
  }

 private:
  static Ref MakeRef(Ref::Kind kind, int index) {
    Ref ref;
    ref.kind = kind;
    ref.index = static_cast<std::uint8_t>(index);
    return ref;
  }

  DType TypeOf(ValueId value) const { return body_.type(value).dtype(); }

  void AddMemory(ValueId value) {
    args_.memory[memory_of_.size()] = {
        nullptr, static_cast<std::uint32_t>(body_.type(value).numel()),
        TypeOf(value) == DType::kUInt8};
    const int index = static_cast<int>(memory_of_.size());
    memory_of_[value] = index;
  }

  Ref Define(ValueId value) {
    const auto memory = memory_of_.find(value);
    if (memory != memory_of_.end()) {
      return MakeRef(Ref::kEach, memory->second);
    }
    if (free_.empty()) {
      fits_ = fits_ && slots_ < FusedArgs::kMaxSlots;
      free_.push_back(slots_++);
    }
    slot_of_[value] = free_.back();
    free_.pop_back();
    return MakeRef(Ref::kSlot, slot_of_[value]);
  }

  Ref Use(ValueId value) const {
    const auto slot = slot_of_.find(value);
    if (slot != slot_of_.end()) return MakeRef(Ref::kSlot, slot->second);
    const int memory = memory_of_.at(value);
    switch (StepsOf(body_.type(value), shape_)) {
      case Steps::kOne:
        return MakeRef(Ref::kOne, memory);
      case Steps::kRow:
        return MakeRef(Ref::kRow, memory);
      default:
        return MakeRef(Ref::kEach, memory);
    }
  }

  Ref UseNumber(Scalar scalar, DType dtype) {
    if (numbers_ == FusedArgs::kMaxNumbers) {
      fits_ = false;
      return {};
    }
    args_.numbers[numbers_] =
        dtype == DType::kUInt8 ? static_cast<float>(scalar.To<std::uint8_t>())
                               : scalar.To<float>();
    return MakeRef(Ref::kNumber, numbers_++);
  }

  // Fills in all but the result's place. False if there is no such step.
  bool Describe(const Node& node, Step& step) {
    const Primitive* const primitive = node.op.primitive.get();
    const DType result = TypeOf(node.outputs[0]);
    const DType dtype = TypeOf(node.inputs[0]);
    for (const ValueId value : node.inputs) {
      if (!IsHeld(TypeOf(value))) return false;
    }
    if (!IsHeld(result)) return false;
    if (const auto* unary = dynamic_cast<const UnaryPrimitive*>(primitive)) {
      step.kind = Step::kUnary;
      step.op = static_cast<std::uint8_t>(unary->op);
      step.in[0] = Use(node.inputs[0]);
      return dtype == DType::kFloat32;
    }
    if (const auto* binary = dynamic_cast<const BinaryPrimitive*>(primitive)) {
      using Which = BinaryPrimitive::Which;
      step.kind = Step::kBinary;
      step.op = static_cast<std::uint8_t>(binary->op);
      step.in[0] = Use(node.inputs[0]);
      step.in[1] = binary->which == Which::kNone
                       ? Use(node.inputs[1])
                       : UseNumber(binary->scalar, dtype);
      if (binary->which == Which::kFirst) std::swap(step.in[0], step.in[1]);
      const bool compares =
          kernels::ResultDType(binary->op, DType::kFloat32) == DType::kUInt8;
      return binary->op != BinaryOp::kPow &&
             (dtype == DType::kFloat32 || compares);
    }
    if (const auto* where = dynamic_cast<const WherePrimitive*>(primitive)) {
      std::size_t next = 0;
      step.kind = Step::kWhere;
      step.in[0] = Use(node.inputs[next++]);
      step.in[1] = where->a.has_value() ? UseNumber(*where->a, result)
                                        : Use(node.inputs[next++]);
      step.in[2] = where->b.has_value() ? UseNumber(*where->b, result)
                                        : Use(node.inputs[next++]);
      return true;
    }
    // A CopyPrimitive.
    step.kind = dtype == DType::kFloat32 && result == DType::kUInt8
                    ? Step::kToUInt8
                    : Step::kCopy;
    step.in[0] = Use(node.inputs[0]);
    return true;
  }

  const Function& body_;
  const Shape& shape_;
  FusedArgs args_ = {};
  bool fits_ = true;
  int numbers_ = 0;
  int slots_ = 0;
  std::map<ValueId, int> memory_of_;  // arguments and results
  std::map<ValueId, int> slot_of_;
  std::vector<int> free_;  // slots
};

}  // namespace

std::optional<FusedArgs> FusedArgsOf(const Function& body) {
  return Builder(body).Build();
}

}  // namespace d2l::ir
