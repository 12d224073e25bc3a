// A page with the timeline of a Profile, to zoom into, and its table.
//
//   absl::Status written = WriteHtmlTimeline(profile, "profile.html");
//
// The page is one file that needs no network, in the language of the run. It
// shows the picture of Timeline::WithRanges in the window's width; the wheel,
// keys and buttons zoom, and the mouse drags it. A block that is pointed at is
// described below. The table is that of KeyAverages, with the profile's notes.
//
// A page takes 2 MB at most: where a profile has more calls than fit, short
// neighbours are drawn as one block. WriteChromeTrace
// (common/profiler/export.h) writes each call with all that is known of it, for
// Perfetto.
//
// Pure functions of a Profile, thread-safe.

#ifndef D2L_COMMON_DRAWING_HTML_TIMELINE_H_
#define D2L_COMMON_DRAWING_HTML_TIMELINE_H_

#include <string>

#include "absl/status/status.h"
#include "common/profiler/profile.h"

namespace d2l {

std::string ToHtmlTimeline(const Profile& profile,
                           const std::string& title = "Profile");

// Replaces the file as a whole, or not at all; the error names it.
absl::Status WriteHtmlTimeline(const Profile& profile, const std::string& path,
                               const std::string& title = "Profile");

}  // namespace d2l

#endif  // D2L_COMMON_DRAWING_HTML_TIMELINE_H_
