// Checkpoint: a part of a computation of which a tape keeps only what went into
// it; on the way back it is computed again (torch.utils.checkpoint).
//
//   Tensor w = Randn({3, 3});
//   Tensor x = Randn({8, 3});
//   GradientTape tape({w});
//   Tensor y = Checkpoint(
//       [w](const Tensor& x, bool /*again*/) { return Relu(MatMul(x, w)); }, x,
//       {w});
//   std::vector<Tensor> grads = tape.Backward(Sum(y));  // of w
//
// So memory for the values in between is needed for one part at a time, and
// each part's forward pass is made twice. Random numbers are the same both
// times: the gradients have the bits that they have without it. Where no tape
// listens it is the function alone. For modules: nn/checkpoint.h.
//
// parameters: all that the function depends on and a tape may watch, but x.
// Ownership: a tape keeps the function until Backward. Errors: the function's,
// also from Backward. Thread-safety: the function's.

#ifndef D2L_COMMON_AUTOGRAD_CHECKPOINT_H_
#define D2L_COMMON_AUTOGRAD_CHECKPOINT_H_

#include <functional>
#include <vector>

#include "common/base/source_location.h"
#include "common/tensor/tensor.h"

namespace d2l {

// again: whether it is the second time.
using CheckpointFunction = std::function<Tensor(const Tensor& x, bool again)>;

Tensor Checkpoint(const CheckpointFunction& function, const Tensor& x,
                  const std::vector<Tensor>& parameters,
                  SourceLocation at = SourceLocation::Current());

}  // namespace d2l

#endif  // D2L_COMMON_AUTOGRAD_CHECKPOINT_H_
