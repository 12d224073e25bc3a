// The judge: decides claims from measurements.
//
//   Figure one = …, both = …;  // 1.26 s [1.25, 1.28] and 1.84 s [1.80, 1.90]
//   Less(both, Sum(one, other)).verdict;  // Verdict::kHolds
//
// A comparison HOLDS or FAILS only if the intervals of the two medians separate
// (statistics.h); otherwise it is INCONCLUSIVE. The reason is made from the
// figures that decided. A figure known to less than kCoverage, which needs six
// samples, decides nothing. Equality cannot be shown by separation: AboutEqual
// checks whether the intervals bound the ratio.
//
// Sum, Ratio and Scaled use interval arithmetic: their intervals are as wide as
// they could be, so a verdict on them is never bolder than the samples. Where
// both sides are taken in the same repeat (Cell::TimeInterleaved), PerRepeat
// and RatioPerRepeat compute it there and summarise that, which is narrower:
// what slows a repeat slows both sides.
//
// Everything here is a value or a pure function. Wrong arguments (units that
// differ, a ratio to zero) throw std::invalid_argument.

#ifndef D2L_COMMON_LESSON_JUDGE_H_
#define D2L_COMMON_LESSON_JUDGE_H_

#include <functional>
#include <string>
#include <vector>

#include "common/base/statistics.h"

namespace d2l {

// One measured quantity.
struct Figure {
  std::string label;        // what was measured: "10 x (randn, matmul)"
  std::string column;       // "enqueue", "completion", or "" for neither
  std::string measured_on;  // "cpu:0, virtual"; "host"; "" if derived
  std::string unit;         // "s", "B", "x", …
  Summary value;
  // What the summary is of, by repeat; empty if that is not known.
  std::vector<double> samples = {};

  // "10 x (randn, matmul), enqueue (cpu:0, virtual)"
  std::string Name() const;
};

enum class Verdict { kHolds, kFails, kInconclusive };

// "HOLDS", "FAILS", "INCONCLUSIVE".
const char* VerdictName(Verdict verdict);

struct Judgement {
  Verdict verdict = Verdict::kInconclusive;
  std::string reason;        // a sentence with the figures that decided
  std::string figures = "";  // their medians alone: "10.1 us, 125 ms"
};

// Is a * by < b? With by = 1.3: is a less by a factor of 1.3 at least? by >= 1.
Judgement Less(const Figure& a, const Figure& b, double by = 1);

// Are a and b the same to within a factor? within > 1.
Judgement AboutEqual(const Figure& a, const Figure& b, double within);

Figure Sum(const std::string& label, const Figure& a, const Figure& b);
Figure Scaled(const std::string& label, const Figure& a, double factor);
// Of two positive figures; unit "x".
Figure Ratio(const std::string& label, const Figure& a, const Figure& b);

// A figure computed in each repeat from those that were measured in it, and
// then summarised. Throws if the two have no samples, or not the same number.
Figure PerRepeat(const std::string& label, const std::string& unit,
                 const Figure& a, const Figure& b,
                 const std::function<double(double, double)>& combine);
// a / b, of two positive figures of one unit; unit "x".
Figure RatioPerRepeat(const std::string& label, const Figure& a,
                      const Figure& b);

// What was measured in each repeat.
Figure Sampled(const std::string& label, const std::string& measured_on,
               const std::string& unit, std::vector<double> samples);

// A figure that is known, such as a bound: Less(Known("…", "x", 1.5), speedup).
Figure Known(const std::string& label, const std::string& unit, double value);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_JUDGE_H_
