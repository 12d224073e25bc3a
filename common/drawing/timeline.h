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
// Alternatives are drawn one above the other, on one axis:
//
//   cell.Show(DrawTimelines("both orders",
//                           {{"notebook", ProfileProgram(course)},
//                            {"in turn", ProfileProgram(in_turn)}}));
//
//   notebook front end |=xxxxxxxxxxxxxx=                   |   6 %
//            cpu:0     |#################                  |  49 %
//            cpu:1     |                 ##################|  51 %
//   in turn  front end |===                                |  18 %
//            cpu:0     |#################                  |  99 %
//            cpu:1     |#################                  |  99 %
//                       ^0           ^10 ms       ^20 ms
//
// The front end has a row for each thread: its calls, its waits for devices
// (reads and Synchronize), and the times when a full queue blocked it. Each
// stream has a row: its operations, and its waits, when an operation had been
// requested and the free stream had not begun it, because it waited for another
// stream's event, or its worker woke up. Time begins with the first request.
//
// Thread-safety: a value; const methods may be called at the same time.

#ifndef D2L_COMMON_DRAWING_TIMELINE_H_
#define D2L_COMMON_DRAWING_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/drawing/drawing.h"
#include "common/profiler/profile.h"

namespace d2l {

enum class SpanKind { kRequest, kWork, kWait, kBlocked, kRange };

struct TimelineSpan {
  SpanKind kind = SpanKind::kWork;
  std::string name;
  std::int64_t begin = 0;  // nanoseconds from the first request
  std::int64_t end = 0;
  std::int64_t requested = 0;  // for work: when the call had returned
};

struct TimelineRow {
  // Texts are in the run's language.
  std::string alternative;          // "" if there is only one
  std::string name;                 // "front end", "cpu:0/1", "ranges"
  bool is_stream = false;           // else a thread, or ranges
  std::vector<TimelineSpan> spans;  // by begin, disjoint on a thread
  std::int64_t nanos = 0;           // of all rows of the alternative
  double busy_seconds = 0;          // requesting or working
};

struct NamedProfile {
  Phrase name;
  Profile profile;
};

class Timeline {
 public:
  // Shows operations, views, reads and waits, but no ranges and steps.
  explicit Timeline(const Profile& profile) { Add("", profile); }
  explicit Timeline(const std::vector<NamedProfile>& alternatives) {
    for (const auto& [name, profile] : alternatives) {
      Add(name.shown, profile);
    }
  }

  // Shows also the ranges (RecordFunction), above the other rows: a row for
  // each depth in a thread. Time begins with the first range.
  static Timeline WithRanges(const Profile& profile);

  const std::vector<TimelineRow>& rows() const { return rows_; }
  // The time from the first request to the end, of the longest alternative.
  std::int64_t nanos() const { return nanos_; }

  // For a terminal: a letter for each kind of operation, capital and small in
  // turn where one takes a column or more; or '=' for requests and '#' for
  // work, if there is only one kind. A letter's share of the marks is its share
  // of the time. At the end of a row: the share of its alternative's time in
  // which it requests or works. Ranges are left out.
  std::string ToText(int width = kTextWidth) const;

  // Neighbours that are too thin to be distinguished become one block, so that
  // the picture's size is bounded by the width of its time axis, in pixels.
  std::string ToSvg(const std::string& title = "",
                    double axis_width = kAxisWidth) const;

  Drawing Draw(const Phrase& name) const;

 private:
  static constexpr double kAxisWidth = 860;

  Timeline() = default;
  void Add(const std::string& alternative, const Profile& profile,
           bool with_ranges = false);
  // Completes the rows from this one on, which have their spans.
  void Finish(std::size_t first_row);

  std::vector<TimelineRow> rows_;
  std::int64_t nanos_ = 0;
  // The operations' names, in the order of the rows.
  std::vector<std::string> names_;
  // The reason why the front end was blocked: "front end blocked: queue full
  // 4096/4096". Empty if it was not.
  std::string blocked_;
};

inline Drawing DrawTimelines(const Phrase& name,
                             const std::vector<NamedProfile>& alternatives) {
  return Timeline(alternatives).Draw(name);
}

// Round times for the marks of an axis from 0 to `end`, in nanoseconds: at most
// `most`, 0 the first. One mark if nothing happened.
std::vector<std::int64_t> AxisTimes(std::int64_t end, int most);

}  // namespace d2l

#endif  // D2L_COMMON_DRAWING_TIMELINE_H_
