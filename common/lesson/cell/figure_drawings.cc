#include "common/lesson/cell/figure_drawings.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/drawing/bars.h"
#include "common/drawing/drawing.h"
#include "common/drawing/plot.h"
#include "common/lesson/cell/judge.h"

namespace d2l {
namespace {

// An axis whose ends differ by at least this factor is logarithmic.
constexpr double kWideX = 8;
constexpr double kWideY = 20;

// The text up to the first comma: "accuracy, Xavier" is an accuracy.
std::string Start(const std::string& text) {
  return text.substr(0, std::min(text.find(", "), text.find("，")));
}

// For a number without a unit, the label names the quantity.
Phrase QuantityOf(const Figure& figure) {
  if (figure.unit == "s") return "time";
  if (figure.unit == "B") return "memory";
  if (figure.unit == "x") return "factor";
  if (!figure.unit.empty()) return figure.unit;
  return {Start(figure.label.english), Start(figure.label.shown)};
}

// Whether it is a whole measurement: the time until the calls returned is only
// a part of the time until the work was done.
bool IsWhole(const Figure& figure) { return figure.column != "enqueue"; }

bool IsDrawable(const Figure& figure) {
  const Summary& value = figure.value;
  return IsWhole(figure) && value.low >= 0 && std::isfinite(value.high) &&
         std::isfinite(value.median);
}

double EnqueueOf(const Figure& whole, const std::vector<Figure>& figures) {
  for (const Figure& figure : figures) {
    if (!IsWhole(figure) && figure.label == whole.label &&
        figure.measured_on == whole.measured_on && figure.unit == whole.unit &&
        figure.group == whole.group && !figure.place) {
      return std::min(figure.value.median, whole.value.median);
    }
  }
  return 0;
}

Bar BarOf(const Figure& figure, const std::vector<Figure>& figures,
          const std::vector<AskedFor>& asked_for) {
  const Summary& value = figure.value;
  Bar bar = {figure.label, FormatMedian(value, figure.unit),
             value.median, value.low,
             value.high,   EnqueueOf(figure, figures)};
  bar.of_host = figure.measured_on == Phrase("host");
  for (const AskedFor& asked : asked_for) {
    if (asked.figure == figure.Name().english) {
      bar.bounds.push_back(asked.value);
    }
  }
  return bar;
}

// The bars of one unit; figures that were timed in turn form a group. None if
// there is only one bar, and nothing more to see in it than its value.
std::vector<std::vector<Bar>> GroupsOf(const std::vector<Figure>& figures,
                                       const std::string& unit,
                                       const std::vector<AskedFor>& asked_for) {
  std::vector<std::vector<Bar>> groups;
  if (unit.empty()) return groups;  // they cannot be compared
  std::vector<int> numbers;
  for (const Figure& figure : figures) {
    if (figure.unit != unit || figure.place || !IsDrawable(figure)) continue;
    const std::size_t number =
        std::find(numbers.begin(), numbers.end(), figure.group) -
        numbers.begin();
    if (number == numbers.size()) {
      numbers.push_back(figure.group);
      groups.emplace_back();
    }
    groups[number].push_back(BarOf(figure, figures, asked_for));
  }
  if (groups.size() == 1 && groups[0].size() == 1 &&
      groups[0][0].enqueue == 0) {
    groups.clear();
  }
  return groups;
}

struct Curve {
  Phrase label;
  Phrase measured_on;
  std::vector<double> x, y;
};

// The curves of a quantity over an axis; none if no curve has two points.
std::vector<Curve> CurvesOf(const std::vector<Figure>& figures,
                            const Phrase& axis, const Phrase& quantity) {
  std::vector<Curve> curves;
  for (const Figure& figure : figures) {
    if (!figure.place || figure.place->axis != axis || !IsDrawable(figure) ||
        QuantityOf(figure) != quantity) {
      continue;
    }
    auto curve =
        std::find_if(curves.begin(), curves.end(), [&](const Curve& c) {
          return c.label == figure.label && c.measured_on == figure.measured_on;
        });
    if (curve == curves.end()) {
      curve =
          curves.insert(curve, Curve{figure.label, figure.measured_on, {}, {}});
    }
    curve->x.push_back(figure.place->value);
    curve->y.push_back(figure.value.median);
  }
  if (std::none_of(curves.begin(), curves.end(),
                   [](const Curve& curve) { return curve.x.size() > 1; })) {
    curves.clear();
  }
  return curves;
}

bool IsWide(const std::vector<Curve>& curves,
            std::vector<double> Curve::*values, double factor) {
  double low = (curves[0].*values)[0], high = low;
  for (const Curve& curve : curves) {
    for (const double value : curve.*values) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  return low > 0 && high >= factor * low;
}

Drawing Draw(const std::vector<Curve>& curves, const Phrase& axis,
             const Phrase& quantity, const std::string& unit) {
  // Numbers on a scaled axis already have their unit.
  const bool scaled = unit == "s" || unit == "B" || unit == "x";
  Plot plot(axis, "", quantity, scaled ? unit : "");
  if (IsWide(curves, &Curve::x, kWideX)) plot.LogX();
  if (IsWide(curves, &Curve::y, kWideY)) plot.LogY();
  for (const Curve& curve : curves) {
    plot.AddLine(curve.label, curve.x, curve.y);
  }
  return plot.Draw(Worded("%s by %s", quantity, axis));
}

}  // namespace

std::vector<Drawing> DrawFigures(const std::vector<Figure>& figures,
                                 const std::vector<AskedFor>& asked_for) {
  struct Kind {
    Phrase quantity, axis;  // no axis: bars
  };
  std::vector<Kind> done;
  std::vector<Drawing> drawings;
  for (const Figure& figure : figures) {
    const Kind kind = {QuantityOf(figure),
                       figure.place ? figure.place->axis : Phrase()};
    if (std::any_of(done.begin(), done.end(), [&](const Kind& other) {
          return other.quantity == kind.quantity && other.axis == kind.axis;
        })) {
      continue;
    }
    done.push_back(kind);
    if (figure.place) {
      const std::vector<Curve> curves =
          CurvesOf(figures, kind.axis, kind.quantity);
      if (curves.empty()) continue;
      drawings.push_back(Draw(curves, kind.axis, kind.quantity, figure.unit));
    } else {
      const std::vector<std::vector<Bar>> groups =
          GroupsOf(figures, figure.unit, asked_for);
      if (groups.empty()) continue;
      drawings.push_back(DrawBars(kind.quantity, groups));
    }
  }
  return drawings;
}

}  // namespace d2l
