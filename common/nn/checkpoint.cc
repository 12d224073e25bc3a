#include "common/nn/checkpoint.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "common/autograd/checkpoint.h"
#include "common/ops/copy.h"
#include "common/ops/no_grad.h"
#include "common/ops/primitive/record.h"

namespace d2l::nn {

namespace {

// A module and its descendants, children before parents, and their modes.
class Modes {
 public:
  explicit Modes(Module& module) {
    Apply(module, [this](Module& part) {
      modes_.emplace_back(&part, part.training());
    });
  }
  void Set() const {
    // Train includes the children, whose modes are set after it.
    for (std::size_t i = modes_.size(); i-- > 0;) {
      modes_[i].first->Train(modes_[i].second);
    }
  }

 private:
  std::vector<std::pair<Module*, bool>> modes_;
};

// The second forward pass, in the modes of the first. It must not update
// running statistics again.
Tensor ForwardAgain(Module& module, const Modes& modes, const Tensor& x) {
  const Modes now(module);
  const absl::Cleanup as_before = [&now] { now.Set(); };
  modes.Set();
  const auto buffers = NamedBuffers(module);
  std::vector<std::pair<std::uint64_t, Tensor>> kept;
  for (const auto& [name, buffer] : buffers) {
    const NoGradGuard guard;
    kept.emplace_back(buffer.version(), Clone(buffer));
  }
  Tensor y = module.Forward(x);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const auto& [version, copy] = kept[i];
    // DataParallel averages what has a new version.
    if (buffers[i].second.version() == version) continue;
    const NoGradGuard guard;
    CopyTo(copy, buffers[i].second, /*non_blocking=*/true);
  }
  return y;
}

}  // namespace

Tensor Checkpoint::Forward(const Tensor& x) {
  const SourceLocation by = internal::op_context.requested_by;
  return d2l::Checkpoint(
      [module = module_.get(), modes = Modes(*module_)](const Tensor& x,
                                                        bool again) {
        return again ? ForwardAgain(*module, modes, x) : module->Forward(x);
      },
      x, by.known() ? by : SourceLocation::Current());
}

void Checkpoint::Train(bool mode) {
  Module::Train(mode);
  module_->Train(mode);
}

}  // namespace d2l::nn
