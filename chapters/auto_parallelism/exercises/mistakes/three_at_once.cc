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

// Each chunk has its number, but always the same worker.
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

// The event is recorded before its product is enqueued.
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

namespace no_guard {
std::vector<Tensor> SquareAndSend(const std::vector<Worker>& workers,
                                  const Send& send) {
  std::vector<Tensor> products;
  for (std::size_t i = 0; i < workers[0].xs.size(); ++i) {
    const Worker& worker = workers[i % workers.size()];
    products.push_back(MatMul(worker.xs[i], worker.xs[i]));
    worker.copies->Wait(worker.compute->Record());
    send(i, products[i], *worker.copies);
  }
  return products;
}
}  // namespace no_guard

namespace one_stream {
std::vector<Tensor> SquareAndSend(const std::vector<Worker>& workers,
                                  const Send& send) {
  std::vector<Tensor> products;
  for (std::size_t i = 0; i < workers[0].xs.size(); ++i) {
    const Worker& worker = workers[i % workers.size()];
    const StreamGuard guard(*worker.compute);
    products.push_back(MatMul(worker.xs[i], worker.xs[i]));
    send(i, products[i], *worker.compute);
  }
  return products;
}
}  // namespace one_stream

// As if all products had one place in memory.
namespace waits_for_the_link {
std::vector<Tensor> SquareAndSend(const std::vector<Worker>& workers,
                                  const Send& send) {
  std::vector<Tensor> products;
  for (std::size_t i = 0; i < workers[0].xs.size(); ++i) {
    const Worker& worker = workers[i % workers.size()];
    const StreamGuard guard(*worker.compute);
    worker.compute->Wait(worker.copies->Record());
    products.push_back(MatMul(worker.xs[i], worker.xs[i]));
    worker.copies->Wait(worker.compute->Record());
    send(i, products[i], *worker.copies);
  }
  return products;
}
}  // namespace waits_for_the_link

namespace whole_turns_only {
std::vector<Tensor> SquareAndSend(const std::vector<Worker>& workers,
                                  const Send& send) {
  std::vector<Tensor> products;
  const std::size_t turns = workers[0].xs.size() / workers.size();
  for (std::size_t i = 0; i < turns * workers.size(); ++i) {
    const Worker& worker = workers[i % workers.size()];
    const StreamGuard guard(*worker.compute);
    products.push_back(MatMul(worker.xs[i], worker.xs[i]));
    worker.copies->Wait(worker.compute->Record());
    send(i, products[i], *worker.copies);
  }
  return products;
}
}  // namespace whole_turns_only

namespace another_is_returned {
std::vector<Tensor> SquareAndSend(const std::vector<Worker>& workers,
                                  const Send& send) {
  std::vector<Tensor> products;
  for (std::size_t i = 0; i < workers[0].xs.size(); ++i) {
    const Worker& worker = workers[i % workers.size()];
    const StreamGuard guard(*worker.compute);
    const Tensor product = MatMul(worker.xs[i], worker.xs[i]);
    worker.copies->Wait(worker.compute->Record());
    send(i, product, *worker.copies);
    products.push_back(MatMul(worker.xs[i], worker.xs[i]));
  }
  return products;
}
}  // namespace another_is_returned

D2L_MISTAKE("three_at_once", waits_for_the_copy, SquareAndSend,
            "A caller that waits cannot enqueue the next product");
D2L_MISTAKE("three_at_once", one_device, SquareAndSend, "a copy of all chunks");
D2L_MISTAKE("three_at_once", event_too_early, SquareAndSend,
            "may begin before its product is done");
D2L_MISTAKE("three_at_once", event_too_late, SquareAndSend,
            "record an event after each product");
D2L_MISTAKE("three_at_once", no_guard, SquareAndSend,
            "is computed by the stream");
D2L_MISTAKE("three_at_once", one_stream, SquareAndSend,
            "the next product would wait for the copy");
D2L_MISTAKE("three_at_once", waits_for_the_link, SquareAndSend,
            "the products wait for copies");
D2L_MISTAKE("three_at_once", whole_turns_only, SquareAndSend,
            "need not divide evenly");
D2L_MISTAKE("three_at_once", another_is_returned, SquareAndSend,
            "Return the same tensors");

}  // namespace
}  // namespace d2l
