// HoldUp: keeps a stream from working, so that work can be asked for while none
// is done.
//
//   HoldUp hold_up(stream);
//   for (int i = 0; i < n; ++i) y = x + 1;  // queued, and no more
//   hold_up.Release();                      // now it runs
//
// It tells asking apart from doing: what a request costs while the device does
// nothing, and what the device takes when nobody asks meanwhile.
//
// A held-up stream does nothing at all: whoever waits for it waits for ever,
// and so does whoever asks for more than its queue has room for (see Room).
// With launch blocking on, every request is such a wait; then nothing is held
// up.
//
// On a GPU, use the operations once before, and let go of no pinned memory
// meanwhile: what CUDA does the first time, or to free memory, may wait for all
// of the GPU's streams.
//
// Thread-safety: Release may be called by any thread, any number of times. The
// stream outlives the HoldUp: declare it after the stream.

#ifndef D2L_COMMON_DEVICE_HOLD_UP_H_
#define D2L_COMMON_DEVICE_HOLD_UP_H_

#include <functional>

#include "common/device/device.h"
#include "common/device/stream.h"

namespace d2l {

class HoldUp {
 public:
  // Returns once the stream has done what it had and is at work on nothing
  // else.
  explicit HoldUp(Stream& stream);
  // Releases it.
  ~HoldUp();
  HoldUp(const HoldUp&) = delete;
  HoldUp& operator=(const HoldUp&) = delete;

  void Release();

  // How many kernels fit behind it on a stream of `device` whose queue is as
  // long as StreamOptions says. A GPU's own queue is shorter: about a thousand
  // kernels and events, or some dozens of host callbacks, then CUDA waits
  // within the call.
  static int Room(Device device);

 private:
  std::function<void()> release_;  // null if nothing is held up
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_HOLD_UP_H_
