// three_at_once: two devices compute while results travel to the host.
//
//   bazel run //:exercises -- three_at_once

#include "chapters/auto_parallelism/exercises/judges/three_at_once.h"

#include <cstddef>
#include <vector>

#include "common/device/device_table.h"
#include "common/device/event.h"
#include "common/device/stream.h"
#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

// Enqueues x @ x of every chunk x, evenly spread over the workers, each on its
// `compute` stream, and sends each product by its worker's `copies` stream;
// returns at once. The products are returned in the order of the chunks: a copy
// does not keep the memory that it reads.
std::vector<Tensor> SquareAndSend(const std::vector<Worker>& workers,
                                  const Send& send) {
  // SOLUTION
  std::vector<Tensor> products;
  for (std::size_t i = 0; i < workers[0].xs.size(); ++i) {
    const Worker& worker = workers[i % workers.size()];
    const StreamGuard guard(*worker.compute);
    products.push_back(MatMul(worker.xs[i], worker.xs[i]));
    worker.copies->Wait(worker.compute->Record());
    send(i, products[i], *worker.copies);
  }
  return products;
  // END
}

D2L_ANSWER("three_at_once", SquareAndSend);

}  // namespace
}  // namespace d2l
