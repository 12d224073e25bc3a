#include "common/nn/loss.h"

#include "common/ops/nn/functional.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"
#include "common/ops/reduction.h"

namespace d2l::nn {

Tensor CrossEntropyLoss(const Tensor& logits, const Tensor& labels,
                        Reduction reduction, SourceLocation at) {
  CheckDefined("CrossEntropyLoss", logits, at);
  CheckDefined("CrossEntropyLoss", labels, at);
  const RequestedBy by(at);
  const Tensor losses = CrossEntropy(logits, labels, at);
  switch (reduction) {
    case Reduction::kMean:
      return Mean(losses, {}, /*keepdim=*/false, at);
    case Reduction::kSum:
      return Sum(losses, {}, /*keepdim=*/false, at);
    case Reduction::kNone:
      break;
  }
  return losses;
}

}  // namespace d2l::nn
