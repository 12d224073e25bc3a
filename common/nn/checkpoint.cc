#include "common/nn/checkpoint.h"

#include <cstddef>
#include <cstdint>
#include <utility>
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
        const auto buffers = NamedBuffers(*module);
        std::vector<std::pair<std::uint64_t, Tensor>> kept;
        for (const auto& [name, buffer] : buffers) {
          const NoGradGuard guard;
          kept.emplace_back(buffer.version(), Clone(buffer));
        }
        Tensor y = module->Forward(x);
        for (std::size_t i = 0; i < kept.size(); ++i) {
          const auto& [version, copy] = kept[i];
          // DataParallel averages what has a new version.
          if (buffers[i].second.version() == version) continue;
          const NoGradGuard guard;
          CopyTo(copy, buffers[i].second, /*non_blocking=*/true);
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
