// The tests of the functions of one operand: an entry for each UnaryOp, from
// which its tests are made.
//
//   for (const UnaryCase& one : UnaryCases()) {
//     EXPECT_EQ(one.Exact(2.0), ...) << one.name;
//   }
//
//   kernels/math_test.cc             numbers of all magnitudes, and vectors
//   kernels/cpu/elementwise_test.cc  every dtype and layout
//   ops/unary_test.cc                tensors on every device
//   autograd/gradient_rules_test.cc  gradients, and what they may overwrite
//
// op_tables_test.cc fails for an operation without an entry. Immutable.

#ifndef D2L_COMMON_KERNELS_TESTING_UNARY_CASES_H_
#define D2L_COMMON_KERNELS_TESTING_UNARY_CASES_H_

#include <vector>

#include "common/kernels/op_tables.h"

namespace d2l::kernels {

// The operands for which the function has a finite result and a derivative.
enum class Domain { kAll, kPositive };

// What the gradient is computed from, beside the gradient of the result.
enum class GradientReads { kNothing, kOperand, kResult };

struct UnaryCase {
  UnaryOp op;
  const char* name;
  // The slow and obvious formula, for floating-point numbers, and for integers
  // before they wrap around; null if the operation takes no integers.
  double (*formula)(double x);
  long double (*precise)(long double x);
  __int128 (*integer)(__int128 x);
  // How far a result may be from the formula's, in units in the last place. 0:
  // the result is the nearest number.
  double ulps;
  Domain domain;
  GradientReads gradient_reads;
  // Operands in every piece of the function, none of them where two meet.
  std::vector<double> points;

  // The formula with more precision than a double has, or with a double's if it
  // then rounds once.
  double Exact(double x) const {
    return ulps == 0 ? formula(x) : static_cast<double>(precise(x));
  }
};

// In the order of the enumerators.
const std::vector<UnaryCase>& UnaryCases();

}  // namespace d2l::kernels

#endif  // D2L_COMMON_KERNELS_TESTING_UNARY_CASES_H_
