// bare_names: the names of a wrapped network's parameters, without the wrapper.
//
//   bazel run //:exercises -- bare_names

#include <string>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

// The name that a parameter of a wrapped network has in the bare one: without
// "module." at its beginning. A name that does not begin so stays as it is.
std::string BareName(const std::string& name) {
  // YOUR CODE
  throw NotDone();
}

D2L_ANSWER("bare_names", BareName);

}  // namespace
}  // namespace d2l
