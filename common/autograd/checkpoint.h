// Checkpoint: a part of a computation of which a tape keeps only the inputs;
// the backward pass computes it again (torch.utils.checkpoint).
//
//   Tensor w = Randn({3, 3});
//   Tensor x = Randn({8, 3});
//   GradientTape tape({w});
//   Tensor y = Checkpoint(
//       [w](const Tensor& x, bool /*again*/) { return Relu(MatMul(x, w)); }, x,
//       {w});
//   std::vector<Tensor> grads = tape.Backward(Sum(y));  // of w
//
// So the intermediate values of only one part at a time need memory, and each
// part's forward pass runs twice. Random numbers are the same both times: the
// gradients have the bits that they have without it. Without a tape it only
// calls the function. For modules: nn/checkpoint.h.
//
// parameters: all tensors but x that the function uses and a tape may watch.
// Ownership: a tape keeps the function until Backward. Errors: the function's,
// also from Backward. Thread-safety: the function's.

#ifndef D2L_COMMON_AUTOGRAD_CHECKPOINT_H_
#define D2L_COMMON_AUTOGRAD_CHECKPOINT_H_

#include <functional>
#include <vector>

#include "common/base/source_location.h"
#include "common/tensor/tensor.h"

namespace d2l {

// again: whether it runs for the second time.
using CheckpointFunction = std::function<Tensor(const Tensor& x, bool again)>;

Tensor Checkpoint(const CheckpointFunction& function, const Tensor& x,
                  const std::vector<Tensor>& parameters,
                  SourceLocation at = SourceLocation::Current());

}  // namespace d2l

#endif  // D2L_COMMON_AUTOGRAD_CHECKPOINT_H_
