// The judge: decides claims from measurements.
//
//   const Timings t = cell.TimeInterleaved({{"one by one", …}, {"both", …}});
//   const Judgement j = Less(t["both"].completion, t["one by one"].completion,
//                            1.1);
//   j.verdict;   // Verdict::kHolds
//   j.number;    // "1.89x": how many times as long one by one takes
//   j.evidence;  // "needs 1.10x or more; 95 %: 1.88-1.91"
//
// A judgement is about one number, which has one interval. It HOLDS if the
// whole interval meets the requirement, FAILS if no part of it does, and is
// INCONCLUSIVE otherwise. The number of two figures that were measured in the
// same repeats (Cell::TimeInterleaved) is the median of their ratios, repeat by
// repeat: load that slows a repeat slows both sides. Figures with different
// numbers of samples are compared by interval arithmetic, which never claims
// more than the samples show. A figure known to less than kCoverage, which
// needs six samples, decides nothing.
//
// Beside other programs a time is that of the repeats that they did not disturb
// (undisturbed_timer.h). If there are too few of these, the figure is
// disturbed, and what is judged by it is INCONCLUSIVE.
//
// Judge a claim together with its control if the claim could be wrong although
// the number is as expected: compare the two (Less(with, control)), or use
// Both(claim, control, name). Given(control, claim, name) is INCONCLUSIVE if
// there is no effect to see, as with parallel work on one core.
//
// Evidence and reasons are in the run's language (language.h); so must be those
// that the caller passes.
//
// Everything here is a value or a pure function. Wrong arguments (units that
// differ, a ratio to zero) throw std::invalid_argument.

#ifndef D2L_COMMON_LESSON_CELL_JUDGE_H_
#define D2L_COMMON_LESSON_CELL_JUDGE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/console/language.h"
#include "common/base/statistics.h"

namespace d2l {

// A place on the axis of a sweep: n = 64.
struct Place {
  Phrase axis;
  double value;
};

// One measured quantity.
struct Figure {
  Phrase label;        // what was measured: "10 x (randn, matmul)"
  std::string column;  // "enqueue", "completion", or "" for neither
  Phrase measured_on;  // "cpu:0, virtual"; "host"; "" if derived
  std::string unit;    // "s", "B", "x", …
  Summary value;
  // The samples behind the summary, by repeat; empty if they are not known.
  std::vector<double> samples = {};
  // Whether other programs disturbed it: then it decides nothing.
  bool disturbed = false;
  std::optional<Place> place = std::nullopt;  // see Cell::At
  int group = 0;  // shared by figures that were timed in turn; 0: none

  // "10 x (randn, matmul), enqueue (cpu:0, virtual)"; with its place,
  // "one device, n = 64, completion (cpu:0, virtual)".
  Phrase Name() const;
};

enum class Verdict { kHolds, kFails, kInconclusive };

// "HOLDS", "FAILS", "INCONCLUSIVE".
const char* VerdictName(Verdict verdict);

// A bound that a claim sets for a figure, for drawings.
struct AskedFor {
  std::string figure;  // its name, in English
  double value;
};

struct Judgement {
  Verdict verdict = Verdict::kInconclusive;
  std::string number;          // the deciding number: "1.89x", "3 of 10"
  std::string evidence;        // "needs 1.10x or more; 95 %: 1.88-1.91"
  std::string reason = "";     // a sentence, if the judge has one
  bool disturbed = false;      // INCONCLUSIVE because of other programs
  bool close = false;          // a number 1.2 times as large, or as small, may
                               // have decided otherwise
  bool no_difference = false;  // a ratio that is certainly 1.00x, to 5 %
  std::vector<AskedFor> asked_for = {};
};

// Is the figure certainly more, or less, than this?
Judgement Above(const Figure& figure, double bound);
Judgement Below(const Figure& figure, double bound);

// Is a less than b, by a factor? With by = 1.3: is b more than 1.3 times a? The
// number is b / a. by >= 1.
Judgement Less(const Figure& a, const Figure& b, double by = 1);

// Are a and b the same to within a factor? The number is a / b. within > 1.
Judgement AboutEqual(const Figure& a, const Figure& b, double within);

// HOLDS if both do. The number is the claim's. The evidence has the control's
// number and requirement after its name. If the claim HOLDS and the control
// does not, the reason is the control's, and names it.
Judgement Both(const Judgement& claim, const Judgement& control,
               const std::string& control_name);

// The claim, if the control shows that there is an effect to see; else
// INCONCLUSIVE. The number is the claim's.
Judgement Given(const Judgement& control, const Judgement& claim,
                const std::string& control_name);

// For a counted number. evidence: "0 of 31 dependencies broken".
Judgement Counted(bool holds, const std::string& evidence,
                  const std::string& number);

// A ratio, measured at one of several increasing sizes.
struct SweepPoint {
  double size;
  Figure ratio;
};

// The size from which on every measured ratio is certainly above the bound. The
// number is that size, "n = 400", or "no measured size". HOLDS if there is one.
Judgement SureFrom(const std::string& name,
                   const std::vector<SweepPoint>& sweep, double bound);

// A figure that is computed in each repeat from the repeat's two samples, and
// then summarised. Throws if the two have no samples, or not the same number.
Figure PerRepeat(const Phrase& label, const std::string& unit, const Figure& a,
                 const Figure& b,
                 const std::function<double(double, double)>& combine);
// a / b, of two positive figures of one unit; unit "x".
Figure RatioPerRepeat(const Phrase& label, const Figure& a, const Figure& b);

// A figure of one sample per repeat. Times beside which other programs may run
// are reported with Cell::ReportTimes.
Figure Sampled(const Phrase& label, const Phrase& measured_on,
               const std::string& unit, std::vector<double> samples);

// A figure without an error, such as a bound.
Figure Known(const Phrase& label, const std::string& unit, double value);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_CELL_JUDGE_H_
