// The memory of a Profile: which operations allocated it, and the peak, its
// time and its operation.
//
//   std::cout << MemoryTable(profile);
//   MemoryByDevice(profile)[0].peak;  // bytes
//
// An operation's bytes are those that it took from the devices' memory for its
// output and for itself, whether returned since or not. Pinned host memory is
// counted apart. All functions are thread-safe and own nothing.

#ifndef D2L_COMMON_PROFILER_MEMORY_TABLE_H_
#define D2L_COMMON_PROFILER_MEMORY_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/profiler/profile.h"

namespace d2l {

// The calls of one name that took memory of a device.
struct OperationMemory {
  std::string name;  // "" for what was taken in the course of no known call
  std::int64_t calls = 0;
  std::int64_t bytes = 0;
  std::int64_t largest = 0;  // of one call
};

// The memory of a device, or the pinned host memory beside it.
struct MemoryOfDevice {
  int device = 0;  // in Profile::devices
  bool pinned = false;
  // False: nothing was taken or returned, and the figures below are unknown.
  bool changed = false;
  std::int64_t in_use_at_start = 0;  // bytes
  // The most that was in use, or still needed by queued work; when that was
  // reached first, and by whose span (-1 for none that is known).
  std::int64_t peak = 0;
  std::int64_t peak_time = 0;
  int peak_span = -1;
  std::int64_t reserved = 0;  // the most that was taken from the device
};

// Largest bytes first.
std::vector<OperationMemory> MemoryByOperation(const Profile& profile);

// One for each device, and one more where pinned memory changed.
std::vector<MemoryOfDevice> MemoryByDevice(const Profile& profile);

// Both as text, with the first `row_limit` operations (negative: all) and the
// Profile's notes. Ends in a newline.
std::string MemoryTable(const Profile& profile, int row_limit = 20);

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_MEMORY_TABLE_H_
