// The input of one_pass: element-wise operations with a constant.

#ifndef D2L_CHAPTERS_HYBRID_PROGRAMMING_EXERCISES_JUDGES_ONE_PASS_H_
#define D2L_CHAPTERS_HYBRID_PROGRAMMING_EXERCISES_JUDGES_ONE_PASS_H_

namespace d2l {

// "x + c", or "c + x" if the constant is on the left.
struct WithConstant {
  char operation;  // one of + - * / ^ (x to the power c)
  double constant;
  bool on_the_left;
};

}  // namespace d2l

#endif  // D2L_CHAPTERS_HYBRID_PROGRAMMING_EXERCISES_JUDGES_ONE_PASS_H_
