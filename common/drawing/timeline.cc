#include "common/drawing/timeline.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/format.h"
#include "common/base/text.h"
#include "common/drawing/drawing.h"
#include "common/drawing/svg.h"
#include "common/drawing/text_canvas.h"
#include "common/profiler/profile.h"

namespace d2l {
namespace {

double Seconds(std::int64_t nanos) { return 1e-9 * static_cast<double>(nanos); }

std::string TimeLabel(std::int64_t nanos) {
  if (nanos == 0) return "0";
  std::string text = FormatDuration(Seconds(nanos));
  // The marks are round: "2.00 ms" is 2 ms.
  const std::size_t point = text.find('.');
  if (point == std::string::npos) return text;
  const std::size_t unit = text.find(' ');
  std::size_t end = unit;
  while (text[end - 1] == '0') --end;
  if (text[end - 1] == '.') --end;
  return text.erase(end, unit - end);
}

// Adds the times when the stream was free, but what had been requested of it
// had not begun.
void AddWaits(TimelineRow* row) {
  std::vector<TimelineSpan> waits;
  std::int64_t free_from = 0;
  for (const TimelineSpan& span : row->spans) {
    const std::int64_t from = std::max(free_from, span.requested);
    if (from < span.begin) {
      waits.push_back({SpanKind::kWait, span.name, from, span.begin});
    }
    free_from = std::max(free_from, span.end);
  }
  row->spans.insert(row->spans.end(), waits.begin(), waits.end());
}

void SortSpans(TimelineRow* row) {
  std::stable_sort(row->spans.begin(), row->spans.end(),
                   [](const TimelineSpan& a, const TimelineSpan& b) {
                     return a.begin < b.begin;
                   });
}

// Letters for names, in the order of their first use: A, B, …; what there is
// no letter for is '#'.
class Letters {
 public:
  char Of(const std::string& name) {
    const auto [entry, is_new] = letters_.emplace(name, '#');
    if (is_new && names_.size() < 52) {
      const int n = static_cast<int>(names_.size());
      entry->second = static_cast<char>(n < 26 ? 'A' + n : 'a' + n - 26);
      names_.push_back(name);
    }
    return entry->second;
  }
  // "A matmul, B add"
  std::string Key() const {
    std::string key;
    for (const std::string& name : names_) {
      absl::StrAppend(&key, key.empty() ? "" : ", ",
                      std::string(1, letters_.at(name)), " ", name);
    }
    if (letters_.size() > names_.size()) key += ", # others";
    return key;
  }

 private:
  std::map<std::string, char> letters_;
  std::vector<std::string> names_;
};

// The columns of a row: for each what filled most of it. Something that is
// shorter than a column shows as well, if nothing longer is there.
std::string RowColumns(const TimelineRow& row, int columns,
                       double nanos_per_column, Letters* letters) {
  std::vector<std::map<char, double>> filled(columns);
  for (const TimelineSpan& span : row.spans) {
    const char mark =
        span.kind == SpanKind::kWait ? ':' : letters->Of(span.name);
    const double begin = static_cast<double>(span.begin) / nanos_per_column;
    const double end = static_cast<double>(span.end) / nanos_per_column;
    const int first = std::clamp(static_cast<int>(begin), 0, columns - 1);
    const int last = std::clamp(static_cast<int>(end), first, columns - 1);
    for (int column = first; column <= last; ++column) {
      const double share = std::min(end, column + 1.0) -
                           std::max(begin, static_cast<double>(column));
      // Waits are what is left when nothing is done.
      const bool wait = span.kind == SpanKind::kWait;
      filled[column][mark] += wait ? share : std::max(share, 1e-6);
    }
  }
  std::string text;
  for (const auto& marks : filled) {
    char mark = '.';
    double most = 0;
    for (const auto& [candidate, share] : marks) {
      if (share > most) {
        most = share;
        mark = candidate;
      }
    }
    text += mark;
  }
  return text;
}

bool IsShown(const ProfiledSpan& span) {
  return span.kind != ProfiledKind::kRange && span.kind != ProfiledKind::kStep;
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

Timeline::Timeline(const Profile& profile) {
  std::int64_t start = std::numeric_limits<std::int64_t>::max();
  for (const ProfiledSpan& span : profile.spans) {
    if (IsShown(span)) start = std::min(start, span.host_begin);
  }
  for (const ProfiledThread& thread : profile.threads) {
    rows_.push_back({thread.name, /*is_stream=*/false, {}, 0, 0});
  }
  for (const ProfiledStream& stream : profile.streams) {
    rows_.push_back({stream.name, /*is_stream=*/true, {}, 0, 0});
  }
  for (const ProfiledSpan& span : profile.spans) {
    if (!IsShown(span)) continue;
    const bool waits =
        span.kind == ProfiledKind::kRead || span.kind == ProfiledKind::kWait;
    rows_[span.thread].spans.push_back(
        {waits ? SpanKind::kWait : SpanKind::kRequest, span.name,
         span.host_begin - start, span.host_end - start});
    if (span.device_time != DeviceTime::kMeasured) continue;
    rows_[profile.threads.size() + span.stream].spans.push_back(
        {SpanKind::kWork, span.name, span.device_begin - start,
         span.device_end - start, span.host_end - start});
  }
  for (TimelineRow& row : rows_) {
    SortSpans(&row);
    if (row.is_stream) {
      AddWaits(&row);
      SortSpans(&row);
    }
    for (const TimelineSpan& span : row.spans) {
      nanos_ = std::max(nanos_, span.end);
      double& sum =
          span.kind == SpanKind::kWait ? row.waiting_seconds : row.busy_seconds;
      sum += Seconds(span.end - span.begin);
    }
  }
}

std::string Timeline::ToText(int width) const {
  if (nanos_ == 0) return "Nothing was recorded.\n";
  std::size_t name_width = 0;
  for (const TimelineRow& row : rows_) {
    name_width = std::max(name_width, row.name.size());
  }
  name_width += 1;
  const int columns = std::max(10, width - static_cast<int>(name_width) - 2);
  const double per_column = static_cast<double>(nanos_) / columns;
  Letters letters;
  std::string text;
  for (const TimelineRow& row : rows_) {
    absl::StrAppendFormat(&text, "%-*s|%s|\n", name_width, row.name,
                          RowColumns(row, columns, per_column, &letters));
  }
  TextCanvas axis;
  int free = 0;
  for (const std::int64_t time : AxisTimes(nanos_, columns / 12)) {
    const int x =
        static_cast<int>(name_width) + 1 +
        std::min(columns - 1,
                 static_cast<int>(static_cast<double>(time) / per_column));
    const std::string label = TimeLabel(time);
    axis.Put(x, 0, '^');
    if (x < free || x + static_cast<int>(label.size()) > width) continue;
    axis.Write(x, 1, label);
    free = x + static_cast<int>(label.size()) + 1;
  }
  absl::StrAppend(&text, axis.ToString());
  absl::StrAppend(
      &text,
      Wrap(absl::StrCat(letters.Key(), "; : waiting, . idle. A column is ",
                        FormatDuration(1e-9 * per_column), "."),
           "", width));
  for (const TimelineRow& row : rows_) {
    absl::StrAppend(
        &text,
        Wrap(absl::StrFormat("%s %.0f %% of the time, waiting %.0f %%",
                             row.is_stream ? "works" : "requests",
                             100 * row.busy_seconds / Seconds(nanos_),
                             100 * row.waiting_seconds / Seconds(nanos_)),
             absl::StrFormat("%-*s ", name_width, row.name), width));
  }
  return text;
}

std::string Timeline::ToSvg(const std::string& title) const {
  constexpr double kMargin = 20;
  constexpr double kNames = 90;
  constexpr double kPlot = 860;
  constexpr double kRow = 34;
  constexpr double kTop = 46;
  if (nanos_ == 0) return TextAsSvg(ToText(), title);
  // Colours stand for names here; the row is the stream.
  std::map<std::string, int> colours;
  std::vector<std::string> names;
  for (const TimelineRow& row : rows_) {
    for (const TimelineSpan& span : row.spans) {
      if (span.kind == SpanKind::kWait) continue;
      if (colours.emplace(span.name, static_cast<int>(names.size())).second) {
        names.push_back(span.name);
      }
    }
  }
  const double left = kMargin + kNames;
  const double bottom = kTop + kRow * static_cast<double>(rows_.size());
  constexpr double kKeyLine = 20;
  constexpr int kPerLine = 7;
  const double key_lines =
      static_cast<double>((names.size() + 1 + kPerLine - 1) / kPerLine);
  Svg svg(left + kPlot + 2 * kMargin, bottom + 44 + kKeyLine * key_lines,
          title);
  svg.Text(kMargin, 26, title, {14, "start", "#111111", true});
  const auto x_of = [&](std::int64_t t) {
    return left + kPlot * static_cast<double>(t) / static_cast<double>(nanos_);
  };
  for (const std::int64_t time : AxisTimes(nanos_, 10)) {
    svg.Line(x_of(time), kTop, x_of(time), bottom + 4, {"#dddddd", 1});
    svg.Text(x_of(time), bottom + 18, TimeLabel(time), {11, "middle"});
  }
  double y = kTop;
  for (const TimelineRow& row : rows_) {
    svg.Text(left - 10, y + kRow / 2 + 4, row.name, {12, "end"});
    svg.Line(left, y + kRow - 3, left + kPlot, y + kRow - 3, {"#cccccc", 1});
    // What is too thin to be seen apart is drawn once.
    double drawn_to = 0;
    for (const TimelineSpan& span : row.spans) {
      const double begin = x_of(span.begin);
      const double wide = std::max(0.6, x_of(span.end) - begin);
      if (begin + wide < drawn_to + 0.3) continue;
      drawn_to = begin + wide;
      const std::string tooltip = absl::StrCat(
          span.name, span.kind == SpanKind::kWait ? ", waiting" : "", ": ",
          FormatDuration(Seconds(span.end - span.begin)), " from ",
          FormatDuration(Seconds(span.begin)));
      if (span.kind == SpanKind::kWait) {
        svg.Rect(begin, y + kRow / 2 - 3, wide, 6, {"#eeeeee", "#aaaaaa", 0.5},
                 tooltip);
        continue;
      }
      svg.Rect(begin, y + 4, wide, kRow - 10,
               {PaletteColour(colours[span.name]),
                wide > 3 ? "#333333" : "none", 0.5},
               tooltip);
      if (wide > Svg::TextWidth(span.name, 10) + 4) {
        svg.Text(begin + wide / 2, y + kRow / 2 + 3, span.name, {10, "middle"});
      }
    }
    y += kRow;
  }
  double key_x = left;
  double key_y = bottom + 42;
  for (std::size_t i = 0; i <= names.size(); ++i) {
    const bool wait = i == names.size();
    svg.Rect(
        key_x, key_y - 9, 14, 10,
        {wait ? "#eeeeee" : PaletteColour(static_cast<int>(i)), "#777777"});
    svg.Text(key_x + 19, key_y, wait ? "waiting" : names[i], {11});
    key_x += kPlot / kPerLine;
    if (i % kPerLine == kPerLine - 1) {
      key_x = left;
      key_y += kKeyLine;
    }
  }
  return svg.ToString();
}

Drawing Timeline::Draw(const std::string& name) const {
  return {name, ToText(TextWidth()), ToSvg(name)};
}

}  // namespace d2l
