#include "chapters/multi_gpu/exercises/judges/resume.h"

#include <cstddef>
#include <functional>
#include <vector>

#include "common/exercise/exercise.h"
#include "common/nn/module.h"
#include "common/ops/generator.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using Restore = std::function<void(Training& fresh)>;

std::vector<Tensor> Clones(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> clones;
  for (const Tensor& x : tensors) {
    clones.push_back(x.defined() ? Clone(x) : x);
  }
  return clones;
}

// All but where the generator stands.
Restore WithoutGenerator(Training& training) {
  return [parameters = Clones(nn::Parameters(training.net)),
          momentum = Clones(training.sgd.momentum_buffers()),
          epoch = training.epoch, batch = training.batch,
          steps = training.steps](Training& fresh) {
    const std::vector<Tensor> own = nn::Parameters(fresh.net);
    for (std::size_t i = 0; i < own.size(); ++i) CopyTo(parameters[i], own[i]);
    fresh.sgd.momentum_buffers() = Clones(momentum);
    fresh.epoch = epoch;
    fresh.batch = batch;
    fresh.steps = steps;
  };
}

Restore WithGenerator(Training& training) {
  return [rest = WithoutGenerator(training),
          generator = GetGeneratorState(training.device)](Training& fresh) {
    rest(fresh);
    SetGeneratorState(generator, fresh.device);
  };
}

namespace without_generator {
Restore Checkpoint(Training& training) { return WithoutGenerator(training); }
}  // namespace without_generator

// What the file of a network alone has.
namespace without_momentum {
Restore Checkpoint(Training& training) {
  return [all = WithGenerator(training)](Training& fresh) {
    const std::vector<Tensor> none = fresh.sgd.momentum_buffers();
    all(fresh);
    fresh.sgd.momentum_buffers() = none;
  };
}
}  // namespace without_momentum

namespace from_the_epochs_beginning {
Restore Checkpoint(Training& training) {
  return [all = WithGenerator(training)](Training& fresh) {
    all(fresh);
    fresh.batch = 0;
  };
}
}  // namespace from_the_epochs_beginning

D2L_MISTAKE("resume", without_generator, Checkpoint,
            "drops out other elements");
D2L_MISTAKE("resume", without_momentum, Checkpoint, "The momentum is another");
D2L_MISTAKE("resume", from_the_epochs_beginning, Checkpoint,
            "The next batch is another");

}  // namespace
}  // namespace d2l
