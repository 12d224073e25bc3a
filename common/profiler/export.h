// Exports of a Profile: a trace, and a page to look at in a browser.
//
//   absl::Status written = WriteChromeTrace(profile, "trace.json");
//   written = WriteHtmlTimeline(profile, "profile.html");
//
// The trace is a file that Perfetto (https://ui.perfetto.dev) and
// chrome://tracing open: the Trace Event Format, a JSON object. It contains:
//   - a process for the front end, with a track for each of its threads, and
//     one for each device, with a track for each stream;
//   - for each span a slice on its thread; for each operation whose time on the
//     device was measured also a slice on its stream, and an arrow from the one
//     to the other. Their arguments: the input's shapes and dtypes, the source
//     line, the number in the stream, host_us, queue_us and device_us, and the
//     cost: flop and bytes and, with ProfilerOptions::with_bounds, the kind of
//     its bound and the bound's time (bound_us). If there is no device time,
//     the argument `device` says why;
//   - counters of the memory of each device, pinned memory apart;
//   - in otherData, which chrome://tracing shows as metadata: the devices, the
//     notes of the profile, and what was cut.
// Times are in microseconds from Profile::begin, to the nanosecond.
//
// The page is one file that needs no network. It has a row for each thread of
// the front end, for each stream, and for the memory of each device. The reader
// can zoom, search, and select a call to see its details and its time. The
// notes of the profile stand on top. The page is in the language of the run
// (common/base/console/language.h), or in the one of its address:
// "profile.html?lang=zh".
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
  std::string title = "Profile";  // of a page
  // Of a longer profile, the first spans of each range are kept, and a note
  // says so. A span takes up to 1 kB of a trace, 80 bytes of a page.
  std::int64_t max_spans = 20'000;
  // For each curve of memory. A longer curve keeps its peaks. At least 4.
  int max_memory_points = 4'000;
  // How to get more spans, for the note.
  std::string more_spans = "The option max_spans sets how many.";
};

std::string ToChromeTrace(const Profile& profile,
                          const ExportOptions& options = {});
std::string ToHtmlTimeline(const Profile& profile,
                           const ExportOptions& options = {});

// Replace the file as a whole, or not at all; the error names it.
absl::Status WriteChromeTrace(const Profile& profile, const std::string& path,
                              const ExportOptions& options = {});
absl::Status WriteHtmlTimeline(const Profile& profile, const std::string& path,
                               const ExportOptions& options = {});

// Shared by both exports: the spans that fit, the intervals of the devices'
// work, and the points of a memory curve that are kept.

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

struct DrawnInterval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// For each span, the interval in which its work is drawn on its stream; {0, 0}
// if its time was not measured. Intervals of a stream are disjoint and none
// begins before its request: if the conversion between clocks contradicts that,
// the later begin is moved.
std::vector<DrawnInterval> DrawnDeviceWork(const Profile& profile);

// Whether the work of the span has an interval of its own.
inline bool HasDeviceWork(const ProfiledSpan& span) {
  return span.stream >= 0 && span.device_time == DeviceTime::kMeasured;
}

// A curve of memory, thinned.
struct MemoryCurve {
  int device = 0;
  bool pinned = false;
  std::vector<MemoryPoint> points;  // by time
};

// Returns a curve for each device and kind of memory that has points: the
// devices in their order, pinned memory after the device's own. Of neighbouring
// points, it keeps those with the most allocated, pending, and both together,
// and the last; at most `max_points` (4 or more) of a curve.
std::vector<MemoryCurve> ThinnedMemory(const Profile& profile, int max_points);

// "memory of cpu:0", "pinned memory of cuda:0".
std::string MemoryCurveName(const Profile& profile, const MemoryCurve& curve);

// Why an operation has no device time: a phrase; "" for kMeasured.
const char* WhyNoDeviceTime(DeviceTime device_time);

// "operation", "view", "read", "wait", "queue full", "range".
const char* KindName(ProfiledKind kind);

// The description of a device, or its name where there is none.
std::string DescriptionOf(const ProfiledDevice& device);

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_EXPORT_H_
