// Judges scale_the_batch: trains a small network with the batches of 1, 2, 4
// and 8 devices, and counts the steps to an accuracy. All that is random is
// drawn from fixed seeds, and no clock is read.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "common/autograd/tape.h"
#include "common/base/console/language.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/nn/layers.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using LearningRate = double(double lr, int devices, int step);

constexpr double kRate = 0.015;  // of one device
constexpr int kBatch = 32;       // of each device
constexpr int kFeatures = 12, kHidden = 24, kClasses = 4;
constexpr int kTraining = 2048, kTest = 512;
constexpr double kAccuracy = 0.9;
// The steps of one run depend on chance, the sum of several runs hardly does.
constexpr int kRuns = 5;
constexpr int kMostSteps = 400;  // of a run; one device needs 100 to 300

// Four classes of two clusters each.
struct Samples {
  std::vector<float> x;
  std::vector<std::int64_t> labels;
};

Samples Draw(const std::vector<float>& centres, int count,
             std::mt19937& generator) {
  std::normal_distribution<float> noise(0, 0.2f);
  std::uniform_int_distribution<int> cluster(0, 2 * kClasses - 1);
  Samples samples;
  for (int i = 0; i < count; ++i) {
    const int c = cluster(generator);
    for (int k = 0; k < kFeatures; ++k) {
      const float x = centres[c * kFeatures + k] + noise(generator);
      samples.x.push_back(4 * std::max(0.f, x));
    }
    samples.labels.push_back(c % kClasses);
  }
  return samples;
}

// How many steps the training takes to the accuracy, at most kMostSteps.
int Steps(const std::function<double(int step)>& rate, int devices,
          unsigned seed) {
  const Device device = Devices()[0].device;
  std::mt19937 generator(seed);
  std::vector<float> centres(2 * kClasses * kFeatures);
  std::uniform_real_distribution<float> uniform(0, 1);
  for (float& centre : centres) centre = uniform(generator);
  const Samples training = Draw(centres, kTraining, generator);
  const Samples test = Draw(centres, kTest, generator);
  const Tensor test_x = FromVector(test.x, {kTest, kFeatures}, device);
  const Tensor test_labels = FromVector(test.labels, {kTest}, device);

  nn::Sequential net(nn::Linear(kFeatures, kHidden, device), nn::ReLU(),
                     nn::Linear(kHidden, kHidden, device), nn::ReLU(),
                     nn::Linear(kHidden, kHidden, device), nn::ReLU(),
                     nn::Linear(kHidden, kClasses, device));
  const std::vector<Tensor> parameters = nn::Parameters(net);
  for (const Tensor& p : parameters) {
    std::vector<float> values(p.numel(), 0.f);
    if (p.dim() == 2) {
      // Large first values: otherwise a large step at the beginning would do
      // harm only in a wider network.
      const double scale = 2 * std::sqrt((p.size(0) == kClasses ? 1.0 : 2.0) /
                                         static_cast<double>(p.size(1)));
      std::normal_distribution<double> normal(0, scale);
      for (float& value : values) {
        value = static_cast<float>(normal(generator));
      }
    }
    CopyTo(FromVector(values, p.shape(), device), p);
  }
  nn::SGD sgd(parameters, {kRate});
  const int rows = kBatch * devices;
  std::uniform_int_distribution<int> any(0, kTraining - 1);
  for (int step = 0; step < kMostSteps; ++step) {
    std::vector<float> x;
    std::vector<std::int64_t> labels;
    for (int i = 0; i < rows; ++i) {
      const int row = any(generator);
      const auto begin = training.x.begin() + std::ptrdiff_t{row} * kFeatures;
      x.insert(x.end(), begin, begin + kFeatures);
      labels.push_back(training.labels[row]);
    }
    sgd.options().lr = rate(step);
    GradientTape tape(parameters);
    const Tensor loss =
        nn::CrossEntropyLoss(net(FromVector(x, {rows, kFeatures}, device)),
                             FromVector(labels, {rows}, device));
    sgd.Step(tape.Backward(loss));
    if (step % 5 != 4) continue;
    const double right = Item(Sum(ArgMax(net(test_x), {1}) == test_labels));
    if (right >= kAccuracy * kTest) return step + 1;
  }
  return kMostSteps;
}

int SumOfSteps(const std::function<double(int step)>& rate, int devices) {
  int sum = 0;
  for (unsigned run = 1; run <= kRuns; ++run) sum += Steps(rate, devices, run);
  return sum;
}

// Says what is wrong with the rate, as the steps have shown.
std::string WhyTooMany(LearningRate* answer, int devices) {
  const double first = answer(kRate, devices, 0) / kRate / devices;
  const double last = answer(kRate, devices, 10'000) / kRate / devices;
  if (last > 1.5) {
    return "The rate is far more than k times that of one device. The "
           "gradients of the devices are averaged: the mean is as long as one "
           "device's, only less noisy.";
  }
  if (last < 0.6) {
    return "The gradient is less noisy now, but a step leads no farther than "
           "before: with k times the samples it may be k times as long.";
  }
  if (first > 0.6) {
    return "The rate is k times as large from the first step on. Where the "
           "network begins, the gradients are large and turn quickly: such "
           "steps throw it to where it does not learn any more. Begin with the "
           "rate of one device and grow from there.";
  }
  return "The rate reaches the right value, but grows too quickly or too "
         "slowly: let it grow over some tens of steps.";
}

void JudgeLearningRate(Judging& judging, LearningRate* answer) {
  for (const int devices : {1, 2, 4, 8}) {
    for (const int step : {0, 1, 7, 1'000'000}) {
      const double got = answer(0.1, devices, step);
      if (got > 0 && std::isfinite(got)) continue;
      judging.Wrong({Say("lr %g, devices: %d, step %d", 0.1, devices, step),
                     Say("%g", got), "a positive number",
                     "With a rate of 0 nothing is learnt, with a negative rate "
                     "the network unlearns. Do you divide integers?"});
    }
  }
  for (const double lr : {kRate, 0.1}) {
    for (const int step : {0, 7, 1'000'000}) {
      const double got = answer(lr, 1, step);
      if (std::abs(got - lr) <= 1e-6 * lr) continue;
      judging.Wrong(
          {Say("lr %g, devices: %d, step %d", lr, 1, step), Say("%g", got),
           Say("%g", lr),
           "On one device lr is right, from the first step to the last: only "
           "the factor for k devices may depend on the step."});
    }
  }
  for (const int step : {0, 7, 1'000'000}) {
    const double small = answer(0.001, 8, step);
    const double got = answer(0.01, 8, step);
    if (std::abs(got - 10 * small) <= 1e-6 * got) continue;
    judging.Wrong({Say("lr %g, devices: %d, step %d", 0.01, 8, step),
                   Say("%g", got), Say("%g", 10 * small),
                   "Your rate does not depend on lr as it should: for an lr "
                   "ten times as large, return a rate ten times as large."});
  }
  const int one = SumOfSteps([](int) { return kRate; }, 1);
  judging.Note(Say("1 device, lr throughout: %d steps, %d samples", one / kRuns,
                   one / kRuns * kBatch));
  // Parts of the steps of one device. 1 / k would be ideal; over six sets of
  // seeds, a rate that grows to k times takes 0.24 to 0.48 of them on 8
  // devices, and one that stays, or begins at k times, more than 0.8.
  std::vector<std::string> notes;
  struct Allowed {
    int devices;
    double steps;
  };
  for (const Allowed& allowed :
       std::array<Allowed, 3>{{{8, 0.6}, {4, 0.75}, {2, 0.95}}}) {
    const int devices = allowed.devices;
    const int steps = SumOfSteps(
        [&](int step) { return answer(kRate, devices, step); }, devices);
    notes.push_back(Say("%d devices: %d steps, %d samples", devices,
                        steps / kRuns, steps / kRuns * kBatch * devices));
    if (steps <= allowed.steps * one) continue;
    judging.Wrong(
        {Say("%d devices, %d samples a step", devices, devices * kBatch),
         Say("%d steps to an accuracy of %g (%d if a run does not get "
             "there)",
             steps / kRuns, kAccuracy, kMostSteps),
         Say("%d at most; one device takes %d",
             static_cast<int>(allowed.steps * one) / kRuns, one / kRuns),
         WhyTooMany(answer, devices)});
  }
  std::for_each(notes.rbegin(), notes.rend(),
                [&](const std::string& note) { judging.Note(note); });
}

D2L_JUDGE("scale_the_batch", JudgeLearningRate);

}  // namespace
}  // namespace d2l
