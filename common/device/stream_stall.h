// StreamStall: keeps a stream from running, so that work is only queued.
//
//   StreamStall stall(stream);
//   for (int i = 0; i < n; ++i) y = x + 1;  // only queued
//   stall.Release();                        // now it runs
//
// A stall separates the cost of enqueueing, while the device is idle, from the
// cost of the work, while nothing is enqueued.
//
// A wait for a stalled stream never ends, nor does an enqueue on it once its
// queue is full (see Room). With launch blocking every enqueue is such a wait,
// so nothing is stalled then.
//
// On a GPU, run the operations once before the stall, and do not allocate
// memory, free memory or make streams during it: CUDA may wait for all streams
// of the GPU the first time that a kernel is used, to allocate and free device
// and pinned memory, and to make a stream or a graph. The first run leaves free
// blocks for the second.
//
// Thread-safety: Release may be called by any thread, any number of times. The
// stream outlives the StreamStall: declare it after the stream.

#ifndef D2L_COMMON_DEVICE_STREAM_STALL_H_
#define D2L_COMMON_DEVICE_STREAM_STALL_H_

#include <functional>

#include "common/device/backend.h"
#include "common/device/device.h"
#include "common/device/stream.h"

namespace d2l {

class StreamStall {
 public:
  // Returns once everything enqueued before is done.
  explicit StreamStall(Stream& stream)
      : release_(LaunchBlocking() ? [] {} : stream.Stall()) {}
  ~StreamStall() { Release(); }
  StreamStall(const StreamStall&) = delete;
  StreamStall& operator=(const StreamStall&) = delete;

  void Release() { release_(); }

  // How many kernels can be enqueued on a stalled stream of `device` with the
  // default StreamOptions, profiled or not. On a GPU a profiled kernel also
  // enqueues an event; there is room for two dozen host callbacks.
  static int Room(Device device) {
    constexpr int kOnGpu = 250;
    return device.type() == DeviceType::kCuda
               ? kOnGpu
               : static_cast<int>(StreamOptions().max_queued_operations) - 1;
  }

 private:
  const std::function<void()> release_;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_STREAM_STALL_H_
