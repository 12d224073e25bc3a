#include <algorithm>
#include <cmath>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace multiplies_only {
int LargestWidth(int layers, double saved, double rate) {
  return static_cast<int>(std::sqrt(10 * saved * rate / layers));
}
}  // namespace multiplies_only

namespace as_long_as_computing {
int LargestWidth(int layers, double saved, double rate) {
  return static_cast<int>(std::sqrt(saved * rate / (2.0 * layers)));
}
}  // namespace as_long_as_computing

namespace a_vector {
int LargestWidth(int layers, double saved, double rate) {
  return static_cast<int>(10 * saved * rate / (2.0 * layers));
}
}  // namespace a_vector

namespace at_least_one {
int LargestWidth(int layers, double saved, double rate) {
  return std::max(1, static_cast<int>(std::sqrt(5 * saved * rate / layers)));
}
}  // namespace at_least_one

namespace rounds_up {
int LargestWidth(int layers, double saved, double rate) {
  return static_cast<int>(std::ceil(std::sqrt(5 * saved * rate / layers)));
}
}  // namespace rounds_up

namespace one_layer {
int LargestWidth(int /*layers*/, double saved, double rate) {
  return static_cast<int>(std::sqrt(5 * saved * rate));
}
}  // namespace one_layer

D2L_MISTAKE("worth_compiling", multiplies_only, LargestWidth,
            "multiplies and adds");
D2L_MISTAKE("worth_compiling", as_long_as_computing, LargestWidth,
            "10 % is enough");
D2L_MISTAKE("worth_compiling", a_vector, LargestWidth, "the square of");
D2L_MISTAKE("worth_compiling", at_least_one, LargestWidth,
            "even a width of 1 is too large");
D2L_MISTAKE("worth_compiling", rounds_up, LargestWidth,
            "times as long as a compiled one");
D2L_MISTAKE("worth_compiling", one_layer, LargestWidth,
            "There are `layers` products");

}  // namespace
}  // namespace d2l
