// Event: a point in a stream's order of work that can be waited for.
//
//   Event half = a->Record();    // when everything enqueued so far is done
//   b->Wait(half);               // b's next work starts after that point
//   half.Synchronize();          // or: this thread waits
//   double ms = ElapsedTime(begin, end);
//
// Stream::Record makes a new event for each point; events are never recorded
// again. So an event exists only after its work is queued, and no set of waits
// can form a cycle.
//
// An event behind a failed operation completes too, but is *poisoned*: waiting
// for it throws or passes on the failure.
//
// Copies share one state; any thread may use any copy. An event may outlive
// its stream.

#ifndef D2L_COMMON_DEVICE_EVENT_H_
#define D2L_COMMON_DEVICE_EVENT_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/device/failure.h"

namespace d2l {

// What a back end implements; users hold an Event.
class EventState {
 public:
  explicit EventState(DeviceType type) : type_(type) {}
  virtual ~EventState() = default;

  DeviceType type() const { return type_; }
  // The event's unique id, for StreamRecord; assigned by the first call, never
  // 0.
  std::uint64_t id();

  // True once the point has been reached. Never blocks.
  virtual bool Query() = 0;
  // Blocks until Query() is true. Throws std::logic_error if that would never
  // return, as in a forked child.
  virtual void Block() = 0;
  // Null for success. Only after Query() has returned true.
  virtual FailurePtr failure() = 0;
  // The program has got the failure: the event's stream runs again, unless that
  // has reported this failure before.
  virtual void MarkReported() {}
  // Nanoseconds from `begin`, an event of the same type. Both have completed.
  // Throws std::invalid_argument if their clocks cannot be compared.
  virtual double NanosSince(EventState& begin) = 0;

 private:
  const DeviceType type_;
  std::atomic<std::uint64_t> id_{0};
};

class Event {
 public:
  // An empty event: complete, and a wait on it returns.
  Event() = default;
  // For back ends.
  explicit Event(std::shared_ptr<EventState> state);

  // True once everything before the event is done, or was skipped.
  bool Query() const;

  // Blocks until then. Throws AsyncError, every time, if the event is
  // poisoned. The first time reports the failure of the event's stream (see
  // Stream).
  void Synchronize(SourceLocation noticed_at = SourceLocation::Current()) const;

  // The failure this event is poisoned with; null if there is none or if the
  // event has not completed yet.
  FailurePtr failure() const;

  // The event's unique id; 0 for an empty event.
  std::uint64_t id() const { return state_ == nullptr ? 0 : state_->id(); }

  // For back ends and the memory, which poll it without reporting a wait of the
  // program; null for an empty event.
  const std::shared_ptr<EventState>& state() const { return state_; }

 private:
  std::shared_ptr<EventState> state_;
};

// Milliseconds between two points, on the device's own clock (PyTorch's
// Event.elapsed_time). Throws std::invalid_argument if either is empty or not
// complete yet, or if they are of two back ends or of two GPUs, whose clocks
// cannot be compared.
double ElapsedTime(const Event& begin, const Event& end);

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_EVENT_H_
