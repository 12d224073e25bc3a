#include "common/lesson/cell/judge.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/statistics.h"

namespace d2l {
namespace {

// A ratio at least this close to 1 counts as no difference.
constexpr double kSame = 1.05;
// See Judgement::close.
constexpr double kClose = 1.2;

void CheckUnits(const char* function, const Figure& a, const Figure& b) {
  if (a.unit == b.unit) return;
  throw std::invalid_argument(
      absl::StrFormat("[%s] units differ: %s in \"%s\", %s in \"%s\"", function,
                      a.Name().english, a.unit, b.Name().english, b.unit));
}

void CheckPositive(const char* function, const Figure& a, const Figure& b) {
  for (const Figure* figure : {&a, &b}) {
    if (figure->value.min > 0) continue;
    throw std::invalid_argument(absl::StrFormat(
        "[%s] both figures must be positive: %s: %s", function,
        figure->Name().english, FormatSummary(figure->value, figure->unit)));
  }
}

Figure Derive(const Phrase& label, const std::string& unit, const Figure& a,
              const Figure& b) {
  Figure figure;
  figure.label = label;
  figure.measured_on = a.measured_on;
  if (a.measured_on != b.measured_on) {
    figure.measured_on = Worded("%s; %s", a.measured_on, b.measured_on);
  }
  figure.unit = unit;
  figure.value.count = std::min(a.value.count, b.value.count);
  figure.value.coverage = std::min(a.value.coverage, b.value.coverage);
  figure.disturbed = a.disturbed || b.disturbed;
  return figure;
}

// a / b: per repeat if the two have as many samples, else by interval
// arithmetic, which gives the widest possible interval.
Figure Ratio(const char* function, const Figure& a, const Figure& b) {
  CheckUnits(function, a, b);
  CheckPositive(function, a, b);
  if (!a.samples.empty() && a.samples.size() == b.samples.size()) {
    return RatioPerRepeat("", a, b);
  }
  Figure ratio = Derive("", "x", a, b);
  ratio.value.median = a.value.median / b.value.median;
  ratio.value.low = a.value.low / b.value.high;
  ratio.value.high = a.value.high / b.value.low;
  return ratio;
}

// Whether an interval meets the requirement.
using Decide = std::function<Verdict(double low, double high)>;

Verdict Decided(bool within, bool outside) {
  return within    ? Verdict::kHolds
         : outside ? Verdict::kFails
                   : Verdict::kInconclusive;
}

// Judges one number.
Judgement Judge(const Figure& figure, const std::string& asked,
                const Decide& decide) {
  const Summary& value = figure.value;
  const Verdict verdict = decide(value.low, value.high);
  Judgement judgement;
  judgement.number = Measured(FormatMedian(value, figure.unit));
  judgement.evidence = asked;
  judgement.no_difference =
      figure.unit == "x" && value.low * kSame > 1 && value.high < kSame;
  if (value.low != value.high) {
    const std::string to =
        value.low < 0 ? absl::StrCat(" ", Say("to"), " ") : "-";
    absl::StrAppend(&judgement.evidence,
                    Say("; 95 %%: %s", FormatInterval(value, figure.unit, to)));
  }
  if (figure.disturbed) {
    judgement.disturbed = true;
    judgement.reason = Say("Other programs disturbed too many of the repeats.");
  } else if (value.coverage < kCoverage) {
    judgement.reason =
        value.count == 1
            ? Say("The spread of %d sample is not known well enough; 6 are "
                  "needed.",
                  value.count)
            : Say("The spread of %d samples is not known well enough; 6 are "
                  "needed.",
                  value.count);
  } else {
    judgement.verdict = verdict;
    const auto with = [&](double factor) {
      return decide(factor * value.low, factor * value.high);
    };
    judgement.close = with(kClose) != verdict || with(1 / kClose) != verdict;
    if (verdict == Verdict::kInconclusive) {
      judgement.reason = Say("The repeats differ too much to decide.");
    }
  }
  return judgement;
}

std::string Bound(const Figure& figure, double bound) {
  return Measured(FormatMedian(Exactly(bound), figure.unit));
}

// Adds the control's number and requirement to the evidence.
void AddControl(const Judgement& control, const std::string& name,
                Judgement* judgement) {
  absl::StrAppend(
      &judgement->evidence, Say("; %s: %s", Translated(name), control.number),
      control.evidence.empty() ? "" : Say(" (%s)", control.evidence));
}

// The control decides nothing, so the judgement is INCONCLUSIVE.
void LeaveOpen(const Judgement& control, const std::string& name,
               Judgement* judgement) {
  judgement->verdict = Verdict::kInconclusive;
  judgement->disturbed = control.disturbed;
  // Its reason is about its own number, not about the claim's.
  judgement->reason =
      Lead(Say("The control, \"%s\", is INCONCLUSIVE.", Translated(name))) +
      control.reason;
}

}  // namespace

Phrase Figure::Name() const {
  Phrase name = label;
  if (place) {
    name = Worded("%s, %s = %s", name, place->axis,
                  absl::StrFormat("%.10g", place->value));
  }
  if (!column.empty()) name = Worded("%s, %s", name, Phrase(column));
  return measured_on == "" ? name : Worded("%s (%s)", name, measured_on);
}

const char* VerdictName(Verdict verdict) {
  constexpr const char* kNames[] = {"HOLDS", "FAILS", "INCONCLUSIVE"};
  return kNames[static_cast<int>(verdict)];
}

Judgement Above(const Figure& figure, double bound) {
  Judgement judgement =
      Judge(figure, Say("needs %s or more", Bound(figure, bound)),
            [&](double low, double high) {
              return Decided(low > bound, high < bound);
            });
  judgement.asked_for = {{figure.Name().english, bound}};
  return judgement;
}

Judgement Below(const Figure& figure, double bound) {
  Judgement judgement = Judge(
      figure, Say("needs less than %s", Bound(figure, bound)),
      [&](double low, double high) { return Decided(high<bound, low> bound); });
  judgement.asked_for = {{figure.Name().english, bound}};
  return judgement;
}

Judgement Less(const Figure& a, const Figure& b, double by) {
  if (!(by >= 1)) {
    throw std::invalid_argument(
        absl::StrFormat("[Less] by must be at least 1, got %g", by));
  }
  Judgement judgement = Above(Ratio("Less", b, a), by);
  judgement.asked_for = {{a.Name().english, b.value.median / by}};
  return judgement;
}

Judgement AboutEqual(const Figure& a, const Figure& b, double within) {
  if (!(within > 1)) {
    throw std::invalid_argument(absl::StrFormat(
        "[AboutEqual] within must be more than 1, got %g", within));
  }
  const Figure ratio = Ratio("AboutEqual", a, b);
  Judgement judgement =
      Judge(ratio, Say("needs to be within %s", Bound(ratio, within)),
            [&](double low, double high) {
              return Decided(low * within >= 1 && high <= within,
                             high * within < 1 || low > within);
            });
  for (const double end : {b.value.median / within, b.value.median * within}) {
    judgement.asked_for.push_back({a.Name().english, end});
  }
  return judgement;
}

Judgement Both(const Judgement& claim, const Judgement& control,
               const std::string& control_name) {
  Judgement both = claim;
  AddControl(control, control_name, &both);
  if (claim.verdict != Verdict::kHolds) return both;
  if (control.verdict == Verdict::kInconclusive) {
    LeaveOpen(control, control_name, &both);
  } else {
    both.verdict = control.verdict;
    both.close = control.close;
    if (control.verdict == Verdict::kFails) {
      both.reason = Say("The control shows the same.");
    }
  }
  return both;
}

Judgement Given(const Judgement& control, const Judgement& claim,
                const std::string& control_name) {
  Judgement given = claim;
  AddControl(control, control_name, &given);
  if (control.verdict == Verdict::kInconclusive) {
    LeaveOpen(control, control_name, &given);
  } else if (control.verdict == Verdict::kFails) {
    given.verdict = Verdict::kInconclusive;
    given.disturbed = false;
    given.reason = Say("The control shows nothing to compare with.");
  }
  return given;
}

Judgement Counted(bool holds, const std::string& evidence,
                  const std::string& number) {
  return {holds ? Verdict::kHolds : Verdict::kFails, Translated(number),
          Translated(evidence)};
}

Judgement SureFrom(const std::string& name,
                   const std::vector<SweepPoint>& sweep, double bound) {
  if (sweep.empty()) {
    throw std::invalid_argument("[SureFrom] there are no sizes");
  }
  std::size_t from = sweep.size();
  const auto is_sure = [&](const SweepPoint& point) {
    return Above(point.ratio, bound).verdict == Verdict::kHolds;
  };
  while (from > 0 && is_sure(sweep[from - 1])) --from;
  const auto size = [&](const SweepPoint& point) {
    return absl::StrFormat("%s = %g", name, point.size);
  };
  Judgement judgement = Above(sweep.back().ratio, bound);
  judgement.evidence = Say("%s: %s, %s", size(sweep.back()), judgement.number,
                           judgement.evidence);
  judgement.number =
      from < sweep.size() ? size(sweep[from]) : Say("no measured size");
  judgement.no_difference = false;
  return judgement;
}

Figure PerRepeat(const Phrase& label, const std::string& unit, const Figure& a,
                 const Figure& b,
                 const std::function<double(double, double)>& combine) {
  if (a.samples.empty() || a.samples.size() != b.samples.size()) {
    throw std::invalid_argument(absl::StrFormat(
        "[PerRepeat] the figures must come from the same repeats: %s has %d "
        "samples, %s has %d",
        a.Name().english, a.samples.size(), b.Name().english,
        b.samples.size()));
  }
  std::vector<double> samples;
  for (std::size_t i = 0; i < a.samples.size(); ++i) {
    samples.push_back(combine(a.samples[i], b.samples[i]));
  }
  Figure figure = Derive(label, unit, a, b);
  figure.value = Summarize(samples);
  figure.samples = std::move(samples);
  return figure;
}

Figure RatioPerRepeat(const Phrase& label, const Figure& a, const Figure& b) {
  CheckUnits("RatioPerRepeat", a, b);
  CheckPositive("RatioPerRepeat", a, b);
  return PerRepeat(label, "x", a, b, [](double x, double y) { return x / y; });
}

Figure Sampled(const Phrase& label, const Phrase& measured_on,
               const std::string& unit, std::vector<double> samples) {
  Figure figure{label, "", measured_on, unit, Summarize(samples)};
  figure.samples = std::move(samples);
  return figure;
}

Figure Known(const Phrase& label, const std::string& unit, double value) {
  Figure figure;
  figure.label = label;
  figure.unit = unit;
  figure.value = Exactly(value);
  return figure;
}

}  // namespace d2l
