#include "chapters/multi_gpu/exercises/judges/resume.h"

#include <cstddef>
#include <functional>
#include <vector>

#include "common/exercise/exercise.h"
#include "common/nn/module.h"
#include "common/ops/creation.h"
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

namespace keeps_the_handles {
Restore Checkpoint(Training& training) {
  return [all = WithGenerator(training),
          parameters = nn::Parameters(training.net)](Training& fresh) {
    all(fresh);
    const std::vector<Tensor> own = nn::Parameters(fresh.net);
    for (std::size_t i = 0; i < own.size(); ++i) CopyTo(parameters[i], own[i]);
  };
}
}  // namespace keeps_the_handles

namespace without_the_steps {
Restore Checkpoint(Training& training) {
  return [all = WithGenerator(training)](Training& fresh) {
    all(fresh);
    fresh.steps = 0;
  };
}
}  // namespace without_the_steps

// The first training that is restored gets the clones themselves.
namespace gives_its_clones_away {
Restore Checkpoint(Training& training) {
  return [all = WithGenerator(training),
          momentum = Clones(training.sgd.momentum_buffers())](Training& fresh) {
    all(fresh);
    fresh.sgd.momentum_buffers() = momentum;
  };
}
}  // namespace gives_its_clones_away

// The network's handles stay as they are.
namespace binds_names {
Restore Checkpoint(Training& training) {
  return [all = WithGenerator(training),
          kept = Clones(nn::Parameters(training.net))](Training& fresh) {
    const std::vector<Tensor> first = Clones(nn::Parameters(fresh.net));
    all(fresh);
    std::vector<Tensor> own = nn::Parameters(fresh.net);
    for (std::size_t i = 0; i < own.size(); ++i) CopyTo(first[i], own[i]);
    own = kept;
  };
}
}  // namespace binds_names

D2L_MISTAKE("resume", without_generator, Checkpoint, "drops other elements");
D2L_MISTAKE("resume", without_momentum, Checkpoint, "The momentum differs");
D2L_MISTAKE("resume", from_the_epochs_beginning, Checkpoint,
            "The next batch differs");
D2L_MISTAKE("resume", keeps_the_handles, Checkpoint,
            "The parameters are those of three steps later");
D2L_MISTAKE("resume", without_the_steps, Checkpoint,
            "The learning rate differs");
D2L_MISTAKE("resume", gives_its_clones_away, Checkpoint,
            "this second one is not");
D2L_MISTAKE("resume", binds_names, Checkpoint,
            "The parameters are still the first values");

}  // namespace
}  // namespace d2l
