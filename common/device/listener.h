// Who wants to know what memory is taken and where the host waits.
//
//   class Peak : public DeviceListener {
//    public:
//     void OnMemory(const MemoryRecord& record) override { … }
//   };
//   SetMemoryListener(&peak);
//
// These are the records of the device layer; those of operations and reads are
// in common/ops/record.h. Without a listener an allocation, a return and a wait
// cost one load more.
//
// Thread-safety: listeners are called on any thread, at the same time, and must
// lock what they share. They must neither wait for devices nor use their
// memory. A listener must stay alive as long as some thread may be in the
// middle of an allocation, a return or a wait.

#ifndef D2L_COMMON_DEVICE_LISTENER_H_
#define D2L_COMMON_DEVICE_LISTENER_H_

#include <atomic>
#include <cstdint>

#include "common/base/source_location.h"
#include "common/base/ticks.h"
#include "common/device/device.h"

namespace d2l {

// A block has been handed out, or returned. Sizes are in bytes, as in
// MemoryStats, after that.
struct MemoryRecord {
  Device device;
  bool pinned;            // the host memory beside the device
  std::uint64_t storage;  // the block's id in this use of it
  std::int64_t change;    // negative for a return
  std::int64_t in_use;
  std::int64_t in_flight;
  std::int64_t reserved;
  std::int64_t time;  // NowTicks
};

// The host has waited, or tried to: for a device, a stream or an event.
struct WaitRecord {
  const char* what;  // "synchronize"
  SourceLocation requested_at;
  std::int64_t host_begin;  // NowTicks
  std::int64_t host_end;
};

class DeviceListener {
 public:
  virtual ~DeviceListener() = default;

  virtual void OnMemory(const MemoryRecord&) {}
  virtual void OnWait(const WaitRecord&) {}
};

// The process's listeners; null to stop.
void SetMemoryListener(DeviceListener* listener);
void SetWaitListener(DeviceListener* listener);

namespace internal {

inline std::atomic<DeviceListener*> memory_listener{nullptr};
inline std::atomic<DeviceListener*> wait_listener{nullptr};
inline thread_local bool in_wait = false;

// Tells the listener that the host waits while this lives. A wait that is a
// part of another one is not told of.
class WaitScope {
 public:
  WaitScope(const char* what, SourceLocation at)
      : listener_(wait_listener.load(std::memory_order_acquire)) {
    if (listener_ == nullptr) return;
    if (in_wait) {
      listener_ = nullptr;
      return;
    }
    in_wait = true;
    record_ = {what, at, NowTicks(), 0};
  }
  ~WaitScope() {
    if (listener_ == nullptr) return;
    in_wait = false;
    record_.host_end = NowTicks();
    listener_->OnWait(record_);
  }
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

 private:
  DeviceListener* listener_;
  WaitRecord record_;
};

}  // namespace internal
}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_LISTENER_H_
