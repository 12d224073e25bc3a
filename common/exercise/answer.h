// What a file with an answer needs to name it: see exercise.h. Light, because
// kernels that are exercises are compiled with it, and nvcc reads it, too.

#ifndef D2L_COMMON_EXERCISE_ANSWER_H_
#define D2L_COMMON_EXERCISE_ANSWER_H_

#include <any>
#include <stdexcept>
#include <string>
#include <vector>

namespace d2l {

// Thrown by the body of a function that is still to be written.
class NotDone : public std::logic_error {
 public:
  NotDone() : std::logic_error("not done") {}
};

// One function, written as an answer to an exercise.
struct Answer {
  std::string exercise;
  std::string file;      // which it stands in
  std::string mistake;   // the mistake's name; "" for other answers
  std::string expected;  // a part of what the judge must say of the mistake
  std::any function;
};

// All that are linked into this program.
std::vector<Answer>& Answers();

namespace internal {
bool RegisterAnswer(Answer answer);
}  // namespace internal

}  // namespace d2l

// Each stands at the end of a file, in namespace d2l.
#define D2L_ANSWER(exercise, function)               \
  [[maybe_unused]] const bool answer_is_registered = \
      ::d2l::internal::RegisterAnswer(               \
          {exercise, __FILE__, "", "", std::any(&(function))})

// mistake: a namespace with the function. expected: a part of what the judge
// must say of it, of this mistake only.
#define D2L_MISTAKE(exercise, mistake, function, expected)                     \
  [[maybe_unused]] const bool mistake##_is_registered =                        \
      ::d2l::internal::RegisterAnswer({exercise, __FILE__, #mistake, expected, \
                                       std::any(&mistake::function)})

#endif  // D2L_COMMON_EXERCISE_ANSWER_H_
