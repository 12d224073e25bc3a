// Types of the exercise three_at_once: two devices and a link to the host.

#ifndef D2L_CHAPTERS_AUTO_PARALLELISM_EXERCISES_JUDGES_THREE_AT_ONCE_H_
#define D2L_CHAPTERS_AUTO_PARALLELISM_EXERCISES_JUDGES_THREE_AT_ONCE_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "common/device/stream.h"
#include "common/tensor/tensor.h"

namespace d2l {

// A device, with two streams that work at the same time.
struct Worker {
  std::vector<Tensor> xs;  // all chunks: every device has all of them
  Stream* compute;
  Stream* copies;
};

// Enqueues on stream `on` the copy of a product to its place on the host, over
// a link, and returns at once.
using Send =
    std::function<void(std::size_t chunk, const Tensor& product, Stream& on)>;

}  // namespace d2l

#endif  // D2L_CHAPTERS_AUTO_PARALLELISM_EXERCISES_JUDGES_THREE_AT_ONCE_H_
