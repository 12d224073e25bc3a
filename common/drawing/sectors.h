// The sectors of memory that a warp's request touches, and the lanes that use
// each word of them.
//
//   std::vector<std::int64_t> first;  // as kernels::cuda::Requests has them
//   for (int lane = 0; lane < 32; ++lane) first.push_back(64 * lane);
//   cell.Show(DrawSectors("every 16th word", first));
//
// A pure function, thread-safe.

#ifndef D2L_COMMON_DRAWING_SECTORS_H_
#define D2L_COMMON_DRAWING_SECTORS_H_

#include <cstdint>
#include <vector>

#include "common/base/console/language.h"
#include "common/drawing/drawing.h"

namespace d2l {

// `first` is where each lane's word begins, in bytes from the first sector on;
// -1 for an inactive lane. The text shows four sectors, the SVG all.
Drawing DrawSectors(const Phrase& name, const std::vector<std::int64_t>& first);

}  // namespace d2l

#endif  // D2L_COMMON_DRAWING_SECTORS_H_
