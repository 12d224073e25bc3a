// resume: what a checkpoint has to keep.
//
//   bazel run //:exercises -- resume

#include "chapters/multi_gpu/exercises/judges/resume.h"

#include <cstddef>
#include <functional>
#include <vector>

#include "common/exercise/exercise.h"
#include "common/nn/module.h"
#include "common/ops/creation.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

// Keeps what the steps to come depend on; the training itself goes on. The
// function that is returned puts another training, which has just begun, to
// where this one stands now: it then makes the same steps, bit for bit.
std::function<void(Training& fresh)> Checkpoint(Training& training) {
  // YOUR CODE
  throw NotDone();
}

D2L_ANSWER("resume", Checkpoint);

}  // namespace
}  // namespace d2l
