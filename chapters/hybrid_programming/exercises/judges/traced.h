// Functions that the judges of traced functions share.

#ifndef D2L_CHAPTERS_HYBRID_PROGRAMMING_EXERCISES_JUDGES_TRACED_H_
#define D2L_CHAPTERS_HYBRID_PROGRAMMING_EXERCISES_JUDGES_TRACED_H_

#include <functional>
#include <string>
#include <vector>

#include "common/exercise/exercise.h"
#include "common/graph/ir.h"
#include "common/tensor/tensor.h"

namespace d2l {

Tensor OnDevice(const std::vector<float>& x);

// The answer as a program, traced with x. Wrong if the trace reads a value;
// `look` then says what to look at.
ir::Graph TraceAnswer(
    const Judging& judging,
    const std::function<std::vector<Tensor>(const Tensor&)>& answer,
    const std::vector<float>& x, const std::string& look);

}  // namespace d2l

#endif  // D2L_CHAPTERS_HYBRID_PROGRAMMING_EXERCISES_JUDGES_TRACED_H_
