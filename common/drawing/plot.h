// Plot: curves, such as memory over time or time against size.
//
//   Plot plot("n", "", "time", "s");
//   plot.LogX().LogY();
//   plot.AddLine("host", {64, 256, 1024}, host_seconds);
//   plot.AddLine("device", {64, 256, 1024}, device_seconds);
//   cell.Show(plot.Draw("host against device"));
//
// Units are text.h's: "s" and "B" are scaled, "" is a bare number.
//
// Thread-safety: a value; const methods may be called at the same time.
// Errors: std::invalid_argument for x and y of different length, for numbers
// that are not finite and, on a logarithmic axis, not positive.

#ifndef D2L_COMMON_DRAWING_PLOT_H_
#define D2L_COMMON_DRAWING_PLOT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/drawing/drawing.h"

namespace d2l {

struct PlotPoint {
  double x = 0;
  double y = 0;
};

class Plot {
 public:
  Plot(const Phrase& x_label, std::string x_unit, const Phrase& y_label,
       std::string y_unit);

  // Logarithmic axes. Call before adding series.
  Plot& LogX();
  Plot& LogY();

  // Points, joined in the order given.
  void AddLine(const Phrase& name, const std::vector<double>& x,
               const std::vector<double>& y);

  // For a terminal: 16 rows, axes and a legend.
  std::string ToText(int width = kTextWidth) const;
  // title: as it is shown.
  std::string ToSvg(const std::string& title = "") const;
  Drawing Draw(const Phrase& name) const;

 private:
  // Names and labels are as they are shown.
  struct Series {
    std::string name;
    std::vector<PlotPoint> points;
  };
  struct Axis {
    std::string label;
    std::string unit;
    bool log = false;
  };
  // An axis from `low` to `high`, as far as the points go.
  struct Range {
    const Axis* axis;
    double low;
    double high;
    // 0 at low, 1 at high.
    double Place(double value) const;
    // The inverse of Place.
    double Value(double place) const;
    std::vector<double> Ticks(int most) const;
  };

  // False if there are no points.
  bool Ranges(Range* x, Range* y) const;
  std::string Label(double value, const Axis& axis) const;
  // Lines may coincide; same(a, b): two points are drawn at one place.
  template <typename Same>
  bool HasPointAt(std::size_t series, const PlotPoint& at, Same same) const;
  // How many earlier series have a point there.
  template <typename Same>
  int Beneath(std::size_t series, const PlotPoint& at, Same same) const;
  // " (as host)": the earlier series that has all points of this one, or "".
  template <typename Same>
  std::string LiesOn(std::size_t series, Same same) const;

  Axis x_;
  Axis y_;
  std::vector<Series> series_;
};

}  // namespace d2l

#endif  // D2L_COMMON_DRAWING_PLOT_H_
