// EditDistance: how far apart two names are, for "did you mean".
//
//   EditDistance("kitten", "sitting");  // 3
//
// A pure function.

#ifndef D2L_COMMON_BASE_EDIT_DISTANCE_H_
#define D2L_COMMON_BASE_EDIT_DISTANCE_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace d2l {

// How many characters to change, add or leave out to make one of the other,
// whatever their case.
std::size_t EditDistance(absl::string_view a, absl::string_view b);

}  // namespace d2l

#endif  // D2L_COMMON_BASE_EDIT_DISTANCE_H_
