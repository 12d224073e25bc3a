// Exercises: functions that a learner writes, and their judges.
//
//   float Half(float x) {
//     // YOUR CODE
//     throw NotDone();
//   }
//   D2L_ANSWER("half", Half);
//
//   void JudgeHalf(Judging& judging, float (*answer)(float)) {
//     for (const float x : {3.5f, -1.f, 0.f}) {
//       const float got = answer(x);
//       if (got == x / 2) continue;
//       judging.Wrong({absl::StrFormat("%g", x), absl::StrFormat("%g", got),
//                      absl::StrFormat("%g", x / 2), "Half is a factor."});
//     }
//   }
//   D2L_JUDGE("half", JudgeHalf);
//
// The answer and the judge are in different files and share only the exercise's
// name, so that one program can hold several answers: the learner's in the
// program that //:exercises builds; in a test the solution, the untouched
// exercise and the typical mistakes (D2L_MISTAKE). Functions that have the same
// name go into unnamed namespaces.
//
// A judge first decides whether the answer is right, by its results and by its
// requests to the devices (probes.h), not by its time. Then the judge may Race
// the answer. chapters/README.md says how to write an exercise.
//
// Texts about an answer are English, and shown in the run's language: plain
// texts and the formats of Say are keys of po/zh.po
// (common/base/console/language.h).
//
// Registration happens before main; the rest is for one thread.

#ifndef D2L_COMMON_EXERCISE_EXERCISE_H_
#define D2L_COMMON_EXERCISE_EXERCISE_H_

#include <any>
#include <functional>
#include <string>
#include <vector>

#include "common/exercise/answer.h"
#include "common/lesson/cell/cell.h"

namespace d2l {

// Why an answer is wrong.
struct WrongAnswer {
  std::string input;
  std::string got;
  std::string expected;
  std::string look;  // a hint: a sentence or two
  // Lines between the two, printed unchanged, such as a drawing.
  std::string evidence = "";
};

// The opponent of an answer in a race.
struct RaceAgainst {
  Alternative best;
  // The answer is slow if it certainly takes more than this many times as long.
  double slack;
  // The hint for a slow answer.
  std::string look;
  // The shortest possible time, in seconds, and the reason; 0: not known.
  double bound = 0;
  std::string bound_of = "";
};

// Whether both have the same size and |got - expected| <= tolerance * max(1,
// |expected|) for each number; where all of the expected numbers are tiny, or
// some huge, the largest of them is in the place of 1. An infinity, and NaN,
// are close to themselves only.
bool AllClose(const std::vector<float>& got, const std::vector<float>& expected,
              double tolerance);

class Judging {
 public:
  // `timed` says whether to race.
  explicit Judging(bool timed) : timed_(timed) {}
  Judging(const Judging&) = delete;
  Judging& operator=(const Judging&) = delete;

  bool timed() const { return timed_; }

  // Ends the judgement: the answer is wrong.
  [[noreturn]] void Wrong(WrongAnswer wrong) const;

  // Calls Wrong unless AllClose.
  void ExpectClose(const std::string& input, const std::vector<float>& got,
                   const std::vector<float>& expected, double tolerance,
                   const std::string& look) const;

  // Times the answer and the best in turn, as a lesson's cell does, if the
  // judgement is timed. The judge must have found the answer right before.
  void Race(const Alternative& answer, const RaceAgainst& against);

  // A line below the verdict of a right answer, such as a comparison.
  void Note(const std::string& line);
  // A sentence there, such as why a number does not contradict the verdict.
  void Explain(const std::string& sentence);

  const std::string& notes() const { return notes_; }
  // The hint, if the answer lost a race; else "".
  const std::string& slow() const { return slow_; }

 private:
  const bool timed_;
  std::string notes_;
  std::string slow_;
};

enum class ExerciseVerdict { kRight, kSlow, kWrong, kNotDone };

struct Judged {
  ExerciseVerdict verdict;
  std::string text;  // the text to print, in lines
};

struct Judge {
  std::string exercise;
  // Throws if the answer is wrong, and passes on what the answer throws.
  std::function<void(Judging&, const std::any&)> judge;
};

// All judges that are linked into this program.
std::vector<Judge>& Judges();

// Has the exercise's judge judge the answer. Afterwards the devices are idle.
// Throws std::invalid_argument if there is no such judge.
Judged JudgeAnswer(const Answer& answer, bool timed);

namespace internal {

template <typename Function>
bool RegisterJudge(const char* exercise,
                   void (*judge)(Judging&, Function* answer)) {
  Judges().push_back(
      {exercise, [judge](Judging& judging, const std::any& answer) {
         Function* const* function = std::any_cast<Function*>(&answer);
         if (function == nullptr) {
           judging.Wrong({"", "", "",
                          "The parameters or the result of the function have "
                          "other types than the exercise asks for."});
         }
         judge(judging, *function);
       }});
  return true;
}

}  // namespace internal
}  // namespace d2l

// Comes at the end of a file, in namespace d2l.
#define D2L_JUDGE(exercise, judge)                  \
  [[maybe_unused]] const bool judge_is_registered = \
      ::d2l::internal::RegisterJudge(exercise, judge)

#endif  // D2L_COMMON_EXERCISE_EXERCISE_H_
