// Losses (torch.nn.CrossEntropyLoss).
//
//   Tensor logits = net(images);  // of shape (n, classes)
//   Tensor loss = nn::CrossEntropyLoss(logits, labels);  // one number
//
// Thread-safety: pure functions. Errors: std::invalid_argument for shapes and
// dtypes that do not go together; a label outside [0, classes) fails late, and
// the message names it and the line of the loss.

#ifndef D2L_COMMON_NN_LOSS_H_
#define D2L_COMMON_NN_LOSS_H_

#include "common/base/source_location.h"
#include "common/tensor/tensor.h"

namespace d2l::nn {

enum class Reduction { kMean, kSum, kNone };

// -log(softmax(logits)[label]) of each of n samples: their mean, their sum, or
// all of them. logits: (n, classes), float32 or float64; labels: (n), int64.
Tensor CrossEntropyLoss(const Tensor& logits, const Tensor& labels,
                        Reduction reduction = Reduction::kMean,
                        SourceLocation at = SourceLocation::Current());

}  // namespace d2l::nn

#endif  // D2L_COMMON_NN_LOSS_H_
