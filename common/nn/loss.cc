#include "common/nn/loss.h"

#include <stdexcept>

#include "absl/strings/str_format.h"
#include "common/ops/elementwise.h"
#include "common/ops/joining.h"
#include "common/ops/primitive.h"
#include "common/ops/record.h"
#include "common/ops/reduction.h"
#include "common/ops/views.h"

namespace d2l::nn {

Tensor CrossEntropyLoss(const Tensor& logits, const Tensor& labels,
                        Reduction reduction, SourceLocation at) {
  const char* const name = "CrossEntropyLoss";
  CheckDefined(name, logits, at);
  CheckDefined(name, labels, at);
  if (logits.dim() != 2 || !IsFloatingPoint(logits.dtype()) ||
      labels.shape() != Shape{logits.size(0)} ||
      labels.dtype() != DType::kInt64) {
    throw std::invalid_argument(absl::StrFormat(
        "[%s] logits of shape (n, classes), float32 or float64, and labels of "
        "shape (n), int64, wanted; got %s and %s; convert labels with To(x, "
        "DType::kInt64), change a shape with Reshape; requested at %s",
        name, logits.Describe(), labels.Describe(), at.ToString()));
  }
  const RequestedBy by(at);
  const Tensor picked =
      Gather(LogSoftmax(logits, 1, at), 1, Unsqueeze(labels, 1, at), at);
  switch (reduction) {
    case Reduction::kMean:
      return -Operand(Mean(picked, {}, /*keepdim=*/false, at), at);
    case Reduction::kSum:
      return -Operand(Sum(picked, {}, /*keepdim=*/false, at), at);
    case Reduction::kNone:
      break;
  }
  return -Operand(Squeeze(picked, 1, at), at);
}

}  // namespace d2l::nn
