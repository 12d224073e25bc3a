// Checkpoint: a part of a computation of which a tape keeps only the inputs;
// the backward pass computes it again (torch.utils.checkpoint).
//
//   Tensor w = Randn({3, 3});
//   Tensor x = Randn({8, 3});
//   GradientTape tape({w});
//   Tensor y = Checkpoint(
//       [w](const Tensor& x, bool) { return Relu(MatMul(x, w)); }, x);
//   std::vector<Tensor> grads = tape.Backward(Sum(y));  // of w
//
// So the intermediate values of only one part at a time need memory, and each
// part's forward pass runs twice. Which tensors the function reads besides x is
// found while it runs. Random numbers, of every device, are the same both
// times. The gradients have the bits that they have without it, except where a
// tensor is used inside the part and outside of it: its gradient's terms are
// then added in another order. Without a tape it only calls the function. For
// modules: nn/checkpoint.h.
//
// Ownership: a tape keeps the function, and what it reads, until Backward.
// Errors: the function's, also from Backward. std::invalid_argument for a
// function that writes to x. Backward throws std::logic_error if what the
// function reads was overwritten in between, as by an optimizer.
// Thread-safety: the function's.

#ifndef D2L_COMMON_AUTOGRAD_CHECKPOINT_H_
#define D2L_COMMON_AUTOGRAD_CHECKPOINT_H_

#include <functional>

#include "common/base/source_location.h"
#include "common/tensor/tensor.h"

namespace d2l {

// again: whether it runs for the second time.
using CheckpointFunction = std::function<Tensor(const Tensor& x, bool again)>;

Tensor Checkpoint(const CheckpointFunction& function, const Tensor& x,
                  SourceLocation at = SourceLocation::Current());

}  // namespace d2l

#endif  // D2L_COMMON_AUTOGRAD_CHECKPOINT_H_
