// Timeline: when the front end asked and when the devices worked.
//
//   const Recording run = Record([&] { z = MatMul(x, y) + 2; });
//   std::cout << Timeline(run).ToText();
//   cell.Show(Timeline(run).Draw("timeline"));
//   std::cout << Timeline(profiler.profile()).ToText();
//
// A row for each thread of the front end: when its calls were made and had
// returned, and when it waited for a device. A row for each stream: when its
// operations ran, and when one had been asked for but the stream, though free,
// had not begun it: it waited for another stream's event, or its worker woke
// up. Time begins with the first request.
//
// What the front end waits for is known of reads (Item, ToVector, printing),
// in a Recording also of what went through Recorder::Wait, in a Profile of
// every Synchronize.
//
// Thread-safety: a value; const methods may be called at the same time. It
// owns a copy of the recording.

#ifndef D2L_COMMON_DRAWING_TIMELINE_H_
#define D2L_COMMON_DRAWING_TIMELINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/text.h"
#include "common/drawing/drawing.h"
#include "common/lesson/recorder.h"
#include "common/profiler/profile.h"

namespace d2l {

enum class SpanKind { kRequest, kWork, kWait };

struct TimelineSpan {
  SpanKind kind = SpanKind::kWork;
  int op = -1;  // by the order of requests; -1 for a wait of the front end
  std::string name;
  std::int64_t begin = 0;  // nanoseconds from the first request
  std::int64_t end = 0;
};

struct TimelineRow {
  std::string name;                 // "front end", "cpu:0/1"
  int stream = -1;                  // in the recording; -1 for a thread
  std::vector<TimelineSpan> spans;  // by begin
  double busy_seconds = 0;          // requesting or working
  double waiting_seconds = 0;
};

class Timeline {
 public:
  explicit Timeline(Recording recording);
  // Of operations, views, reads and waits; ranges and steps have no row.
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
  Recording recording_;
  std::vector<TimelineRow> rows_;
  std::int64_t nanos_ = 0;
};

// Round times for the marks of an axis from 0 to `end`: at most `most`, in
// nanoseconds, 0 the first. One mark if nothing happened.
std::vector<std::int64_t> AxisTimes(std::int64_t end, int most);

}  // namespace d2l

#endif  // D2L_COMMON_DRAWING_TIMELINE_H_
