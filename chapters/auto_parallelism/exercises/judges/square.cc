#include "chapters/auto_parallelism/exercises/judges/square.h"

namespace d2l {

std::vector<float> Square(const std::vector<float>& x, std::int64_t n) {
  std::vector<float> square(n * n);
  for (std::int64_t i = 0; i < n * n; ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      sum += double{x[i / n * n + k]} * x[k * n + i % n];
    }
    square[i] = static_cast<float>(sum);
  }
  return square;
}

}  // namespace d2l
