// Cells: one model, trained on several devices.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/multi_gpu/cells.h"
#include "chapters/multi_gpu/networks.h"
#include "chapters/multi_gpu/scratch.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/timer.h"
#include "common/data/dataset.h"
#include "common/data/loader.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/drawing/plot.h"
#include "common/lesson/cell.h"
#include "common/lesson/judge.h"
#include "common/nn/layers.h"
#include "common/nn/models.h"
#include "common/nn/module.h"
#include "common/ops/ops.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/tensor/tensor.h"

namespace d2l::multi_gpu {
namespace {

// %% d2l/lenet-scratch
// LeNet, TrainBatch, Accuracy: chapters/multi_gpu/scratch.cc
double TrainLeNet(const std::vector<Device>& devices, std::int64_t batch_size,
                  double lr, int epochs, const Dataset& training,
                  const Dataset& test) {
  ManualSeed(7);
  ReplicaSet replicas = Replicate(LeNet().init(devices[0]), devices);
  DataLoader loader(training, {batch_size}, devices[0]);
  double seconds = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const Timer timer;
    while (const std::optional<Batch> batch = loader.Next()) {
      TrainBatch(LeNet(), batch->images, batch->labels, replicas, lr);
    }
    for (const Device device : devices) Synchronize(device);
    seconds += timer.Seconds();
  }
  const double accuracy = Accuracy(LeNet(), test, replicas.params[0]);
  std::cout << Wrap(Say("test acc: %.3f, %.2f sec/epoch on %s", accuracy,
                        seconds / epochs, Names(devices)),
                    "  ");
  return accuracy;
}
// %%

}  // namespace

// %% d2l/lenet-scratch
void LeNetScratch(Cell& cell) {
  const std::vector<Device> two = {AtLeastTwo()[0], AtLeastTwo()[1]};
  const std::vector<Device> one = {two[0]};
  const Dataset training = GenerateImages(cell.BySize(2'560, 12'800, 60'000));
  const Dataset test = GenerateImages(1000, 0, /*first=*/100'000);
  const int epochs = cell.BySize(2, 4, 10), size = cell.BySize(64, 256, 256);
  std::cout << "  " << Say("%s, batch %d", training.name, size) << "\n";
  const double by_one = TrainLeNet(one, size, 0.2, epochs, training, test);
  const double by_two = TrainLeNet(two, size, 0.2, epochs, training, test);

  DataLoader loader(training, {size}, one[0]);
  const Batch batch = *loader.Next();
  ReplicaSet alone = Replicate(LeNet().init(one[0]), one);
  ReplicaSet both = Replicate(alone.params[0], two);
  const auto step = [&](ReplicaSet* replicas) {
    TrainBatch(LeNet(), batch.images, batch.labels, *replicas, 0.01);
  };
  const Timings t = cell.TimeInterleaved(
      {{"a step, one device", one, [&] { step(&alone); }},
       {"a step, two devices", AllDevices(), [&] { step(&both); }}});
  cell.PrintTimes(t);
  for (std::size_t p = 0; p < alone.params[0].size(); ++p) {
    const std::vector<float> expected = ToVector<float>(alone.params[0][p]);
    cell.CheckClose("parameters", ToVector<float>(both.params[1][p]), expected,
                    1e-3);
  }
  cell.Claim(
      "One device and two end with the same accuracy, {} apart.",
      Given(Counted(by_one > 0.2, "more than 0.2", absl::StrCat(by_one)),
            Counted(std::abs(by_one - by_two) <= 0.02, "needs 0.02 or less",
                    absl::StrFormat("%.3f", std::abs(by_one - by_two))),
            "accuracy"),
      Say("The gradients differ in their last bits, so the two trainings go "
          "different ways."));
  const Timing &slow = t[0], &fast = t[1];
  cell.Claim(
      "For a model this small no meaningful speed-up: {} as fast on two.",
      Given(SeveralDevices(), AboutEqual(slow.completion, fast.completion, 1.2),
            "devices"),
      OneDeviceOr(absl::StrCat(
          Say("A step takes %s on one device and %s on two, and is "
              "enqueued in %s and %s.",
              Median(slow.completion), Median(fast.completion),
              Median(slow.enqueue), Median(fast.enqueue)),
          OnCpus() ? Say(" Virtual devices launch work by a function call and "
                         "have no link between them: nearly all of a step is "
                         "computing.")
                   : "")));
}
// %%

namespace {

// %% 002/c2
// TrainEpoch, EvaluateAccuracy: chapters/multi_gpu/networks.cc
std::vector<double> Train(Cell& cell, const std::string& init,
                          std::unique_ptr<nn::Module> module,
                          const std::vector<Device>& devices,
                          std::int64_t batch_size, double lr) {
  const Dataset training = GenerateImages(cell.BySize(2'560, 12'800, 60'000));
  const Dataset test = GenerateImages(1000, 0, /*first=*/100'000);
  DataParallel net(std::move(module), NumbersOf(devices));
  DataLoader loader(training, {batch_size}, devices[0]);
  std::vector<double> accuracies, seconds;
  for (int epoch = 0; epoch < cell.BySize(2, 5, 10); ++epoch) {
    seconds.push_back(TrainEpoch(net, loader, lr));
    accuracies.push_back(EvaluateAccuracy(net, test, devices[0]));
  }
  const Figure epoch = cell.Report(Sampled(Worded("an epoch, %s", Phrase(init)),
                                           MeasuredOn(devices), "s", seconds));
  std::cout << Wrap(Say("%s: test acc: %.3f, %.2f sec/epoch on %s", init,
                        accuracies.back(), epoch.value.median, Names(devices)),
                    "  ");
  return accuracies;
}
// %%

}  // namespace

// %% 002/c2
void C2(Cell& cell) {
  std::vector<Device> devices = AllDevices();
  if (devices.size() > 2) devices.resize(2);  // num_gpus
  const std::int64_t batch_size = cell.BySize(64, 256, 256);
  std::map<std::string, std::vector<double>> accuracies;
  for (const char* init : {"N(0, 0.01)", "Xavier"}) {
    ManualSeed(3);
    auto net = std::make_unique<nn::Sequential>(nn::LeNet(TryGpu()));
    if (std::string(init) == "Xavier") {
      nn::InitXavierUniform(*net);
    } else {
      nn::InitNormal(*net, 0.01);
    }
    accuracies[init] =
        Train(cell, init, std::move(net), devices, batch_size, 0.2);
  }
  Plot plot("epoch", "", "test accuracy", "");
  for (const auto& [init, curve] : accuracies) {
    std::vector<double> epochs;
    for (std::size_t i = 0; i < curve.size(); ++i) {
      epochs.push_back(static_cast<double>(i + 1));
    }
    plot.AddLine(init, epochs, curve);
  }
  cell.Show(plot.Draw("test accuracy"));
  const double book = accuracies["N(0, 0.01)"].back();
  const double xavier = accuracies["Xavier"].back();
  cell.Claim("With the notebook's N(0, 0.01) it learns: accuracy {}.",
             Counted(book > 0.2, "chance: 0.10", absl::StrFormat("%.2f", book)),
             Say("In the same epochs %.2f with Xavier's.", xavier));
  cell.Claim(
      "With Xavier's first weights it learns: accuracy {}.",
      Counted(xavier > 0.2, "chance: 0.10", absl::StrFormat("%.2f", xavier)),
      Say("After %d epochs; the first ended at %.2f.",
          accuracies["Xavier"].size(), accuracies["Xavier"][0]));
}
// %%

// %% d2l/resnet18
// Stepper: chapters/multi_gpu/networks.cc
void ResNet18(Cell& cell) {
  std::vector<Device> devices = AllDevices();
  if (devices.size() > 2) devices.resize(2);
  const int n = static_cast<int>(devices.size()),
            each = cell.BySize(2, 16, 256);
  const int lenet = cell.BySize(64, 256, 256);
  std::vector<Alternative> steps;
  std::int64_t parameters = 0;
  for (const std::string name : {"LeNet", "ResNet-18"}) {
    for (const auto& its : {std::vector<Device>{devices[0]}, devices}) {
      const bool small = name == "LeNet";
      const auto net = std::make_shared<DataParallel>(
          small ? nn::LeNet(TryGpu()) : nn::ResNet18(10, 1, TryGpu()),
          NumbersOf(its));
      parameters = nn::NumParameters(*net);
      const Phrase devices_of = steps.size() % 2 == 0 ? "one" : "two";
      steps.push_back({Worded("%s, %s", Phrase(name), devices_of), its,
                       Stepper(net, small ? lenet : each)});
    }
  }
  cell.Check(parameters == 11'175'818, "ResNet-18's parameters");
  const Timings t = cell.TimeInterleaved(steps);
  cell.PrintTimes(t);
  std::vector<Figure> gains;
  for (const int i : {0, 2}) {
    gains.push_back(cell.Report(PerRepeat(
        Worded("%s and two, gain", t[i].completion.label), "x", t[i].completion,
        t[i + 1].completion, [n](double one, double two_devices) {
          return n * one / two_devices;
        })));
    std::cout << "  " << gains.back().label.shown << ": "
              << FormatFactor(gains.back().value.median) << "\n";
  }
  cell.Claim("With ResNet-18, two devices do {} the samples of one.",
             Given(SeveralDevices(), Above(gains[1], 1.5), "devices"),
             OneDeviceOr(
                 Say("A step adds up %s of gradients, with %d samples each: it "
                     "takes %s, and %s on one device.",
                     FormatBytes(4 * parameters), each, Median(t[3].completion),
                     Median(t[2].completion))));
  cell.Claim("ResNet-18 scales {} as well as LeNet.",
             Given(SeveralDevices(), Less(gains[0], gains[1], 1.05), "devices"),
             OneDeviceOr(Say(
                 "They gain %s and %s; LeNet's step takes %s, enqueued in %s.",
                 FormatFactor(gains[1].value.median),
                 FormatFactor(gains[0].value.median), Median(t[0].completion),
                 Median(t[0].enqueue))));
}
// %%

namespace {

// %% d2l/forgotten-allreduce
// TrainBatch, Accuracy: chapters/multi_gpu/scratch.cc
double Distance(const ReplicaSet& replicas) {  // of the last from the first
  double square = 0;
  for (std::size_t p = 0; p < replicas.params[0].size(); ++p) {
    const Tensor first = replicas.params.front()[p];
    square += Item(
        Sum(Square(first - To(replicas.params.back()[p], first.device()))));
  }
  return std::sqrt(square);
}
// %%

}  // namespace

// %% d2l/forgotten-allreduce
void Forgotten(Cell& cell) {
  const Dataset training = GenerateImages(cell.BySize(2000, 12'000, 12'000));
  const Dataset test = GenerateImages(1000, 0, /*first=*/100'000);
  const ScratchNet net = SmallMlp();
  const std::vector<Device> devices = AtLeastTwo();
  ManualSeed(1);
  const Params params = net.init(devices[0]);
  ReplicaSet reduced = Replicate(params, devices);
  ReplicaSet forgotten = Replicate(params, devices);
  const auto forget = [](std::vector<Tensor>&) {};
  DataLoader loader(training, {}, devices[0]);
  std::cout
      << "  " << training.name.shown << "\n"
      << Say("           with allreduce             without\n")
      << Say("    step   apart   accuracies         apart   accuracies\n");
  const int steps = cell.BySize(60, 200, 400);
  double accuracy = 0, without = 0;
  for (int step = 0; step <= steps; ++step) {
    if (step == 0 || step == 10 || step == steps / 2 || step == steps) {
      accuracy = Accuracy(net, test, reduced.params.front());
      without = Accuracy(net, test, forgotten.params.front());
      std::cout << absl::StrFormat(
          "  %6d%8.3f%9.3f%8.3f  %12.3f%9.3f%8.3f\n", step, Distance(reduced),
          accuracy, Accuracy(net, test, reduced.params.back()),
          Distance(forgotten), without,
          Accuracy(net, test, forgotten.params.back()));
    }
    std::optional<Batch> batch = loader.Next();
    if (!batch.has_value()) batch = loader.Next();  // the next epoch
    TrainBatch(net, batch->images, batch->labels, reduced, 0.2);
    TrainBatch(net, batch->images, batch->labels, forgotten, 0.2, forget);
  }
  const double apart = Distance(reduced), drifted = Distance(forgotten);
  cell.Claim("With the allreduce the replicas are {} apart.",
             Counted(apart == 0, "needs 0", absl::StrCat(apart)));
  cell.Claim("Without it they are {} apart.",
             Counted(drifted > 0.1, "more than 0.1 expected",
                     absl::StrFormat("%.2f", drifted)),
             Say("After %d steps.", steps));
  cell.Claim("Forgetting it costs {} of accuracy.",
             Counted(without < accuracy - 0.01,
                     Say("%.3f with it, %.3f without", accuracy, without),
                     absl::StrFormat("%.3f", accuracy - without)),
             Say("Replica 0 learns from its shards alone, too, though it "
                 "is %.2f from the last one.",
                 drifted));
}
// %%

// %% d2l/straggler
// SlowStep: chapters/multi_gpu/scratch.cc
void Straggler(Cell& cell) {
  const std::vector<Device> devices = AtLeastTwo();
  const Dataset data = GenerateImages(cell.BySize(1024, 4096, 16384));
  DataLoader loader(data, {data.size()}, devices[0]);
  const Batch batch = *loader.Next();
  const ScratchNet net = SmallMlp();
  const ReplicaSet replicas = Replicate(net.init(devices[0]), devices);
  // For n devices, n - 1 of them three times as fast: 3:3:1.
  std::vector<int> by_speed(devices.size(), 3);
  by_speed.back() = 1;
  const std::vector<int> evenly(devices.size(), 1);
  Gradients even, by_plan;
  const Timings t = cell.TimeInterleaved(
      {{"all fast, even", AllDevices(),
        [&] { SlowStep(net, batch, replicas, evenly, 1); }},
       {"one slow, even", AllDevices(),
        [&] { even = SlowStep(net, batch, replicas, evenly, 3); }},
       {"one slow, by speed", AllDevices(),
        [&] { by_plan = SlowStep(net, batch, replicas, by_speed, 3); }}});
  cell.PrintTimes(t);
  for (std::size_t p = 0; p < even[0].size(); ++p) {
    cell.CheckClose("gradients by speed", ToVector<float>(by_plan[0][p]),
                    ToVector<float>(even[0][p]), 1e-3);
  }
  const std::string why =
      Say("Enqueueing takes %s of the %s that an even split takes.",
          Median(t["one slow, even"].enqueue),
          Median(t["one slow, even"].completion));
  cell.Claim("A slow device makes an even split take {} as long.",
             Faster(t["all fast, even"], t["one slow, even"], kClearly),
             OneDeviceOr(why));
  cell.Claim("Split by speed, a step is {} as fast as split evenly.",
             Faster(t["one slow, by speed"], t["one slow, even"], kClearly),
             OneDeviceOr(why));
}
// %%

}  // namespace d2l::multi_gpu
