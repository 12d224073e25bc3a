#include "common/nn/checkpoint.h"

#include <cstddef>
#include <vector>

#include "common/autograd/checkpoint.h"
#include "common/ops/copy.h"
#include "common/ops/no_grad.h"
#include "common/ops/primitive/record.h"

namespace d2l::nn {

Tensor Checkpoint::Forward(const Tensor& x) {
  const SourceLocation by = internal::op_context.requested_by;
  return d2l::Checkpoint(
      [module = module_.get()](const Tensor& x, bool again) {
        if (!again) return module->Forward(x);
        // The second forward pass must not update running statistics again.
        std::vector<Tensor> kept;
        const auto buffers = NamedBuffers(*module);
        for (const auto& [name, buffer] : buffers) {
          const NoGradGuard guard;
          kept.push_back(Clone(buffer));
        }
        Tensor y = module->Forward(x);
        for (std::size_t i = 0; i < kept.size(); ++i) {
          const NoGradGuard guard;
          CopyTo(kept[i], buffers[i].second, /*non_blocking=*/true);
        }
        return y;
      },
      x, Parameters(*module_), by.known() ? by : SourceLocation::Current());
}

void Checkpoint::Train(bool mode) {
  Module::Train(mode);
  module_->Train(mode);
}

}  // namespace d2l::nn
