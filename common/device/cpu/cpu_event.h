// The state behind an event of a CPU stream. See Event.

#ifndef D2L_COMMON_DEVICE_CPU_CPU_EVENT_H_
#define D2L_COMMON_DEVICE_CPU_CPU_EVENT_H_

#include <atomic>
#include <cstdint>

#include "common/base/event_count.h"
#include "common/device/event.h"
#include "common/device/failure.h"

namespace d2l {

class CpuEventState final : public EventState {
 public:
  CpuEventState() : EventState(DeviceType::kCpu) {}

  // Marks the point as reached. failure: null, or what poisons the event.
  void Complete(FailurePtr failure);

  bool Query() override { return done_.load(std::memory_order_acquire); }
  void Block() override;
  FailurePtr failure() override { return failure_; }
  double NanosSince(EventState& begin) override;

 private:
  std::atomic<bool> done_{false};
  // Written once, before done_.
  FailurePtr failure_;
  std::int64_t nanos_ = 0;
  EventCount completed_;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CPU_CPU_EVENT_H_
