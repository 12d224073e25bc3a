#include "common/device/listener.h"

#include <cstdint>
#include <string>

#include "common/base/source_location.h"
#include "common/device/event.h"

namespace d2l {
namespace {

// Calls f(DeviceListener&) for this thread's listeners of the topic, the
// innermost first, then for those of the process.
template <typename F>
void ForEach(DeviceListener::Topic topic,
             const ListenerList<DeviceListener>& of_process, F f) {
  ScopedDeviceListener::ForEach(internal::device_listeners, topic, f);
  of_process.ForEach(f);
}

// Calls f(ListenerList&) for each of the topics.
template <typename F>
void ForEachList(unsigned topics, F f) {
  if (topics & DeviceListener::kMemory) f(internal::memory_listeners);
  if (topics & DeviceListener::kWaits) f(internal::wait_listeners);
  if (topics & DeviceListener::kStreams) f(internal::stream_listeners);
  if (topics & DeviceListener::kOrder) f(internal::order_listeners);
}

}  // namespace

ScopedDeviceListener::ScopedDeviceListener(DeviceListener* listener,
                                           unsigned topics)
    : ScopedListener(internal::device_listeners, listener, topics) {}

void AddDeviceListener(DeviceListener* listener, unsigned topics) {
  ForEachList(topics, [listener](auto& list) { list.Add(listener); });
}

void RemoveDeviceListener(DeviceListener* listener, unsigned topics) {
  ForEachList(topics, [listener](auto& list) { list.Remove(listener); });
}

namespace internal {

void ReportMemory(const MemoryRecord& record) noexcept {
  ForEach(DeviceListener::kMemory, memory_listeners,
          [&](DeviceListener& l) { l.OnMemory(record); });
}

void ReportStream(const StreamRecord& record) {
  ForEach(DeviceListener::kStreams, stream_listeners,
          [&](DeviceListener& l) { l.OnStream(record); });
}

void ReportOrder(OrderRecord::Kind kind, Stream* stream, EventState* event,
                 std::uint64_t number) noexcept {
  const OrderRecord record = {kind, stream, event == nullptr ? 0 : event->id(),
                              number};
  order_listeners.ForEach([&](DeviceListener& l) { l.OnOrder(record); });
}

const char* QueueFullName(std::uint64_t bound) {
  const std::string count = std::to_string(bound);
  return Intern("front end blocked: queue full " + count + "/" + count);
}

void WaitScope::Report() noexcept {
  in_request = false;
  record_.host_end = NowTicks();
  ForEach(DeviceListener::kWaits, wait_listeners,
          [&](DeviceListener& l) { l.OnWait(record_); });
}

}  // namespace internal
}  // namespace d2l
