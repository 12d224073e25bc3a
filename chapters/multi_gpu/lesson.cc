// Multi-GPU training: one model, several devices.

#include "common/lesson/lesson.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "chapters/multi_gpu/inventory.h"
#include "chapters/multi_gpu/networks.h"
#include "chapters/multi_gpu/scratch.h"
#include "chapters/multi_gpu/three_splits.h"
#include "common/base/format.h"
#include "common/base/temporary_directory.h"
#include "common/base/text.h"
#include "common/base/timer.h"
#include "common/data/generated.h"
#include "common/data/loader.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/drawing/plot.h"
#include "common/lesson/cell.h"
#include "common/lesson/judge.h"
#include "common/nn/init.h"
#include "common/nn/layers.h"
#include "common/nn/models.h"
#include "common/nn/module.h"
#include "common/nn/state_dict.h"
#include "common/ops/ops.h"
#include "common/parallel/collective.h"
#include "common/parallel/data_parallel.h"
#include "common/parallel/kv_store.h"
#include "common/parallel/pictures.h"
#include "common/parallel/schedule.h"
#include "common/parallel/simulator.h"
#include "common/parallel/split_batch.h"
#include "common/parallel/topology.h"
#include "common/tensor/tensor.h"

namespace d2l::multi_gpu {
namespace {

// Two times that differ by less may differ because the machine is noisy.
constexpr double kClearly = 1.3;

// The devices, or the only one twice: then two replicas share it.
std::vector<Device> AtLeastTwo() {
  std::vector<Device> devices = AllDevices();
  if (devices.size() == 1) devices.push_back(devices[0]);
  return devices;
}

bool OnCpus() { return AllDevices()[0].type() == DeviceType::kCpu; }

std::string Median(const Figure& time) { return FormatMedian(time.value, "s"); }

Judgement SeveralDevices() {
  const std::size_t count = AllDevices().size();
  return Counted(count > 1, "2 asked for", absl::StrCat(count));
}

// %% 000/In9
// The table's columns: chapters/multi_gpu/inventory.h; NVML: nvml.h there.
void In9(Cell& cell) {
  const Device first = AllDevices()[0];
  const Tensor x = Rand({512, 512}, first);
  Tensor y = MatMul(x, x);
  Synchronize(first);
  const Timer timer;
  y = MatMul(x, x);
  Synchronize(first);
  // As many as keep it busy for a while.
  const double products = cell.BySize(0.2, 0.5, 0.5) / timer.Seconds();
  for (int i = 0; i < std::min(products, 5000.0); ++i) y = MatMul(x, x);
  const std::vector<DeviceState> mine = TableDevices(/*seconds=*/0.05);
  Synchronize(first);
  std::string note;
  std::vector<DeviceState> devices = MachineGpus(&note);
  devices.insert(devices.end(), mine.begin(), mine.end());
  std::cout << InventoryTable(devices);
  if (!note.empty()) std::cout << Wrap(note);
  cell.Check(mine.size() == Devices().size(), "a row for each device");
}
// %%

// %% 000/In10
void In10(Cell& cell) {
  const nn::Linear net(10, 1, /*bias=*/true, TryGpu());
  std::cout << net << "\n";
  for (const auto& [name, parameter] : nn::NamedParameters(net)) {
    std::cout << "  " << name << ": " << parameter.Describe() << "\n";
  }
  cell.Check(
      nn::ToString(net) == "Linear(in_features=10, out_features=1, bias=True)",
      "as PyTorch prints it");
  cell.Check(nn::NumParameters(net) == 11, "the number of parameters");
}
// %%

// %% 000/In11
void In11(Cell& cell) {
  const auto layer = [] { return nn::Linear(10, 1, /*bias=*/true, TryGpu()); };
  const DataParallel all(layer());
  std::cout << all << "\n";
  const int last = static_cast<int>(Devices().size()) - 1;
  const DataParallel restricted(layer(), /*device_ids=*/{last});
  std::cout << "  device_ids {" << last << "}: " << restricted.devices()[0]
            << "\n";
  std::size_t of_two = 0;
  std::cout << "  device_ids {0, 3}: ";
  try {
    const DataParallel two(layer(), /*device_ids=*/{0, 3});
    of_two = two.devices().size();
    std::cout << two.devices()[0] << " and " << two.devices()[1] << "\n";
  } catch (const std::invalid_argument& error) {
    std::cout << "\n" << Wrap(error.what(), "    ");
  }
  cell.Check(of_two == (last >= 3 ? 2u : 0u), "what {0, 3} restricts to");
  cell.Claim("By default {} devices are used, all of the table.",
             Counted(all.devices().size() == Devices().size(),
                     absl::StrFormat("the table has %d", Devices().size()),
                     absl::StrCat(all.devices().size())));
  cell.Claim("With device_ids of one device {} is used.",
             Counted(restricted.devices().size() == 1 &&
                         restricted.devices()[0] == Devices()[last].device,
                     Devices()[last].device.ToString(),
                     absl::StrCat(restricted.devices().size())));
}
// %%

// %% 001/c12, 001/c13, 001/c14
// How many of the first module's parameters the second has, bit for bit.
int EqualParameters(const nn::Module& a, const nn::Module& b) {
  const std::vector<Tensor> of_a = nn::Parameters(a), of_b = nn::Parameters(b);
  int equal = 0;
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    equal += ToVector<float>(of_a[i]) == ToVector<float>(of_b[i]) ? 1 : 0;
  }
  return equal;
}

nn::Linear NewLinear() { return {10, 1, /*bias=*/true, TryGpu()}; }
// %%

// %% 001/c12
void C12(Cell& cell) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/model.safetensors";
  DataParallel net(NewLinear());
  cell.Check(nn::SaveStateDict(net, path).ok(), "saving");
  nn::Linear new_net = NewLinear();
  const std::vector<float> before = ToVector<float>(new_net.weight());
  const auto loaded = nn::LoadStateDict(new_net, path);
  std::cout << "nn::LoadStateDict(new_net, path):\n"
            << Wrap(absl::StrReplaceAll(loaded.status().message(),
                                        {{"\t", "  "}}),
                    "  ");
  cell.Check(ToVector<float>(new_net.weight()) == before, "nothing is loaded");
  int known = 0;
  const auto names = nn::StateDict(new_net);
  for (const auto& [name, tensor] : nn::StateDict(net)) {
    known += static_cast<int>(names.count(name));
  }
  cell.Claim("Wrapping changed the structure: {} of the saved names is known.",
             Counted(!loaded.ok() && known == 0, "0 expected",
                     absl::StrFormat("%d of %d", known, 2)));
}
// %%

// %% 001/c13
void C13(Cell& cell) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/model.safetensors";
  DataParallel net(NewLinear());
  cell.Check(nn::SaveStateDict(net.module(), path).ok(), "saving");
  nn::Linear new_net = NewLinear();
  const auto loaded = nn::LoadStateDict(new_net, path);
  for (const auto& [name, tensor] : nn::StateDict(net.module())) {
    std::cout << "  " << name << ": " << tensor.Describe() << "\n";
  }
  const int equal = EqualParameters(net, new_net);
  cell.Claim("It loads: {} parameters are those of the wrapped model.",
             Counted(loaded.ok() && equal == 2,
                     std::string(loaded.status().message()) + "bit for bit",
                     absl::StrFormat("%d of %d", equal, 2)));
}
// %%

// %% 001/c14
void C14(Cell& cell) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/model.safetensors";
  DataParallel net(NewLinear());
  cell.Check(nn::SaveStateDict(net, path).ok(), "saving");
  DataParallel new_net(NewLinear());
  const auto loaded = nn::LoadStateDict(new_net, path);
  const Tensor x = Randn({5, 10}, TryGpu());
  cell.Check(ToVector<float>(new_net(x)) == ToVector<float>(net(x)),
             "the outputs of all devices");
  int equal = 0;
  const int devices = static_cast<int>(new_net.devices().size());
  for (int i = 0; i < devices; ++i) {
    equal += EqualParameters(net.module(), new_net.replica(i));
  }
  cell.Claim("It loads: {} parameters, on all devices, are those saved.",
             Counted(loaded.ok() && equal == 2 * devices,
                     std::string(loaded.status().message()) + "bit for bit",
                     absl::StrFormat("%d of %d", equal, 2 * devices)));
}
// %%

// %% d2l/three-splits
// Bytes moved, by split and batch.
using Moves = std::map<std::string, std::map<std::int64_t, std::int64_t>>;

void ClaimSplits(Cell& cell, const Timings& t, const Moves& moves) {
  const Timing* other = nullptr;  // the fastest besides data
  std::string least;              // the one besides data that moves least
  for (const Timing& timing : t) {
    const std::string& name = timing.completion.label;
    if (name == "one device" || name == "data") continue;
    if (other == nullptr ||
        timing.completion.value.median < other->completion.value.median) {
      other = &timing;
    }
    if (least.empty() || moves.at(name).at(256) < moves.at(least).at(256)) {
      least = name;
    }
  }
  const auto bytes = [&](const std::string& name, std::int64_t batch) {
    return static_cast<double>(moves.at(name).at(batch));
  };
  // Both grow linearly with the batch.
  const auto slope = [&](const std::string& name) {
    return (bytes(name, 1024) - bytes(name, 256)) / 768;
  };
  const double from = 256 + (bytes("data", 256) - bytes(least, 256)) /
                                (slope(least) - slope("data"));
  cell.Claim(
      "At batch 256 data parallelism moves {} as much as the next best.",
      Given(SeveralDevices(),
            Counted(bytes("data", 256) < bytes(least, 256),
                    absl::StrFormat("%s against %s, %s",
                                    FormatBytes(bytes("data", 256)),
                                    FormatBytes(bytes(least, 256)), least),
                    FormatFactor(bytes("data", 256) /
                                 std::max(bytes(least, 256), 1.0))),
            "devices"),
      OneDeviceOr(absl::StrFormat(
          "It moves all weights there and back, whatever the batch; it is the "
          "least from batch %.0f on.",
          from)));
  cell.Claim("Data parallelism is {} as fast as the next best.",
             Faster(t["data"], *other, 1.05),
             OneDeviceOr(absl::StrFormat(
                 "Next best is %s, which moves %s; data parallelism moves %s.",
                 other->completion.label,
                 FormatBytes(moves.at(other->completion.label).at(256)),
                 FormatBytes(moves.at("data").at(256)))));
  const Timing& parts = t["layers, 4 parts"];
  cell.Claim("Micro-batches make the pipeline {} as fast.",
             Faster(t["layers, 4 parts"], t["layers, 1 batch"], 1.1),
             OneDeviceOr(absl::StrFormat(
                 "With 4 parts its calls take %s of %s.", Median(parts.enqueue),
                 Median(parts.completion))));
}

// %%

// %% d2l/three-splits
// Pipeline, WithinLayers, DataShards: chapters/multi_gpu/three_splits.cc
void ThreeSplits(Cell& cell) {
  const std::vector<Device> devices = AtLeastTwo();
  const int stages = static_cast<int>(devices.size());
  const std::int64_t width = cell.BySize(64, 256, 1024);
  const SplitNet net = MakeSplitNet(stages, width, 2 * width, devices[0]);
  const std::vector<std::pair<std::string, Step>> splits = {
      {"one device", OneDevice(net)},
      {"layers, 1 batch", Pipeline(net, devices, 1)},
      {"layers, 4 parts", Pipeline(net, devices, 4)},
      {"within layers", WithinLayers(net, devices)},
      {"data", DataShards(net, devices)}};
  const Tensor x = Randn({256, width}, devices[0]);
  const Tensor target = Randn(x.shape(), devices[0]);
  const std::vector<float> expected = OnHost(splits[0].second(x, target));
  std::vector<Alternative> steps;
  for (const auto& [name, step] : splits) {
    cell.CheckClose(name, OnHost(step(x, target)), expected, 1e-3);
    const Step& its = step;
    steps.push_back({name, AllDevices(), [&] { its(x, target); }});
  }
  const Timings t = cell.TimeInterleaved(steps);
  Moves moves;
  std::cout << absl::StrFormat("  %-18s%10s%14s%10s%10s%10s\n", "", "a step",
                               "moves at: 64", "256", "1024", "4096");
  for (const auto& [name, step] : splits) {
    std::cout << absl::StrFormat("  %-18s%10s    ", name,
                                 FormatMedian(t[name].completion.value, "s"));
    for (const std::int64_t batch : {64, 256, 1024, 4096}) {
      const Tensor rows = Randn({batch, width}, devices[0]);
      moves[name][batch] = BytesOf(step, rows, rows);
      std::cout << absl::StrFormat("%10s", FormatBytes(moves[name][batch]));
    }
    std::cout << "\n";
  }
  const int p = stages;
  std::cout << Wrap(
      absl::StrFormat("Bubble of %d stages, (p - 1) / (m + p - 1): %.0f %% of "
                      "the time with 1 batch, %.0f %% with 4.",
                      p, 100.0 * (p - 1) / p, 100.0 * (p - 1) / (p + 3)),
      "  ");
  ClaimSplits(cell, t, moves);
}
// %%

// %% d2l/allreduce
// SplitBatch: chapters/multi_gpu/scratch.cc
void RebindingAllReduce(std::vector<Tensor> data) {  // the book's first
  for (std::size_t i = 1; i < data.size(); ++i) {
    data[0] += To(data[i], data[0].device());
  }
  for (std::size_t i = 1; i < data.size(); ++i) {
    data[i] = To(data[0], data[i].device());
  }
}

void AllReduceCell(Cell& cell) {
  const std::vector<Device> devices = AtLeastTwo();
  const auto print = [](const char* when, const std::vector<Tensor>& data) {
    std::cout << when;
    for (std::size_t i = 0; i < data.size(); ++i) {
      std::cout << (i == 0 ? "" : std::string(26, ' ')) << data[i] << "\n";
    }
  };
  const auto make = [&] {
    std::vector<Tensor> data;
    for (const Device device : devices) {
      data.push_back(
          Full({1, 2}, static_cast<double>(data.size() + 1), device));
    }
    return data;
  };
  const std::vector<Tensor> rebound = make();
  print("before:                   ", rebound);
  RebindingAllReduce(rebound);
  print("the book's first:         ", rebound);
  std::vector<Tensor> summed = make();
  BookAllReduce(summed);
  print("with CopyTo(data[0], …):  ", summed);

  const Tensor data = Reshape(Arange(20, devices[0], DType::kInt64), {4, 5});
  const std::vector<Tensor> shards = SplitBatch(data, devices);
  std::cout << "input: " << data << "\n";
  for (const Tensor& shard : shards) std::cout << shard << "\n";

  int right_first = 0, right = 0;
  const double n = static_cast<double>(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    right_first += Item(Max(rebound[i])) == n * (n + 1) / 2 ? 1 : 0;
    right += Item(Max(summed[i])) == n * (n + 1) / 2 ? 1 : 0;
  }
  const auto of = [&](int count) {
    return absl::StrFormat("%d of %d devices", count, devices.size());
  };
  cell.Check(right == static_cast<int>(n), "the sum is everywhere");
  cell.Check(ToVector<std::int64_t>(shards[0])[0] == 0, "the first shard");
  cell.Claim("The book's first allreduce leaves the sum on {}.",
             Counted(right_first == 1, "1 expected", of(right_first)));
  cell.Claim("Written into its memory, the sum is on {}.",
             Counted(right == static_cast<int>(n), "all asked for", of(right)));
}
// %%

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
  std::cout << Wrap(absl::StrFormat("test acc: %.3f, %.2f sec/epoch on %s",
                                    accuracy, seconds / epochs, Names(devices)),
                    "  ");
  return accuracy;
}

// %%

// %% d2l/lenet-scratch
void LeNetScratch(Cell& cell) {
  const std::vector<Device> two = {AtLeastTwo()[0], AtLeastTwo()[1]};
  const std::vector<Device> one = {two[0]};
  const Dataset training = GenerateImages(cell.BySize(2'560, 12'800, 60'000));
  const Dataset test = GenerateImages(1000, 0, /*first=*/100'000);
  const int epochs = cell.BySize(2, 4, 10), size = cell.BySize(64, 256, 256);
  std::cout << "  " << absl::StrFormat("%s, batch %d", training.name, size)
            << "\n";
  const double by_one = TrainLeNet(one, size, 0.2, epochs, training, test);
  const double by_two = TrainLeNet(two, size, 0.2, epochs, training, test);

  DataLoader loader(training, {size}, one[0]);
  const Batch batch = *loader.Next();
  ReplicaSet alone = Replicate(LeNet().init(one[0]), one);
  ReplicaSet both = Replicate(alone.params[0], two);
  const auto step = [&](ReplicaSet* replicas) {
    TrainBatch(LeNet(), batch.images, batch.labels, *replicas, 0.01);
  };
  const Timings t =
      cell.TimeInterleaved({{absl::StrFormat("a step of %d, one device", size),
                             one, [&] { step(&alone); }},
                            {absl::StrFormat("a step of %d, two devices", size),
                             AllDevices(), [&] { step(&both); }}});
  cell.PrintTimes(t);
  for (std::size_t p = 0; p < alone.params[0].size(); ++p) {
    const std::vector<float> expected = ToVector<float>(alone.params[0][p]);
    cell.CheckClose("parameters", ToVector<float>(both.params[1][p]), expected,
                    1e-3);
  }
  cell.Claim(
      "One device and two end with the same accuracy, {} apart.",
      Given(Counted(by_one > 0.2, "more than 0.2", absl::StrCat(by_one)),
            Counted(std::abs(by_one - by_two) <= 0.02, "0.02 asked for",
                    absl::StrFormat("%.3f", std::abs(by_one - by_two))),
            "accuracy"),
      "Gradients differ in their last bits, and so do the ways they lead.");
  const Timing &slow = t[0], &fast = t[1];
  cell.Claim(
      "For a model this small no meaningful speed-up: {} as fast on two.",
      Given(SeveralDevices(), AboutEqual(slow.completion, fast.completion, 1.2),
            "devices"),
      OneDeviceOr(absl::StrCat(
          absl::StrFormat("A step takes %s on one device and %s on two, and is "
                          "asked for in %s and %s.",
                          Median(slow.completion), Median(fast.completion),
                          Median(slow.enqueue), Median(fast.enqueue)),
          OnCpus() ? " " : "",
          OnCpus() ? "Virtual devices launch work by a function call and have "
                     "no link between them: little of a step is not work."
                   : "")));
}
// %%

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
  const Figure epoch = cell.Report(
      Sampled("an epoch, " + init, MeasuredOn(devices), "s", seconds));
  std::cout << Wrap(absl::StrFormat("%s, %s: 测试精度：%.2f，%.1f秒/轮，在%s",
                                    init, training.name, accuracies.back(),
                                    epoch.value.median, Names(devices)),
                    "  ");
  return accuracies;
}

// %%

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
             absl::StrFormat("In the same epochs %.2f with Xavier's.", xavier));
  cell.Claim(
      "With Xavier's first weights it learns: accuracy {}.",
      Counted(xavier > 0.2, "chance: 0.10", absl::StrFormat("%.2f", xavier)),
      absl::StrFormat("After %d epochs; the first ended at %.2f.",
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
      steps.push_back({name + (steps.size() % 2 == 0 ? ", one" : ", two"), its,
                       Stepper(net, small ? lenet : each)});
    }
  }
  cell.Check(parameters == 11'175'818, "ResNet-18's parameters");
  const Timings t = cell.TimeInterleaved(steps);
  cell.PrintTimes(t);
  std::vector<Figure> gains;
  for (const int i : {0, 2}) {
    gains.push_back(cell.Report(PerRepeat(
        t[i].completion.label + " and two, gain", "x", t[i].completion,
        t[i + 1].completion, [n](double one, double two_devices) {
          return n * one / two_devices;
        })));
    std::cout << "  " << gains.back().label << ": "
              << FormatFactor(gains.back().value.median) << "\n";
  }
  cell.Claim("Two devices do {} the samples of one, with ResNet-18.",
             Given(SeveralDevices(), Above(gains[1], 1.5), "devices"),
             OneDeviceOr(absl::StrFormat(
                 "A step adds up %s of gradients, with %d samples each: it "
                 "takes %s, and %s on one device.",
                 FormatBytes(4 * parameters), each, Median(t[3].completion),
                 Median(t[2].completion))));
  cell.Claim("ResNet-18 scales {} as well as LeNet.",
             Given(SeveralDevices(), Less(gains[0], gains[1], 1.05), "devices"),
             OneDeviceOr(absl::StrFormat(
                 "They gain %s and %s; LeNet's step takes %s, asked for in %s.",
                 FormatFactor(gains[1].value.median),
                 FormatFactor(gains[0].value.median), Median(t[0].completion),
                 Median(t[0].enqueue))));
}
// %%

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
  std::cout << "  " << training.name << "\n"
            << "           with allreduce             without\n"
            << "    step   apart   accuracies         apart   accuracies\n";
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
             Counted(apart == 0, "0 asked for", absl::StrCat(apart)));
  cell.Claim("Without it they are {} apart.",
             Counted(drifted > 0.1, "more than 0.1 expected",
                     absl::StrFormat("%.2f", drifted)),
             absl::StrFormat("After %d steps.", steps));
  cell.Claim(
      "Forgetting it costs {} of accuracy.",
      Counted(without < accuracy - 0.01,
              absl::StrFormat("%.3f with it, %.3f without", accuracy, without),
              absl::StrFormat("%.3f", accuracy - without)),
      absl::StrFormat("Replica 0 learns from its shards alone, too, though it "
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
      absl::StrFormat("Asking takes %s of the %s that an even split takes.",
                      Median(t["one slow, even"].enqueue),
                      Median(t["one slow, even"].completion));
  cell.Claim("A slow device makes an even split take {} as long.",
             Faster(t["all fast, even"], t["one slow, even"], kClearly),
             OneDeviceOr(why));
  cell.Claim("Split by speed, the step is {} as fast as split evenly.",
             Faster(t["one slow, by speed"], t["one slow, even"], kClearly),
             OneDeviceOr(why));
}
// %%

// %% d2l/overlap-link
// LinkedMlp: chapters/multi_gpu/networks.cc; EmulatedLink:
// common/parallel/data_parallel.h
void OverlapLink(Cell& cell) {
  const std::int64_t batch = cell.BySize(64, 1024, 8192);
  const Tensor x = Rand({batch, 784}, TryGpu());
  const Tensor y = RandInt(0, 10, {batch}, TryGpu());
  std::vector<Alternative> steps;
  std::vector<std::shared_ptr<DataParallel>> nets;
  for (const bool link : {false, true}) {
    for (const bool overlap : {false, true}) {
      ManualSeed(5);
      nets.push_back(LinkedMlp(AllDevices(), overlap, link));
      steps.push_back({absl::StrCat(link ? "emulated link" : "memory",
                                    overlap ? ", overlapped" : ", at the end"),
                       AllDevices(), [&x, &y, net = nets.back()] {
                         net->Step(x, y, {/*lr=*/0.01});
                       }});
    }
  }
  const Timings t = cell.TimeInterleaved(steps);
  cell.PrintTimes(t);
  const std::vector<float> expected =
      ToVector<float>(nn::Parameters(*nets[0])[0]);
  for (const auto& net : nets) {
    cell.Check(ToVector<float>(nn::Parameters(*net)[0]) == expected,
               "the same parameters, bit for bit");
  }
  const std::string at_end = Median(t["memory, at the end"].completion);
  const std::string overlapped = Median(t["memory, overlapped"].completion);
  cell.Claim(
      "In one machine's memory, overlapping is {} as fast.",
      Given(SeveralDevices(),
            Faster(t["memory, overlapped"], t["memory, at the end"], 1.1),
            "devices"),
      OneDeviceOr(OnCpus()
                      ? absl::StrFormat("A step takes %s at the end, %s "
                                        "overlapped: the sums are work for the "
                                        "same cores.",
                                        at_end, overlapped)
                      : absl::StrFormat("A step takes %s at the end, %s "
                                        "overlapped.",
                                        at_end, overlapped)));
  cell.Claim("Over the emulated link, overlapping is {} as fast.",
             Given(SeveralDevices(),
                   Faster(t["emulated link, overlapped"],
                          t["emulated link, at the end"], 1.1),
                   "devices"),
             OneDeviceOr(absl::StrFormat(
                 "A step takes %s at the end, %s overlapped; without the link "
                 "%s.",
                 Median(t["emulated link, at the end"].completion),
                 Median(t["emulated link, overlapped"].completion), at_end)));
}
// %%

// %% d2l/parameter-server
// Simulate: common/parallel/simulator.h; schedules: schedule.h
int PrintFormulas() {
  struct Row {
    const char* name;
    AllReduceAlgorithm algorithm;
    int gpus;
    double book;  // seconds
  };
  const Row rows[] = {
      {"one GPU adds", AllReduceAlgorithm::kStar, 4, 30e-3 + 30e-3},
      {"the CPU adds", AllReduceAlgorithm::kHost, 4, 40e-3 + 40e-3},
      {"each a quarter", AllReduceAlgorithm::kSplit, 4, 7.5e-3 + 7.5e-3},
      {"ring of 8", AllReduceAlgorithm::kRing, 8, 2 * 160e6 / (3 * 18e9)},
  };
  std::cout << absl::StrFormat("  %-18s%12s%12s%12s\n", "160 MB", "the book",
                               "simulated", "bound");
  int equal = 0;
  for (const auto& [name, algorithm, gpus, book] : rows) {
    const Topology topology =
        gpus == 4 ? Topology::PcieSwitch(4, 16e9) : Topology::Ring(8, 3 * 18e9);
    const CollectiveSchedule schedule = AllReduceSchedule(algorithm, gpus);
    const double seconds = Simulate(topology, schedule, 160e6).seconds;
    std::cout << absl::StrFormat("  %-18s%9.2f ms%9.2f ms%9.2f ms\n", name,
                                 1e3 * book, 1e3 * seconds,
                                 1e3 * LowerBound(topology, schedule, 160e6));
    equal += std::abs(seconds - book) < 1e-6 ? 1 : 0;
  }
  return equal;
}
// %%

// %% d2l/parameter-server
void ParameterServer(Cell& cell) {
  const int equal = PrintFormulas();
  const std::vector<Device> devices = AllDevices();
  const std::int64_t n = cell.BySize(1 << 20, 1 << 24, 1 << 26);
  std::vector<Tensor> data;
  for (const Device device : devices) data.push_back(Zeros({n}, device));
  std::vector<Alternative> alternatives;
  for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
    // It adds in a CPU device's memory.
    const bool host = algorithm == AllReduceAlgorithm::kHost;
    if (host && !HasDevice(Device())) continue;
    for (const Tensor& x : data)
      CopyTo(Arange(static_cast<double>(n), x.device()), x);
    AllReduce(data, algorithm);
    const double sum = static_cast<double>(devices.size()) * 1000;
    for (const Tensor& x : data) {
      cell.Check(Item(x[1000]) == sum, AllReduceAlgorithmName(algorithm));
    }
    alternatives.push_back(
        {AllReduceAlgorithmName(algorithm), devices,
         [&data, algorithm] { AllReduce(data, algorithm); }});
  }
  for (const Tensor& x : data) CopyTo(Zeros({}, x.device()), x);
  const Timings t = cell.TimeInterleaved(alternatives);
  std::cout << "  "
            << absl::StrFormat("Measured, %s on %s:", FormatBytes(4 * n),
                               MeasuredOn(devices))
            << "\n";
  cell.PrintTimes(t);
  cell.ShowIfVerbose(PlotTimeByDevices({2, 4, 8, 16, 32}, 160e6, [](int gpus) {
                       return Topology::NvSwitch(gpus, 54e9);
                     }).Draw("160 MB by number of GPUs, simulated"));
  const std::size_t others = devices.size() - 1;
  const std::string moved = FormatBytes(2 * others * 4 * n);
  const std::string both =
      OnCpus() ? absl::StrFormat(
                     "Both move %s in all, and one memory has all "
                     "of it to read and write.",
                     moved)
               : absl::StrFormat("Both move %s in all.", moved);
  cell.Claim(
      "{} of the book's figures are those of the simulation.",
      Counted(equal == 4, "4 asked for", absl::StrFormat("%d of %d", equal, 4)),
      "In the ring each device sends 2 (n - 1) parts of an n-th: 5.19 "
      "ms. The book's 5.93 ms leaves out (n - 1) / n.");
  cell.Claim(
      "Shared among the devices, the adding is {} as fast as on one.",
      Given(SeveralDevices(), Faster(t["split"], t["star"], 1.1), "devices"),
      OneDeviceOr(both));
  cell.Claim(
      "The ring is {} as fast as the split.",
      Given(SeveralDevices(), Faster(t["ring"], t["split"], 1.05), "devices"),
      OneDeviceOr(absl::StrFormat("%s The ring takes %d rounds, the split 2.",
                                  both, 2 * others)));
}
// %%

// %% d2l/key-value-store
void KeyValueStore(Cell& cell) {
  const std::vector<Device> devices = AtLeastTwo();
  const auto n = static_cast<std::int64_t>(devices.size());
  const Tensor x = Randn({n, 3}, devices[0]), y = Randn({n, 1}, devices[0]);
  const auto gradient = [](const Tensor& x, const Tensor& y, const Tensor& w) {
    return MatMul(T(x), MatMul(x, w) - y);
  };
  const auto sgd = [](const std::string&, const Tensor& sum, Tensor stored) {
    stored -= sum * 0.1;
  };
  KvStore store(devices[0], sgd);
  store.Init("w", Zeros({3, 1}, devices[0]));
  const std::vector<Tensor> xs = SplitBatch(x, devices);
  const std::vector<Tensor> ys = SplitBatch(y, devices);
  std::vector<Tensor> weights;  // of the workers
  for (const Device device : devices) weights.push_back(Zeros({3, 1}, device));
  Tensor whole = Zeros({3, 1}, devices[0]);  // of one device with all rows
  for (int step = 0; step < 20; ++step) {
    std::vector<Tensor> gradients;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      gradients.push_back(gradient(xs[i], ys[i], weights[i]));
    }
    store.Push("w", gradients);
    store.Pull("w", weights);
    whole -= gradient(x, y, whole) * 0.1;
  }
  int equal = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    std::cout << "  " << absl::StrFormat("worker %d: ", i) << T(weights[i])
              << "\n";
    cell.CheckClose("the weights", ToVector<float>(weights[i]),
                    ToVector<float>(whole), 1e-4);
    equal += ToVector<float>(weights[i]) == ToVector<float>(weights[0]) ? 1 : 0;
  }
  std::cout << "  alone:    " << T(whole) << "\n";
  cell.Claim("After 20 steps {} workers have the same weights, bit for bit.",
             Counted(equal == n, "all asked for",
                     absl::StrFormat("%d of %d", equal, n)));
}
// %%

[[maybe_unused]] const bool registered =
    RegisterLesson({4,
                    "multi_gpu",
                    2,
                    {{"000/In9", In9},
                     {"000/In10", In10},
                     {"000/In11", In11},
                     {"001/c12", C12},
                     {"001/c13", C13},
                     {"001/c14", C14},
                     {"d2l/three-splits", ThreeSplits},
                     {"d2l/allreduce", AllReduceCell},
                     {"d2l/lenet-scratch", LeNetScratch},
                     {"002/c2", C2},
                     {"d2l/resnet18", ResNet18},
                     {"d2l/forgotten-allreduce", Forgotten},
                     {"d2l/straggler", Straggler},
                     {"d2l/overlap-link", OverlapLink},
                     {"d2l/parameter-server", ParameterServer},
                     {"d2l/key-value-store", KeyValueStore}}});

}  // namespace
}  // namespace d2l::multi_gpu
