#include "common/device/listener.h"

#include <atomic>

namespace d2l {

void SetMemoryListener(DeviceListener* listener) {
  internal::memory_listener.store(listener, std::memory_order_release);
}

void SetWaitListener(DeviceListener* listener) {
  internal::wait_listener.store(listener, std::memory_order_release);
}

}  // namespace d2l
