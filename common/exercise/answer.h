// Registers the answer that a file holds: see exercise.h. Kept small, because
// it is compiled with kernels that are exercises, by nvcc, too.

#ifndef D2L_COMMON_EXERCISE_ANSWER_H_
#define D2L_COMMON_EXERCISE_ANSWER_H_

#include <any>
#include <stdexcept>
#include <string>
#include <vector>

namespace d2l {

// Thrown by the body of a function that has not been written yet.
class NotDone : public std::logic_error {
 public:
  NotDone() : std::logic_error("not done") {}
};

// One function, written as an answer to an exercise.
struct Answer {
  std::string exercise;
  std::string file;      // the file that holds it
  std::string mistake;   // the mistake's name; "" for other answers
  std::string expected;  // a part of the judge's text about the mistake
  std::any function;
};

// All answers that are linked into this program.
std::vector<Answer>& Answers();

namespace internal {
bool RegisterAnswer(Answer answer);
}  // namespace internal

}  // namespace d2l

// Comes at the end of a file, in namespace d2l.
#define D2L_ANSWER(exercise, function)               \
  [[maybe_unused]] const bool answer_is_registered = \
      ::d2l::internal::RegisterAnswer(               \
          {exercise, __FILE__, "", "", std::any(&(function))})

// `mistake` is a namespace with the function. `expected` is a part of the text
// that the judge must give for this mistake, and for no other.
#define D2L_MISTAKE(exercise, mistake, function, expected)                     \
  [[maybe_unused]] const bool mistake##_is_registered =                        \
      ::d2l::internal::RegisterAnswer({exercise, __FILE__, #mistake, expected, \
                                       std::any(&mistake::function)})

#endif  // D2L_COMMON_EXERCISE_ANSWER_H_
