// The results that the judges of products expect.

#ifndef D2L_CHAPTERS_AUTO_PARALLELISM_EXERCISES_JUDGES_SQUARE_H_
#define D2L_CHAPTERS_AUTO_PARALLELISM_EXERCISES_JUDGES_SQUARE_H_

#include <cstdint>
#include <vector>

namespace d2l {

// x @ x of a matrix of n x n, summed in double.
std::vector<float> Square(const std::vector<float>& x, std::int64_t n);

}  // namespace d2l

#endif  // D2L_CHAPTERS_AUTO_PARALLELISM_EXERCISES_JUDGES_SQUARE_H_
