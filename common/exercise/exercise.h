// Exercises: a function that a learner writes, and the judge of it.
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
// The answer and the judge are in different files and know each other by the
// exercise's name, so that one program can hold several answers: the learner's
// in the program that //:exercises builds, in a test the solution, the
// untouched exercise and the typical mistakes (D2L_MISTAKE). Functions that
// have the same name stand in unnamed namespaces.
//
// A judge first tells whether the answer is right, by what it computes and by
// what it asks of the devices (probes.h), not by how long it takes. Then the
// judge may Race the answer. chapters/README.md says how to write an exercise.
//
// What is said of an answer is English, and shown in the run's language: plain
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
  std::string look;  // what to look at: a sentence or two
  // Lines between the two, such as a drawing; printed as they are.
  std::string evidence = "";
};

// What an answer is raced against.
struct RaceAgainst {
  Alternative best;
  // The answer is slow if it surely takes more than this many times as long.
  double slack;
  // What to look at then.
  std::string look;
  // How fast it could be at best, in seconds, and why; 0: not known.
  double bound = 0;
  std::string bound_of = "";
};

// Whether there are as many numbers, and
// |got - expected| <= tolerance * max(1, |expected|) for each. An infinity is
// close to itself only.
bool AllClose(const std::vector<float>& got, const std::vector<float>& expected,
              double tolerance);

class Judging {
 public:
  // timed: whether to race.
  explicit Judging(bool timed) : timed_(timed) {}
  Judging(const Judging&) = delete;
  Judging& operator=(const Judging&) = delete;

  bool timed() const { return timed_; }

  // Ends the judgement: the answer is wrong.
  [[noreturn]] void Wrong(WrongAnswer wrong) const;

  // Wrong unless AllClose.
  void ExpectClose(const std::string& input, const std::vector<float>& got,
                   const std::vector<float>& expected, double tolerance,
                   const std::string& look) const;

  // Times the answer and the best in turn, as a lesson's cell does, unless the
  // judgement is not timed. The answer must have been found right before.
  void Race(const Alternative& answer, const RaceAgainst& against);

  // A line below the verdict of a right answer: a figure, a comparison.
  void Note(const std::string& line);
  // A sentence there, such as why a figure does not contradict the verdict.
  void Explain(const std::string& sentence);

  const std::string& notes() const { return notes_; }
  // What to look at, if the answer lost a race; else "".
  const std::string& slow() const { return slow_; }

 private:
  const bool timed_;
  std::string notes_;
  std::string slow_;
};

enum class ExerciseVerdict { kRight, kSlow, kWrong, kNotDone };

struct Judged {
  ExerciseVerdict verdict;
  std::string text;  // what is printed, in lines
};

struct Judge {
  std::string exercise;
  // Throws if the answer is wrong, or what the answer throws.
  std::function<void(Judging&, const std::any&)> judge;
};

// All that are linked into this program.
std::vector<Judge>& Judges();

// Has the exercise's judge look at the answer. Afterwards the devices are idle.
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

// Stands at the end of a file, in namespace d2l.
#define D2L_JUDGE(exercise, judge)                  \
  [[maybe_unused]] const bool judge_is_registered = \
      ::d2l::internal::RegisterJudge(exercise, judge)

#endif  // D2L_COMMON_EXERCISE_EXERCISE_H_
