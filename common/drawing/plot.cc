#include "common/drawing/plot.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/statistics.h"
#include "common/drawing/drawing.h"
#include "common/drawing/svg.h"
#include "common/drawing/text_canvas.h"

namespace d2l {
namespace {

// The rows of the plot area, where the points are, in a text.
constexpr int kRows = 14;
// The width of an SVG, and the edges of its plot area.
constexpr double kWidth = 720;
constexpr double kLeft = 90;
constexpr double kRight = kWidth - 24;
constexpr double kTop = 48;
constexpr double kBottom = 348;

char Glyph(std::size_t series) {
  constexpr char kGlyphs[] = "*o+#@%x&$v";
  return kGlyphs[series % (sizeof(kGlyphs) - 1)];
}

void CheckValue(double value, bool log, const std::string& series) {
  if (std::isfinite(value) && (!log || value > 0)) return;
  throw std::invalid_argument(
      absl::StrFormat("[Plot] %g in \"%s\" has no place on a %s axis", value,
                      series, log ? "logarithmic" : "linear"));
}

// The smallest of 1, 2, 5 times a power of ten that is at least `value`.
double RoundStep(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

// An axis from `low` to `high`, which the points span.
struct Range {
  const PlotAxis* axis;
  double low;
  double high;

  // 0 at low, 1 at high.
  double Place(double value) const {
    if (axis->log) return std::log(value / low) / std::log(high / low);
    return (value - low) / (high - low);
  }
  // The inverse of Place.
  double Value(double place) const {
    if (axis->log) return low * std::pow(high / low, place);
    return low + place * (high - low);
  }
  std::vector<double> Ticks(int most) const {
    std::vector<double> ticks;
    if (axis->log && high / low >= 10) {
      // Marks powers of ten, or of two for bytes, as many as there is room for.
      const double base = axis->unit == "B" ? 2 : 10;
      const double ends[] = {std::log(low) / std::log(base),
                             std::log(high) / std::log(base)};
      const int first = static_cast<int>(std::ceil(ends[0] - 1e-9));
      const int last = static_cast<int>(std::floor(ends[1] + 1e-9));
      const int step = (last - first) / most + 1;
      for (int i = first; i <= last; i += step) {
        ticks.push_back(std::pow(base, i));
      }
      if (ticks.size() > 1) return ticks;
      ticks.clear();
    }
    const double rough = (high - low) / most;
    // For bytes, powers of two are round.
    const double step = axis->unit == "B"
                            ? std::exp2(std::ceil(std::log2(rough) - 1e-9))
                            : RoundStep(rough);
    for (double i = std::ceil(low / step - 1e-9);
         i * step <= high + 1e-9 * step; ++i) {
      ticks.push_back(i * step);
    }
    return ticks;
  }
};

// The range of an axis; low > high if there are no points.
Range RangeOf(const PlotAxis& axis, const std::vector<PlotSeries>& all,
              double PlotPoint::*coordinate) {
  constexpr double kMost = std::numeric_limits<double>::max();
  Range range = {&axis, kMost, -kMost};
  for (const PlotSeries& series : all) {
    for (const PlotPoint& point : series.points) {
      range.low = std::min(range.low, point.*coordinate);
      range.high = std::max(range.high, point.*coordinate);
    }
  }
  // Heights are compared with zero, unless the axis is logarithmic.
  if (coordinate == &PlotPoint::y && !axis.log) {
    range.low = std::min(range.low, 0.0);
    range.high = std::max(range.high, 0.0);
  }
  if (range.low == range.high) {
    // A single value goes into the middle.
    const double value = range.low;
    range.low = axis.log ? value / 2 : value - 1;
    range.high = axis.log ? value * 2 : value + 1;
  }
  return range;
}

struct Tick {
  double value;
  std::string label;
};

std::vector<Tick> LabelledTicks(const Range& range, int most) {
  std::vector<Tick> ticks;
  for (const double value : range.Ticks(most)) {
    ticks.push_back({value, AxisLabel(value, range.axis->unit)});
  }
  return ticks;
}

// Lines may coincide; tells whether two points are drawn at one place.
using Same = std::function<bool(const PlotPoint&, const PlotPoint&)>;

bool HasPointAt(const PlotSeries& series, const PlotPoint& at,
                const Same& same) {
  return std::any_of(series.points.begin(), series.points.end(),
                     [&](const PlotPoint& point) { return same(point, at); });
}

// How many of the first `series` series have a point there.
int Beneath(const std::vector<PlotSeries>& all, std::size_t series,
            const PlotPoint& at, const Same& same) {
  int count = 0;
  for (std::size_t i = 0; i < series; ++i) {
    count += HasPointAt(all[i], at, same) ? 1 : 0;
  }
  return count;
}

// " (as host)": the earlier series that has all points of this one, or "".
std::string LiesOn(const std::vector<PlotSeries>& all, std::size_t series,
                   const Same& same) {
  const std::vector<PlotPoint>& points = all[series].points;
  for (std::size_t i = 0; i < series && !points.empty(); ++i) {
    if (std::all_of(points.begin(), points.end(), [&](const PlotPoint& point) {
          return HasPointAt(all[i], point, same);
        })) {
      return Say(" (as %s)", all[i].name);
    }
  }
  return "";
}

// The plot area of a text. Row 0 is empty.
struct TextArea {
  Range x;
  Range y;
  int left;  // the column of the y axis
  int columns;

  int Column(double value) const {
    return left + 1 +
           static_cast<int>(std::lround(x.Place(value) * (columns - 1)));
  }
  int Row(double value) const {
    return 1 +
           static_cast<int>(std::lround((1 - y.Place(value)) * (kRows - 1)));
  }
};

void WriteYAxis(const TextArea& area, const std::vector<Tick>& ticks,
                TextCanvas* canvas) {
  for (int row = 1; row <= kRows; ++row) canvas->Put(area.left, row, '|');
  for (const Tick& tick : ticks) {
    const int row = area.Row(tick.value);
    const int size = static_cast<int>(tick.label.size());
    canvas->Write(area.left - 1 - size, row, tick.label);
    canvas->Put(area.left, row, '+');
  }
}

// Leaves out labels without room.
void WriteXAxis(const TextArea& area, const std::vector<Tick>& ticks, int width,
                TextCanvas* canvas) {
  for (int i = 0; i < area.columns; ++i) {
    canvas->Put(area.left + 1 + i, kRows + 1, '-');
  }
  int free = 0;
  for (const Tick& tick : ticks) {
    const int column = area.Column(tick.value);
    canvas->Put(column, kRows + 1, '+');
    const int size = static_cast<int>(tick.label.size());
    const int at = std::min(std::max(column - size / 2, 0), width - size);
    if (at < free) continue;
    canvas->Write(at, kRows + 2, tick.label);
    free = at + size + 1;
  }
}

void WriteLine(const TextArea& area, const PlotPoint& a, const PlotPoint& b,
               TextCanvas* canvas) {
  const int steps = std::max({1, std::abs(area.Column(b.x) - area.Column(a.x)),
                              std::abs(area.Row(b.y) - area.Row(a.y))});
  const auto between = [](const Range& range, double from, double to,
                          double t) {
    return range.Value((1 - t) * range.Place(from) + t * range.Place(to));
  };
  for (int step = 0; step <= steps; ++step) {
    const double t = static_cast<double>(step) / steps;
    canvas->Put(area.Column(between(area.x, a.x, b.x, t)),
                area.Row(between(area.y, a.y, b.y, t)), '.');
  }
}

// Writes the glyph of the series, or, where several have a point, their number.
// Returns whether there are such points.
bool WritePoints(const TextArea& area, const std::vector<PlotSeries>& all,
                 const Same& same, TextCanvas* canvas) {
  bool meet = false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const PlotPoint& point : all[i].points) {
      const int beneath = Beneath(all, i, point, same);
      meet = meet || beneath > 0;
      canvas->Put(area.Column(point.x), area.Row(point.y),
                  beneath == 0  ? Glyph(i)
                  : beneath < 9 ? static_cast<char>('1' + beneath)
                                : '9');
    }
  }
  return meet;
}

// meet: whether lines meet at a point.
std::string Legend(const std::vector<PlotSeries>& all, const Same& same,
                   bool meet) {
  std::string legend;
  for (std::size_t i = 0; i < all.size(); ++i) {
    absl::StrAppend(&legend, i == 0 ? "" : ", ", std::string(1, Glyph(i)), " ",
                    all[i].name, LiesOn(all, i, same));
  }
  if (meet) legend += Say("; 2, 3, ...: number of lines at one place");
  return legend;
}

// The plot area of an SVG.
struct SvgArea {
  Range x;
  Range y;

  double X(double value) const {
    return kLeft + (kRight - kLeft) * x.Place(value);
  }
  double Y(double value) const {
    return kBottom - (kBottom - kTop) * y.Place(value);
  }
};

// The grid, the frame around it, and the labels outside.
void DrawAxes(const SvgArea& area, Svg* svg) {
  for (const Tick& tick : LabelledTicks(area.x, 8)) {
    const double x = area.X(tick.value);
    svg->Line(x, kTop, x, kBottom, {"#e4e4e4", 1});
    svg->Text(x, kBottom + 16, tick.label, {11, "middle"});
  }
  for (const Tick& tick : LabelledTicks(area.y, 6)) {
    const double y = area.Y(tick.value);
    svg->Line(kLeft, y, kRight, y, {"#e4e4e4", 1});
    svg->Text(kLeft - 6, y + 4, tick.label, {11, "end"});
  }
  svg->Rect(kLeft, kTop, kRight - kLeft, kBottom - kTop, {"none", "#333333"});
  svg->Text((kLeft + kRight) / 2, kBottom + 34, area.x.axis->label,
            {12, "middle"});
  svg->Text(20, (kTop + kBottom) / 2, area.y.axis->label,
            {12, "middle", "#222222", false, -90});
}

void DrawLine(const SvgArea& area, const PlotSeries& series,
              const Svg::Stroke& stroke, Svg* svg) {
  std::string path;
  for (const PlotPoint& point : series.points) {
    absl::StrAppendFormat(&path, "%s %.2f %.2f ", path.empty() ? "M" : "L",
                          area.X(point.x), area.Y(point.y));
  }
  if (!path.empty()) svg->Path(path, stroke);
}

// A point on those of earlier series is a ring around them.
void DrawPoints(const SvgArea& area, const std::vector<PlotSeries>& all,
                std::size_t series, const Same& same, const std::string& colour,
                Svg* svg) {
  for (const PlotPoint& point : all[series].points) {
    const int beneath = Beneath(all, series, point, same);
    svg->Circle(area.X(point.x), area.Y(point.y), 3.5 + 2.5 * beneath,
                beneath == 0 ? Svg::Shape{colour, "#333333", 0.6}
                             : Svg::Shape{"none", colour, 1.5},
                absl::StrCat(all[series].name, ": ",
                             AxisLabel(point.x, area.x.axis->unit), ", ",
                             AxisLabel(point.y, area.y.axis->unit)));
  }
}

// The names beside points that are alone in their series, as those of a
// roofline: such a point is known by its name, not by its colour only.
class PointNames {
 public:
  // Writes the name on a side of the point where there is no other name.
  void Write(const SvgArea& area, const PlotSeries& series, Svg* svg) {
    constexpr double kApart = 8;
    const double width = Svg::TextWidth(series.name, 11);
    const double x = area.X(series.points[0].x), y = area.Y(series.points[0].y);
    Place place;
    for (const double below : {-5., 14.}) {
      for (const double left : {x + kApart, x - kApart - width}) {
        place = {left, y + below, width};
        if (left + width < kRight && IsFree(place)) {
          return WriteAt(place, series.name, svg);
        }
      }
    }
    WriteAt(place, series.name, svg);
  }

 private:
  struct Place {
    double left, bottom, width;
  };

  bool IsFree(const Place& a) const {
    return std::none_of(places_.begin(), places_.end(), [&](const Place& b) {
      return std::abs(a.bottom - b.bottom) < 12 && a.left < b.left + b.width &&
             b.left < a.left + a.width;
    });
  }
  void WriteAt(const Place& place, const std::string& name, Svg* svg) {
    places_.push_back(place);
    svg->Text(place.left, place.bottom, name, {11});
  }

  std::vector<Place> places_;
};

// A line of the legend.
void DrawKey(double y, const std::string& name, const Svg::Stroke& stroke,
             Svg* svg) {
  svg->Line(kLeft, y - 4, kLeft + 22, y - 4, stroke);
  svg->Circle(kLeft + 11, y - 4, 3.5, {stroke.colour, "#333333", 0.6});
  svg->Text(kLeft + 30, y, name, {12});
}

}  // namespace

std::string AxisLabel(double value, const std::string& unit) {
  if (value == 0) return "0";
  std::string text = FormatMedian(Exactly(value), unit);
  const std::size_t point = text.find('.');
  if (point == std::string::npos || text.find('e') != std::string::npos) {
    return text;
  }
  std::size_t end = text.find_first_not_of("0123456789", point + 1);
  if (end == std::string::npos) end = text.size();
  std::size_t last = end;
  while (text[last - 1] == '0') --last;
  if (text[last - 1] == '.') --last;
  return text.erase(last, end - last);
}

Plot::Plot(const Phrase& x_label, std::string x_unit, const Phrase& y_label,
           std::string y_unit)
    : x_{x_label.shown, std::move(x_unit)},
      y_{y_label.shown, std::move(y_unit)} {}

Plot& Plot::LogX() {
  x_.log = true;
  return *this;
}

Plot& Plot::LogY() {
  y_.log = true;
  return *this;
}

void Plot::AddLine(const Phrase& name, const std::vector<double>& x,
                   const std::vector<double>& y) {
  if (x.size() != y.size()) {
    throw std::invalid_argument(absl::StrFormat(
        "[Plot] \"%s\" has %d x and %d y", name.english, x.size(), y.size()));
  }
  PlotSeries series{name.shown, {}};
  for (std::size_t i = 0; i < x.size(); ++i) {
    CheckValue(x[i], x_.log, name.english);
    CheckValue(y[i], y_.log, name.english);
    series.points.push_back({x[i], y[i]});
  }
  series_.push_back(std::move(series));
}

std::string Plot::ToText(int width) const {
  const Range x = RangeOf(x_, series_, &PlotPoint::x);
  const Range y = RangeOf(y_, series_, &PlotPoint::y);
  if (x.low > x.high) return Translated("There is nothing to plot.\n");
  const std::vector<Tick> y_ticks = LabelledTicks(y, 5);
  std::size_t label_width = 0;
  for (const Tick& tick : y_ticks) {
    label_width = std::max(label_width, tick.label.size());
  }
  const int left = static_cast<int>(label_width) + 1;
  const TextArea area = {x, y, left, std::max(10, width - left - 2)};

  TextCanvas canvas;
  WriteYAxis(area, y_ticks, &canvas);
  WriteXAxis(area, LabelledTicks(x, 6), width, &canvas);
  // Draws lines first, and the points over them.
  for (const PlotSeries& series : series_) {
    for (std::size_t i = 1; i < series.points.size(); ++i) {
      WriteLine(area, series.points[i - 1], series.points[i], &canvas);
    }
  }
  const Same same = [&](const PlotPoint& a, const PlotPoint& b) {
    return area.Column(a.x) == area.Column(b.x) &&
           area.Row(a.y) == area.Row(b.y);
  };
  const bool meet = WritePoints(area, series_, same, &canvas);
  // Labels may be wide, so they are not on the canvas. Its first line is empty.
  const int before_label = width - static_cast<int>(TextColumns(x_.label));
  return absl::StrCat(y_.label, canvas.ToString(),
                      std::string(std::max(left, before_label), ' '), x_.label,
                      "\n", Wrap(Legend(series_, same, meet), "", width));
}

std::string Plot::ToSvg(const std::string& title) const {
  const SvgArea area = {RangeOf(x_, series_, &PlotPoint::x),
                        RangeOf(y_, series_, &PlotPoint::y)};
  if (area.x.low > area.x.high) return TextAsSvg(ToText(), title);
  const auto lines = static_cast<double>(series_.size());
  Svg svg(kWidth, kBottom + 56 + 18 * lines, title);
  svg.Text(kLeft, 24, title, {14, "start", "#111111", true});
  DrawAxes(area, &svg);
  const Same same = [&](const PlotPoint& a, const PlotPoint& b) {
    return std::hypot(area.X(a.x) - area.X(b.x), area.Y(a.y) - area.Y(b.y)) < 2;
  };
  PointNames names;
  double key_y = kBottom + 54;
  for (std::size_t i = 0; i < series_.size(); ++i) {
    const std::string colour = PaletteColour(static_cast<int>(i));
    const std::string lies_on = LiesOn(series_, i, same);
    // A line on top of another is dashed, so that both are seen.
    const Svg::Stroke stroke = {colour, 2, /*dashed=*/!lies_on.empty()};
    DrawLine(area, series_[i], stroke, &svg);
    DrawPoints(area, series_, i, same, colour, &svg);
    if (series_[i].points.size() == 1) names.Write(area, series_[i], &svg);
    DrawKey(key_y, series_[i].name + lies_on, stroke, &svg);
    key_y += 18;
  }
  return svg.ToString();
}

Drawing Plot::Draw(const Phrase& name) const {
  return {name, ToText(TextWidth()), ToSvg(name.shown)};
}

}  // namespace d2l
