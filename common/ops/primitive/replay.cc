#include "common/ops/primitive/replay.h"

#include "common/ops/primitive/primitive.h"

namespace d2l {

OpCall ToCall(const OpRecord& record) {
  return {record.primitive->Clone(), record.in_place, record.requested_at,
          record.requested_by};
}

bool IsView(const Primitive& primitive) {
  return dynamic_cast<const ViewPrimitive*>(&primitive) != nullptr;
}

Tensor Replay(const OpCall& call, Inputs inputs, const Tensor& target) {
  const Primitive& primitive = *call.primitive;
  const SourceLocation at = call.requested_at;
  const RequestedBy by(call.requested_by);
  if (call.in_place) {
    ApplyInPlace(primitive, inputs, target, at);
    return target;
  }
  if (const auto* view = dynamic_cast<const ViewPrimitive*>(&primitive)) {
    WithLine(at, [&] { CheckInputCount(primitive.name(), inputs, 1); });
    return ApplyView(*view, *inputs[0], at);
  }
  if (primitive.effect() == Effect::kUninitialized) {
    return ApplyEmpty(primitive, at);
  }
  return Apply(primitive, inputs, at);
}

}  // namespace d2l
