// Cell: a gradient, half of the batch on each device.

#include <cstdint>
#include <functional>
#include <vector>

#include "chapters/auto_parallelism/schedule.h"
#include "chapters/auto_parallelism/two_devices.h"
#include "common/d2l.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/cell/trace_program.h"

namespace d2l::auto_parallelism {
namespace {

// A batch and its targets, and the weights of two layers.
struct Mlp {
  Tensor x, y, w1, w2;
};

// %% 002/two-device-graph
// An Mlp has the tensors x, y, w1 and w2; its output is relu(x @ w1) @ w2.
Tensor Gradient(const Mlp& mlp, const std::vector<Device>& devices) {
  std::vector<Mlp> halves;
  const std::int64_t rows = mlp.x.size(0) / 2;
  for (int i = 0; i < 2; ++i) {
    const Range half{i * rows, (i + 1) * rows};
    halves.push_back({To(mlp.x[half], devices[i]), To(mlp.y[half], devices[i]),
                      To(mlp.w1, devices[i]), To(mlp.w2, devices[i])});
  }
  std::vector<Tensor> gradients;
  for (const auto& [x, y, w1, w2] : halves) {
    const Tensor h = Relu(MatMul(x, w1));
    gradients.push_back(MatMul(T(h), MatMul(h, w2) - y));
  }
  const Device home = mlp.x.device();
  return To(gradients[0], home) + To(gradients[1], home);
}
// %%

Mlp RandomMlp(const Cell& cell, Device home) {
  const int batch = cell.BySize(512, 4096, 16384);
  const int hidden = cell.BySize(128, 512, 2048);
  return {Randn({batch, 784}, home), Randn({batch, 10}, home),
          Randn({784, hidden}, home) * 0.04, Randn({hidden, 10}, home) * 0.04};
}

// Checks that both gradients have the same bits, and are the whole batch's.
void CheckGradient(Cell& cell, const Mlp& mlp, const Tensor& one,
                   const Tensor& two) {
  cell.CheckClose("the gradient on two devices", ToVector<float>(two),
                  ToVector<float>(one), 0);
  const Tensor h = Relu(MatMul(mlp.x, mlp.w1));
  const Tensor whole = MatMul(T(h), MatMul(h, mlp.w2) - mlp.y);
  cell.CheckClose("the sum of the halves", ToVector<float>(one),
                  ToVector<float>(whole), 1e-3);
}

// %% 002/two-device-graph, measured
// The last two devices of the table; with three, the first only has the data.
std::vector<Device> Workers() {
  const std::vector<DeviceInfo>& all = Devices();
  return {all[all.size() < 2 ? 0 : all.size() - 2].device, all.back().device};
}

void Graph(Cell& cell) {
  cell.PaceDevices();
  const Device home = First(), a = Workers()[0], b = Workers()[1];
  const Mlp mlp = RandomMlp(cell, home);
  Tensor one, two;
  const auto on_one = [&] { one = Gradient(mlp, {a, a}); };
  const auto on_two = [&] { two = Gradient(mlp, {a, b}); };
  const Timings t =
      cell.TimeInterleaved({{"on one device", Distinct({home, a}), on_one},
                            {"on two", Distinct({home, a, b}), on_two}});
  cell.PrintTimes(t);
  CheckGradient(cell, mlp, one, two);

  const TracedProgram run = TraceProgram(on_two);
  const Timeline timeline(run.profile);
  cell.ShowIfVerbose(DrawGraph(run.graph, "two-layer MLP"));
  cell.Show(timeline.Draw("timeline"));
  // FollowsTheData: chapters/auto_parallelism/schedule.h
  const Judgement schedule = FollowsTheData(run.graph);
  cell.Check(EarlyStarts(run.graph) == 0, schedule.evidence);
  cell.Claim("No operation began before its inputs were there: {}.", schedule,
             Say("An operation did not wait for a value that it reads or "
                 "overwrites."));
  cell.Claim("The gradient is faster on two devices: {}.",
             Faster(t["on two"], t["on one device"], kGain),
             OneDeviceOr(AtWork(timeline)));
}
// %%
D2L_CELL("002/two-device-graph", Graph);

// Benchmarks, at the course's size.

std::function<void()> GradientOn(Device first, Device second) {
  const Mlp mlp = {Randn({4096, 784}, first), Randn({4096, 10}, first),
                   Randn({784, 512}, first), Randn({512, 10}, first)};
  return [=] { WaitToRead(Gradient(mlp, {first, second})); };
}

[[maybe_unused]] const bool benchmarks[] = {
    BenchmarkWork("BM_002_two_device_graph_OneDevice", 1,
                  [](Device device) { return GradientOn(device, device); }),
    BenchmarkPairWork("BM_002_two_device_graph_TwoDevices", 1, GradientOn),
};

}  // namespace
}  // namespace d2l::auto_parallelism
