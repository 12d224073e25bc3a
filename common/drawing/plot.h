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

#include <string>
#include <vector>

#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/drawing/drawing.h"

namespace d2l {

// The label of a round value on an axis: "2 ms" for 0.002 and "s".
std::string AxisLabel(double value, const std::string& unit);

struct PlotPoint {
  double x = 0;
  double y = 0;
};

// Names and labels are in the run's language.
struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;
};

struct PlotAxis {
  std::string label;
  std::string unit;
  bool log = false;
};

class Plot {
 public:
  Plot(const Phrase& x_label, std::string x_unit, const Phrase& y_label,
       std::string y_unit);

  // Makes the axes logarithmic. Call them before adding series.
  Plot& LogX();
  Plot& LogY();

  // Points, joined in the order given.
  void AddLine(const Phrase& name, const std::vector<double>& x,
               const std::vector<double>& y);

  // For a terminal: 16 rows, axes and a legend.
  std::string ToText(int width = kTextWidth) const;
  // `title` is printed as it is.
  std::string ToSvg(const std::string& title = "") const;
  Drawing Draw(const Phrase& name) const;

 private:
  PlotAxis x_;
  PlotAxis y_;
  std::vector<PlotSeries> series_;
};

}  // namespace d2l

#endif  // D2L_COMMON_DRAWING_PLOT_H_
