// The roofline of a profile: the operations a second of each kind of operation,
// against the operations for each byte that it moves. Nothing can be above the
// roof: memory is the limit to the left of its ridge, arithmetic to the right.
//
//   // A profile with ProfilerOptions::with_bounds.
//   cell.Show(DrawRoofline(profiler.profile(), "roofline"));
//
// Pure functions, thread-safe.

#ifndef D2L_COMMON_DRAWING_ROOFLINE_H_
#define D2L_COMMON_DRAWING_ROOFLINE_H_

#include "common/base/console/language.h"
#include "common/drawing/drawing.h"
#include "common/profiler/profile.h"

namespace d2l {

// Draws the operations that compute and have a device time, those of one name
// as one. The peaks are those of the profile's first device. There are two
// roofs: that of the memory that holds the largest operation's data, and that
// of the fastest cache. The drawing says so if the peaks were not measured.
Drawing DrawRoofline(const Profile& profile, const Phrase& name);

}  // namespace d2l

#endif  // D2L_COMMON_DRAWING_ROOFLINE_H_
