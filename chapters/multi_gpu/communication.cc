// Cells: what is moved between the devices, how, and by whom.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/multi_gpu/cells.h"
#include "chapters/multi_gpu/networks.h"
#include "chapters/multi_gpu/scratch.h"
#include "chapters/multi_gpu/three_splits.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/lesson/cell.h"
#include "common/lesson/judge.h"
#include "common/nn/module.h"
#include "common/ops/ops.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/collective/schedule.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/parallel/data_parallel/kv_store.h"
#include "common/parallel/data_parallel/split_batch.h"
#include "common/parallel/simulator/simulator.h"
#include "common/parallel/simulator/topology.h"
#include "common/tensor/tensor.h"

namespace d2l::multi_gpu {
namespace {

// %% d2l/three-splits
// Bytes moved, by split and batch.
using Moves = std::map<std::string, std::map<std::int64_t, std::int64_t>>;

void ClaimSplits(Cell& cell, const Timings& t, const Moves& moves) {
  const Timing* other = nullptr;  // the fastest besides data
  std::string least;              // the one besides data that moves least
  for (const Timing& timing : t) {
    const std::string& name = timing.completion.label.english;
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
                    Say("%s against %s, %s", FormatBytes(bytes("data", 256)),
                        FormatBytes(bytes(least, 256)), Translated(least)),
                    FormatFactor(bytes("data", 256) /
                                 std::max(bytes(least, 256), 1.0))),
            "devices"),
      OneDeviceOr(Say(
          "It moves all weights there and back, whatever the batch; it is the "
          "least from batch %.0f on.",
          from)));
  cell.Claim("Data parallelism is {} as fast as the next best.",
             Faster(t["data"], *other, 1.05),
             OneDeviceOr(Say(
                 "Next best is %s, which moves %s; data parallelism moves %s.",
                 other->completion.label.shown,
                 FormatBytes(moves.at(other->completion.label.english).at(256)),
                 FormatBytes(moves.at("data").at(256)))));
  const Timing& parts = t["layers, 4 parts"];
  cell.Claim("Micro-batches make the pipeline {} as fast.",
             Faster(t["layers, 4 parts"], t["layers, 1 batch"], 1.1),
             OneDeviceOr(Say("With 4 parts its calls take %s of %s.",
                             Median(parts.enqueue), Median(parts.completion))));
}
// %%

}  // namespace

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
  std::cout << "  " << Padded("", 18) << Padded("a step", -10)
            << Padded("at batch 64", -14) << "       256      1024      4096\n";
  for (const auto& [name, step] : splits) {
    std::cout << absl::StrFormat("  %s%10s    ", Padded(name, 18),
                                 FormatMedian(t[name].completion.value, "s"));
    for (const std::int64_t batch : {64, 256, 1024, 4096}) {
      const Tensor rows = Randn({batch, width}, devices[0]);
      moves[name][batch] = BytesOf(step, rows, rows);
      std::cout << absl::StrFormat("%10s", FormatBytes(moves[name][batch]));
    }
    std::cout << "\n";
  }
  const int p = stages;
  std::cout << Wrap(Say("In theory p = %d stages wait (p - 1) / (m + p - 1) of "
                        "the time for m "
                        "parts of a batch: %.0f %% for 1 part, %.0f %% for 4.",
                        p, 100.0 * (p - 1) / p, 100.0 * (p - 1) / (p + 3)),
                    "  ");
  ClaimSplits(cell, t, moves);
}
// %%

// %% d2l/allreduce
// SplitBatch: chapters/multi_gpu/scratch.cc
static void RebindingAllReduce(std::vector<Tensor> data) {  // the book's first
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
    std::cout << Padded(when, 26);
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
  print("before:", rebound);
  RebindingAllReduce(rebound);
  print("the book's first:", rebound);
  std::vector<Tensor> summed = make();
  BookAllReduce(summed);
  print("with CopyTo(data[0], …):", summed);

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
    return Say("%d of %d devices", count, devices.size());
  };
  cell.Check(right == static_cast<int>(n), "the sum is everywhere");
  cell.Check(ToVector<std::int64_t>(shards[0])[0] == 0, "the first shard");
  cell.Claim("The book's first allreduce leaves the sum on {}.",
             Counted(right_first == 1, "1 expected", of(right_first)));
  cell.Claim("Written into its memory, the sum is on {}.",
             Counted(right == static_cast<int>(n), "needs all", of(right)));
}
// %%

// %% d2l/overlap-link
// LinkedMlp: chapters/multi_gpu/networks.cc; EmulatedLink:
// common/parallel/data_parallel/data_parallel.h
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
      steps.push_back(
          {Worded("%s, %s", Phrase(link ? "emulated link" : "memory"),
                  Phrase(overlap ? "overlapped" : "at the end")),
           AllDevices(),
           [&x, &y, net = nets.back()] { net->Step(x, y, {/*lr=*/0.01}); }});
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
      OneDeviceOr(OnCpus() ? Say("A step takes %s at the end, %s "
                                 "overlapped: the sums are work for the "
                                 "same cores.",
                                 at_end, overlapped)
                           : Say("A step takes %s at the end, %s "
                                 "overlapped.",
                                 at_end, overlapped)));
  cell.Claim("Over the emulated link, overlapping is {} as fast.",
             Given(SeveralDevices(),
                   Faster(t["emulated link, overlapped"],
                          t["emulated link, at the end"], 1.1),
                   "devices"),
             OneDeviceOr(Say(
                 "A step takes %s at the end, %s overlapped; without the link "
                 "%s.",
                 Median(t["emulated link, at the end"].completion),
                 Median(t["emulated link, overlapped"].completion), at_end)));
}
// %%

namespace {

// %% d2l/parameter-server
// In common/parallel: Simulate in simulator/simulator.h, schedules in
// collective/schedule.h
int PrintFormulas() {
  struct Row {
    const char* name;
    AllReduceAlgorithm algorithm;
    int gpus;
    double book;  // seconds
  };
  const Row rows[] = {
      {"4 GPUs, one adds", AllReduceAlgorithm::kStar, 4, 30e-3 + 30e-3},
      {"4 GPUs, the CPU adds", AllReduceAlgorithm::kHost, 4, 40e-3 + 40e-3},
      {"4 GPUs, each a quarter", AllReduceAlgorithm::kSplit, 4,
       7.5e-3 + 7.5e-3},
      {"8 GPUs, ring", AllReduceAlgorithm::kRing, 8, 2 * 160e6 / (3 * 18e9)},
  };
  std::cout << "  " << Padded("160 MB", 24) << Padded("the book", -12)
            << Padded("simulated", -12) << Padded("bound", -12) << "\n";
  int equal = 0;
  for (const auto& [name, algorithm, gpus, book] : rows) {
    const Topology topology =
        gpus == 4 ? Topology::PcieSwitch(4, 16e9) : Topology::Ring(8, 3 * 18e9);
    const CollectiveSchedule schedule = AllReduceSchedule(algorithm, gpus);
    const double seconds = Simulate(topology, schedule, 160e6).seconds;
    std::cout << absl::StrFormat("  %s%9.2f ms%9.2f ms%9.2f ms\n",
                                 Padded(name, 24), 1e3 * book, 1e3 * seconds,
                                 1e3 * LowerBound(topology, schedule, 160e6));
    equal += std::abs(seconds - book) < 1e-6 ? 1 : 0;
  }
  return equal;
}
// %%

}  // namespace

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
            << Say("Measured, %s on %s:", FormatBytes(4 * n),
                   MeasuredOn(devices))
            << "\n";
  cell.PrintTimes(t);
  cell.ShowIfVerbose(PlotTimeByDevices({2, 4, 8, 16, 32}, 160e6, [](int gpus) {
                       return Topology::NvSwitch(gpus, 54e9);
                     }).Draw("160 MB by number of GPUs, simulated"));
  const std::size_t others = devices.size() - 1;
  const std::string moved = FormatBytes(2 * others * 4 * n);
  const std::string both =
      OnCpus() ? Say("Both move %s in all, and one memory has all "
                     "of it to read and write.",
                     moved)
               : Say("Both move %s in all.", moved);
  cell.Claim(
      "{} of the book's figures are those of the simulation.",
      Counted(equal == 4, "needs 4", Say("%d of %d", equal, 4)),
      Say("In the ring each of n devices sends 2 (n - 1) times the n-th part: "
          "5.19 ms. The book's 5.93 ms leaves out (n - 1) / n."));
  cell.Claim(
      "Shared among the devices, the adding is {} as fast as on one.",
      Given(SeveralDevices(), Faster(t["split"], t["star"], 1.1), "devices"),
      OneDeviceOr(both));
  cell.Claim(
      "The ring is {} as fast as the split.",
      Given(SeveralDevices(), Faster(t["ring"], t["split"], 1.05), "devices"),
      OneDeviceOr(Say("The ring takes %d rounds, the split 2.", 2 * others)));
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
    std::cout << "  " << Say("worker %d: ", i) << T(weights[i]) << "\n";
    cell.CheckClose("the weights", ToVector<float>(weights[i]),
                    ToVector<float>(whole), 1e-4);
    equal += ToVector<float>(weights[i]) == ToVector<float>(weights[0]) ? 1 : 0;
  }
  std::cout << "  " << Padded("alone:", 10) << T(whole) << "\n";
  cell.Claim("After 20 steps {} workers have the same weights, bit for bit.",
             Counted(equal == n, "needs all", Say("%d of %d", equal, n)));
}
// %%

}  // namespace d2l::multi_gpu
