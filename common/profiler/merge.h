// Merges successive profiles into one.
//
//   std::vector<Profile> parts;
//   for (int i = 0; i < 3; ++i) {
//     Profiler profiler(options);  // with a bound of its own
//     profiler.Start();
//     z = MatMul(x, y);
//     profiler.Stop();
//     parts.push_back(profiler.profile());
//   }
//   WriteChromeTrace(Merge(std::move(parts)), "trace.json");
//
// So each part of a program has room for its calls, however many the parts
// before it made.
//
// A pure function.

#ifndef D2L_COMMON_PROFILER_MERGE_H_
#define D2L_COMMON_PROFILER_MERGE_H_

#include <vector>

#include "common/profiler/profile.h"

namespace d2l {

// The parts are in the order of their time, and do not overlap. Threads and
// streams of the same name, and the same devices, become one. From the first
// begin to the last end; the time between parts is empty. All notes are kept.
Profile Merge(std::vector<Profile> parts);

// Puts devices and streams into their order: cpu:0 before cpu:1, a device's
// default stream before its others.
void SortDevices(Profile* profile);

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_MERGE_H_
