#include "common/graph/tracer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/device/stream.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"

namespace d2l {

void Tracer::OnOp(const OpRecord& record) {
  GraphOp op;
  op.primitive = record.primitive->Clone();
  for (const Tensor* input : record.inputs) {
    op.inputs.push_back(ToRecord(*input));
  }
  op.outputs.push_back(ToRecord(record.output));
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

}  // namespace d2l
