// Multi-GPU training: one model, several devices.

#include "common/lesson/lesson.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/multi_gpu/inventory.h"
#include "chapters/multi_gpu/scratch.h"
#include "chapters/multi_gpu/three_splits.h"
#include "common/base/format.h"
#include "common/base/text.h"
#include "common/data/generated.h"
#include "common/data/loader.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/drawing/plot.h"
#include "common/lesson/cell.h"
#include "common/lesson/judge.h"
#include "common/nn/layers.h"
#include "common/nn/module.h"
#include "common/ops/ops.h"
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

Judgement SeveralDevices() {
  const std::size_t count = AllDevices().size();
  return Counted(count > 1, "2 asked for", absl::StrCat(count));
}

constexpr CellText kIn9 = {
    .id = "000/In9",
    .title = "Which devices are there?",
    .also = {"001/nvidia-smi"},
    .section = "d2l 13.5",
    .context =
        "nvidia-smi shows each GPU's memory, its load and who uses it. Here "
        "the devices of this program, virtual ones too, while the first has "
        "products in its queue. On a GPU server the table begins with all "
        "GPUs of the machine, asked of NVIDIA's library.",
    .python = "! nvidia-smi",
    .course_printed =
        "|   0  Tesla K80     |   7695MiB / 11441MiB |     61%      Default |\n"
        "|   1  Tesla K80     |   7220MiB / 11441MiB |     34%      Default |",
    .predict = "which device is busy, and what has it in memory?",
    .learn =
        "look before you train: a GPU may be somebody else's. The load says "
        "how often work was there, not how well it used the device.",
};

// %% 000/In9
// The table's columns: chapters/multi_gpu/inventory.h; NVML: nvml.h there.
void In9(Cell& cell) {
  const Device first = AllDevices()[0];
  const Tensor x = Rand({512, 512}, first);
  Tensor y = MatMul(x, x);
  Synchronize(first);
  for (int i = 0; i < cell.BySize(50, 200, 2000); ++i) y = MatMul(x, x);
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

constexpr CellText kIn10 = {
    .id = "000/In10",
    .title = "A layer on a device",
    .also = {"001/c9"},
    .section = "d2l 13.6",
    .context = "A network of one layer, made on the first GPU.",
    .python = "net = torch.nn.Linear(10, 1).cuda()\nnet",
    .course_printed = "Linear(in_features=10, out_features=1, bias=True)",
    .predict = "where are its parameters, and how many are there?",
    .learn = "a module prints its structure, not its place.",
};

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

constexpr CellText kThreeSplits = {
    .id = "d2l/three-splits",
    .title = "Three ways to split",
    .section = "d2l 13.5.1",
    .exercises = "1",
    .context =
        "A step of training can be split by layers (a pipeline, with micro-"
        "batches so that all stages work), within each layer (columns of one "
        "weight and rows of the next), or by data. The book calls the last "
        "one the practical one. Each is a small program here, with the "
        "gradients of one device; what it moves is counted from its "
        "operations.",
    .predict = "which moves the fewest bytes, and does the batch matter?",
    .learn =
        "data parallelism moves all weights, whatever the batch; the others "
        "move activations, in proportion to it. What makes it practical is "
        "that any network splits so, evenly, without a bubble.",
};

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
          "It moves all weights there and back. It is the least from batch "
          "%.0f on; convolutions have fewer weights for their work.",
          from)));
  cell.Claim("Data parallelism is {} as fast as the next best.",
             Faster(t["data"], *other, 1.05),
             OneDeviceOr("Next best: " + other->completion.label + "."));
  cell.Claim("Micro-batches make the pipeline {} as fast.",
             Faster(t["layers, 4 parts"], t["layers, 1 batch"], 1.1),
             OneDeviceOr("A stage computes more slowly on small batches."));
}

// %%

// %% d2l/three-splits
// Pipeline, WithinLayers, DataShards: chapters/multi_gpu/three_splits.cc
void ThreeSplits(Cell& cell) {
  const std::vector<Device> devices = AtLeastTwo();
  const int stages = static_cast<int>(devices.size());
  const std::int64_t width = cell.BySize(256, 256, 1024);
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
  std::cout << absl::StrFormat(
      "  Bubble of %d stages, (p - 1) / (m + p - 1): %.0f %% of the time with "
      "1 "
      "batch,\n  %.0f %% with 4.\n",
      p, 100.0 * (p - 1) / p, 100.0 * (p - 1) / (p + 3));
  ClaimSplits(cell, t, moves);
}
// %%

constexpr CellText kAllReduce = {
    .id = "d2l/allreduce",
    .title = "The sum on all devices",
    .section = "d2l 13.5.4-13.5.5",
    .context =
        "Data parallelism from scratch needs three functions: get_params "
        "copies parameters to a device, allreduce adds up what the devices "
        "have, split_batch deals out a batch. The book's first allreduce "
        "assigned the sum to data[i]; a later one writes into its memory.",
    .python = R"py(
def allreduce(data):
    for i in range(1, len(data)):
        data[0][:] += data[i].to(data[0].device)
    for i in range(1, len(data)):
        data[i][:] = data[0].to(data[i].device)
# the book's first: data[i] = data[0].to(data[i].device)
)py",
    .course_printed =
        "before allreduce:\n tensor([[1., 1.]]) tensor([[2., 2.]])\n"
        "after allreduce:\n tensor([[3., 3.]]) tensor([[3., 3.]])",
    .predict =
        "data[i] = … is an assignment. Whose memory does it change, in Python "
        "and in C++?",
    .learn =
        "assigning rebinds a handle, in C++ too; the gradient that SGD reads "
        "stays. Print every device, and test with different values.",
};

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
  const std::string of = absl::StrCat(" of ", devices.size(), " devices");
  cell.Check(right == static_cast<int>(n), "the sum is everywhere");
  cell.Check(ToVector<std::int64_t>(shards[0])[0] == 0, "the first shard");
  cell.Claim(
      "The book's first allreduce leaves the sum on {}.",
      Counted(right_first == 1, "1 expected", absl::StrCat(right_first, of)));
  cell.Claim("Written into its memory, the sum is on {}.",
             Counted(right == static_cast<int>(n), "all asked for",
                     absl::StrCat(right, of)));
}
// %%

constexpr CellText kForgotten = {
    .id = "d2l/forgotten-allreduce",
    .title = "The allreduce forgotten",
    .section = "d2l 13.5.6",
    .context =
        "Nothing fails when the allreduce is left out, or does what the book's "
        "first one did. Each replica learns from its own shards, by gradients "
        "of which a part is missing, and the replicas drift apart. A small "
        "network on generated images, two runs from the same parameters.",
    .predict = "does the accuracy of replica 0 tell?",
    .learn =
        "a network learns from wrong gradients too, more slowly. Compare the "
        "replicas: they must be equal, bit for bit.",
};

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
             "");
  cell.Claim(
      "Forgetting it costs {} of accuracy.",
      Counted(without < accuracy - 0.01,
              absl::StrFormat("%.3f with it, %.3f without", accuracy, without),
              absl::StrFormat("%.3f", accuracy - without)),
      "So little that nobody looks for a mistake.");
}
// %%

constexpr CellText kStraggler = {
    .id = "d2l/straggler",
    .title = "One slow device",
    .section = "d2l 13.5.2",
    .context =
        "A step ends when the slowest device has its gradients. Here the last "
        "device does the work of its shard three times, as a slow one would; "
        "then it gets a quarter of what the others get together: 3:1 for two.",
    .predict =
        "two devices, one three times as slow: what is an even split "
        "worth, and what is 3:1?",
    .learn =
        "shards of a batch need not be equal: the sum of their gradients is "
        "the same. Split by speed.",
};

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
  Gradients even, by_plan;
  const Timings t = cell.TimeInterleaved(
      {{"all fast, even", AllDevices(),
        [&] { SlowStep(net, batch, replicas, {}, 1); }},
       {"one slow, even", AllDevices(),
        [&] { even = SlowStep(net, batch, replicas, {}, 3); }},
       {"one slow, 3:1", AllDevices(),
        [&] { by_plan = SlowStep(net, batch, replicas, by_speed, 3); }}});
  cell.PrintTimes(t);
  for (std::size_t p = 0; p < even[0].size(); ++p) {
    cell.CheckClose("gradients by 3:1", ToVector<float>(by_plan[0][p]),
                    ToVector<float>(even[0][p]), 1e-3);
  }
  cell.Claim("A slow device makes an even split take {} as long.",
             Faster(t["all fast, even"], t["one slow, even"], kClearly),
             OneDeviceOr("Its three times were done beside the other's work."));
  cell.Claim(
      "Split 3:1, the step is {} as fast as split evenly.",
      Faster(t["one slow, 3:1"], t["one slow, even"], kClearly),
      OneDeviceOr("The devices share cores, or other programs use them."));
}
// %%

[[maybe_unused]] const bool registered = RegisterLesson(
    {4,
     "multi_gpu",
     "Training on several GPUs",
     "Dive into Deep Learning, sections 13.5 to 13.7\n"
     "https://d2l.ai/chapter_computational-performance/multiple-gpus.html",
     2,
     {{kIn9, In9},
      {kIn10, In10},
      {kThreeSplits, ThreeSplits},
      {kAllReduce, AllReduceCell},
      {kForgotten, Forgotten},
      {kStraggler, Straggler}}});

}  // namespace
}  // namespace d2l::multi_gpu
