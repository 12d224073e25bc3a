// Cells: one model, trained on several devices.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/multi_gpu/cells.h"
#include "chapters/multi_gpu/from_scratch/data_parallel.h"
#include "common/d2l.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"

namespace d2l::multi_gpu {
namespace {

Dataset TrainingImages(const Cell& cell) {
  return GenerateImages(cell.BySize(2'560, 12'800, 60'000));
}

Dataset TestImages() { return GenerateImages(1000, 0, /*first=*/100'000); }

double TestAccuracy(const ScratchNet& net, const Params& params,
                    const Dataset& test) {
  return Accuracy([&](const Tensor& x) { return net.forward(x, params); }, test,
                  params[0].device());
}

std::string WhyNoFaster(const Timing& one, const Timing& two) {
  return absl::StrCat(
      Say("A step takes %s on one device and %s on two; enqueueing it takes %s "
          "and %s.",
          Median(one), Median(two), Median(one.enqueue), Median(two.enqueue)),
      OnCpus() && 10 * two.enqueue.value.median < two.completion.value.median
          ? Say(" A virtual device starts an operation by a function call, and "
                "sends over no link: nearly all of a step is computation.")
          : "");
}

// %% d2l/lenet-scratch, measured
// Returns the accuracy.
double TrainLeNet(const std::vector<Device>& devices, std::int64_t batch_size,
                  int epochs, const Dataset& training, const Dataset& test) {
  ManualSeed(7);
  ReplicaSet replicas = Replicate(LeNet().init(devices[0]), devices);
  DataLoader loader(training, {batch_size}, devices[0]);
  const Timer timer;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    while (const std::optional<Batch> batch = loader.Next()) {
      TrainBatch(LeNet(), batch->images, batch->labels, replicas, /*lr=*/0.2);
    }
  }
  for (const Device device : devices) Synchronize(device);
  const double each = timer.Seconds() / epochs;
  const double accuracy = TestAccuracy(LeNet(), replicas.params[0], test);
  std::cout << Wrap(Say("test acc: %.3f, %.2f sec/epoch on %s", accuracy, each,
                        Names(devices)),
                    "  ");
  return accuracy;
}
// %%

}  // namespace

// %% d2l/lenet-scratch, measured
void LeNetScratch(Cell& cell) {
  const std::vector<Device> two = {AtLeastTwo()[0], AtLeastTwo()[1]};
  const std::vector<Device> one = {two[0]};
  const Dataset training = TrainingImages(cell), test = TestImages();
  const int epochs = cell.BySize(2, 4, 10), size = cell.BySize(64, 256, 256);
  std::cout << "  " << Say("%s, batch %d", training.name, size) << "\n";
  const double by_one = TrainLeNet(one, size, epochs, training, test);
  const double by_two = TrainLeNet(two, size, epochs, training, test);
  const double apart = std::abs(by_one - by_two);
  const Batch batch = *DataLoader(training, {size}, one[0]).Next();
  ReplicaSet alone = Replicate(LeNet().init(one[0]), one);
  ReplicaSet both = Replicate(alone.params[0], two);
  cell.PaceDevices();
  const auto step = [&](ReplicaSet& replicas) {
    TrainBatch(LeNet(), batch.images, batch.labels, replicas, 0.01);
  };
  const Timings t = cell.TimeInterleaved(
      {{"a step, one device", one, [&] { step(alone); }},
       {"a step, two devices", AllDevices(), [&] { step(both); }}});
  cell.PrintTimes(t);
  CheckClose(cell, "parameters", both.params[1], alone.params[0]);
  cell.Claim(
      "One device and two end with the same accuracy; they differ by: {}.",
      Given(Counted(by_one > 0.2, "more than 0.2", absl::StrCat(by_one)),
            Counted(apart <= 0.02, "needs 0.02 or less",
                    absl::StrFormat("%.3f", apart)),
            "accuracy"),
      apart == 0 ? ""
                 : Say("The gradients differ in their last bits, so the two "
                       "trainings go different ways."));
  cell.Claim("For a model this small two devices are no faster than one: {}.",
             OnSeveral(AboutEqual(t[0].completion, t[1].completion, 1.2)),
             OneDeviceOr(WhyNoFaster(t[0], t[1])));
}

// %% 002/c2
// The notebook names no network, and the book's is ResNet-18, with 200 times
// the work of LeNet. What lets it learn from small first weights is its batch
// normalization: this is LeNet with it, behind each convolution.
static nn::Sequential NormalizedLeNet(Device device) {
  return nn::Sequential(
      nn::Conv2d(1, 20, 3, {}, true, device),
      nn::BatchNorm2d(20, 1e-5, 0.1, device), nn::ReLU(), nn::AvgPool2d(2, 2),
      nn::Conv2d(20, 50, 5, {}, true, device),
      nn::BatchNorm2d(50, 1e-5, 0.1, device), nn::ReLU(), nn::AvgPool2d(2, 2),
      nn::Flatten(), nn::Linear(800, 128, device), nn::ReLU(),
      nn::Linear(128, 10, device));
}

// Returns the seconds of an epoch, until all of it is done.
static double TrainEpoch(DataParallel& net, DataLoader& loader, double lr) {
  const Timer timer;
  net.Train();
  while (const std::optional<Batch> batch = loader.Next()) {
    net.Step(batch->images, batch->labels, {lr});
  }
  for (const Device device : net.devices()) Synchronize(device);
  return timer.Seconds();
}
// %%

// Trains LeNet from N(0, 0.01²), and reports each epoch. Returns the accuracy.
static double TrainFromSmall(Cell& cell, bool normalized, std::size_t epochs) {
  const std::vector<Device> devices = AtMostTwo();  // num_gpus
  const Dataset training = TrainingImages(cell), test = TestImages();
  ManualSeed(3);
  auto lenet = std::make_unique<nn::Sequential>(
      normalized ? NormalizedLeNet(TryGpu()) : nn::LeNet(TryGpu()));
  nn::InitNormal(*lenet, 0.01);
  DataParallel net(std::move(lenet), NumbersOf(devices));
  DataLoader loader(training, {cell.BySize(64, 256, 256)}, devices[0]);
  const Phrase name =
      normalized ? "LeNet with batch normalization" : "LeNet without";
  double accuracy = 0;
  std::vector<double> seconds;
  while (seconds.size() < epochs) {
    seconds.push_back(TrainEpoch(net, loader, /*lr=*/0.2));
    net.Eval();
    accuracy = Accuracy(std::ref(net), test, devices[0]);
    cell.At("epoch", static_cast<double>(seconds.size()));
    cell.Report(Known(Worded("accuracy, %s", name), "", accuracy));
  }
  cell.AtNoPlace();
  const Phrase label = Worded("an epoch, %s", name);
  const Figure epoch =
      cell.Report(Sampled(label, MeasuredOn(devices), "s", seconds));
  std::cout << Wrap(Say("%s: test acc: %.3f, %.2f sec/epoch on %s", name.shown,
                        accuracy, epoch.value.median, Names(devices)),
                    "  ");
  return accuracy;
}

// %% 002/c2, measured
// TrainFromSmall, which calls TrainEpoch, stands above this cell.
void C2(Cell& cell) {
  const std::size_t epochs = cell.BySize(2, 5, 10);
  const auto judge = [](double accuracy, bool learns) {
    return Counted((accuracy > 0.2) == learns, "chance: 0.10",
                   absl::StrFormat("%.2f", accuracy));
  };
  const double normalized = TrainFromSmall(cell, true, epochs);
  const double plain = TrainFromSmall(cell, false, epochs);
  cell.Claim(
      "With batch normalization, LeNet learns although its initial weights are "
      "N(0, 0.01²), up to an accuracy of: {}.",
      judge(normalized, true), Say("After %d epochs.", epochs));
  cell.Claim(
      "Without batch normalization, LeNet stays at chance with these initial "
      "weights, at an accuracy of: {}.",
      judge(plain, false), Say("After %d epochs.", epochs));
}

// How many times as many samples a second the devices do as one of them.
Figure ReportGain(Cell& cell, const Timings& t, std::size_t devices) {
  const Figure gain = cell.Report(
      PerRepeat(Worded("%s and two, gain", t[0].completion.label), "x",
                t[0].completion, t[1].completion,
                [&](double one, double two) { return devices * one / two; }));
  std::cout << "  " << gain.label.shown << ": "
            << FormatFactor(gain.value.median) << "\n";
  return gain;
}

// %% d2l/resnet18
std::function<void()> Stepper(const std::shared_ptr<DataParallel>& net,
                              std::int64_t each) {
  const auto devices = static_cast<std::int64_t>(net->devices().size());
  const Device first = net->devices()[0];
  const Tensor x = Rand({devices * each, 1, kImageSide, kImageSide}, first);
  const Tensor y = RandInt(0, kClasses, {devices * each}, first);
  return [=] { net->Step(x, y, {/*lr=*/1e-4}); };
}
// %% d2l/resnet18, measured
// ReportGain stands above this cell.
void ResNet18(Cell& cell) {
  cell.PaceDevices();
  const std::vector<Device> devices = AtMostTwo();
  const int each = cell.BySize(1, 8, 256);
  std::vector<std::vector<Alternative>> networks;
  std::int64_t parameters = 0;
  for (const std::string name : {"LeNet", "ResNet-18"}) {
    std::vector<Alternative>& steps = networks.emplace_back();
    for (const auto& used : {std::vector<Device>{devices[0]}, devices}) {
      const auto net = std::make_shared<DataParallel>(
          name == "LeNet" ? nn::LeNet(TryGpu()) : nn::ResNet18(10, 1, TryGpu()),
          NumbersOf(used));
      parameters = nn::NumParameters(*net);
      const Phrase devices_of = steps.empty() ? "one" : "two";
      steps.push_back({Worded("%s, %s", Phrase(name), devices_of), used,
                       Stepper(net, each)});
    }
  }
  cell.Check(parameters == 11'175'818, "ResNet-18's parameters");
  cell.LinkDevices(4 * parameters,
                   cell.RoughSeconds(devices[0], networks[1][0].work) / 4);
  std::vector<Timings> t;
  std::vector<Figure> gains;
  for (const std::vector<Alternative>& steps : networks) {
    t.push_back(cell.TimeInterleaved(steps));
    cell.PrintTimes(t.back());
    gains.push_back(ReportGain(cell, t.back(), devices.size()));
  }
  cell.Claim(
      "With ResNet-18, two devices do more samples a second: {}.",
      OnSeveral(Above(gains[1], kClearly)),
      OneDeviceOr(Say("A step adds up %s of gradients, with %d samples for "
                      "each device. It takes %s on two devices and %s on one.",
                      FormatBytes(4 * parameters), each, Median(t[1][1]),
                      Median(t[1][0]))));
  cell.Claim(
      "ResNet-18 scales better than LeNet: {}.",
      OnSeveral(Less(gains[0], gains[1])),
      OneDeviceOr(Say("Two devices make ResNet-18 %s as fast, and LeNet %s. A "
                      "step of LeNet takes %s, its enqueueing %s.",
                      FormatFactor(gains[1].value.median),
                      FormatFactor(gains[0].value.median), Median(t[0][0]),
                      Median(t[0][0].enqueue))));
}

// %% d2l/forgotten-allreduce, measured
void Forgotten(Cell& cell) {
  const Dataset training = GenerateImages(cell.BySize(2000, 12'000, 12'000));
  const Dataset test = TestImages();
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
      accuracy = TestAccuracy(net, reduced.params.front(), test);
      without = TestAccuracy(net, forgotten.params.front(), test);
      std::cout << absl::StrFormat(
          "  %6d%8.3f%9.3f%8.3f  %12.3f%9.3f%8.3f\n", step, Distance(reduced),
          accuracy, TestAccuracy(net, reduced.params.back(), test),
          Distance(forgotten), without,
          TestAccuracy(net, forgotten.params.back(), test));
    }
    if (step % 10 == 0) {
      cell.At("step", step);
      cell.Report(Known("distance, with allreduce", "", Distance(reduced)));
      cell.Report(Known("distance, without", "", Distance(forgotten)));
    }
    std::optional<Batch> batch = loader.Next();
    if (!batch.has_value()) batch = loader.Next();  // the next epoch
    TrainBatch(net, batch->images, batch->labels, reduced, 0.2);
    TrainBatch(net, batch->images, batch->labels, forgotten, 0.2, forget);
  }
  const double apart = Distance(reduced), drifted = Distance(forgotten);
  cell.Claim("With the allreduce the replicas are equal; they differ by: {}.",
             Counted(apart == 0, "needs 0", absl::StrCat(apart)));
  cell.Claim(
      "Without the allreduce the replicas drift apart; they differ by: {}.",
      Counted(drifted > 0.1, "more than 0.1 expected",
              absl::StrFormat("%.2f", drifted)),
      Say("After %d steps.", steps));
  cell.Claim(
      "Forgetting the allreduce costs accuracy: {}.",
      Counted(without < accuracy - 0.01,
              Say("%.3f with the allreduce, %.3f without", accuracy, without),
              absl::StrFormat("%.3f", accuracy - without)),
      Say("Replica 0 learns from its own shards as well, although its distance "
          "to the last replica is %.2f.",
          drifted));
}

// %% d2l/straggler, measured
void Straggler(Cell& cell) {
  cell.PaceDevices();
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
  std::vector<Params> even, by_plan;
  const Timings t = cell.TimeInterleaved(
      {{"all fast, even", AllDevices(),
        [&] { SlowStep(net, batch, replicas, evenly, 1); }},
       {"one slow, even", AllDevices(),
        [&] { even = SlowStep(net, batch, replicas, evenly, 3); }},
       {"one slow, by speed", AllDevices(),
        [&] { by_plan = SlowStep(net, batch, replicas, by_speed, 3); }}});
  cell.PrintTimes(t);
  CheckClose(cell, "gradients by speed", by_plan[0], even[0]);
  const std::string why =
      Say("Enqueueing takes %s of the %s that a step with an even split takes.",
          Median(t["one slow, even"].enqueue), Median(t["one slow, even"]));
  cell.Claim(
      "With an even split, a step takes longer if one device is slow: {}.",
      Faster(t["all fast, even"], t["one slow, even"], kClearly),
      OneDeviceOr(why));
  cell.Claim(
      "With a slow device, a step is faster if the batch is split by speed "
      "than if it is split evenly: {}.",
      Faster(t["one slow, by speed"], t["one slow, even"], kClearly),
      OneDeviceOr(why));
}
// %%
D2L_CELL("d2l/straggler", Straggler);
D2L_CELL("d2l/forgotten-allreduce", Forgotten);
D2L_CELL("d2l/resnet18", ResNet18);
D2L_CELL("002/c2", C2);
D2L_CELL("d2l/lenet-scratch", LeNetScratch);

namespace {

// ---- Benchmarks, at the course's size.

constexpr std::int64_t kBatch = 256;

Batch FirstBatch(std::int64_t size, Device device) {
  const Dataset data = GenerateImages(size);
  return *DataLoader(data, {size}, device).Next();
}

std::function<void()> LeNetStep(const std::vector<Device>& devices) {
  const Batch batch = FirstBatch(kBatch, devices[0]);
  return [batch,
          replicas = Replicate(LeNet().init(devices[0]), devices)]() mutable {
    TrainBatch(LeNet(), batch.images, batch.labels, replicas, 0.01);
  };
}

std::function<void()> ConciseStep(const std::vector<Device>& devices) {
  return Stepper(
      std::make_shared<DataParallel>(nn::LeNet(devices[0]), NumbersOf(devices)),
      kBatch / 2);
}

constexpr std::int64_t kEach = 16;  // samples per device
std::function<void()> ResNetStep(const std::vector<Device>& devices) {
  return Stepper(std::make_shared<DataParallel>(
                     nn::ResNet18(kClasses, 1, devices[0]), NumbersOf(devices)),
                 kEach);
}

// The second device is three times as slow; the first one gets `share` of four
// rows.
bool SlowSecond(const std::string& name, int share) {
  return OnTwo(
      name, 4096,
      [share](const std::vector<Device>& devices) -> std::function<void()> {
        const Batch batch = FirstBatch(4096, devices[0]);
        const ScratchNet net = SmallMlp();
        const ReplicaSet replicas = Replicate(net.init(devices[0]), devices);
        return [=] {
          SlowStep(net, batch, replicas, {share, 4 - share}, /*slow=*/3);
        };
      });
}

[[maybe_unused]] const bool benchmarks[] = {
    OnOne("BM_d2l_lenet_scratch_OneDevice", kBatch, LeNetStep),
    OnTwo("BM_d2l_lenet_scratch_TwoDevices", kBatch, LeNetStep),
    OnTwo("BM_002_c2_Step", kBatch, ConciseStep),
    OnOne("BM_d2l_resnet18_OneDevice", kEach, ResNetStep),
    OnTwo("BM_d2l_resnet18_TwoDevices", 2 * kEach, ResNetStep),
    SlowSecond("BM_d2l_straggler_Even", 2),
    SlowSecond("BM_d2l_straggler_ThreeToOne", 3),
};

}  // namespace
}  // namespace d2l::multi_gpu
