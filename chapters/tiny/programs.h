// The program of the lesson's cell, which the benchmark times too.

#ifndef D2L_CHAPTERS_TINY_PROGRAMS_H_
#define D2L_CHAPTERS_TINY_PROGRAMS_H_

#include "common/d2l.h"

namespace d2l::tiny {

Tensor PlusOne(const Tensor& x);

}  // namespace d2l::tiny

#endif  // D2L_CHAPTERS_TINY_PROGRAMS_H_
