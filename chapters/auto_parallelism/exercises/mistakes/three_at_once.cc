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

namespace waits_for_the_copy {
std::vector<Tensor> SquareAndSend(const std::vector<Worker>& workers,
                                  const Send& send) {
  std::vector<Tensor> products;
  for (std::size_t i = 0; i < workers[0].xs.size(); ++i) {
    const Worker& worker = workers[i % workers.size()];
    const StreamGuard guard(*worker.compute);
    products.push_back(MatMul(worker.xs[i], worker.xs[i]));
    worker.copies->Wait(worker.compute->Record());
    send(i, products[i], *worker.copies);
    worker.copies->Synchronize();
  }
  return products;
}
}  // namespace waits_for_the_copy

// It has the number of the chunk, and always the same worker.
namespace one_device {
std::vector<Tensor> SquareAndSend(const std::vector<Worker>& workers,
                                  const Send& send) {
  std::vector<Tensor> products;
  const Worker& worker = workers[0];
  const StreamGuard guard(*worker.compute);
  for (std::size_t i = 0; i < worker.xs.size(); ++i) {
    products.push_back(MatMul(worker.xs[i], worker.xs[i]));
    worker.copies->Wait(worker.compute->Record());
    send(i, products[i], *worker.copies);
  }
  return products;
}
}  // namespace one_device

// The event is recorded before its product is asked for.
namespace event_too_early {
std::vector<Tensor> SquareAndSend(const std::vector<Worker>& workers,
                                  const Send& send) {
  std::vector<Tensor> products;
  for (std::size_t i = 0; i < workers[0].xs.size(); ++i) {
    const Worker& worker = workers[i % workers.size()];
    const StreamGuard guard(*worker.compute);
    worker.copies->Wait(worker.compute->Record());
    products.push_back(MatMul(worker.xs[i], worker.xs[i]));
    send(i, products[i], *worker.copies);
  }
  return products;
}
}  // namespace event_too_early

// One event for all products of a device.
namespace event_too_late {
std::vector<Tensor> SquareAndSend(const std::vector<Worker>& workers,
                                  const Send& send) {
  std::vector<Tensor> products;
  for (std::size_t i = 0; i < workers[0].xs.size(); ++i) {
    const Worker& worker = workers[i % workers.size()];
    const StreamGuard guard(*worker.compute);
    products.push_back(MatMul(worker.xs[i], worker.xs[i]));
  }
  for (const Worker& worker : workers) {
    worker.copies->Wait(worker.compute->Record());
  }
  for (std::size_t i = 0; i < products.size(); ++i) {
    send(i, products[i], *workers[i % workers.size()].copies);
  }
  return products;
}
}  // namespace event_too_late

D2L_MISTAKE("three_at_once", waits_for_the_copy, SquareAndSend,
            "A caller that waits cannot ask for the next product");
D2L_MISTAKE("three_at_once", one_device, SquareAndSend,
            "Every worker has all chunks");
D2L_MISTAKE("three_at_once", event_too_early, SquareAndSend,
            "may begin before its product is done");
D2L_MISTAKE("three_at_once", event_too_late, SquareAndSend,
            "record an event behind each");

}  // namespace
}  // namespace d2l
