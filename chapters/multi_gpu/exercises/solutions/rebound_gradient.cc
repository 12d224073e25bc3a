// rebound_gradient: the book's allreduce, in C++.
//
//   bazel run //:exercises -- rebound_gradient

#include <cstddef>
#include <vector>

#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

// The book's:
//
//   def allreduce(data):
//       for i in range(1, len(data)):
//           data[0][:] += data[i].to(data[0].device)
//       for i in range(1, len(data)):
//           data[i][:] = data[0].to(data[i].device)
//
// data[i] is on device i. Networks hold handles to the same memory.
void AllReduceBook(std::vector<Tensor>& data) {
  // SOLUTION
  for (std::size_t i = 1; i < data.size(); ++i) {
    data[0] += To(data[i], data[0].device());
  }
  for (std::size_t i = 1; i < data.size(); ++i) CopyTo(data[0], data[i]);
  // END
}

D2L_ANSWER("rebound_gradient", AllReduceBook);

}  // namespace
}  // namespace d2l
