#include <random>
#include <vector>

#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

namespace fills_rows {
Tensor Squares(int count, Device device) {
  const Tensor x = Zeros({count, 10, 10}, device);
  for (int j = 0; j < count; ++j) x[j] = Rand({10, 10}, device);
  return x * x;
}
}  // namespace fills_rows

namespace one_for_all {
Tensor Squares(int count, Device device) {
  const Tensor x = Expand(Rand({1, 10, 10}, device), {count, 10, 10});
  return x * x;
}
}  // namespace one_for_all

namespace draws_twice {
Tensor Squares(int count, Device device) {
  return Rand({count, 10, 10}, device) * Rand({count, 10, 10}, device);
}
}  // namespace draws_twice

namespace on_the_default_device {
Tensor Squares(int count, Device device) {
  const Tensor x = Rand({count, 10, 10});
  return x * x;
}
}  // namespace on_the_default_device

namespace normal_numbers {
Tensor Squares(int count, Device device) {
  const Tensor x = Randn({count, 10, 10}, device);
  return x * x;
}
}  // namespace normal_numbers

namespace not_squared {
Tensor Squares(int count, Device device) {
  return Rand({count, 10, 10}, device);
}
}  // namespace not_squared

namespace a_seed_in_each_call {
Tensor Squares(int count, Device device) {
  ManualSeed(1, device);
  const Tensor x = Rand({count, 10, 10}, device);
  return x * x;
}
}  // namespace a_seed_in_each_call

namespace one_matrix {
Tensor Squares(int count, Device device) {
  const Tensor x = Rand({10, 10}, device);
  return x * x;
}
}  // namespace one_matrix

namespace by_the_host {
Tensor Squares(int count, Device device) {
  static auto& generator = *new std::mt19937;
  std::uniform_real_distribution<float> uniform(0, 0.999f);
  std::vector<float> squares(count * 100);
  for (float& square : squares) {
    const float x = uniform(generator);
    square = x * x;
  }
  return FromVector(squares, {count, 10, 10}, device);
}
}  // namespace by_the_host

D2L_MISTAKE("false_vectorising", fills_rows, Squares, "The loop has moved");
D2L_MISTAKE("false_vectorising", one_for_all, Squares, "is drawn anew");
D2L_MISTAKE("false_vectorising", draws_twice, Squares, "product of two draws");
D2L_MISTAKE("false_vectorising", on_the_default_device, Squares,
            "on the argument's device");
D2L_MISTAKE("false_vectorising", normal_numbers, Squares,
            "Rand draws from [0, 1)");
D2L_MISTAKE("false_vectorising", not_squared, Squares, "not squares");
D2L_MISTAKE("false_vectorising", a_seed_in_each_call, Squares,
            "the same numbers again");
D2L_MISTAKE("false_vectorising", one_matrix, Squares,
            "One matrix of 10 x 10 for each count");
D2L_MISTAKE("false_vectorising", by_the_host, Squares, "The host has drawn");

}  // namespace
}  // namespace d2l
