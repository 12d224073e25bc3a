// The roofline of a profile: how many operations a second each kind of
// operation does, against how many it does for each byte that it moves. Above
// the roof nothing can be: to the left of its ridge memory bounds, to the right
// arithmetic.
//
//   ProfilerOptions options;
//   options.with_bounds = true;
//   Profiler profiler(options);
//   {
//     ProfileScope scope(profiler);
//     z = MatMul(x, y) + x;
//   }
//   cell.Show(DrawRoofline(profiler.profile(), "roofline"));
//
// Pure functions, thread-safe.

#ifndef D2L_COMMON_DRAWING_ROOFLINE_H_
#define D2L_COMMON_DRAWING_ROOFLINE_H_

#include "common/base/console/language.h"
#include "common/drawing/drawing.h"
#include "common/profiler/profile.h"

namespace d2l {

// Of the operations that compute and have a device time; those of one name as
// one. The peaks are those of the profile's first device. Two roofs: of the
// memory that holds the largest operation's data, and of the fastest cache. If
// the peaks were not measured, it says so.
Drawing DrawRoofline(const Profile& profile, const Phrase& name);

}  // namespace d2l

#endif  // D2L_COMMON_DRAWING_ROOFLINE_H_
