// StreamClock: when the work of one CPU stream begins and ends under a
// VirtualTiming; see virtual_timing.h for the rules.
//
//   clock.Begin(timing, /*computes=*/true);
//   task();  // a transfer calls clock.Cross
//   clock.EndWork();
//   // Sleep until clock.nanos().
//   clock.End();
//
// Times are nanoseconds on the clock of NowNanos. For one thread, the stream's
// worker. `timing` must live from Begin to End.

#ifndef D2L_COMMON_DEVICE_CPU_STREAM_CLOCK_H_
#define D2L_COMMON_DEVICE_CPU_STREAM_CLOCK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/device/cpu/virtual_timing.h"

namespace d2l::internal {

class StreamClock {
 public:
  // When the work so far has ended.
  std::int64_t nanos() const { return nanos_; }
  // No effect if the clock is there already.
  void AdvanceTo(std::int64_t nanos) { nanos_ = std::max(nanos_, nanos); }

  // An operation begins on the calling thread. computes: it takes time of the
  // device.
  void Begin(ActiveTiming& timing, bool computes);
  // When the present operation has begun, with the transfers before it.
  std::int64_t begin() const { return begin_; }
  // The operation is a transfer, of `bytes` from each of these nodes.
  void Cross(const std::vector<int>& from, int to, std::size_t bytes);
  // Its work is done: advances to when it ends.
  void EndWork();
  // That time has come: notes how late the caller is.
  void End();

 private:
  std::int64_t nanos_ = 0;
  // Of the present operation.
  ActiveTiming* timing_ = nullptr;
  std::int64_t begin_ = 0;
  bool crosses_ = false;    // it is a transfer
  double cpu_seconds_ = 0;  // the thread's at the begin; -1: does not compute
  // Of the transfers that are a part of the next operation; 0: none.
  std::int64_t transfer_begin_ = 0;
};

}  // namespace d2l::internal

#endif  // D2L_COMMON_DEVICE_CPU_STREAM_CLOCK_H_
