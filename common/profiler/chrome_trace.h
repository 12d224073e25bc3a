// A Profile as a file that Perfetto (https://ui.perfetto.dev) and
// chrome://tracing open: the Trace Event Format, a JSON object.
//
//   absl::Status written = WriteChromeTrace(profile, "trace.json");
//
// It contains:
//   - a process for the front end, with a track for each of its threads, and
//     one for each device, with a track for each stream;
//   - for each span a slice on its thread; for each operation whose time on the
//     device was measured also a slice on its stream, and an arrow from the one
//     to the other. Their arguments: the input's shapes and dtypes, the source
//     line, the number in the stream, host_us, queue_us and device_us. Where
//     there is no device time, the argument `device` says why;
//   - counters of the memory of each device, pinned memory apart;
//   - in otherData, which chrome://tracing shows as metadata: the devices, the
//     notes of the profile, and what was cut.
// Times are in microseconds from Profile::begin, to the nanosecond.
//
// Pure functions of a Profile, thread-safe.

#ifndef D2L_COMMON_PROFILER_CHROME_TRACE_H_
#define D2L_COMMON_PROFILER_CHROME_TRACE_H_

#include <string>

#include "absl/status/status.h"
#include "common/profiler/export.h"
#include "common/profiler/profile.h"

namespace d2l {

std::string ToChromeTrace(const Profile& profile,
                          const ExportOptions& options = {});

// Replaces the file as a whole, or not at all; the error names it.
absl::Status WriteChromeTrace(const Profile& profile, const std::string& path,
                              const ExportOptions& options = {});

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_CHROME_TRACE_H_
