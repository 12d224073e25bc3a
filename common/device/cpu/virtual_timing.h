// VirtualTiming: how long the work of virtual CPU devices lasts, so that a few
// cores stand for several GPUs, and memory for the links between them.
//
//   VirtualTiming timing;
//   timing.pace = 3;
//   timing.links = Topology::PcieSwitch(2, 16e9);
//   const VirtualTimingScope scope(timing);  // device_table.h
//
// Pace: an operation lasts `pace` times the processor time that it takes. The
// worker sleeps for the rest, so two devices at a pace of 3 need two thirds of
// a core, and run as fast beside other programs as alone. Copies, and the sums
// of collectives, take no time of the device (StreamOptions::beside).
//
// Links: a transfer takes its way through the topology, in which device cpu:N
// is node N. It begins when all links of its way are free, and occupies them
// until it is done: for their latencies and its bytes at the speed of the
// slowest. Where the topology has no CPU, copies from and to the host take no
// time.
//
// Each stream has a clock. Work begins, on that clock, when it is enqueued and
// the work before it, the events that it waits for and its links are done, and
// ends by the rules above; only then the program sees that it is done. Events,
// profiles and timelines have these times. A worker that is late, because it
// got no core, sleeps less until it has caught up, so times do not depend on
// other programs while these leave room.

#ifndef D2L_COMMON_DEVICE_CPU_VIRTUAL_TIMING_H_
#define D2L_COMMON_DEVICE_CPU_VIRTUAL_TIMING_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/base/timer.h"
#include "common/device/topology.h"

namespace d2l {

struct VirtualTiming {
  // 0: an operation lasts as long as it takes, and needs a core of its own.
  double pace = 0;
  std::optional<Topology> links;  // none: transfers take no time
};

namespace internal {

// When transfers over the links of a topology begin and end, on a clock of
// nanoseconds. Thread-safe.
class LinkClock {
 public:
  explicit LinkClock(Topology topology) : topology_(std::move(topology)) {}

  struct Span {
    std::int64_t begin;
    std::int64_t end;
  };
  // Books the first time from `ready` on at which all links of the way from one
  // node to the other are free. Calls may come in another order than the times,
  // by less than a second. kHostNode: the CPU's memory.
  Span Book(int from, int to, double bytes, std::int64_t ready);

 private:
  Mutex mutex_;
  const Topology topology_ ABSL_GUARDED_BY(mutex_);  // it caches routes
  // For each link, the ends of its transfers by their begins.
  std::map<int, std::map<std::int64_t, std::int64_t>> busy_
      ABSL_GUARDED_BY(mutex_);
};

struct ActiveTiming {
  explicit ActiveTiming(const VirtualTiming& timing) : pace(timing.pace) {
    if (timing.links.has_value()) links.emplace(*timing.links);
  }
  const std::int64_t begin = NowNanos();  // no work begins before
  const double pace;
  std::optional<LinkClock> links;
  // How late the operation was that has ended last, in nanoseconds.
  std::atomic<std::int64_t> late{0};
};

// That of the present scope; null without one. Workers keep no pointer to it
// between two operations, and a scope begins and ends between operations.
extern std::atomic<ActiveTiming*> active_timing;

}  // namespace internal
}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CPU_VIRTUAL_TIMING_H_
