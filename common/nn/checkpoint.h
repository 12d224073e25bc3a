// nn::Checkpoint: a module whose intermediate values are computed again in the
// backward pass, instead of being kept (torch's checkpoint_wrapper).
//
//   nn::Sequential net(
//       nn::Checkpoint(nn::Sequential(nn::Linear(20, 256), nn::ReLU(),
//                                     nn::Linear(256, 256), nn::ReLU())),
//       nn::Linear(256, 10));
//
// A tape keeps only the input of a wrapped part. Random numbers and running
// statistics have the same bits as without Checkpoint, as have the gradients of
// parameters that are used in one part only; the part's forward pass runs
// twice, both times in the modes (Train, Eval) of the first. See
// autograd/checkpoint.h.
//
// A Checkpoint prints, and names its parameters, like the module that it owns,
// which must exist until Backward. Thread-safety and errors: the module's.

#ifndef D2L_COMMON_NN_CHECKPOINT_H_
#define D2L_COMMON_NN_CHECKPOINT_H_

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "common/nn/module.h"
#include "common/tensor/tensor.h"

namespace d2l::nn {

class Checkpoint : public Module {
 public:
  explicit Checkpoint(std::unique_ptr<Module> module)
      : module_(std::move(module)) {}
  template <typename M,
            typename = std::enable_if_t<std::is_base_of_v<Module, M> &&
                                        !std::is_same_v<Checkpoint, M>>>
  explicit Checkpoint(M module)
      : Checkpoint(std::make_unique<M>(std::move(module))) {}

  Tensor Forward(const Tensor& x) override;
  std::string Name() const override { return module_->Name(); }
  std::string ExtraRepr() const override { return module_->ExtraRepr(); }
  void Members(MemberVisitor& visitor) override { module_->Members(visitor); }
  using Module::Train;
  void Train(bool mode) override;
  std::unique_ptr<Module> New() const override {
    return std::make_unique<Checkpoint>(module_->New());
  }

 private:
  std::unique_ptr<Module> module_;
};

}  // namespace d2l::nn

#endif  // D2L_COMMON_NN_CHECKPOINT_H_
