// Automatic parallelism: independent operations run at the same time.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "chapters/auto_parallelism/programs.h"
#include "chapters/auto_parallelism/schedule.h"
#include "chapters/auto_parallelism/two_devices.h"
#include "common/d2l.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/cell/host_library.h"
#include "common/lesson/cell/trace_program.h"

namespace d2l::auto_parallelism {
namespace {

void CheckSquare(Cell& cell, const std::string& what, const Tensor& x,
                 const Tensor& got) {
  const std::vector<float> values = ToVector<float>(x);
  cell.CheckClose(what, ToVector<float>(got),
                  HostMatMul(values, values, static_cast<int>(x.size(0))),
                  1e-4);
}

void CheckSquares(Cell& cell, const Tensor& x1, const Tensor& x2,
                  const std::pair<Tensor, Tensor>& y) {
  CheckSquare(cell, "x1 @ x1", x1, y.first);
  CheckSquare(cell, "x2 @ x2", x2, y.second);
}

// %% 000/In2
void In2(Cell& cell) {
  for (const DeviceInfo& info : Devices()) {
    std::cout << "  " << info.Describe() << "\n";
  }
  std::cout << Say("  GPU1 is %s, GPU2 is %s.\n", First().ToString(),
                   Second().ToString());
  const int count = static_cast<int>(Devices().size());
  cell.Claim("Devices: {}.",
             Counted(count >= 2, "needs 2", std::to_string(count)),
             OneDeviceOr(""));
}
// %%
D2L_CELL("000/In2", In2);

// %% 000/In3, measured
void In3(Cell& cell) {
  const Tensor x = Rand({100, 100}, First());
  Tensor y = MatMul(x, x);  // warm-up: the first call starts threads
  TimeProducts(x);
  // Time() takes both, many times: enqueue is the first, completion the second.
  cell.Time("1000 products", First(), [&] { y = Run(x, 1000); });
  CheckSquare(cell, "x @ x", x, y);
}
// %%
D2L_CELL("000/In3", In3);

struct Products {
  int count;
  Tensor x1, x2;
};
Products SmallProducts(const Cell& cell) {
  const int n = cell.BySize(64, 100, 1000);
  return {cell.BySize(6000, 20000, 20000), Rand({n, n}, First()),
          Rand({n, n}, Second())};
}

// %% 000/In6, measured
void In6(Cell& cell) {
  const Products p = SmallProducts(cell);
  Tensor y1, y2;
  const auto run1 = [&] { y1 = Run(p.x1, p.count); };
  const auto run2 = [&] { y2 = Run(p.x2, p.count); };
  std::int64_t left = 0;  // of GPU2's products, when the clock is read
  const auto wait_for_gpu1 = [&] {
    left = LeftAfterWaitingFor(First(), Second());
  };
  const Timings t = cell.TimeInterleaved(
      {{"GPU1", {First()}, run1},
       {"GPU2", {Second()}, run2},
       {"GPU2, waiting for GPU1", {Second()}, run2, wait_for_gpu1}});
  cell.PrintTimes(t);
  CheckSquares(cell, p.x1, p.x2, {y1, y2});
  std::cout << Say(
      "  That clock was read with %d of GPU2's %d products left.\n", left,
      p.count);
  cell.Claim(
      "GPU2 takes {} as long as the clock shows after a wait for GPU1.",
      Faster(t["GPU2, waiting for GPU1"], t["GPU2"], kGain),
      OneDeviceOr(Say("The clock was read with %d of GPU2's %d products left.",
                      left, p.count)));
}
// %%
D2L_CELL("000/In6", In6);

// The time of a call that finds room in the queue.
double RequestSeconds(Cell& cell, const Tensor& x) {
  constexpr int kRequests = 250;  // for which a GPU's queue has room
  Stream& stream = NewStream(x.device(), StreamOptions::kUnbounded);
  Synchronize(x.device());  // this stream does not wait for the one of x
  const auto enqueue = [&] {
    const StreamGuard guard(stream);
    Run(x, kRequests);
  };
  const Timing t = cell.Time("250 requests", x.device(), enqueue);
  return t.enqueue.value.median / kRequests;
}

// %% 000/In7, measured
// RequestSeconds stands above; ClaimHeldUp: two_devices.cc
void In7(Cell& cell) {
  const Products p = SmallProducts(cell);
  const double requests = p.count * RequestSeconds(cell, p.x1);
  std::vector<double> calls;  // how long those for GPU1 took
  std::pair<Tensor, Tensor> y;
  const auto one_by_one = [&] {
    Run(p.x1, p.count);
    Synchronize(First());
    Run(p.x2, p.count);
  };
  const auto notebook = [&] {
    calls.push_back(RunInOrder(p.x1, p.x2, p.count));
  };
  const auto in_turn = [&] { y = RunInTurn(p.x1, p.x2, p.count); };
  const Timings t =
      cell.TimeInterleaved({{"GPU1, then GPU2", Both(), one_by_one},
                            {"both, the notebook's order", Both(), notebook},
                            {"both, enqueued in turn", Both(), in_turn}});
  cell.PrintTimes(t);
  CheckSquares(cell, p.x1, p.x2, y);
  const Judgement gain = Faster(t[2], t[0], kGain);
  cell.Claim("Two devices are {} as fast as one after the other.", gain,
             WhyNoGain(2 * requests, t[2]));
  ClaimHeldUp(cell, t, gain, calls, requests);
  cell.Show(
      DrawTimelines("both orders", {{"notebook", ProfileProgram(notebook)},
                                    {"in turn", ProfileProgram(in_turn)}}));
}
// %%
D2L_CELL("000/In7", In7);

// %% d2l/mm-4000, measured
void Mm4000(Cell& cell) {
  const int n = cell.BySize(400, 1000, 4000);
  const int products = cell.BySize(10, 10, 50);
  const Tensor x1 = Rand({n, n}, First());
  const Tensor x2 = Rand({n, n}, Second());
  std::vector<Tensor> y1, y2;
  const auto run1 = [&] { RunAndKeep(x1, products, &y1); };
  const auto run2 = [&] { RunAndKeep(x2, products, &y2); };
  const auto run_both = [&] {
    run1();
    run2();
  };
  // Each is run once before it counts, and waits for its devices.
  const Timings t = cell.TimeInterleaved({{"GPU1", {First()}, run1},
                                          {"GPU2", {Second()}, run2},
                                          {"GPU1 & GPU2", Both(), run_both}});
  cell.PrintTimes(t);
  CheckSquare(cell, "the first x1 @ x1", x1, y1.front());
  CheckSquare(cell, "the last x1 @ x1", x1, y1.back());
  CheckSquare(cell, "the last x2 @ x2", x2, y2.back());

  const Timing& both = t["GPU1 & GPU2"];
  const Figure sum = PerRepeat("GPU1 + GPU2", "s", t["GPU1"].completion,
                               t["GPU2"].completion, std::plus<double>());
  cell.Claim("Both together are {} as fast as one after the other.",
             Less(both.completion, sum, kGain),
             WhyNoGain(both.enqueue.value.median, both));
}
// %%
D2L_CELL("d2l/mm-4000", Mm4000);

// Checks that `run` copies every product to `host`, with the right values.
void CheckCopies(Cell& cell, const ThinProducts& p, float* host,
                 const std::function<void()>& run) {
  const std::vector<float> nothing(p.pageable_memory.size());
  std::copy(nothing.begin(), nothing.end(), host);
  run();
  Synchronize(First());
  for (std::size_t i = 0; i < p.y.size(); ++i) {
    const std::string name = "y[" + std::to_string(i) + "]";
    const std::vector<float> y = ToVector<float>(p.y[i]);
    cell.CheckClose(name, y, ToVector<float>(MatMul(p.a[i], p.b)), 0);
    cell.Check(std::memcmp(host + i * y.size(), y.data(),
                           sizeof(float) * y.size()) == 0,
               "the copy of " + name + " is not " + name);
  }
}

// %% d2l/overlap, measured
void Overlap(Cell& cell) {
  const Device device = First();
  const int steps = cell.BySize(40, 40, 20), m = cell.BySize(512, 1000, 4000);
  ThinProducts p(device, steps, m, cell.BySize(32, 32, 1000));
  Stream &one = CurrentStream(device), &two = NewStream(device);
  const auto multiply = [&] {
    for (int i = 0; i < steps; ++i) p.y[i] = MatMul(p.a[i], p.b);
  };
  const auto copy = [&] {
    for (int i = 0; i < steps; ++i) CopyToHost(p, i, one, p.pinned);
  };
  const auto run = [&p](Stream& copies, float* host) {
    return [&p, &copies, host] { MultiplyAndCopy(p, copies, host); };
  };
  const auto pinned = run(two, p.pinned), pageable = run(two, p.pageable);
  const Timings t = cell.TimeInterleaved(
      {{"products alone", {device}, multiply},
       {"copies alone", {device}, copy},
       {"one stream", {device}, run(one, p.pinned)},
       {"two streams", {device}, pinned},
       {"one stream, pageable", {device}, run(one, p.pageable)},
       {"two streams, pageable", {device}, pageable}});
  cell.PrintTimes(t);
  CheckCopies(cell, p, p.pinned, pinned);
  CheckCopies(cell, p, p.pageable, pageable);

  const Judgement gain = Faster(t["two streams"], t["one stream"], kGain);
  cell.Claim("Two streams are {} as fast as one.", gain,
             WhyNoCopyBeside(device, t["products alone"], t["copies alone"]));
  const Figure speedup =
      Speedup(cell, t["two streams, pageable"], t["one stream, pageable"]);
  cell.Claim("To pageable memory they are {} as fast: each call waits.",
             Given(gain, Below(speedup, kGain), "to pinned memory"),
             CallsTake(t["two streams, pageable"], t["two streams"]));
}
// %%
D2L_CELL("d2l/overlap", Overlap);

Mlp RandomMlp(const Cell& cell, Device home) {
  const int batch = cell.BySize(1024, 4096, 16384);
  const int hidden = cell.BySize(256, 512, 2048);
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
  cell.Claim("{} operations began before their inputs were there.", schedule,
             Say("An operation did not wait for what it reads or overwrites."));
  cell.Claim("The gradient is {} as fast on two devices.",
             Faster(t["on two"], t["on one device"], kGain),
             OneDeviceOr(AtWork(timeline)));
}
// %%
D2L_CELL("002/two-device-graph", Graph);

// %% d2l/streams, measured
void Streams(Cell& cell) {
  const Device device = First();
  std::vector<Stream*> four;
  for (int i = 0; i < 4; ++i) four.push_back(&NewStream(device));
  const std::vector<Stream*> one = {four[0]};
  const int n = cell.BySize(512, 1000, 4000);
  const Tensor small = Rand({64, 64}, device);
  const Tensor large = Rand({n, n}, device);
  Synchronize(device);  // these streams do not wait for the one it was made on
  Tensor s1, s4, l1, l4;
  const Timings t = cell.TimeInterleaved(
      {{"small, one stream", {device}, [&] { s1 = RunOn(one, small, 4000); }},
       {"small, four", {device}, [&] { s4 = RunOn(four, small, 4000); }},
       {"large, one stream", {device}, [&] { l1 = RunOn(one, large, 8); }},
       {"large, four", {device}, [&] { l4 = RunOn(four, large, 8); }}});
  cell.PrintTimes(t);
  CheckSquare(cell, "small, one stream", small, s1);
  CheckSquare(cell, "small, four streams", small, s4);
  CheckSquare(cell, "large, one stream", large, l1);
  CheckSquare(cell, "large, four streams", large, l4);

  // The controls: cores to overlap on, and streams that use them.
  const Judgement cores = CanOverlap(device);
  const Judgement overlap =
      Given(cores, Faster(t["small, four"], t["small, one stream"], kGain),
            "the device");
  cell.Claim("Small products are {} as fast on four streams: they overlap.",
             overlap, WhyNoOverlap(device, t["small, four"]));
  cell.Claim(
      "Large ones are {} as fast on four: one fills the device.",
      Given(
          cores.verdict == Verdict::kHolds ? overlap : cores,
          Below(Speedup(cell, t["large, four"], t["large, one stream"]), 1.25),
          cores.verdict == Verdict::kHolds ? "small ones" : "the device"),
      WhyNotFull(device, t["large, one stream"], t["large, four"], 8));
}
// %%
D2L_CELL("d2l/streams", Streams);

// %% d2l/size-sweep, measured
// Enough products for ten milliseconds or so on a core, unless a queue has no
// room for them.
int ProductsOf(int n) {
  return static_cast<int>(std::clamp(1e9 / n / n / n, 2.0, 2000.0));
}

void SizeSweep(Cell& cell) {
  const std::vector<int> sizes = cell.BySize<std::vector<int>>(
      {4, 16, 64, 256}, {2, 4, 8, 16, 32, 64, 128, 256, 512},
      {16, 64, 256, 1024, 4096});
  std::vector<SweepPoint> sweep;
  std::string why;  // for the largest size
  for (const int n : sizes) {
    cell.At("n", n);
    const Tensor x1 = Rand({n, n}, First());
    const Tensor x2 = Rand({n, n}, Second());
    const int k = ProductsOf(n);
    std::pair<Tensor, Tensor> y;
    const auto on_one = [&] { Run(x1, 2 * k); };
    const auto on_two = [&] { y = RunInTurn(x1, x2, k); };
    const Timings t = cell.TimeInterleaved(
        {{"one", {First()}, on_one}, {"two", Both(), on_two}});
    CheckSquares(cell, x1, x2, y);
    const Timing &one = t[0], &two = t[1];
    sweep.push_back({1.0 * n, Speedup(cell, two, one)});
    std::cout << Say("  n = %-4d  two devices take %8s a product: %s as fast\n",
                     n, FormatDuration(two.completion.value.median / (2 * k)),
                     FormatFactor(sweep.back().ratio.value.median));
    why = WhyNoGain(two.enqueue.value.median, two);
  }
  cell.Claim("Two devices are surely faster from {} on.",
             SureFrom("n", sweep, kGain), why);
}
// %%
D2L_CELL("d2l/size-sweep", SizeSweep);

}  // namespace
}  // namespace d2l::auto_parallelism
