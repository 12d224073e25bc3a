// SGD: stochastic gradient descent (torch.optim.SGD).
//
//   nn::SGD sgd(nn::Parameters(net), {/*lr=*/0.1, /*momentum=*/0.9});
//   GradientTape tape(nn::Parameters(net));
//   Tensor loss = nn::CrossEntropyLoss(net(images), labels);
//   sgd.Step(tape.Backward(loss));
//
// With g the gradient of a parameter p:
//   g = g + weight_decay * p;  v = momentum * v + g;  p = p - lr * v
// where v is g in the first step. Parameters of one device and dtype are
// updated together: an operation for v, one for p, and one for the weight decay
// of v.
//
// Ownership: it shares the parameters' memory and writes to it. It does not
// follow a parameter that is replaced afterwards (nn::To). Thread-safety: none.
// Errors: std::invalid_argument for a parameter that is given twice, and for
// gradients that are not like the parameters.

#ifndef D2L_COMMON_NN_SGD_H_
#define D2L_COMMON_NN_SGD_H_

#include <vector>

#include "absl/types/span.h"
#include "common/base/source_location.h"
#include "common/tensor/tensor.h"

namespace d2l::nn {

struct SGDOptions {
  double lr;
  double momentum = 0;
  double weight_decay = 0;
};

class SGD {
 public:
  SGD(std::vector<Tensor> parameters, const SGDOptions& options);

  // `gradients` are those of the parameters, in their order. Asynchronous.
  void Step(absl::Span<const Tensor> gradients,
            SourceLocation at = SourceLocation::Current());

  // The options may change between steps.
  SGDOptions& options() { return options_; }
  // v of each parameter, to be saved with the parameters; undefined before the
  // first step with momentum.
  std::vector<Tensor>& momentum_buffers() { return momentum_buffers_; }

 private:
  std::vector<Tensor> parameters_;
  SGDOptions options_;
  std::vector<Tensor> momentum_buffers_;
};

}  // namespace d2l::nn

#endif  // D2L_COMMON_NN_SGD_H_
