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

D2L_MISTAKE("worth_compiling", multiplies_only, LargestWidth,
            "multiplies and adds");
D2L_MISTAKE("worth_compiling", as_long_as_computing, LargestWidth,
            "10 % are enough");
D2L_MISTAKE("worth_compiling", a_vector, LargestWidth, "the square of");

}  // namespace
}  // namespace d2l
