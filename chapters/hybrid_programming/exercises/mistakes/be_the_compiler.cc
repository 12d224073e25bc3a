#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

namespace keeps_f {
Tensor Shortened(const Tensor& a, const Tensor& b) {
  const Tensor e = a + b;
  const Tensor f = a - b;
  return e * e;
}
}  // namespace keeps_f

namespace adds_twice {
Tensor Shortened(const Tensor& a, const Tensor& b) { return (a + b) * (a + b); }
}  // namespace adds_twice

namespace multiplied_out {
Tensor Shortened(const Tensor& a, const Tensor& b) {
  return a * a + 2 * a * b + b * b;
}
}  // namespace multiplied_out

namespace writes_into_a {
Tensor Shortened(const Tensor& a, const Tensor& b) {
  Tensor e = a;
  e += b;
  return e * e;
}
}  // namespace writes_into_a

namespace on_the_host {
Tensor Shortened(const Tensor& a, const Tensor& b) {
  std::vector<float> sums = ToVector<float>(a);
  const std::vector<float> others = ToVector<float>(b);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i] += others[i];
    sums[i] *= sums[i];
  }
  return FromVector(sums, {static_cast<std::int64_t>(sums.size())}, a.device());
}
}  // namespace on_the_host

namespace reads_the_memory {
// A virtual device's memory is the host's, and nothing says that it is read.
Tensor Shortened(const Tensor& a, const Tensor& b) {
  const auto* const left = static_cast<const float*>(a.data());
  const auto* const right = static_cast<const float*>(b.data());
  std::vector<float> squares;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    squares.push_back((left[i] + right[i]) * (left[i] + right[i]));
  }
  return FromVector(squares, {a.numel()}, a.device());
}
}  // namespace reads_the_memory

D2L_MISTAKE("be_the_compiler", keeps_f, Shortened, "Which statement uses f?");
D2L_MISTAKE("be_the_compiler", adds_twice, Shortened, "e and g are the same");
D2L_MISTAKE("be_the_compiler", multiplied_out, Shortened, "Bit for bit");
D2L_MISTAKE("be_the_compiler", writes_into_a, Shortened, "make a new one");
D2L_MISTAKE("be_the_compiler", on_the_host, Shortened, "a value was read");
D2L_MISTAKE("be_the_compiler", reads_the_memory, Shortened,
            "A host that looks");

}  // namespace
}  // namespace d2l
