// A Profile as a page to look at in a browser: one file that needs no network.
//
//   absl::Status written = WriteHtmlTimeline(profile, "profile.html");
//
// It has a row for each thread of the front end, for each stream, and for the
// memory of each device; one zooms, searches, and selects a call to see all
// that is known of it and when it ran. The notes of the profile stand on top.
// It speaks the language of the run (common/base/console/language.h), or what
// its address asks for: "profile.html?lang=zh".
//
// Pure functions of a Profile, thread-safe.

#ifndef D2L_COMMON_PROFILER_HTML_TIMELINE_H_
#define D2L_COMMON_PROFILER_HTML_TIMELINE_H_

#include <string>

#include "absl/status/status.h"
#include "common/profiler/export.h"
#include "common/profiler/profile.h"

namespace d2l {

std::string ToHtmlTimeline(const Profile& profile,
                           const ExportOptions& options = {});

// Replaces the file as a whole, or not at all; the error names it.
absl::Status WriteHtmlTimeline(const Profile& profile, const std::string& path,
                               const ExportOptions& options = {});

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_HTML_TIMELINE_H_
