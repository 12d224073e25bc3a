// A Profile as a trace.
//
//   absl::Status written = WriteChromeTrace(profile, "trace.json");
//
// The trace is a file that Perfetto (https://ui.perfetto.dev) and
// chrome://tracing open: the Trace Event Format, a JSON object. Its categories
// and the arguments `correlation`, `stream` and `device` are those of PyTorch's
// profiler, so that tools for its traces, such as Holistic Trace Analysis, read
// this one. It contains:
//   - a process for the front end, with a track for each of its threads, and
//     one for each device, with a track for each stream;
//   - for each span a slice on its thread; for each operation whose time on the
//     device was measured also a slice on its stream, and an arrow from the one
//     to the other; a copy is called "Memcpy (to)" on its stream. Arguments:
//     the input's shapes and dtypes, the source line, the number in the stream,
//     host_us, queue_us and device_us, and the
//     cost: flop and bytes and, with ProfilerOptions::with_bounds, the kind of
//     its bound and the bound's time (bound_us). If there is no device time,
//     the argument no_device_time says why;
//   - counters of the memory of each device, pinned memory apart;
//   - in otherData, which chrome://tracing shows as metadata: the devices, the
//     notes of the profile, and what was cut.
// Times are in microseconds from Profile::begin, to the nanosecond.
//
// Pure functions of a Profile, thread-safe.

#ifndef D2L_COMMON_PROFILER_EXPORT_H_
#define D2L_COMMON_PROFILER_EXPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/profiler/profile.h"

namespace d2l {

struct ExportOptions {
  // Of a longer profile, the first spans of each range are kept, and a note
  // says so. A span takes up to 1 kB.
  std::int64_t max_spans = 20'000;
  // For each curve of memory. A longer curve keeps its peaks. At least 4.
  int max_memory_points = 4'000;
  // How to get more spans, for the note.
  std::string more_spans = "The option max_spans sets how many.";
};

std::string ToChromeTrace(const Profile& profile,
                          const ExportOptions& options = {});

// Replaces the file as a whole, or not at all; the error names it.
absl::Status WriteChromeTrace(const Profile& profile, const std::string& path,
                              const ExportOptions& options = {});

struct SpansThatFit {
  std::vector<bool> kept;  // for each span of the profile
  std::int64_t cut = 0;    // how many are not kept
  // The begin of the first omitted span of each range, sorted by time.
  std::vector<std::int64_t> cut_at;
  std::string note;  // on the cut; "" if there is none
};

// Keeps at most max_spans spans: first the ranges, in the order of time; then
// the first calls of each range, the same number of each. A thread's calls
// outside all ranges count as a range. The parent of a kept span is kept.
SpansThatFit FitSpans(const Profile& profile, const ExportOptions& options);

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_EXPORT_H_
