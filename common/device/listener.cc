#include "common/device/listener.h"

#include <cstdint>
#include <string>

#include "common/base/interned.h"

namespace d2l {
namespace {

// Calls f(DeviceListener&) for this thread's listeners of the topic, the
// innermost first, then for those of the process.
template <typename F>
void ForEach(DeviceListener::Topic topic,
             const ListenerList<DeviceListener>& of_process, F f) {
  for (const ScopedDeviceListener* one = internal::device_listeners;
       one != nullptr; one = one->outer()) {
    if (one->wants(topic)) f(one->listener());
  }
  of_process.ForEach(f);
}

}  // namespace

ScopedDeviceListener::ScopedDeviceListener(DeviceListener* listener,
                                           unsigned topics)
    : listener_(listener), topics_(topics), outer_(internal::device_listeners) {
  internal::device_listeners = this;
}

ScopedDeviceListener::~ScopedDeviceListener() {
  internal::device_listeners = outer_;
}

void AddDeviceListener(DeviceListener* listener, unsigned topics) {
  using internal::memory_listeners, internal::stream_listeners,
      internal::wait_listeners;
  if (topics & DeviceListener::kMemory) memory_listeners.Add(listener);
  if (topics & DeviceListener::kWaits) wait_listeners.Add(listener);
  if (topics & DeviceListener::kStreams) stream_listeners.Add(listener);
}

void RemoveDeviceListener(DeviceListener* listener, unsigned topics) {
  using internal::memory_listeners, internal::stream_listeners,
      internal::wait_listeners;
  if (topics & DeviceListener::kMemory) memory_listeners.Remove(listener);
  if (topics & DeviceListener::kWaits) wait_listeners.Remove(listener);
  if (topics & DeviceListener::kStreams) stream_listeners.Remove(listener);
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
