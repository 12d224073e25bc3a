#include "common/drawing/timeline.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/drawing/drawing.h"
#include "common/drawing/plot.h"
#include "common/drawing/svg.h"
#include "common/drawing/text_canvas.h"
#include "common/profiler/profile.h"

namespace d2l {
namespace {

double Seconds(std::int64_t nanos) { return 1e-9 * static_cast<double>(nanos); }

// The work of a stream, and its waits: the times when it was free, but had not
// begun a requested operation.
std::vector<TimelineSpan> WithWaits(const std::vector<TimelineSpan>& work) {
  std::vector<TimelineSpan> spans;
  std::int64_t free_from = 0;
  for (const TimelineSpan& span : work) {
    const std::int64_t from = std::max(free_from, span.requested);
    if (from < span.begin) {
      spans.push_back({SpanKind::kWait, span.name, from, span.begin});
    }
    spans.push_back(span);
    free_from = std::max(free_from, span.end);
  }
  return spans;
}

// The marks of the operations' names: A, B, … (x stands for blocked), and '*'
// if the letters run out; or, for a single name, '=' for requests and '#' for
// work.
class Marks {
 public:
  explicit Marks(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const auto n = static_cast<int>(letters_.size());
      letters_[name] = n < kLetters ? static_cast<char>('A' + n) : '*';
    }
    one_ = letters_.size() == 1;
  }
  char Of(const TimelineSpan& span) const {
    if (span.kind == SpanKind::kWait) return ':';
    if (span.kind == SpanKind::kBlocked) return 'x';
    if (one_) return span.kind == SpanKind::kRequest ? '=' : '#';
    return letters_.at(span.name);
  }
  // The mark of every second call of one name.
  static char Alternate(char mark) {
    if (mark == '=') return '-';
    return mark == '#' ? '%' : absl::ascii_tolower(mark);
  }
  // "A matmul, B add"; `space` is between a mark and its meaning.
  std::string Key(const std::vector<std::string>& names,
                  const char* space) const {
    if (one_) {
      return absl::StrCat("=", space, Translated("enqueues"), ", # or %", space,
                          Lead("works:"), names[0]);
    }
    std::string key;
    for (const std::string& name : names) {
      const char letter = letters_.at(name);
      if (letter == '*')
        return absl::StrCat(key, ", *", space, Translated("others"));
      absl::StrAppend(&key, key.empty() ? "" : ", ", std::string(1, letter),
                      space, name);
    }
    return key;
  }

 private:
  static constexpr int kLetters = 23;
  std::map<std::string, char> letters_;
  bool one_ = false;
};

bool IsBusy(char mark) { return mark != ' ' && mark != ':'; }

// For each column of a row, the shares of it that its marks fill.
using Shares = std::vector<std::map<char, double>>;

// A span that is shorter than a column has at least this share of it, so that
// it is shown if nothing longer is in the column.
constexpr double kLeastShare = 1e-6;

Shares SharesOfColumns(const TimelineRow& row, int columns,
                       double nanos_per_column, const Marks& marks) {
  Shares shares(columns);
  char before = ' ';
  for (const TimelineSpan& span : row.spans) {
    char mark = marks.Of(span);
    const double begin = static_cast<double>(span.begin) / nanos_per_column;
    const double end = static_cast<double>(span.end) / nanos_per_column;
    if (IsBusy(mark) && end - begin >= 1) {
      if (before == mark) mark = Marks::Alternate(mark);
      before = mark;
    }
    const int first = std::clamp(static_cast<int>(begin), 0, columns - 1);
    const int last = std::clamp(static_cast<int>(end), first, columns - 1);
    for (int column = first; column <= last; ++column) {
      const double share = std::min(end, column + 1.0) -
                           std::max(begin, static_cast<double>(column));
      shares[column][mark] += std::max(share, IsBusy(mark) ? kLeastShare : 0);
    }
  }
  return shares;
}

// A mark for each column, such that every mark has its share of the columns: a
// column shows the mark whose shares so far exceed its columns so far the most.
std::string MarksOfColumns(const Shares& columns) {
  std::map<char, double> owed;  // the shares so far, less the columns so far
  std::string text;
  for (const std::map<char, double>& shares : columns) {
    double sum = 0;
    for (const auto& [mark, share] : shares) sum += share;
    char shown = ' ';
    for (const auto& [mark, share] : shares) {
      if (share <= 0) continue;
      owed[mark] += share / sum;
      if (shown == ' ' || owed[mark] > owed[shown]) shown = mark;
    }
    if (shown != ' ') owed[shown] -= 1;
    text += shown;
  }
  return text;
}

// Shows where the row is busiest, if no column shows that it is busy at all.
void ShowBusiest(const Shares& columns, std::string* text) {
  if (std::any_of(text->begin(), text->end(), IsBusy)) return;
  double most = 0;
  std::size_t busiest = 0;
  char mark_there = ' ';
  for (std::size_t column = 0; column < columns.size(); ++column) {
    for (const auto& [mark, share] : columns[column]) {
      if (!IsBusy(mark) || share <= most) continue;
      most = share;
      busiest = column;
      mark_there = mark;
    }
  }
  if (most > 0) (*text)[busiest] = mark_there;
}

std::string RowColumns(const TimelineRow& row, int columns,
                       double nanos_per_column, const Marks& marks) {
  const Shares shares = SharesOfColumns(row, columns, nanos_per_column, marks);
  std::string text = MarksOfColumns(shares);
  ShowBusiest(shares, &text);
  return text;
}

bool IsWait(const TimelineSpan& span) { return span.kind == SpanKind::kWait; }

double Nanos(const TimelineSpan& span) {
  return static_cast<double>(span.end - span.begin);
}

// One span of a picture, or neighbours too thin to distinguish.
struct DrawnSpan {
  TimelineSpan span;
  int count;
};

// gap: nanoseconds that are not seen. Neighbours without a visible gap between
// them become one: all that are alike, and others until what they fill is seen;
// it is named after the longest of these.
std::vector<DrawnSpan> JoinThin(const std::vector<TimelineSpan>& spans,
                                double gap) {
  const auto is_thin = [&](const TimelineSpan& span) {
    return Nanos(span) < 2 * gap;
  };
  std::vector<DrawnSpan> drawn;
  bool joins = false;
  double longest = 0;  // of those that the last drawn one joins
  for (const TimelineSpan& next : spans) {
    const double length = IsWait(next) ? 0 : Nanos(next);
    if (joins && is_thin(next)) {
      auto& [span, count] = drawn.back();
      const bool alike = next.kind == span.kind && next.name == span.name;
      if (static_cast<double>(next.begin - span.end) < gap &&
          (alike || IsWait(next) || is_thin(span))) {
        if (length > longest) {
          longest = length;
          span.kind = next.kind;
          span.name = next.name;
        }
        span.end = std::max(span.end, next.end);
        ++count;
        continue;
      }
    }
    drawn.push_back({next, 1});
    joins = is_thin(next);
    longest = length;
  }
  return drawn;
}

constexpr double kSvgRow = 34;
constexpr double kSvgGap = 0.7;  // between neighbours
constexpr char kBlockedColour[] = "#D55E00";
constexpr char kRangeColour[] = "#dddddd";
constexpr char kWaitColour[] = "#eeeeee";
constexpr char kOthersColour[] = "#999999";

// The colours of the operations, and what the picture's key says of colours.
struct Colours {
  Colours(const std::vector<std::string>& names, const std::string& blocked) {
    // The palette's next colour is that of blocked time.
    constexpr std::size_t kColours = 6;
    for (const std::string& name : names) {
      const std::size_t n = of_name.size();
      of_name[name] =
          n < kColours ? PaletteColour(static_cast<int>(n)) : kOthersColour;
      if (n <= kColours) {
        key.emplace_back(of_name[name],
                         n < kColours ? name : Translated("others"));
      }
    }
    if (!blocked.empty()) key.emplace_back(kBlockedColour, blocked);
    key.emplace_back(kWaitColour, Translated("waiting"));
  }
  std::string Of(const TimelineSpan& span) const {
    if (span.kind == SpanKind::kBlocked) return kBlockedColour;
    if (span.kind == SpanKind::kRange) return kRangeColour;
    return of_name.at(span.name);
  }

  std::map<std::string, std::string> of_name;
  std::vector<std::pair<std::string, std::string>> key;  // colour, text
};

// x, wide: where it lies; y: the top of its row.
void DrawSpan(const DrawnSpan& drawn, double x, double wide, double y,
              const Colours& colours, Svg* svg) {
  const TimelineSpan& span = drawn.span;
  const std::string tooltip =
      Say("%s%s%s\n%s from %s", span.name,
          IsWait(span) ? ", " + Translated("waiting") : "",
          drawn.count == 1 ? "" : Say(", %d spans", drawn.count),
          FormatDuration(Seconds(span.end - span.begin)),
          FormatDuration(Seconds(span.begin)));
  if (IsWait(span)) {
    svg->Rect(x, y + kSvgRow / 2 - 3, wide, 6, {kWaitColour, "#aaaaaa", 0.5},
              tooltip);
    return;
  }
  svg->Rect(x, y + 4, wide - (wide > 2 * kSvgGap ? kSvgGap : 0), kSvgRow - 10,
            {colours.Of(span), wide > 4 ? "#333333" : "none", 0.5}, tooltip);
  if (wide > Svg::TextWidth(span.name, 10) + 4) {
    svg->Text(x + wide / 2, y + kSvgRow / 2 + 3, span.name, {10, "middle"});
  }
}

struct KeyPlace {
  double x;
  double y;  // of the text's line
};

// Where the entries of the key stand: in lines from `left` to `right`.
std::vector<KeyPlace> PlacesOfKey(const Colours& colours, double left,
                                  double right, double first_line) {
  constexpr double kLine = 20;
  std::vector<KeyPlace> places;
  double x = left;
  double y = first_line;
  for (const auto& [colour, text] : colours.key) {
    const double wide = 34 + Svg::TextWidth(text, 11);
    if (x > left && x + wide > right) {
      x = left;
      y += kLine;
    }
    places.push_back({x, y});
    x += wide;
  }
  return places;
}

bool IsOfRanges(const TimelineRow& row) {
  return !row.spans.empty() && row.spans[0].kind == SpanKind::kRange;
}

bool IsRange(const ProfiledSpan& span) {
  return span.kind == ProfiledKind::kRange;
}

// When the first call began, or the first range. 0 if there is none.
std::int64_t TimeOfFirst(const Profile& profile, bool with_ranges) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const ProfiledSpan& span : profile.spans) {
    if (with_ranges || !IsRange(span)) first = std::min(first, span.host_begin);
  }
  return first;
}

// A row for each depth of a thread's ranges within ranges, the outermost first.
std::vector<TimelineRow> RowsOfRanges(const Profile& profile,
                                      std::int64_t start) {
  constexpr int kMostDepths = 6;
  std::vector<int> depths;  // of the spans: how many ranges are around
  std::map<std::pair<int, int>, TimelineRow> rows;  // by thread and depth
  for (const ProfiledSpan& span : profile.spans) {
    int depth = 0;
    if (span.parent >= 0) {
      depth =
          depths[span.parent] + (IsRange(profile.spans[span.parent]) ? 1 : 0);
    }
    depths.push_back(depth);
    if (!IsRange(span) || depth >= kMostDepths) continue;
    TimelineRow& row = rows[{span.thread, depth}];
    if (depth == 0) row.name = Translated("ranges");
    row.spans.push_back({SpanKind::kRange, span.name, span.host_begin - start,
                         span.host_end - start});
  }
  std::vector<TimelineRow> in_order;
  for (auto& [thread_and_depth, row] : rows) in_order.push_back(std::move(row));
  return in_order;
}

// Adds a call to those of its thread before it.
void AddCall(const ProfiledSpan& span, std::int64_t start,
             std::vector<TimelineSpan>* calls) {
  const std::int64_t begin = span.host_begin - start;
  const std::int64_t end = span.host_end - start;
  if (span.kind != ProfiledKind::kQueueFull) {
    const bool waits =
        span.kind == ProfiledKind::kRead || span.kind == ProfiledKind::kWait;
    calls->push_back(
        {waits ? SpanKind::kWait : SpanKind::kRequest, span.name, begin, end});
    return;
  }
  // The front end is blocked within the call before, whose rest follows.
  const TimelineSpan around = calls->empty() ? TimelineSpan() : calls->back();
  if (around.end > begin) calls->back().end = begin;
  const std::string full = span.name.substr(span.name.rfind(' ') + 1);
  calls->push_back({SpanKind::kBlocked,
                    Say("front end blocked: queue full %s", full), begin, end});
  if (around.end > end) {
    calls->push_back({around.kind, around.name, end, around.end});
  }
}

}  // namespace

std::vector<std::int64_t> AxisTimes(std::int64_t end, int most) {
  std::vector<std::int64_t> times = {0};
  if (end <= 0 || most < 2) return times;
  std::int64_t step = 1;
  for (int i = 0; end / step + 1 > most; ++i)
    step = step * (i % 3 == 1 ? 5 : 4) / 2;
  for (std::int64_t t = step; t <= end; t += step) times.push_back(t);
  return times;
}

Timeline Timeline::WithRanges(const Profile& profile) {
  Timeline timeline;
  timeline.Add("", profile, /*with_ranges=*/true);
  return timeline;
}

void Timeline::Add(const std::string& alternative, const Profile& profile,
                   bool with_ranges) {
  const std::size_t first = rows_.size();
  const std::int64_t start = TimeOfFirst(profile, with_ranges);
  if (with_ranges) rows_ = RowsOfRanges(profile, start);
  const std::size_t first_thread = rows_.size();
  const std::string front_end = Translated("front end");
  for (const ProfiledThread& thread : profile.threads) {  // "front end 2"
    rows_.push_back(
        {alternative,
         absl::StrReplaceAll(thread.name, {{"front end", front_end}}),
         /*is_stream=*/false,
         {}});
  }
  const std::size_t first_stream = rows_.size();
  for (const ProfiledStream& stream : profile.streams) {
    rows_.push_back({alternative, stream.name, /*is_stream=*/true, {}});
  }
  for (const ProfiledSpan& span : profile.spans) {
    if (IsRange(span)) continue;
    AddCall(span, start, &rows_[first_thread + span.thread].spans);
    if (span.device_time != DeviceTime::kMeasured) continue;
    rows_[first_stream + span.stream].spans.push_back(
        {SpanKind::kWork, span.name, span.device_begin - start,
         span.device_end - start, /*requested=*/span.host_end - start});
  }
  Finish(first);
}

void Timeline::Finish(std::size_t first_row) {
  std::int64_t nanos = 0;
  for (std::size_t r = first_row; r < rows_.size(); ++r) {
    TimelineRow& row = rows_[r];
    std::stable_sort(row.spans.begin(), row.spans.end(),
                     [](const TimelineSpan& a, const TimelineSpan& b) {
                       return a.begin < b.begin;
                     });
    if (row.is_stream) row.spans = WithWaits(row.spans);
    for (const TimelineSpan& span : row.spans) {
      nanos = std::max(nanos, span.end);
      if (span.kind == SpanKind::kRequest || span.kind == SpanKind::kWork) {
        row.busy_seconds += Seconds(span.end - span.begin);
        const auto known = std::find(names_.begin(), names_.end(), span.name);
        if (known == names_.end()) names_.push_back(span.name);
      }
      if (span.kind == SpanKind::kBlocked && blocked_.empty()) {
        blocked_ = span.name;
      }
    }
  }
  for (std::size_t r = first_row; r < rows_.size(); ++r) {
    rows_[r].nanos = nanos;
  }
  nanos_ = std::max(nanos_, nanos);
}

std::string Timeline::ToText(int width) const {
  if (nanos_ == 0) return Translated("Nothing was recorded.\n");
  std::size_t alternatives = 0;
  std::size_t row_names = 0;
  for (const TimelineRow& row : rows_) {
    if (IsOfRanges(row)) continue;
    if (!row.alternative.empty()) {
      alternatives = std::max(alternatives, TextColumns(row.alternative) + 1);
    }
    row_names = std::max(row_names, TextColumns(row.name) + 1);
  }
  const int name_width = static_cast<int>(alternatives + row_names);
  constexpr int kShareWidth = 6;  // " 100 %"
  const int columns = std::max(10, width - name_width - 2 - kShareWidth);
  const double per_column = static_cast<double>(nanos_) / columns;
  const Marks marks(names_);
  std::string text;
  std::string above;
  for (const TimelineRow& row : rows_) {
    if (IsOfRanges(row)) continue;
    absl::StrAppendFormat(
        &text, "%s%s|%s| %3.0f %%\n",
        Padded({"", row.alternative == above ? "" : row.alternative},
               static_cast<int>(alternatives)),
        Padded({"", row.name}, static_cast<int>(row_names)),
        RowColumns(row, columns, per_column, marks),
        100 * row.busy_seconds / Seconds(std::max<std::int64_t>(row.nanos, 1)));
    above = row.alternative;
  }
  TextCanvas axis;
  int free = 0;
  for (const std::int64_t time : AxisTimes(nanos_, columns / 10)) {
    const int x =
        name_width + 1 +
        std::min(columns - 1,
                 static_cast<int>(static_cast<double>(time) / per_column));
    const std::string label = "^" + AxisLabel(Seconds(time), "s");
    const int end = x + static_cast<int>(label.size());
    if (x < free || end > width) continue;
    axis.Write(x, 0, label);
    free = end + 1;
  }
  // Lines break at spaces, but never between a mark and its meaning.
  constexpr char kNoBreak[] = "\u00a0";
  std::string key = marks.Key(names_, kNoBreak);
  if (!blocked_.empty()) absl::StrAppend(&key, ", x", kNoBreak, blocked_);
  absl::StrAppend(&key, ", :", kNoBreak,
                  Say("waiting, blank idle. A column is %s.",
                      FormatDuration(1e-9 * per_column)));
  return absl::StrCat(
      text, axis.ToString(),
      absl::StrReplaceAll(Wrap(key, "", width), {{kNoBreak, " "}}));
}

namespace {

// The places of an SVG file's parts, in pixels. x grows by the time, y by rows.
struct SvgLayout {
  static constexpr double kMargin = 20;
  static constexpr double kTop = 46;
  static constexpr double kHeading = 22;  // of an alternative

  SvgLayout(const std::vector<TimelineRow>& rows, std::int64_t nanos,
            double axis_width)
      : nanos(static_cast<double>(nanos)), width(axis_width) {
    double names_width = 70;
    std::string above;
    for (const TimelineRow& row : rows) {
      names_width = std::max(names_width, Svg::TextWidth(row.name, 12));
      bottom += kSvgRow + (row.alternative == above ? 0 : kHeading);
      above = row.alternative;
    }
    left = kMargin + names_width + 10;
  }
  double X(std::int64_t time) const {
    return left + width * static_cast<double>(time) / nanos;
  }

  double nanos;
  double width;
  double left = 0;
  double bottom = kTop;
};

void DrawAxis(const SvgLayout& layout, std::int64_t nanos, Svg* svg) {
  svg->Begin("axis");
  for (const std::int64_t time : AxisTimes(nanos, 10)) {
    const double x = layout.X(time);
    svg->Line(x, SvgLayout::kTop, x, layout.bottom + 4, {"#dddddd", 1});
    svg->Text(x, layout.bottom + 18, AxisLabel(Seconds(time), "s"),
              {11, "middle"});
  }
  svg->End();
}

void DrawRows(const SvgLayout& layout, const std::vector<TimelineRow>& rows,
              const Colours& colours, Svg* svg) {
  const double gap = kSvgGap * layout.nanos / layout.width;
  double y = SvgLayout::kTop;
  std::string above;
  for (const TimelineRow& row : rows) {
    if (row.alternative != above) {
      above = row.alternative;
      svg->Text(SvgLayout::kMargin, y + SvgLayout::kHeading - 6, above,
                {12, "start", "#111111", true});
      y += SvgLayout::kHeading;
    }
    svg->Text(layout.left - 10, y + kSvgRow / 2 + 4, row.name, {12, "end"});
    svg->Begin("spans");
    svg->Rect(layout.left, y + kSvgRow - 3, layout.width, 1, {"#cccccc"});
    for (const DrawnSpan& drawn : JoinThin(row.spans, gap)) {
      const double x = layout.X(drawn.span.begin);
      DrawSpan(drawn, x, std::max(kSvgGap, layout.X(drawn.span.end) - x), y,
               colours, svg);
    }
    svg->End();
    y += kSvgRow;
  }
}

void DrawKey(const Colours& colours, const std::vector<KeyPlace>& places,
             Svg* svg) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto& [colour, text] = colours.key[i];
    svg->Begin("key");
    svg->Rect(places[i].x, places[i].y - 9, 14, 10, {colour, "#777777"});
    svg->Text(places[i].x + 19, places[i].y, text, {11});
    svg->End();
  }
}

}  // namespace

std::string Timeline::ToSvg(const std::string& title, double axis_width) const {
  if (nanos_ == 0) return TextAsSvg(ToText(), Translated(title));
  const Colours colours(names_, blocked_);
  const SvgLayout layout(rows_, nanos_, axis_width);
  const double right = layout.left + axis_width;
  const std::vector<KeyPlace> places =
      PlacesOfKey(colours, layout.left, right, layout.bottom + 42);
  Svg svg(right + 2 * SvgLayout::kMargin, places.back().y + SvgLayout::kMargin,
          Translated(title));
  svg.Text(SvgLayout::kMargin, 26, Translated(title),
           {14, "start", "#111111", true});
  DrawAxis(layout, nanos_, &svg);
  DrawRows(layout, rows_, colours, &svg);
  DrawKey(colours, places, &svg);
  return svg.ToString();
}

Drawing Timeline::Draw(const Phrase& name) const {
  return {name, ToText(TextWidth()), ToSvg(name.english)};
}

}  // namespace d2l
