// The cell on three ways to split a step of training between devices.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "chapters/multi_gpu/cells.h"
#include "chapters/multi_gpu/from_scratch/three_splits.h"
#include "common/d2l.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"

namespace d2l::multi_gpu {
namespace {

struct Split {
  std::string name;
  std::function<Step(const SplitNet&)> of;
  // For the formula, per device: its part of the weights, and of the blocks;
  // the numbers that the backward pass needs per row and block, in units of the
  // width; its part of the rows; the part of these computed at a time.
  double weights, blocks, kept, rows, at_a_time;
};

std::vector<Split> SplitsOver(const std::vector<Device>& devices) {
  const double part = 1.0 / static_cast<double>(devices.size());
  return {
      {"one device", OneDevice, 1, 1, 3, 1, 1},
      {"layers, 1 batch",
       [devices](const SplitNet& net) { return Pipeline(net, devices, 1); },
       part, part, 3, 1, 1},
      {"layers, 4 parts",
       [devices](const SplitNet& net) { return Pipeline(net, devices, 4); },
       part, part, 3, 1, 0.25},
      {"within layers",
       [devices](const SplitNet& net) { return WithinLayers(net, devices); },
       part, 1, 1 + 2 * part, 1, 1},
      {"data",
       [devices](const SplitNet& net) { return DataShards(net, devices); }, 1,
       1, 3, part, 1}};
}

// The memory of the device that needs the most.
MemoryUse MemoryOf(const Split& split, const std::function<SplitNet()>& net,
                   const std::vector<Device>& devices, const Tensor& x) {
  std::vector<std::int64_t> before;
  for (const Device device : devices) {
    before.push_back(Memory(device).Stats().allocated);
  }
  const Step step = split.of(net());
  for (const Device device : devices) {
    Synchronize(device);
    Memory(device).ResetPeak();
  }
  std::vector<MemoryUse> uses(devices.size());
  for (std::size_t d = 0; d < devices.size(); ++d) {
    uses[d].parameters = Memory(devices[d]).Stats().allocated - before[d];
  }
  const SplitGradients gradients = step(x, x);
  MemoryUse most;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    Synchronize(devices[d]);
    for (const std::vector<Tensor>& parts : gradients) {
      for (const Tensor& part : parts) {
        if (part.device() == devices[d]) uses[d].gradients += 4 * part.numel();
      }
    }
    uses[d].activations =
        Memory(devices[d]).Stats().peak - before[d] - uses[d].peak();
    if (uses[d].peak() > most.peak()) most = uses[d];
  }
  return most;
}

// The bytes that a device needs in a step, by the split's formula.
double MemoryByFormula(const Split& split, const SplitNet& net,
                       const Tensor& x) {
  constexpr double kBytesOfNumber = 4, kWeightsOfBlock = 2;
  const double blocks = static_cast<double>(net.size()) / kWeightsOfBlock;
  double weights = 0;
  for (const Tensor& weight : net) {
    weights += split.weights * static_cast<double>(weight.numel());
  }
  const double gradients = weights;
  // Of a device's rows, in units of the width: what its blocks keep for the
  // backward pass; and the gradients of one block's values and of its input.
  const double kept = blocks * split.blocks * split.kept;
  const double of_a_block = (split.kept + 1) * split.at_a_time;
  const double unit = split.rows * static_cast<double>(x.numel());
  return kBytesOfNumber * (weights + gradients + unit * (kept + of_a_block));
}

// Prints a line for each split. Returns, for each, the bytes moved by batch.
std::vector<std::vector<double>> PrintSplits(
    const std::vector<Split>& splits, const Timings& t,
    const std::function<SplitNet()>& net, const std::vector<Device>& devices,
    const Tensor& x) {
  const SplitNet whole = net();
  std::vector<std::vector<double>> moves;
  std::cout << "  " << Padded("", 17) << Padded("a step", -9)
            << Padded("at 256", -10) << Padded("at 4096", -9)
            << Padded("weights", -10) << Padded("the rest", -10)
            << Padded("formula", -10) << "\n";
  for (std::size_t i = 0; i < splits.size(); ++i) {
    const Split& split = splits[i];
    const Step step = split.of(whole);
    std::vector<double>& moved = moves.emplace_back();
    for (const std::int64_t batch : {256, 1024, 4096}) {
      const Tensor rows = Randn({batch, x.size(1)}, devices[0]);
      moved.push_back(static_cast<double>(BytesOf(step, rows, rows)));
    }
    const MemoryUse use = MemoryOf(split, net, devices, x);
    std::cout << absl::StrFormat(
        "  %s%9s%10s%9s%10s%10s%10s\n", Padded(split.name, 17), Median(t[i]),
        FormatBytes(moved[0]), FormatBytes(moved[2]),
        FormatBytes(use.parameters), FormatBytes(use.peak() - use.parameters),
        FormatBytes(MemoryByFormula(split, whole, x)));
  }
  const int p = static_cast<int>(devices.size());
  std::cout << Wrap(Say("In theory p = %d stages wait (p - 1) / (m + p - 1) of "
                        "the time for m "
                        "parts of a batch: %.0f %% for 1 part, %.0f %% for 4.",
                        p, 100.0 * (p - 1) / p, 100.0 * (p - 1) / (p + 3)),
                    "  ");
  return moves;
}

bool Quicker(const Timing& a, const Timing& b) {
  return a.completion.value.median < b.completion.value.median;
}

// The batch from which on `a` moves fewer bytes than `b`. Their first two
// numbers are for 256 and 1024 samples; they grow linearly.
double EqualFrom(const std::vector<double>& a, const std::vector<double>& b) {
  return 256 + 768 * (a[0] - b[0]) / ((b[1] - b[0]) - (a[1] - a[0]));
}

std::vector<Device> PacedDevices(Cell& cell) {
  cell.PaceDevices();
  return AtLeastTwo();
}

}  // namespace

// %% d2l/three-splits, measured
void ThreeSplits(Cell& cell) {
  const std::vector<Device> devices = PacedDevices(cell);
  const int p = static_cast<int>(devices.size());
  const std::int64_t width = cell.BySize(64, 256, 1024);
  const SplitNet net = MakeSplitNet(p, width, 2 * width, devices[0]);
  const std::vector<Split> splits = SplitsOver(devices);
  const Tensor x = Randn({cell.BySize(1024, 2048, 8192), width}, devices[0]);
  const Tensor target = Randn(x.shape(), devices[0]);
  const auto alone = [&, step = OneDevice(net)] { step(x, target); };
  cell.LinkDevices(BytesOf(WithinLayers(net, devices), x, target),
                   cell.RoughSeconds(devices[0], alone) / 2);
  const std::vector<float> expected = OnHost(OneDevice(net)(x, target));
  std::vector<Alternative> steps;
  for (const Split& split : splits) {
    const Step step = split.of(net);
    cell.CheckClose(split.name, OnHost(step(x, target)), expected, 1e-3);
    steps.push_back({split.name, AllDevices(), [=] { step(x, target); }});
  }
  const Timings t = cell.TimeInterleaved(steps);
  const auto moves = PrintSplits(
      splits, t, [&] { return MakeSplitNet(p, width, 2 * width, devices[0]); },
      devices, x);
  std::size_t fast = 1, least = 1;  // besides data: the best, at batch 256
  for (const std::size_t i : {2, 3}) {
    if (Quicker(t[i], t[fast])) fast = i;
    if (moves[i][0] < moves[least][0]) least = i;
  }
  const std::vector<double>&data = moves[4], &next = moves[least];
  const double from = EqualFrom(data, next);
  const std::string weights =
      Say("It sends all gradients, and the sums back, whatever the batch.");
  cell.Claim(
      "At batch 256, data parallelism moves the fewest bytes; its bytes / "
      "the best other split's: {}.",
      OnSeveral(
          Counted(data[0] < next[0],
                  Say("%s against %s, %s", FormatBytes(data[0]),
                      FormatBytes(next[0]), Translated(splits[least].name)),
                  FormatFactor(data[0] / std::max(next[0], 1.0)))),
      OneDeviceOr(from > 256 ? Lead(weights) + Say("Above batch %.0f, that is "
                                                   "less than the others move.",
                                                   from)
                             : weights));
  cell.Claim("Data parallelism is the fastest split: {}.",
             Faster(t[4], t[fast], 1),
             OneDeviceOr(Say(
                 "Next best is %s, which moves %s; data parallelism moves %s.",
                 t[fast].completion.label.shown, FormatBytes(moves[fast][0]),
                 FormatBytes(data[0]))));
  cell.Claim("With micro-batches the pipeline is faster: {}.",
             Faster(t[2], t[1], 1.1),
             OneDeviceOr(Say("With 4 parts its calls take %s of %s.",
                             Median(t[2].enqueue), Median(t[2]))));
}

// %%
D2L_CELL("d2l/three-splits", ThreeSplits);

namespace {

// ---- Benchmarks, at the course's size.

constexpr std::int64_t kWidth = 256;
constexpr std::int64_t kBatch = 256;

template <typename Split>
MakeStep SplitStep(Split split) {
  return [split](const std::vector<Device>& devices) -> std::function<void()> {
    const SplitNet net = MakeSplitNet(2, kWidth, 2 * kWidth, devices[0]);
    const Tensor x = Randn({kBatch, kWidth}, devices[0]);
    const Tensor target = Randn({kBatch, kWidth}, devices[0]);
    return [step = split(net, devices), x, target] { step(x, target); };
  };
}

[[maybe_unused]] const bool benchmarks[] = {
    OnOne("BM_d2l_three_splits_OneDevice", kBatch,
          SplitStep([](const SplitNet& net, const std::vector<Device>&) {
            return OneDevice(net);
          })),
    OnTwo(
        "BM_d2l_three_splits_Layers", kBatch,
        SplitStep([](const SplitNet& net, const std::vector<Device>& devices) {
          return Pipeline(net, devices, /*micro_batches=*/4);
        })),
    OnTwo("BM_d2l_three_splits_WithinLayers", kBatch, SplitStep(WithinLayers)),
    OnTwo("BM_d2l_three_splits_Data", kBatch, SplitStep(DataShards)),
};

}  // namespace
}  // namespace d2l::multi_gpu
