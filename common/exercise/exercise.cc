#include "common/exercise/exercise.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/machine.h"
#include "common/base/statistics.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/cell/judge.h"

namespace d2l {
namespace {

struct WrongAnswerError : std::exception {
  explicit WrongAnswerError(WrongAnswer wrong) : wrong(std::move(wrong)) {}
  const char* what() const noexcept override { return "a wrong answer"; }
  const WrongAnswer wrong;
};

// Waits for the work that an answer has left, whether or not it failed.
void Quiet() {
  for (const DeviceInfo& info : Devices()) {
    try {
      Synchronize(info.device);
    } catch (const AsyncError&) {
      // The error was judged already, or the exercise does not ask about it.
    }
  }
}

std::string Describe(const WrongAnswer& wrong) {
  std::string text = "WRONG\n";
  const std::pair<std::string, std::string> lines[] = {
      {"input", wrong.input}, {"got", wrong.got}, {"expected", wrong.expected}};
  for (const auto& [name, value] : lines) {
    if (value.empty()) continue;
    text += Wrap(Translated(value), absl::StrCat("  ", Padded(name, 8), "  "));
  }
  if (!wrong.evidence.empty()) absl::StrAppend(&text, "\n", wrong.evidence);
  return absl::StrCat(text, "\n", Wrap(Translated(wrong.look), "  "));
}

// Describes the exception that the learner's code threw.
std::string Describe(const std::exception& thrown) {
  return absl::StrCat("WRONG\n",
                      // The message names the line that read the value.
                      Wrap(absl::StrContains(thrown.what(), "/judges/")
                               ? Say("What your code made cannot be read:")
                               : Say("Your code threw an exception:"),
                           "  "),
                      Wrap(thrown.what(), "  "));
}

// What a small number's error is compared with: 1; where all are tiny, the
// largest of them, so that 0 is not close to them; where some are huge, the
// largest, since others may be what is left of two that are as large.
double UnitOf(const std::vector<float>& expected) {
  constexpr double kTiny = 1e-20, kHuge = 1e20;
  double largest = 0;
  for (const float number : expected) {
    if (!std::isfinite(number)) continue;
    largest = std::max(largest, std::abs(double{number}));
  }
  return largest > 0 && (largest < kTiny || largest > kHuge) ? largest : 1;
}

// NaN is close to NaN only, an infinity to itself only.
bool Close(float got, float expected, double tolerance, double unit) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  return std::abs(double{got} - expected) <=
         tolerance * std::max(unit, std::abs(double{expected}));
}

std::string ShowNumbers(const std::vector<float>& numbers) {
  constexpr std::size_t kShown = 8;
  const auto end = numbers.begin() + std::min(kShown, numbers.size());
  return absl::StrCat(absl::StrJoin(numbers.begin(), end, ", ",
                                    [](std::string* out, float number) {
                                      absl::StrAppend(
                                          out, absl::StrFormat("%g", number));
                                    }),
                      numbers.size() > kShown ? ", …" : "");
}

}  // namespace

bool AllClose(const std::vector<float>& got, const std::vector<float>& expected,
              double tolerance) {
  const double unit = UnitOf(expected);
  return std::equal(got.begin(), got.end(), expected.begin(), expected.end(),
                    [tolerance, unit](float a, float b) {
                      return Close(a, b, tolerance, unit);
                    });
}

void Judging::Wrong(WrongAnswer wrong) const {
  throw WrongAnswerError(std::move(wrong));
}

void Judging::ExpectClose(const std::string& input,
                          const std::vector<float>& got,
                          const std::vector<float>& expected, double tolerance,
                          const std::string& look) const {
  if (got.size() != expected.size()) {
    Wrong({input, Say("%d numbers: %s", got.size(), ShowNumbers(got)),
           Say("%d numbers: %s", expected.size(), ShowNumbers(expected)),
           look});
  }
  const double unit = UnitOf(expected);
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (Close(got[i], expected[i], tolerance, unit)) continue;
    Wrong({input, Say("%.7g at index %d", got[i], i),
           absl::StrFormat("%.7g", expected[i]), look});
  }
}

void Judging::Race(const Alternative& answer, const RaceAgainst& against) {
  if (!timed_) return;
  CellResult result;
  Cell cell(Size::kCourse, &result);
  Alternative yours = answer, best = against.best;
  yours.label = "yours";
  best.label = "best";
  const Timings t = cell.TimeInterleaved({yours, best});
  const Figure& time = t["yours"].completion;
  const Figure ratio = RatioPerRepeat("", time, t["best"].completion);
  const auto line = [&](const Phrase& label, const Summary& seconds) {
    return absl::StrFormat("%s %9s", Padded(label, 28),
                           FormatMedian(seconds, "s"));
  };
  Note(line(answer.label, time.value));
  Note(line(against.best.label, t["best"].completion.value) +
       // This is not the quotient of the medians beside it.
       "  " +
       Say("you take %s as long (median of the pairs of runs)",
           FormatFactor(ratio.value.median)));
  if (against.bound > 0) {
    Note(line(against.bound_of, Exactly(against.bound)) + "  " +
         Say("you take %s as long",
             FormatFactor(time.value.median / against.bound)));
  }
  // The answer is slow only if that is certain: noise does not fail a learner.
  if (Above(ratio, against.slack).verdict == Verdict::kHolds) {
    if (slow_.empty()) slow_ = against.look;
    return;
  }
  // Explains numbers that seem to contradict the verdict.
  constexpr double kAlike = 1.1, kFarFromBound = 1.3;
  const Summary& r = ratio.value;
  if (r.median > kAlike || r.median < 1 / kAlike) {
    if (r.low <= 1 && r.high >= 1) {
      Explain(
          Say("The 95 %% interval, %.2f to %.2f, holds 1: this is the noise of "
              "the machine, not a difference.",
              r.low, r.high));
    } else if (r.median < 1) {
      Explain(
          Say("Yours takes less: the other is the best program known to the "
              "judge, not a limit."));
    } else {
      Explain(
          Say("This is near enough: slow is what surely takes more than %s.",
              FormatFactor(against.slack)));
    }
  }
  const double best_time = t["best"].completion.value.median;
  if (against.bound > 0 && best_time > kFarFromBound * against.bound) {
    Explain(Say(
        "The best program takes %s of the bound, too. The bound is for cores "
        "that do nothing else; this machine has %d, shared with other "
        "programs.",
        FormatFactor(best_time / against.bound), UsableCores()));
  }
}

void Judging::Note(const std::string& line) {
  notes_ += absl::StrCat("  ", line, "\n");
}

void Judging::Explain(const std::string& sentence) {
  notes_ += Wrap(sentence, "  ");
}

std::vector<Answer>& Answers() {
  static auto& answers = *new std::vector<Answer>;
  return answers;
}

std::vector<Judge>& Judges() {
  static auto& judges = *new std::vector<Judge>;
  return judges;
}

Judged JudgeAnswer(const Answer& answer, bool timed) {
  const auto judge = std::find_if(
      Judges().begin(), Judges().end(),
      [&](const Judge& j) { return j.exercise == answer.exercise; });
  if (judge == Judges().end()) {
    throw std::invalid_argument(
        absl::StrCat("no judge of the exercise ", answer.exercise));
  }
  Judging judging(timed);
  Judged judged;
  try {
    judge->judge(judging, answer.function);
    const bool slow = !judging.slow().empty();
    judged = {slow ? ExerciseVerdict::kSlow : ExerciseVerdict::kRight,
              slow ? "RIGHT BUT SLOW\n" : "RIGHT\n"};
    absl::StrAppend(&judged.text, judging.notes());
    if (slow)
      absl::StrAppend(&judged.text, "\n",
                      Wrap(Translated(judging.slow()), "  "));
  } catch (const NotDone&) {
    judged = {ExerciseVerdict::kNotDone, "NOT DONE\n"};
  } catch (const WrongAnswerError& error) {
    judged = {ExerciseVerdict::kWrong, Describe(error.wrong)};
  } catch (const std::exception& thrown) {
    judged = {ExerciseVerdict::kWrong, Describe(thrown)};
  }
  Quiet();
  return judged;
}

bool internal::RegisterAnswer(Answer answer) {
  Answers().push_back(std::move(answer));
  return true;
}

}  // namespace d2l
