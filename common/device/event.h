// Event: a point in a stream's order of work, for others to wait on.
//
//   Event half = a->Record();    // when everything enqueued so far is done
//   b->Wait(half);               // b's next work starts after that point
//   half.Synchronize();          // or: this thread waits
//   double ms = ElapsedTime(begin, end);
//
// Only Stream::Record makes an event that stands for anything. It is
// single-shot: a new one for each point, never recorded again. So an event
// exists only after the work it stands for is queued, and no set of waits can
// form a cycle.
//
// An event behind a failed operation completes too, but is *poisoned*: it
// carries the failure to whoever waits on it.
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
  // Names the event for ever: for StreamRecord. Given when it is first asked
  // for; never 0.
  std::uint64_t id();

  // True once the point has been reached. Never blocks.
  virtual bool Query() = 0;
  // Blocks until Query() is true. Throws std::logic_error where that would be
  // for ever, as in a forked child.
  virtual void Block() = 0;
  // Null for success. Only after Query() has returned true.
  virtual FailurePtr failure() = 0;
  // Nanoseconds from `begin`, an event of the same type. Both have completed.
  virtual double NanosSince(EventState& begin) = 0;

 private:
  const DeviceType type_;
  std::atomic<std::uint64_t> id_{0};
};

class Event {
 public:
  // An event that stands for nothing: complete, and a wait on it returns.
  Event() = default;
  // For back ends.
  explicit Event(std::shared_ptr<EventState> state);

  // True once everything before the event is done, or was skipped.
  bool Query() const;

  // Blocks until then. Throws AsyncError, every time, if the event is
  // poisoned.
  void Synchronize(SourceLocation noticed_at = SourceLocation::Current()) const;

  // The failure this event is poisoned with; null if there is none or if the
  // event has not completed yet.
  FailurePtr failure() const;

  // Names the event for ever; 0 if it stands for nothing.
  std::uint64_t id() const { return state_ == nullptr ? 0 : state_->id(); }

  // For back ends; null for an event that stands for nothing.
  const std::shared_ptr<EventState>& state() const { return state_; }

 private:
  std::shared_ptr<EventState> state_;
};

// Milliseconds between two points, on the device's own clock (PyTorch's
// Event.elapsed_time). Throws std::invalid_argument if either stands for
// nothing or is not complete yet, or if they are of two back ends, whose
// clocks cannot be compared.
double ElapsedTime(const Event& begin, const Event& end);

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_EVENT_H_
