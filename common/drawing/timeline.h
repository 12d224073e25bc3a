// Timeline: when the front end requested operations and when devices ran them.
//
//   Profiler profiler;
//   {
//     ProfileScope scope(profiler);
//     z = MatMul(x, y) + 2;
//   }
//   const Timeline timeline(profiler.profile());
//   std::cout << timeline.ToText();
//
// A row for each thread of the front end: its calls, and its waits for devices
// (reads and Synchronize). A row for each stream: its operations, and its
// waits: an operation had been requested, and the stream was free but had not
// begun it. It waited for another stream's event, or its worker woke up. Time
// begins with the first request.
//
// Thread-safety: a value; const methods may be called at the same time.

#ifndef D2L_COMMON_DRAWING_TIMELINE_H_
#define D2L_COMMON_DRAWING_TIMELINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/text.h"
#include "common/drawing/drawing.h"
#include "common/profiler/profile.h"

namespace d2l {

enum class SpanKind { kRequest, kWork, kWait };

struct TimelineSpan {
  SpanKind kind = SpanKind::kWork;
  std::string name;
  std::int64_t begin = 0;  // nanoseconds from the first request
  std::int64_t end = 0;
  std::int64_t requested = 0;  // of work: when the call had returned
};

struct TimelineRow {
  std::string name;                 // "front end", "cpu:0/1"
  bool is_stream = false;           // or a thread
  std::vector<TimelineSpan> spans;  // by begin
  double busy_seconds = 0;          // requesting or working
  double waiting_seconds = 0;
};

class Timeline {
 public:
  // Of operations, views, reads and waits; ranges and steps are left out.
  explicit Timeline(const Profile& profile);

  const std::vector<TimelineRow>& rows() const { return rows_; }
  // From the first request to the last thing that happened.
  std::int64_t nanos() const { return nanos_; }

  // For a terminal: a letter for each kind of operation, ':' where it waited,
  // and an axis. A column shows what filled most of it.
  std::string ToText(int width = kTextWidth) const;

  std::string ToSvg(const std::string& title = "") const;

  Drawing Draw(const std::string& name) const;

 private:
  std::vector<TimelineRow> rows_;
  std::int64_t nanos_ = 0;
};

// Round times for the marks of an axis from 0 to `end`: at most `most`, in
// nanoseconds, 0 the first. One mark if nothing happened.
std::vector<std::int64_t> AxisTimes(std::int64_t end, int most);

}  // namespace d2l

#endif  // D2L_COMMON_DRAWING_TIMELINE_H_
