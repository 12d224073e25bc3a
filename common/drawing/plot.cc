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

constexpr int kRows = 14;

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
  std::vector<std::string> y_labels;
  const std::vector<double> y_ticks = y.Ticks(5);
  std::size_t label_width = 0;
  for (const double tick : y_ticks) {
    y_labels.push_back(AxisLabel(tick, y_.unit));
    label_width = std::max(label_width, y_labels.back().size());
  }
  const int left = static_cast<int>(label_width) + 1;
  const int columns = std::max(10, width - left - 2);
  const auto column_of = [&](double value) {
    return left + 1 +
           static_cast<int>(std::lround(x.Place(value) * (columns - 1)));
  };
  const auto row_of = [&](double value) {
    return 1 +
           static_cast<int>(std::lround((1 - y.Place(value)) * (kRows - 1)));
  };

  TextCanvas canvas;
  for (int row = 1; row <= kRows; ++row) canvas.Put(left, row, '|');
  for (std::size_t i = 0; i < y_ticks.size(); ++i) {
    const int row = row_of(y_ticks[i]);
    canvas.Write(left - 1 - static_cast<int>(y_labels[i].size()), row,
                 y_labels[i]);
    canvas.Put(left, row, '+');
  }
  for (int i = 0; i < columns; ++i) canvas.Put(left + 1 + i, kRows + 1, '-');
  int free = 0;
  for (const double tick : x.Ticks(6)) {
    const int column = column_of(tick);
    canvas.Put(column, kRows + 1, '+');
    const std::string label = AxisLabel(tick, x_.unit);
    const int size = static_cast<int>(label.size());
    const int at = std::min(std::max(column - size / 2, 0), width - size);
    if (at < free) continue;
    canvas.Write(at, kRows + 2, label);
    free = at + size + 1;
  }
  // Draws lines first, and the points over them.
  for (const PlotSeries& series : series_) {
    for (std::size_t i = 1; i < series.points.size(); ++i) {
      const PlotPoint& a = series.points[i - 1];
      const PlotPoint& b = series.points[i];
      const int steps = std::max({1, std::abs(column_of(b.x) - column_of(a.x)),
                                  std::abs(row_of(b.y) - row_of(a.y))});
      for (int step = 0; step <= steps; ++step) {
        const double t = static_cast<double>(step) / steps;
        canvas.Put(
            column_of(x.Value((1 - t) * x.Place(a.x) + t * x.Place(b.x))),
            row_of(y.Value((1 - t) * y.Place(a.y) + t * y.Place(b.y))), '.');
      }
    }
  }
  const Same same = [&](const PlotPoint& a, const PlotPoint& b) {
    return column_of(a.x) == column_of(b.x) && row_of(a.y) == row_of(b.y);
  };
  std::string legend;
  bool meet = false;
  for (std::size_t i = 0; i < series_.size(); ++i) {
    for (const PlotPoint& point : series_[i].points) {
      const int beneath = Beneath(series_, i, point, same);
      meet = meet || beneath > 0;
      canvas.Put(column_of(point.x), row_of(point.y),
                 beneath == 0  ? Glyph(i)
                 : beneath < 9 ? static_cast<char>('1' + beneath)
                               : '9');
    }
    absl::StrAppend(&legend, i == 0 ? "" : ", ", std::string(1, Glyph(i)), " ",
                    series_[i].name, LiesOn(series_, i, same));
  }
  if (meet) legend += Say("; 2, 3, ...: number of lines at one place");
  // Labels may be wide, so they are not on the canvas. Its first line is empty.
  const std::string x_label = x_.label;
  const int before_label = width - static_cast<int>(TextColumns(x_label));
  return absl::StrCat(y_.label, canvas.ToString(),
                      std::string(std::max(left, before_label), ' '), x_label,
                      "\n", Wrap(legend, "", width));
}

std::string Plot::ToSvg(const std::string& title) const {
  constexpr double kWidth = 720;
  constexpr double kLeft = 90;
  constexpr double kRight = 24;
  constexpr double kTop = 48;
  constexpr double kHeight = 300;
  const Range x = RangeOf(x_, series_, &PlotPoint::x);
  const Range y = RangeOf(y_, series_, &PlotPoint::y);
  if (x.low > x.high) return TextAsSvg(ToText(), title);
  const double plot_width = kWidth - kLeft - kRight;
  const double bottom = kTop + kHeight;
  const auto x_of = [&](double v) { return kLeft + plot_width * x.Place(v); };
  const auto y_of = [&](double v) { return bottom - kHeight * y.Place(v); };

  const auto lines = static_cast<double>(series_.size());
  Svg svg(kWidth, bottom + 56 + 18 * lines, title);
  svg.Text(kLeft, 24, title, {14, "start", "#111111", true});
  for (const double tick : x.Ticks(8)) {
    svg.Line(x_of(tick), kTop, x_of(tick), bottom, {"#e4e4e4", 1});
    svg.Text(x_of(tick), bottom + 16, AxisLabel(tick, x_.unit), {11, "middle"});
  }
  for (const double tick : y.Ticks(6)) {
    svg.Line(kLeft, y_of(tick), kLeft + plot_width, y_of(tick), {"#e4e4e4", 1});
    svg.Text(kLeft - 6, y_of(tick) + 4, AxisLabel(tick, y_.unit), {11, "end"});
  }
  svg.Rect(kLeft, kTop, plot_width, kHeight, {"none", "#333333"});
  svg.Text(kLeft + plot_width / 2, bottom + 34, x_.label, {12, "middle"});
  svg.Text(20, kTop + kHeight / 2, y_.label,
           {12, "middle", "#222222", false, -90});
  const Same same = [&](const PlotPoint& a, const PlotPoint& b) {
    return std::hypot(x_of(a.x) - x_of(b.x), y_of(a.y) - y_of(b.y)) < 2;
  };
  double key_y = bottom + 54;
  for (std::size_t i = 0; i < series_.size(); ++i) {
    const std::string colour = PaletteColour(static_cast<int>(i));
    const PlotSeries& series = series_[i];
    std::string path;
    for (const PlotPoint& point : series.points) {
      absl::StrAppendFormat(&path, "%s %.2f %.2f ", path.empty() ? "M" : "L",
                            x_of(point.x), y_of(point.y));
    }
    // A line on top of another is dashed, so that both are seen.
    const std::string lies_on = LiesOn(series_, i, same);
    const Svg::Stroke stroke = {colour, 2, /*dashed=*/!lies_on.empty()};
    if (!path.empty()) svg.Path(path, stroke);
    for (const PlotPoint& point : series.points) {
      const int beneath = Beneath(series_, i, point, same);
      svg.Circle(
          x_of(point.x), y_of(point.y), 3.5 + 2.5 * beneath,
          beneath == 0 ? Svg::Shape{colour, "#333333", 0.6}
                       : Svg::Shape{"none", colour, 1.5},
          absl::StrCat(series_[i].name, ": ", AxisLabel(point.x, x_.unit), ", ",
                       AxisLabel(point.y, y_.unit)));
    }
    svg.Line(kLeft, key_y - 4, kLeft + 22, key_y - 4, stroke);
    svg.Circle(kLeft + 11, key_y - 4, 3.5, {colour, "#333333", 0.6});
    svg.Text(kLeft + 30, key_y, series_[i].name + lies_on, {12});
    key_y += 18;
  }
  return svg.ToString();
}

Drawing Plot::Draw(const Phrase& name) const {
  return {name, ToText(TextWidth()), ToSvg(name.shown)};
}

}  // namespace d2l
