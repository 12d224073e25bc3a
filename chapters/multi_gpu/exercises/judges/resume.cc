// Judges resume: a training is lost at several steps and resumed, each time
// twice. Does it have the bits of the unbroken one, step by step? If not, what
// is different right after the restore?

#include "chapters/multi_gpu/exercises/judges/resume.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/autograd/tape.h"
#include "common/base/console/language.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/nn/layers.h"
#include "common/nn/module.h"
#include "common/ops/creation.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {

namespace {

constexpr int kSamples = 70, kFeatures = 6, kClasses = 3;
constexpr int kBatch = 16;  // an epoch's last batch has 6
constexpr int kBatches = 5;
constexpr int kSteps = 12;
constexpr int kLost = 3;  // steps that are made after the checkpoint, and lost

}  // namespace

Training::Training(Device device)
    : device(device),
      net(nn::Linear(kFeatures, 16, device), nn::ReLU(), nn::Dropout(0.3),
          nn::Linear(16, kClasses, device)),
      sgd(nn::Parameters(net), {/*lr=*/0.1, /*momentum=*/0.9}) {}

void Training::Step() {
  static const auto& data = *new std::vector<float>(
      RandomNumbers(std::size_t{kSamples} * kFeatures, 7));
  std::vector<int> order(kSamples);
  for (int i = 0; i < kSamples; ++i) order[i] = i;
  std::mt19937 generator(static_cast<unsigned>(epoch));
  std::shuffle(order.begin(), order.end(), generator);
  std::vector<float> x;
  std::vector<std::int64_t> labels;
  const int end = std::min(kSamples, (batch + 1) * kBatch);
  for (int i = batch * kBatch; i < end; ++i) {
    const auto row = data.begin() + std::ptrdiff_t{kFeatures} * order[i];
    for (int k = 0; k < kFeatures; ++k) x.push_back(row[k] / 10);
    labels.push_back(std::max_element(row, row + kClasses) - row);
  }
  const auto rows = static_cast<std::int64_t>(labels.size());

  sgd.options().lr = 0.1 / (1 + 0.2 * steps);
  GradientTape tape(nn::Parameters(net));
  const Tensor loss =
      nn::CrossEntropyLoss(net(FromVector(x, {rows, kFeatures}, device)),
                           FromVector(labels, {rows}, device));
  sgd.Step(tape.Backward(loss));
  ++steps;
  if (++batch == kBatches) ++epoch, batch = 0;
}

namespace {

using Checkpoint = std::function<void(Training&)>(Training& training);

// The state that later steps depend on.
struct State {
  explicit State(Training& training)
      : generator(GetGeneratorState(training.device)),
        epoch(training.epoch),
        batch(training.batch),
        steps(training.steps) {
    const std::vector<Tensor> own = nn::Parameters(training.net);
    for (std::size_t i = 0; i < own.size(); ++i) {
      const std::vector<float> p = ToVector<float>(own[i]);
      parameters.insert(parameters.end(), p.begin(), p.end());
      const Tensor& v = training.sgd.momentum_buffers()[i];
      // Without a momentum buffer the first step is as with zeros.
      const std::vector<float> m =
          v.defined() ? ToVector<float>(v) : std::vector<float>(p.size(), 0.f);
      momentum.insert(momentum.end(), m.begin(), m.end());
    }
  }
  std::vector<float> parameters, momentum;
  GeneratorState generator;
  int epoch, batch, steps;
};

// now: the state right after the restore to `then`. untouched: the state before
// the restore. later: the state of the training when it was lost.
std::string WhatIsDifferent(const State& now, const State& then,
                            const State& untouched, const State& later) {
  if (now.parameters != then.parameters) {
    return now.parameters == later.parameters
               ? "The parameters are those of three steps later: a Tensor is a "
                 "handle, and the training went on writing to its memory. Keep "
                 "a Clone."
           : now.parameters == untouched.parameters
               ? "The parameters are still the first values of the fresh "
                 "training. CopyTo writes them; assigning a Tensor binds a "
                 "name."
               : "The parameters differ: is each one copied to its own place?";
  }
  if (now.momentum != then.momentum) {
    return now.momentum == later.momentum
               ? "The momentum is that of three steps later: the training went "
                 "on writing to the memory that you kept. Keep a Clone."
               : "The momentum differs: it contains the gradients of all "
                 "earlier steps, and a new optimiser begins without momentum.";
  }
  if (now.epoch != then.epoch || now.batch != then.batch) {
    return "The next batch differs: in this epoch some samples are used twice, "
           "or never. Keep both the epoch and the batch.";
  }
  if (now.generator.seed != then.generator.seed ||
      now.generator.offset != then.generator.offset) {
    return "Dropout drops other elements: the device's random number generator "
           "is not in the same state as before.";
  }
  if (now.steps != then.steps) {
    return "The learning rate differs: it falls with the number of steps done, "
           "and the fresh training counts from 0.";
  }
  return "Right after the restore all is as it was. Does the optimiser write "
         "to the memory that the network reads? Keep the fresh training's "
         "tensors, and write into them.";
}

void ExpectSame(const Judging& judging, const std::string& input,
                const State& got, const State& expected,
                const std::function<std::string()>& look) {
  if (got.parameters == expected.parameters) return;
  std::size_t i = 0;
  while (got.parameters[i] == expected.parameters[i]) ++i;
  judging.Wrong({input,
                 Say("after step %d parameter %d is %.9g", expected.steps, i,
                     got.parameters[i]),
                 absl::StrFormat("%.9g", expected.parameters[i]), look()});
}

void ExpectBuffers(const Judging& judging, const std::string& input,
                   Training& training) {
  const std::size_t got = training.sgd.momentum_buffers().size();
  const std::size_t expected = nn::Parameters(training.net).size();
  if (got == expected) return;
  judging.Wrong({input, Say("%d momentum buffers", got),
                 Say("%d, one for each parameter", expected),
                 "Before the first step the momentum buffers exist but are "
                 "undefined. If you move values out of the training or out of "
                 "the captures, they are missing the next time."});
}

void JudgeOne(const Judging& judging, Checkpoint* answer, Device device,
              const std::vector<State>& unbroken, int lost_after) {
  const State& then = unbroken[lost_after];
  const std::string input =
      Say("lost after %d of %d steps; next is batch %d of epoch %d", lost_after,
          kSteps, then.batch, then.epoch);
  ManualSeed(1, device);
  Training training(device);
  for (int i = 0; i < lost_after; ++i) training.Step();
  const std::function<void(Training&)> restore = answer(training);
  if (!restore) {
    judging.Wrong({input, "no function", "one that restores a training",
                   "Return a lambda with what is kept in its captures."});
  }
  ExpectBuffers(judging, input, training);
  for (int i = 0; i < kLost; ++i) training.Step();
  const State later(training);
  ExpectSame(judging, input, later, unbroken[lost_after + kLost], [] {
    return std::string(
        "Making the checkpoint changed the training itself, which goes on.");
  });

  for (const unsigned attempt : {1, 2}) {
    // Begins as another process would.
    ManualSeed(100 + attempt, device);
    Training fresh(device);
    const State untouched(fresh);
    restore(fresh);
    ExpectBuffers(judging, input, fresh);
    const State now(fresh);
    for (int step = lost_after;; ++step) {
      ExpectSame(judging, input, State(fresh), unbroken[step], [&] {
        return attempt == 1
                   ? WhatIsDifferent(now, then, untouched, later)
                   : "The first restore was right, this second one is not: the "
                     "first restored training wrote to the memory that you "
                     "keep. Give each training its own Clone.";
      });
      if (step == kSteps) break;
      fresh.Step();
    }
  }
}

void JudgeCheckpoint(Judging& judging, Checkpoint* answer) {
  // Not the first device, whose generator a Device() would name.
  const Device device = Devices().back().device;
  ManualSeed(1, device);
  Training training(device);
  std::vector<State> unbroken = {State(training)};
  for (int i = 0; i < kSteps + kLost; ++i) {
    training.Step();
    unbroken.emplace_back(training);
  }
  for (const int lost_after : {3, 0, 1, kBatches, kBatches + 4, kSteps}) {
    JudgeOne(judging, answer, device, unbroken, lost_after);
  }
  judging.Note(
      Say("six losses, twelve restores, %d steps: all %d parameters equal "
          "those of the uninterrupted training, bit for bit",
          kSteps, unbroken[0].parameters.size()));
}

D2L_JUDGE("resume", JudgeCheckpoint);

}  // namespace
}  // namespace d2l
