// Bars: alternatives side by side, such as their times.
//
//   cell.Show(DrawBars("time", {{{"one by one", "58.0 ms", 58.0, 57.1, 59.2},
//                                {"both", "30.7 ms", 30.7, 30.5, 31.0}}}));
//
// Each group of bars has a scale of its own, from 0; a logarithmic one if the
// longest is more than 10,000 times the shortest. An interval is drawn in the
// SVG, a bound in both.
//
// A pure function. Lengths that are negative or not finite throw
// std::invalid_argument.

#ifndef D2L_COMMON_DRAWING_BARS_H_
#define D2L_COMMON_DRAWING_BARS_H_

#include <string>
#include <vector>

#include "common/base/console/language.h"
#include "common/drawing/drawing.h"

namespace d2l {

struct Bar {
  Phrase label;
  std::string text;  // the value, with its unit
  double value = 0;
  double low = 0;  // the value's interval
  double high = 0;
  double enqueue = 0;               // the part of it that is enqueueing
  std::vector<double> bounds = {};  // bounds that claims require
  bool of_host = false;             // has another colour than the devices'
};

Drawing DrawBars(const Phrase& name,
                 const std::vector<std::vector<Bar>>& groups);

}  // namespace d2l

#endif  // D2L_COMMON_DRAWING_BARS_H_
