#include "common/ops/record.h"

#include <utility>

namespace d2l {

ValueRecord ToRecord(const Tensor& value) {
  return {value.id(), value.storage()->id(), value.version(), value.shape(),
          value.dtype()};
}

ScopedOpListener::ScopedOpListener(OpListener* listener)
    : previous_(std::exchange(internal::op_context.listener, listener)) {}

ScopedOpListener::~ScopedOpListener() {
  internal::op_context.listener = previous_;
}

void SetProcessOpListener(OpListener* listener) {
  internal::process_listener.store(listener, std::memory_order_release);
}

RequestedBy::RequestedBy(SourceLocation location)
    : outermost_(!internal::op_context.requested_by.known()) {
  if (outermost_) internal::op_context.requested_by = location;
}

RequestedBy::~RequestedBy() {
  if (outermost_) internal::op_context.requested_by = SourceLocation();
}

}  // namespace d2l
