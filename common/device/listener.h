// Callbacks for allocations, host waits, and stream requests other than
// operations.
//
//   class Peak : public DeviceListener {
//    public:
//     void OnMemory(const MemoryRecord& record) noexcept override {
//       peak = std::max(peak, record.allocated);
//     }
//     std::int64_t peak = 0;
//   };
//   Peak peak;
//   {
//     ScopedDeviceListener listen(&peak, DeviceListener::kMemory);
//     Tensor z = x * y + 2;
//   }
//
// Any number of listeners may be present, for one thread or for the process;
// each is called for the topics it was registered with. Callbacks for
// operations and reads are in common/ops/primitive/record.h. Without a listener
// an allocation, a wait or a request costs two or three loads more.
//
// Thread-safety: a thread's listener is called on that thread; one of the
// process is called on any thread, also concurrently, and must lock its state.
// A listener must neither wait for devices nor use their memory. OnMemory and
// OnWait are noexcept, since destructors call them. A listener of the process
// must stay alive as long as a thread may be in the middle of such an event.

#ifndef D2L_COMMON_DEVICE_LISTENER_H_
#define D2L_COMMON_DEVICE_LISTENER_H_

#include <cstddef>
#include <cstdint>

#include "common/base/listener_list.h"
#include "common/base/source_location.h"
#include "common/base/ticks.h"
#include "common/device/device.h"

namespace d2l {

class EventState;
class Stream;
struct OpStamps;

// A block has been allocated or returned. Sizes are in bytes; the totals are
// those of MemoryStats, afterwards.
struct MemoryRecord {
  Device device;
  bool pinned;            // pinned host memory for the device
  std::uint64_t storage;  // the block's id in this use of it
  std::int64_t change;    // negative for a return
  std::int64_t allocated;
  std::int64_t in_flight;
  std::int64_t reserved;
  std::int64_t time;  // NowTicks
  const void* data;   // the block's address
};

// The host has waited, or tried to wait, for a device, a stream or an event.
struct WaitRecord {
  const char* what;  // "synchronize"
  SourceLocation requested_at;
  std::int64_t host_begin;  // NowTicks
  std::int64_t host_end;
  // If the wait is for room in a stream's queue: how many operations that queue
  // holds. It is in the middle of a request, so the listener must not use
  // streams. Else 0.
  std::uint64_t full_queue = 0;
};

// A request to a stream that is not an operation: Stream::Record, Wait,
// CopyAsync or HostCallback. Requests that an operation or an allocation makes
// for its own purposes are not reported.
struct StreamRecord {
  enum class Kind { kRecord, kWait, kCopy, kHostCallback };

  Kind kind;
  Stream* stream;
  SourceLocation requested_at;  // unknown for kRecord
  // kRecord and kWait: EventState::id of the event; 0 for an empty one.
  std::uint64_t event = 0;
  // kCopy.
  void* dst = nullptr;
  const void* src = nullptr;
  std::size_t bytes = 0;
  // kCopy and kHostCallback: the operation's number in its stream, if no other
  // thread enqueues first; and its stamps, to which a listener may add.
  std::uint64_t number = 0;
  OpStamps** stamps = nullptr;
};

// A step that orders work, also as a part of another request: a stream has
// recorded an event, or will wait for one; or the host has waited for an event
// or for operations; or it has seen that a stream is idle, so that the stream's
// waits for events are over, too.
struct OrderRecord {
  enum class Kind { kRecord, kWait, kHostWait, kHostSawIdle };

  Kind kind;
  Stream* stream;       // null if the host waited for an event
  std::uint64_t event;  // EventState::id; 0 if the host waited for a stream
  // The stream's operations below this number come before the event, or are
  // done now. kWait: those from this number on come after the event.
  std::uint64_t number;
};

class DeviceListener {
 public:
  // What a listener is called for; combine with |.
  // kOrder is for listeners of the process only.
  enum Topic : unsigned { kMemory = 1, kWaits = 2, kStreams = 4, kOrder = 8 };

  virtual ~DeviceListener() = default;

  virtual void OnMemory(const MemoryRecord&) noexcept {}
  virtual void OnWait(const WaitRecord&) noexcept {}
  // Called before the request is carried out, except for kRecord, which makes
  // the event first. An exception refuses it.
  virtual void OnStream(const StreamRecord&) {}
  virtual void OnOrder(const OrderRecord&) noexcept {}
};

// Listens to this thread while it lives.
class ScopedDeviceListener : public ScopedListener<DeviceListener> {
 public:
  ScopedDeviceListener(DeviceListener* listener, unsigned topics);
};

// Listens to all threads. Remove takes the same topics.
void AddDeviceListener(DeviceListener* listener, unsigned topics);
void RemoveDeviceListener(DeviceListener* listener, unsigned topics);

namespace internal {

// This thread's innermost listener, or null.
inline thread_local const ScopedListener<DeviceListener>* device_listeners =
    nullptr;
inline ListenerList<DeviceListener> memory_listeners;
inline ListenerList<DeviceListener> wait_listeners;
inline ListenerList<DeviceListener> stream_listeners;
inline ListenerList<DeviceListener> order_listeners;

// True while this thread carries out a request whose parts are not reported.
inline thread_local bool in_request = false;

// While it lives, this thread's stream requests are parts of another request.
class PartOfRequest {
 public:
  PartOfRequest() : outer_(in_request) { in_request = true; }
  ~PartOfRequest() { in_request = outer_; }
  PartOfRequest(const PartOfRequest&) = delete;
  PartOfRequest& operator=(const PartOfRequest&) = delete;

 private:
  const bool outer_;
};

inline bool MemoryHasListeners() {
  return device_listeners != nullptr || !memory_listeners.empty();
}
void ReportMemory(const MemoryRecord& record) noexcept;

// For back ends, in Stream's functions.
inline bool StreamHasListeners() {
  return (device_listeners != nullptr || !stream_listeners.empty()) &&
         !in_request;
}
void ReportStream(const StreamRecord& record);
// event: null if the host waited for a stream.
void ReportOrder(OrderRecord::Kind kind, Stream* stream, EventState* event,
                 std::uint64_t number) noexcept;
inline void TellOrder(OrderRecord::Kind kind, Stream* stream, EventState* event,
                      std::uint64_t number = 0) noexcept {
  if (!order_listeners.empty()) ReportOrder(kind, stream, event, number);
}

// The name of a wait for room in a queue of `bound` operations: "front end
// blocked: queue full 4096/4096".
const char* QueueFullName(std::uint64_t bound);

// Reports that the host waits while this lives. A wait that is a part of
// another request is not reported.
class WaitScope {
 public:
  WaitScope(const char* what, SourceLocation at, std::uint64_t full_queue = 0) {
    if (device_listeners == nullptr && wait_listeners.empty()) return;
    if (in_request) return;
    reported_ = in_request = true;
    record_ = {what, at, NowTicks(), 0, full_queue};
  }
  ~WaitScope() {
    if (reported_) Report();
  }
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

 private:
  void Report() noexcept;

  bool reported_ = false;
  WaitRecord record_;
};

}  // namespace internal
}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_LISTENER_H_
