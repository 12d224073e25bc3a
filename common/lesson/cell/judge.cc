#include "common/lesson/cell/judge.h"

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
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/statistics.h"
#include "common/base/undisturbed_timer.h"

namespace d2l {
namespace {

// A ratio at least this close to 1 counts as no difference.
constexpr double kSame = 1.05;

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
  figure.exposed = a.exposed || b.exposed;
  return figure;
}

// An estimate of the figure without other programs.
Summary WithoutLoad(const Figure& figure) {
  if (figure.undisturbed.empty()) return figure.value;
  std::vector<double> least, most;
  for (const Bounds& b : figure.undisturbed) {
    least.push_back(b.least);
    most.push_back(b.most);
  }
  Summary summary = Summarize(least);
  summary.high = Summarize(most).high;
  summary.median = std::clamp(figure.value.median, summary.low, summary.high);
  return summary;
}

bool IsDisturbed(const Figure& a, const Figure& b) {
  return !a.undisturbed.empty() || !b.undisturbed.empty();
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
  if (IsDisturbed(a, b)) {
    const Summary x = WithoutLoad(a), y = WithoutLoad(b);
    ratio.undisturbed.assign(std::min(x.count, y.count),
                             {x.low / y.high, x.high / y.low});
  }
  return ratio;
}

// Whether an interval meets the requirement.
using Decide = std::function<Verdict(double low, double high)>;

Verdict Decided(bool within, bool outside) {
  return within    ? Verdict::kHolds
         : outside ? Verdict::kFails
                   : Verdict::kInconclusive;
}

// The known range of a number without other programs: "1.10x to 1.90x", "at
// least 61.0x", or "" if nothing is known.
std::string TextWithoutLoad(const Figure& figure, const Summary& value,
                            const Decide& decide) {
  constexpr double kWide = 100;
  constexpr double kNoEnd = std::numeric_limits<double>::infinity();
  const auto end = [&](double x) {
    return Measured(FormatMedian(Exactly(x), figure.unit));
  };
  if (value.high <= kWide * value.low) {
    return Say("%s to %s", end(value.low), end(value.high));
  }
  if (decide(value.low, kNoEnd) != Verdict::kInconclusive) {
    return Say("at least %s", end(value.low));
  }
  if (decide(0, value.high) != Verdict::kInconclusive) {
    return Say("at most %s", end(value.high));
  }
  return "";
}

// Judges one number.
Judgement Judge(const Figure& figure, const std::string& asked,
                const Decide& decide) {
  const Summary value = WithoutLoad(figure);
  const Verdict verdict = decide(value.low, value.high);
  Judgement judgement;
  judgement.number = Measured(FormatMedian(value, figure.unit));
  judgement.evidence = asked;
  judgement.exposed = figure.exposed;
  judgement.disturbed = !figure.undisturbed.empty();
  judgement.no_difference =
      figure.unit == "x" && value.low * kSame > 1 && value.high < kSame;
  if (value.coverage < kCoverage) {
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
  }
  if (!judgement.disturbed) {
    if (value.low != value.high) {
      const std::string to =
          value.low < 0 ? absl::StrCat(" ", Say("to"), " ") : "-";
      absl::StrAppend(
          &judgement.evidence,
          Say("; 95 %%: %s", FormatInterval(value, figure.unit, to)));
    }
    if (verdict == Verdict::kInconclusive && judgement.reason.empty()) {
      judgement.reason = Say("The repeats differ too much to decide.");
    }
    return judgement;
  }
  const std::string without = TextWithoutLoad(figure, value, decide);
  if (verdict != Verdict::kInconclusive) {
    absl::StrAppend(&judgement.evidence,
                    Say("; without other programs %s", without));
  } else if (judgement.reason.empty()) {
    judgement.reason =
        without.empty() ? Say("The effect of other programs is not known.")
                        : Say("Without other programs it may be %s.", without);
  }
  return judgement;
}

std::string Bound(const Figure& figure, double bound) {
  return Measured(FormatMedian(Exactly(bound), figure.unit));
}

// Bounds of `combine` without other programs. They are at the corners, since
// `combine` grows or falls with each of the two.
std::vector<Bounds> UndisturbedPerRepeat(
    const Figure& a, const Figure& b,
    const std::function<double(double, double)>& combine) {
  const auto bounds = [](const Figure& figure, std::size_t i) {
    return figure.undisturbed.empty()
               ? Bounds{figure.value.low, figure.value.high}
               : figure.undisturbed[i];
  };
  const auto repeats = [](const Figure& figure) {
    return figure.undisturbed.empty() ? figure.samples.size()
                                      : figure.undisturbed.size();
  };
  std::vector<Bounds> both;
  for (std::size_t i = 0; i < std::min(repeats(a), repeats(b)); ++i) {
    const Bounds x = bounds(a, i), y = bounds(b, i);
    const auto [least, most] =
        std::minmax({combine(x.least, y.least), combine(x.least, y.most),
                     combine(x.most, y.least), combine(x.most, y.most)});
    both.push_back({least, most});
  }
  return both;
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
  both.evidence += Say("; %s: %s", Translated(control_name), control.number);
  both.exposed = claim.exposed || control.exposed;
  both.disturbed = claim.disturbed || control.disturbed;
  if (claim.verdict == Verdict::kHolds) {
    both.verdict = control.verdict;
    both.reason = control.reason;
    if (control.verdict == Verdict::kFails) {
      both.reason = Say("The control shows the same.");
    } else if (control.verdict == Verdict::kInconclusive) {
      // Its reason is about its own number, not about the claim's.
      both.reason = Lead(Say("The control, \"%s\", is INCONCLUSIVE.",
                             Translated(control_name))) +
                    control.reason;
    }
  }
  return both;
}

Judgement Given(const Judgement& control, const Judgement& claim,
                const std::string& control_name) {
  Judgement given = claim;
  given.evidence += Say("; %s: %s", Translated(control_name), control.number);
  given.exposed = claim.exposed || control.exposed;
  given.disturbed = claim.disturbed || control.disturbed;
  if (control.verdict != Verdict::kHolds) {
    given.verdict = Verdict::kInconclusive;
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
  if (IsDisturbed(a, b)) {
    figure.undisturbed = UndisturbedPerRepeat(a, b, combine);
  }
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
  figure.exposed = unit == "s";
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
