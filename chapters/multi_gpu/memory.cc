// Cells: what a step needs memory for, and how devices share it.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/multi_gpu/cells.h"
#include "chapters/multi_gpu/from_scratch/three_splits.h"
#include "chapters/multi_gpu/memory_use.h"
#include "common/d2l.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"

namespace d2l::multi_gpu {
namespace {

// %% d2l/recompute
// Eight times Linear(width, width), ReLU; with `checkpoints` two of these are a
// part whose values are computed again on the way back.
std::unique_ptr<nn::Module> Deep(std::int64_t width, bool checkpoints,
                                 Device device) {
  auto net = std::make_unique<nn::Sequential>();
  for (int i = 0; i < 4; ++i) {
    nn::Sequential part(nn::Linear(width, width, device), nn::ReLU(),
                        nn::Linear(width, width, device), nn::ReLU());
    if (checkpoints) {
      net->Append(nn::Checkpoint(std::move(part)));
    } else {
      net->Append(std::move(part));
    }
  }
  return net;
}
// %% d2l/shards
// A bucket for each layer. shard: kNone, kOptimizer or kGradients.
std::unique_ptr<DataParallel> OnDevices(std::unique_ptr<nn::Module> net,
                                        const std::vector<Device>& devices,
                                        Shard shard) {
  DataParallelOptions options;
  options.shard = shard;
  options.measure_memory = true;
  for (const Tensor& x : nn::Parameters(*net)) {
    options.bucket_bytes = std::max(4 * x.numel(), std::int64_t{1});
    if (x.dim() == 2) break;
  }
  options.first_bucket_bytes = options.bucket_bytes;
  return std::make_unique<DataParallel>(std::move(net), NumbersOf(devices),
                                        options);
}

// %%
// The losses of `steps` steps with a batch.
std::vector<double> Train(DataParallel& net, const Batch& batch, int steps) {
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    losses.push_back(Item(
        net.Step(batch.images, batch.labels, {/*lr=*/0.01, /*momentum=*/0.9})
            .loss));
  }
  return losses;
}

// Trains with this much memory per device. Returns the error, or nothing.
std::string TrainWithin(std::int64_t bytes, const nn::Module& net,
                        const std::vector<Device>& devices, Shard shard,
                        const Batch& batch) {
  std::string message;
  for (const Device device : devices) {
    Memory(device).EmptyCache();
    Memory(device).SetMaxBytes(Memory(device).Stats().reserved + bytes);
  }
  try {
    Train(*OnDevices(nn::Clone(net, devices[0]), devices, shard), batch, 3);
  } catch (const OutOfMemoryError& error) {
    message = error.what();
    // What follows counts this cell's own tensors, too.
    message = message.substr(0, message.find(';')) + ".";
  }
  for (const Device device : devices) {
    Memory(device).SetMaxBytes(std::numeric_limits<std::int64_t>::max());
  }
  return message;
}
// The costs of training, on the first device.
struct Cost {
  std::vector<double> losses;
  MemoryUse measured, predicted;
  double moved = 0;

  // How far the formula is off.
  double Off() const {
    return std::abs(1 - static_cast<double>(predicted.peak()) /
                            static_cast<double>(measured.peak()));
  }
};

Cost CostOf(const nn::Module& net, const std::vector<Device>& devices,
            Shard shard, const Batch& batch) {
  const auto trained = OnDevices(nn::Clone(net, devices[0]), devices, shard);
  Cost cost;
  cost.losses = Train(*trained, batch, 20);
  BytesMoved moved;
  {
    const ScopedOpListener listen(&moved);
    Train(*trained, batch, 1);
  }
  cost.moved = static_cast<double>(moved.bytes());
  cost.measured = trained->memory(0);
  const LayerMemory layers =
      PredictLayers(trained->module(), Slice(batch.images, 0, 0, 1),
                    trained->ShareOf(batch.labels.size(0)).sizes[0]);
  cost.predicted =
      trained->PredictMemory(0, layers.kept, layers.temporaries, true);
  return cost;
}

// The third stage, by formula: of `use`, with the gradients sharded, a device
// holds a shard of the parameters, too, and two layers, of equal size, that are
// whole: the one that computes, and the next one, which is being gathered.
MemoryUse WithParametersSharded(MemoryUse use, const nn::Module& net,
                                std::size_t devices) {
  const std::vector<Tensor> parameters = nn::Parameters(net);
  const std::int64_t layer =
      4 * (parameters[0].numel() + parameters[1].numel());
  use.parameters =
      use.parameters / static_cast<std::int64_t>(devices) + 2 * layer;
  return use;
}

// Also trains on devices with less memory than the unsharded network needs.
void ClaimShards(Cell& cell, const std::vector<Cost>& costs,
                 const nn::Module& net, const std::vector<Device>& devices,
                 const Batch& batch) {
  const Cost &whole = costs.front(), &sharded = costs.back();
  const std::int64_t needs = whole.measured.peak();
  const std::int64_t bound = (needs + sharded.measured.peak()) / 2;
  const std::string refusal =
      TrainWithin(bound, net, devices, Shard::kNone, batch);
  const std::string fits =
      TrainWithin(bound, net, devices, Shard::kGradients, batch);
  if (!refusal.empty()) std::cout << Wrap(refusal, "  ");
  cell.Claim(
      "The network does not fit whole; sharded, it trains with less memory: "
      "{}.",
      OnSeveral(Counted(
          !refusal.empty() && fits.empty(),
          Say("%s needed on each device, which has %s", FormatBytes(needs),
              FormatBytes(bound)),
          FormatFactor(sharded.measured.peak() / static_cast<double>(needs)))),
      OneDeviceOr(refusal.empty() ? Say("The whole network fits too.") : fits));
  double off = 0;
  int equal = 0;
  for (const Cost& cost : costs) {
    off = std::max(off, cost.Off());
    equal += cost.losses == whole.losses ? 1 : 0;
  }
  cell.Claim("All ways have the same losses in 20 steps, bit for bit: {}.",
             Counted(equal == 3, Say("needs all"), Say("%d of %d", equal, 3)));
  cell.Claim(
      "The formula agrees with the measured memory to a few percent: {}.",
      Counted(off <= 0.05, Say("needs 5 %% or less"),
              absl::StrFormat("%.1f %%", 100 * off)));
  cell.Claim(
      "With momentum and gradients sharded, a step moves no more bytes: {}.",
      OnSeveral(
          Counted(sharded.moved < 1.05 * whole.moved,
                  Say("needs 1.05x or less; %s against %s",
                      FormatBytes(sharded.moved), FormatBytes(whole.moved)),
                  FormatFactor(sharded.moved / std::max(1.0, whole.moved)))),
      OneDeviceOr(Say("A step moves %s with nothing sharded, %s with momentum "
                      "and gradients sharded.",
                      FormatBytes(whole.moved), FormatBytes(sharded.moved))));
}

}  // namespace

std::shared_ptr<DataParallel> DeepNet(Device device, std::int64_t width,
                                      bool again) {
  return OnDevices(Deep(width, again, device), {device}, Shard::kNone);
}

// %% d2l/shards, measured
void Shards(Cell& cell) {
  const std::vector<Device> devices = AtMostTwo();
  const std::int64_t width = cell.BySize(64, 512, 2048);
  const auto rows = static_cast<std::int64_t>(8 * devices.size());
  ManualSeed(4);
  const std::unique_ptr<nn::Module> net = Deep(width, false, devices[0]);
  const Batch batch = {Randn({rows, width}, devices[0]),
                       RandInt(0, 10, {rows}, devices[0])};
  std::vector<Cost> costs;
  std::vector<std::pair<std::string, MemoryUse>> uses;
  for (const Phrase name :
       {"nothing sharded", "momentum sharded", "and gradients"}) {
    const auto shard = static_cast<Shard>(costs.size());
    const Cost& cost = costs.emplace_back(CostOf(*net, devices, shard, batch));
    uses.emplace_back(name.shown, cost.measured);
    uses.emplace_back(Say("  predicted"), cost.predicted);
    const auto peak = static_cast<double>(cost.measured.peak());
    cell.Report(Known(Worded("%s, peak", name), "B", peak));
    cell.Report(Known(Worded("%s, moved", name), "B", cost.moved));
  }
  uses.emplace_back(
      Say("and parameters *"),
      WithParametersSharded(costs.back().predicted, *net, devices.size()));
  std::cout << MemoryTable(uses)
            << Wrap(Say("* By the formula only. A step would move 1.5x as many "
                        "bytes: %s.",
                        FormatBytes(1.5 * costs[0].moved)),
                    "  ");
  ClaimShards(cell, costs, *net, devices, batch);
}

// %% d2l/recompute, measured
void Recompute(Cell& cell) {
  const std::vector<Device> device = {AtMostTwo()[0]};
  const std::int64_t width = cell.BySize(32, 256, 1024);
  const std::int64_t samples = cell.BySize(256, 2048, 8192);
  const Batch batch = {Randn({samples, width}, device[0]),
                       RandInt(0, 10, {samples}, device[0])};
  std::vector<std::shared_ptr<DataParallel>> nets;
  std::vector<std::vector<double>> losses;
  std::vector<Alternative> steps;
  std::vector<MemoryUse> uses;
  for (const bool again : {false, true}) {
    ManualSeed(5);
    nets.push_back(DeepNet(device[0], width, again));
    losses.push_back(Train(*nets.back(), batch, 5));
    uses.push_back(nets.back()->memory(0));
    steps.push_back({again ? "computed again" : "kept", device,
                     [&cell, &batch, net = nets.back()] {
                       net->Step(batch.images, batch.labels, {0.01, 0.9});
                     }});
  }
  const Timings t = cell.TimeInterleaved(steps);
  cell.PrintTimes(t);
  std::cout << MemoryTable(
      {{Say("kept"), uses[0]}, {Say("computed again"), uses[1]}});
  const double kept = static_cast<double>(uses[0].activations);
  const double again = static_cast<double>(uses[1].activations);
  cell.Check(losses[0] == losses[1], "the losses, bit for bit");
  cell.Claim(
      "Between the passes fewer activations are kept: {}.",
      Counted(again < 0.7 * kept,
              Say("%s for the inputs of 4 parts, %s for those of 8 layers",
                  FormatBytes(again), FormatBytes(kept)),
              FormatFactor(again / kept)));
  cell.Claim("With recomputing, a step takes longer: {}.",
             Faster(t["kept"], t["computed again"], 1.05),
             Say("A step takes %s without recomputing and %s with it. If a "
                 "forward pass is a third of a step, one more makes 1.33x.",
                 Median(t["kept"]), Median(t["computed again"])));
}
// %%
D2L_CELL("d2l/recompute", Recompute);
D2L_CELL("d2l/shards", Shards);

namespace {

// ---- Benchmarks, at the course's size.

constexpr std::int64_t kWidth = 256;

// again: the values between layers are computed again.
bool Deep(const std::string& name, bool again) {
  return OnOne(
      name, 2048,
      [again](const std::vector<Device>& devices) -> std::function<void()> {
        const Tensor x = Randn({2048, kWidth}, devices[0]);
        const Tensor y = RandInt(0, kClasses, {2048}, devices[0]);
        return [=, net = DeepNet(devices[0], kWidth, again)] {
          net->Step(x, y, {/*lr=*/0.01});
        };
      });
}

[[maybe_unused]] const bool benchmarks[] = {
    Deep("BM_d2l_recompute_Kept", /*again=*/false),
    Deep("BM_d2l_recompute_Again", /*again=*/true),
};

}  // namespace
}  // namespace d2l::multi_gpu
