// The cross-entropy of labels (torch.nn.functional.cross_entropy).
//
//   Tensor logits = Randn({8, 10});
//   Tensor labels = RandInt(0, 10, {8});
//   Tensor losses = CrossEntropy(logits, labels);  // (8)
//
// Thread-safety: pure functions. Errors: std::invalid_argument for shapes and
// dtypes that do not go together; a label outside [0, classes) fails late, and
// the message names it and the line of the request.

#ifndef D2L_COMMON_OPS_NN_CROSS_ENTROPY_H_
#define D2L_COMMON_OPS_NN_CROSS_ENTROPY_H_

#include "common/base/source_location.h"
#include "common/tensor/tensor.h"

namespace d2l {

// -log(softmax(logits)[label]) of each of n samples: (n). logits: (n, classes),
// float32 or float64; labels: (n), int64.
Tensor CrossEntropy(const Tensor& logits, const Tensor& labels,
                    SourceLocation at = SourceLocation::Current());

}  // namespace d2l

#endif  // D2L_COMMON_OPS_NN_CROSS_ENTROPY_H_
