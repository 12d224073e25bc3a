#include "common/ops/primitive/replay.h"

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/kernels/op_tables.h"
#include "common/ops/nn/primitives.h"
#include "common/ops/primitive/fields.h"
#include "common/ops/primitive/primitives.h"

namespace d2l {
namespace {

using kernels::IndexOp;
using kernels::kOpInfos;
using PrimitivePtr = std::unique_ptr<Primitive>;

// One primitive of each kind, by name; the values of its fields are unused.
std::map<std::string, PrimitivePtr> MakePrototypes() {
  std::map<std::string, PrimitivePtr> all;
  const auto add = [&all](const Primitive& one) {
    all[one.name()] = one.Clone();
  };
  for (const auto& row : kOpInfos<kernels::UnaryOp>) {
    add(UnaryPrimitive(row.op));
  }
  for (const auto& row : kOpInfos<kernels::BinaryOp>) {
    add(BinaryPrimitive(row.op, BinaryPrimitive::Which::kNone, 0));
  }
  for (const auto& row : kOpInfos<kernels::ReduceOp>) {
    add(ReducePrimitive(row.op, {}, false));
  }
  for (const auto& row : kOpInfos<kernels::RandomOp>) {
    add(RandomPrimitive(row.op, {}));
  }
  // The primitives keep these names.
  for (const char* const function : {"zeros", "ones", "full"}) {
    add(FullPrimitive(function, {}, 0));
  }
  for (const char* const function : {"to", "clone", "contiguous"}) {
    add(CopyPrimitive(function, {}));
  }
  add(CopyPrimitive("copy", {}, /*in_place=*/true));
  // Both variants of the primitives that have two.
  for (const bool first : {false, true}) {
    const IndexOp index = first ? IndexOp::kGather : IndexOp::kSelect;
    const Pooling pooling = {/*max=*/first, 1, 1, 0};
    add(SoftmaxPrimitive(/*log=*/first, 0));
    add(IndexPrimitive(index, 0));
    add(IndexAddPrimitive(index, 0));
    add(Conv2dBackwardPrimitive(/*of_weight=*/first, {}, {}));
    add(Pool2dPrimitive(pooling));
    add(Pool2dBackwardPrimitive(pooling, {}));
  }
  add(AxpbyPrimitive(0, 0));
  add(ArangePrimitive({}, 0, 0));
  add(EmptyPrimitive(ValueSpec()));
  add(EyePrimitive(ValueSpec()));
  add(FillPrimitive({}, 0));
  add(WherePrimitive({}, {}));
  add(MatMulPrimitive());
  add(CatPrimitive(0));
  add(ExpandPrimitive(Shape()));
  add(ReshapePrimitive(Shape()));
  add(SelectPrimitive(0, 0));
  add(SlicePrimitive(0, 0, 0, 0));
  add(SqueezePrimitive(SqueezePrimitive::kAllDims));
  add(TransposePrimitive(0, 0));
  add(UnsqueezePrimitive(0));
  add(BatchNormPrimitive(false, 0));
  add(BatchNormBackwardPrimitive(0));
  add(BatchNormStatisticsPrimitive());
  add(BatchNormBackwardReducePrimitive(false, 0));
  add(Conv2dPrimitive(Conv2dOptions()));
  add(CrossEntropyPrimitive());
  add(CrossEntropyBackwardPrimitive());
  return all;
}

}  // namespace

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

absl::StatusOr<PrimitivePtr> MakePrimitive(
    const std::string& name, const std::vector<Attribute>& attributes) {
  if (name == "from_vector") {
    return absl::UnimplementedError(
        "[from_vector] a program as text does not hold the host's numbers");
  }
  static const auto& prototypes = *new auto(MakePrototypes());
  const auto found = prototypes.find(name);
  if (found == prototypes.end()) {
    return absl::NotFoundError(
        absl::StrFormat("there is no operation \"%s\"", name));
  }
  try {
    PrimitivePtr primitive = found->second->Clone();
    Fields reader(primitive->name(), attributes);
    primitive->Visit(reader);
    reader.CheckNoneLeft();
    return primitive;
  } catch (const std::invalid_argument& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

}  // namespace d2l
