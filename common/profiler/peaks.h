// Peaks: the highest rates of a device, measured on it; and from these the
// bound of an operation, the least time that it takes (the roofline model).
//
//   const Peaks& peaks = PeaksOf(device);
//   peaks.flop_per_second;         // 2.1e11
//   const Bound bound = BoundOf({2'000'000'000, 12'000'000}, peaks);
//   bound.seconds;                 // 0.0095
//
// On a CPU device they are the best of several runs of loops on all its cores,
// with the widest vectors: fused multiplications and additions; reading,
// STREAM's copy and its triad, a[i] = b[i] + 3 * c[i], on data that fit into
// each cache or into none. On a GPU they come from a matrix product and copies.
// No figure is from a data sheet. A modelled GPU has no peaks.
//
// Thread-safe. The first call for a device measures, on the thread's current
// stream, behind the work that is enqueued there, which takes some 0.4 s. Other
// load at that time makes the results lower than the peaks.

#ifndef D2L_COMMON_PROFILER_PEAKS_H_
#define D2L_COMMON_PROFILER_PEAKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/device/device.h"
#include "common/ops/primitive/primitive.h"

namespace d2l {

// The bytes per second of work that reads and writes at most `bytes`.
struct Bandwidth {
  std::string name;  // "L1", "memory"; on a GPU the size, "64.0 MiB"
  std::int64_t bytes = 0;
  double bytes_per_second = 0;
  double copied_per_second = 0;  // of a copy: half read, half written
};

struct Peaks {
  double flop_per_second = 0;         // float32; 0 if nothing was measured
  std::vector<Bandwidth> bandwidths;  // the smallest bytes first; the last: any
  // The time of the requesting thread for one of many in-place operations on
  // one element.
  double enqueue_seconds = 0;

  bool measured() const { return flop_per_second > 0; }
  // For work on this number of bytes. Requires measured().
  const Bandwidth& BandwidthOf(std::int64_t bytes) const;
  // "cpu:0: 212 GFLOP/s; GB/s: L1 490, memory 28.0; 95.0 ns to enqueue.", in
  // the run's language. name: the device's.
  std::string ToText(const std::string& name) const;
};

const Peaks& PeaksOf(Device device);

enum class BoundKind { kNone, kArithmetic, kMemory, kEnqueueing };

inline constexpr const char* kBoundNames[] = {"", "arithmetic", "memory",
                                              "enqueueing"};

struct Bound {
  double seconds = 0;  // the arithmetic's or the memory's, whichever is longer
  // Which of the two; or kEnqueueing if enqueueing an operation takes longer.
  // kNone if there are no peaks, or no work.
  BoundKind kind = BoundKind::kNone;
};

// Arithmetic and memory traffic can overlap, so the longer of them is the
// bound. The memory's time is that of all bytes at the rate of the fastest
// loop; or that of the copied bytes at a copy's rate, if it is longer, as when
// a cache reads a line before it is written.
Bound BoundOf(const OpCost& cost, const Peaks& peaks);

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_PEAKS_H_
