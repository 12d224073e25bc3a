#include "common/ops/primitive/record.h"

namespace d2l {

ValueRecord ToRecord(const Tensor& value) {
  return {value.id(), value.storage()->id(), value.version(), value.shape(),
          value.dtype()};
}

ScopedOpListener::ScopedOpListener(OpListener* listener)
    : ScopedListener(internal::op_context.listeners, listener) {}

void AddProcessOpListener(OpListener* listener) {
  internal::process_op_listeners.Add(listener);
}

void RemoveProcessOpListener(OpListener* listener) {
  internal::process_op_listeners.Remove(listener);
}

RequestedBy::RequestedBy(SourceLocation location)
    : outermost_(!internal::op_context.requested_by.known()) {
  if (outermost_) internal::op_context.requested_by = location;
}

RequestedBy::~RequestedBy() {
  if (outermost_) internal::op_context.requested_by = SourceLocation();
}

}  // namespace d2l
