#include "common/lesson/judge.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/statistics.h"
#include "common/base/text.h"

namespace d2l {
namespace {

void CheckUnits(const char* function, const Figure& a, const Figure& b) {
  if (a.unit == b.unit) return;
  throw std::invalid_argument(
      absl::StrFormat("[%s] units differ: %s in \"%s\", %s in \"%s\"", function,
                      a.Name(), a.unit, b.Name(), b.unit));
}

std::string Quantity(const Figure& figure) {
  return absl::StrCat(figure.Name(), ": ",
                      FormatSummary(figure.value, figure.unit));
}

std::string Medians(const Figure& a, const Figure& b) {
  return absl::StrCat(FormatMedian(a.value, a.unit), ", ",
                      FormatMedian(b.value, b.unit));
}

std::string Both(const Figure& a, const Figure& b) {
  return absl::StrCat(Quantity(a), "; ", Quantity(b));
}

Judgement Judge(const Figure& a, const Figure& b, Verdict verdict,
                const std::string& because) {
  return {verdict, absl::StrCat(Both(a, b), ". ", because, "."), Medians(a, b)};
}

// That a figure is not known well enough to decide anything, if so.
std::optional<Judgement> TooFewSamples(const Figure& a, const Figure& b) {
  for (const Figure* figure : {&a, &b}) {
    if (figure->value.coverage >= kCoverage) continue;
    return Judge(
        a, b, Verdict::kInconclusive,
        absl::StrFormat("The spread of %d %s is not known well "
                        "enough; 6 are needed",
                        figure->value.count,
                        figure->value.count == 1 ? "sample" : "samples"));
  }
  return std::nullopt;
}

// Of the medians, larger over smaller; "" if that is not defined.
std::string TimesApart(const Figure& a, const Figure& b) {
  const double small = std::min(a.value.median, b.value.median);
  const double large = std::max(a.value.median, b.value.median);
  if (small <= 0) return "";
  return absl::StrCat(", ", FormatFactor(large / small), " apart");
}

void CheckPositive(const char* function, const Figure& a, const Figure& b) {
  if (a.value.min > 0 && b.value.min > 0) return;
  throw std::invalid_argument(absl::StrFormat(
      "[%s] both figures must be positive: %s", function, Both(a, b)));
}

Figure Derive(const std::string& label, const std::string& unit,
              const Figure& a, const Figure& b) {
  Figure figure;
  figure.label = label;
  figure.measured_on = a.measured_on;
  if (a.measured_on != b.measured_on) {
    absl::StrAppend(&figure.measured_on, "; ", b.measured_on);
  }
  figure.unit = unit;
  figure.value.count = std::min(a.value.count, b.value.count);
  figure.value.coverage = std::min(a.value.coverage, b.value.coverage);
  return figure;
}

}  // namespace

std::string Figure::Name() const {
  std::string name = label;
  if (!column.empty()) absl::StrAppend(&name, ", ", column);
  if (!measured_on.empty()) absl::StrAppend(&name, " (", measured_on, ")");
  return name;
}

const char* VerdictName(Verdict verdict) {
  constexpr const char* kNames[] = {"HOLDS", "FAILS", "INCONCLUSIVE"};
  return kNames[static_cast<int>(verdict)];
}

Judgement Less(const Figure& a, const Figure& b, double by) {
  CheckUnits("Less", a, b);
  if (!(by >= 1)) {
    throw std::invalid_argument(
        absl::StrFormat("[Less] by must be at least 1, got %g", by));
  }
  if (const auto judgement = TooFewSamples(a, b)) return *judgement;
  const std::string needed =
      by == 1 ? "" : absl::StrFormat(" (%s is asked for)", FormatFactor(by));
  const std::string apart = absl::StrCat(TimesApart(a, b), needed);
  if (a.value.high * by < b.value.low) {
    return Judge(a, b, Verdict::kHolds,
                 "The first is less: the intervals separate" + apart);
  }
  if (b.value.high < a.value.low) {
    return Judge(a, b, Verdict::kFails,
                 "The first is more: the intervals separate" + apart);
  }
  if (b.value.high < a.value.low * by) {
    return {
        Verdict::kFails,
        absl::StrCat(Both(a, b), TimesApart(a, b),
                     ". The intervals rule out such a difference", needed, "."),
        Medians(a, b)};
  }
  return Judge(a, b, Verdict::kInconclusive,
               "The intervals do not separate" + needed);
}

Judgement AboutEqual(const Figure& a, const Figure& b, double within) {
  CheckUnits("AboutEqual", a, b);
  if (!(within > 1)) {
    throw std::invalid_argument(absl::StrFormat(
        "[AboutEqual] within must be more than 1, got %g", within));
  }
  if (const auto judgement = TooFewSamples(a, b)) return *judgement;
  const std::string factor = FormatFactor(within);
  if (a.value.high <= b.value.low * within &&
      b.value.high <= a.value.low * within) {
    return Judge(
        a, b, Verdict::kHolds,
        absl::StrCat("Both intervals lie within ", factor, " of each other"));
  }
  if (a.value.low > b.value.high * within ||
      b.value.low > a.value.high * within) {
    return Judge(
        a, b, Verdict::kFails,
        absl::StrCat("The intervals are more than ", factor, " apart"));
  }
  return Judge(a, b, Verdict::kInconclusive,
               absl::StrCat("The intervals are too wide to tell whether the "
                            "two are within ",
                            factor));
}

Figure Sum(const std::string& label, const Figure& a, const Figure& b) {
  CheckUnits("Sum", a, b);
  Figure sum = Derive(label, a.unit, a, b);
  sum.value.median = a.value.median + b.value.median;
  sum.value.low = a.value.low + b.value.low;
  sum.value.high = a.value.high + b.value.high;
  sum.value.min = a.value.min + b.value.min;
  return sum;
}

Figure Scaled(const std::string& label, const Figure& a, double factor) {
  if (!(factor > 0)) {
    throw std::invalid_argument(absl::StrFormat(
        "[Scaled] the factor must be positive, got %g", factor));
  }
  Figure scaled = Derive(label, a.unit, a, a);
  scaled.value.median = a.value.median * factor;
  scaled.value.low = a.value.low * factor;
  scaled.value.high = a.value.high * factor;
  scaled.value.min = a.value.min * factor;
  return scaled;
}

Figure Ratio(const std::string& label, const Figure& a, const Figure& b) {
  CheckUnits("Ratio", a, b);
  CheckPositive("Ratio", a, b);
  Figure ratio = Derive(label, "x", a, b);
  ratio.value.median = a.value.median / b.value.median;
  ratio.value.low = a.value.low / b.value.high;
  ratio.value.high = a.value.high / b.value.low;
  // The smallest ratio that was seen is not known; this bounds it.
  ratio.value.min = a.value.min / b.value.high;
  return ratio;
}

Figure PerRepeat(const std::string& label, const std::string& unit,
                 const Figure& a, const Figure& b,
                 const std::function<double(double, double)>& combine) {
  if (a.samples.empty() || a.samples.size() != b.samples.size()) {
    throw std::invalid_argument(absl::StrFormat(
        "[PerRepeat] the figures must come from the same repeats: %s has %d "
        "samples, %s has %d",
        a.Name(), a.samples.size(), b.Name(), b.samples.size()));
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

Figure RatioPerRepeat(const std::string& label, const Figure& a,
                      const Figure& b) {
  CheckUnits("RatioPerRepeat", a, b);
  CheckPositive("RatioPerRepeat", a, b);
  return PerRepeat(label, "x", a, b, [](double x, double y) { return x / y; });
}

Figure Sampled(const std::string& label, const std::string& measured_on,
               const std::string& unit, std::vector<double> samples) {
  Figure figure{label, "", measured_on, unit, Summarize(samples)};
  figure.samples = std::move(samples);
  return figure;
}

Figure Known(const std::string& label, const std::string& unit, double value) {
  Figure figure;
  figure.label = label;
  figure.unit = unit;
  figure.value = Exactly(value);
  return figure;
}

}  // namespace d2l
