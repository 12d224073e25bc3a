// Automatic parallelism: independent operations run at the same time.

#include "common/lesson/lesson.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/auto_parallelism/random_program.h"
#include "chapters/auto_parallelism/schedule.h"
#include "chapters/auto_parallelism/two_devices.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/timer.h"
#include "common/device/backend.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/memory/memory.h"
#include "common/device/stream.h"
#include "common/drawing/graph_drawing.h"
#include "common/drawing/plot.h"
#include "common/drawing/timeline.h"
#include "common/lesson/cell.h"
#include "common/lesson/host_library.h"
#include "common/lesson/judge.h"
#include "common/lesson/trace_program.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

void CheckSquare(Cell& cell, const std::string& what, const Tensor& x,
                 const Tensor& got) {
  const std::vector<float> values = ToVector<float>(x);
  cell.CheckClose(what, ToVector<float>(got),
                  HostMatMul(values, values, static_cast<int>(x.size(0))),
                  1e-4);
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
             Counted(count >= 2, "needs 2", absl::StrCat(count)),
             OneDeviceOr(""));
}
// %%

// %% 000/In3
class Benchmark {
 public:
  explicit Benchmark(std::string prefix) : prefix_(std::move(prefix)) {}
  ~Benchmark() {
    std::cout << Say("%s time: %.4f sec\n", Translated(prefix_),
                     timer_.Seconds());
  }

 private:
  const std::string prefix_;
  const Timer timer_;
};

void In3(Cell& cell) {
  const Tensor x = Rand({100, 100}, First());
  Tensor y = MatMul(x, x);  // warm-up: the first call starts threads
  const auto thousand_products = [&] {
    for (int i = 0; i < 1000; ++i) y = MatMul(x, x);
  };
  Synchronize(First());
  {
    const Benchmark benchmark("1000 products, not waited for,");
    thousand_products();
  }
  Synchronize(First());
  {
    const Benchmark benchmark("1000 products, waited for,");
    thousand_products();
    Synchronize(First());
  }
  // Time() takes both, many times: enqueue is the first, completion the second.
  cell.Time("1000 products", First(), thousand_products);
  CheckSquare(cell, "x @ x", x, y);
}
// %%

// %% 000/In6, 000/In7, d2l/size-sweep
Tensor Run(const Tensor& x, int products) {
  Tensor y;
  for (int i = 0; i < products; ++i) y = MatMul(x, x);
  return y;
}
// %%

// %% 000/In7, d2l/size-sweep
void RunInTurn(const Tensor& x1, const Tensor& x2, int products, Tensor* y1,
               Tensor* y2) {
  for (int i = 0; i < products; ++i) {
    *y1 = MatMul(x1, x1);
    *y2 = MatMul(x2, x2);
  }
}
// %%

// %% 000/In6, 000/In7
struct Products {
  int count;
  Tensor x1, x2;
};
Products SmallProducts(const Cell& cell) {
  const int n = cell.BySize(64, 100, 1000);
  return {cell.BySize(6000, 20000, 20000), Rand({n, n}, First()),
          Rand({n, n}, Second())};
}
// %%

// %% 000/In6
void In6(Cell& cell) {
  const Products p = SmallProducts(cell);
  Tensor y1, y2;
  const auto run1 = [&] { y1 = Run(p.x1, p.count); };
  const auto run2 = [&] { y2 = Run(p.x2, p.count); };
  std::int64_t left = 0;  // of GPU2's products, when the clock is read
  const auto wait_for_gpu1 = [&] {
    Synchronize(First());
    left = CurrentStream(Second()).QueuedOperations();
  };
  const Timings t = cell.TimeInterleaved(
      {{"GPU1", {First()}, run1},
       {"GPU2", {Second()}, run2},
       {"GPU2, waiting for GPU1", {Second()}, run2, wait_for_gpu1}});
  cell.PrintTimes(t);
  CheckSquare(cell, "x1 @ x1", p.x1, y1);
  CheckSquare(cell, "x2 @ x2", p.x2, y2);
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

// %% 000/In7
// How long a call takes that finds room in the queue.
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
// %%

// %% 000/In7
void In7(Cell& cell) {
  const Products p = SmallProducts(cell);
  const double request = RequestSeconds(cell, p.x1);
  Tensor y1, y2;
  const auto run1 = [&] { y1 = Run(p.x1, p.count); };
  const auto run2 = [&] { y2 = Run(p.x2, p.count); };
  std::vector<double> calls;  // how long those for GPU1 took
  const auto one_by_one = [&] {
    run1();
    Synchronize(First());
    run2();
  };
  const auto notebook = [&] {
    const Timer timer;
    run1();
    calls.push_back(timer.Seconds());
    run2();
  };
  const auto in_turn = [&] { RunInTurn(p.x1, p.x2, p.count, &y1, &y2); };
  const Timings t =
      cell.TimeInterleaved({{"GPU1, then GPU2", Both(), one_by_one},
                            {"both, the notebook's order", Both(), notebook},
                            {"both, enqueued in turn", Both(), in_turn}});
  calls.erase(calls.begin());  // the warm-up
  cell.PrintTimes(t);
  CheckSquare(cell, "x1 @ x1", p.x1, y1);
  CheckSquare(cell, "x2 @ x2", p.x2, y2);

  const Timing& both = t["both, enqueued in turn"];
  const Judgement gain = Faster(both, t["GPU1, then GPU2"], kGain);
  cell.Claim("Two devices are {} as fast as one after the other.", gain,
             WhyNoGain(2 * p.count * request, both));
  // HeldUp, LostShare: chapters/auto_parallelism/two_devices.h
  const Figure held_up = HeldUp(cell, calls, p.count * request);
  const Figure lost = LostShare(cell, t["GPU1, then GPU2"],
                                t["both, the notebook's order"], both, held_up);
  cell.Claim(Worded("The notebook's order loses {} of the possible gain: the "
                    "front end waited for room in %s's queue.",
                    First().ToString()),
             Given(gain, Above(lost, 10), "enqueued in turn"),
             HeldUpFact(held_up, calls));
  cell.Show(
      DrawTimelines("both orders", {{"notebook", ProfileProgram(notebook)},
                                    {"in turn", ProfileProgram(in_turn)}}));
}
// %%

// %% d2l/mm-4000
void RunAndKeep(const Tensor& x, int products, std::vector<Tensor>* y) {
  y->clear();  // so that their memory can be used again
  for (int i = 0; i < products; ++i) y->push_back(MatMul(x, x));
}

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

// %% d2l/overlap
// What is computed, y[i] = a[i] @ b, and where it is copied to.
struct ThinProducts {
  explicit ThinProducts(const Cell& cell)
      : steps(cell.BySize(40, 40, 20)),
        m(cell.BySize(512, 1000, 4000)),
        bytes(sizeof(float) * m * m),
        a(Rand({steps, m, cell.BySize(32, 32, 1000)}, First())),
        b(Rand({a.size(2), m}, First())),
        y(steps),
        pinned_memory(PinnedMemory(First()).AllocatePinned(steps * bytes)),
        pageable_memory(steps * bytes),
        pinned(static_cast<char*>(pinned_memory->data())),
        pageable(pageable_memory.data()) {}

  const int steps;
  const std::int64_t m;
  const std::size_t bytes;  // of one product
  const Tensor a, b;
  std::vector<Tensor> y;
  const StorageRef pinned_memory;
  std::vector<char> pageable_memory;
  char* const pinned;
  char* const pageable;
};
// %%

// That `run` copies every product to `host`, and the right ones.
void CheckCopies(Cell& cell, const ThinProducts& p, char* host,
                 const std::function<void()>& run) {
  std::memset(host, 0, p.steps * p.bytes);
  run();
  Synchronize(First());
  for (int i = 0; i < p.steps; ++i) {
    const std::vector<float> y = ToVector<float>(p.y[i]);
    cell.CheckClose(absl::StrFormat("y[%d]", i), y,
                    ToVector<float>(MatMul(p.a[i], p.b)), 0);
    cell.Check(std::memcmp(host + i * p.bytes, y.data(), p.bytes) == 0,
               absl::StrFormat("the copy of y[%d] is not y[%d]", i, i));
  }
}

// %% d2l/overlap
void Overlap(Cell& cell) {
  const Device device = First();
  ThinProducts p(cell);
  Stream& stream = CurrentStream(device);
  Stream& second = NewStream(device);
  const auto compute = [&](int i) { p.y[i] = MatMul(p.a[i], p.b); };
  const auto copy = [&](int i, char* host, Stream& on) {
    on.CopyAsync(host + i * p.bytes, p.y[i].data(), p.bytes,
                 CopyKind::kDeviceToHost);
  };
  const auto only_copy = [&](int i) { copy(i, p.pinned, stream); };
  const auto all = [&](const std::function<void(int)>& step) {
    return [&p, step] {
      for (int i = 0; i < p.steps; ++i) step(i);
    };
  };
  const auto run = [&](Stream& copies, char* host) {
    return all([&compute, &copy, &stream, &copies, host](int i) {
      compute(i);
      copies.Wait(stream.Record());  // until y[i] is computed, no longer
      copy(i, host, copies);
    });
  };
  const auto pinned = run(second, p.pinned);
  const auto pageable = run(second, p.pageable);
  const Timings t = cell.TimeInterleaved(
      {{"products alone", {device}, all(compute)},
       {"copies alone", {device}, all(only_copy)},
       {"one stream", {device}, run(stream, p.pinned)},
       {"two streams", {device}, pinned},
       {"one stream, pageable", {device}, run(stream, p.pageable)},
       {"two streams, pageable", {device}, pageable}});
  cell.PrintTimes(t);
  CheckCopies(cell, p, p.pinned, pinned);
  CheckCopies(cell, p, p.pageable, pageable);

  const Judgement gain = Faster(t["two streams"], t["one stream"], kGain);
  cell.Claim("Two streams are {} as fast as one.", gain,
             WhyNoCopyBeside(device, t["products alone"], t["copies alone"]));
  cell.Claim("To pageable memory they are {} as fast: each call waits.",
             Given(gain,
                   Below(Speedup(cell, t["two streams, pageable"],
                                 t["one stream, pageable"]),
                         kGain),
                   "to pinned memory"),
             CallsTake(t["two streams, pageable"], t["two streams"]));
}
// %%

// %% 002/two-device-graph
// The last two devices of the table; with three, the first only has the data.
std::vector<Device> Workers() {
  const std::vector<DeviceInfo>& all = Devices();
  return {all[all.size() < 2 ? 0 : all.size() - 2].device, all.back().device};
}

struct Mlp {
  Tensor x, y, w1, w2;
};

Mlp RandomMlp(const Cell& cell, Device home) {
  const int batch = cell.BySize(1024, 4096, 16384);
  const int hidden = cell.BySize(256, 512, 2048);
  return {Randn({batch, 784}, home), Randn({batch, 10}, home),
          Randn({784, hidden}, home) * 0.04, Randn({hidden, 10}, home) * 0.04};
}
// %%

// The same bits on one device and on two, and what the whole batch gives.
void CheckGradient(Cell& cell, const Mlp& mlp, const Tensor& one,
                   const Tensor& two) {
  cell.CheckClose("the gradient on two devices", ToVector<float>(two),
                  ToVector<float>(one), 0);
  const Tensor h = Relu(MatMul(mlp.x, mlp.w1));
  const Tensor whole = MatMul(T(h), MatMul(h, mlp.w2) - mlp.y);
  cell.CheckClose("the sum of the halves", ToVector<float>(one),
                  ToVector<float>(whole), 1e-3);
}

// %% 002/two-device-graph
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

// %% d2l/streams
Tensor RunOn(const std::vector<Stream*>& streams, const Tensor& x,
             int products) {
  Tensor y;
  for (int i = 0; i < products; ++i) {
    const StreamGuard guard(*streams[i % streams.size()]);
    y = MatMul(x, x);
  }
  return y;
}

void Streams(Cell& cell) {
  const Device device = First();
  std::vector<Stream*> one, four;
  for (int i = 0; i < 4; ++i) four.push_back(&NewStream(device));
  one = {four[0]};
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

// %% d2l/size-sweep
// Enough products for ten milliseconds or so on a core, unless a queue has no
// room for them.
int ProductsOf(int n) {
  return static_cast<int>(std::clamp(1e9 / n / n / n, 2.0, 2000.0));
}

void SizeSweep(Cell& cell) {
  const std::vector<int> sizes = cell.BySize<std::vector<int>>(
      {4, 16, 64, 256}, {2, 4, 8, 16, 32, 64, 128, 256, 512},
      {16, 64, 256, 1024, 4096});
  std::vector<double> x, gains;
  std::vector<SweepPoint> sweep;
  std::string why;  // for the largest size
  for (const int n : sizes) {
    const Tensor x1 = Rand({n, n}, First());
    const Tensor x2 = Rand({n, n}, Second());
    const int k = ProductsOf(n);
    Tensor y1, y2;
    const auto on_one = [&] { y1 = Run(x1, 2 * k); };
    const auto on_two = [&] { RunInTurn(x1, x2, k, &y1, &y2); };
    const Timings t = cell.TimeInterleaved(
        {{Worded("n = %d, %s", n, "one"), {First()}, on_one},
         {Worded("n = %d, %s", n, "two"), Both(), on_two}});
    CheckSquare(cell, "x1 @ x1", x1, y1);
    CheckSquare(cell, "x2 @ x2", x2, y2);
    const Timing &one = t[0], &two = t[1];
    sweep.push_back({1.0 * n, Speedup(cell, two, one)});
    x.push_back(n);
    gains.push_back(sweep.back().ratio.value.median);
    std::cout << Say("  n = %-4d  two devices take %8s a product: %s as fast\n",
                     n, FormatDuration(two.completion.value.median / (2 * k)),
                     FormatFactor(gains.back()));
    why = WhyNoGain(two.enqueue.value.median, two);
  }
  Plot plot("n", "", "two devices, as fast as one", "x");
  plot.LogX().AddLine("one / two", x, gains);
  cell.ShowIfVerbose(plot.Draw("from which size two devices beat one"));
  cell.Claim("Two devices are surely faster from {} on.",
             SureFrom("n", sweep, kGain), why);
}
// %%

// %% d2l/random-dag
std::vector<Value> RunOnStreams(const std::vector<Step>& program,
                                const Tensor& x,
                                const std::vector<Stream*>& streams) {
  std::vector<Value> values = {{Clone(x), CurrentStream(x.device()).Record()}};
  for (const Step& step : program) {
    Stream& stream = *streams[step.stream % streams.size()];
    const StreamGuard guard(stream);
    const auto input = [&](int i) {
      stream.Wait(values[i].written);
      return To(values[i].tensor, stream.device());
    };
    const Tensor a = input(step.a), b = input(step.b);
    if (step.in_place) {  // behind all who still read what it overwrites
      for (const Event& use : values[step.a].uses) stream.Wait(use);
      CopyTo(Compute(step.kind, a, b), a);
    } else {
      values.push_back({Compute(step.kind, a, b)});
    }
    const Event done = stream.Record();
    (step.in_place ? values[step.a] : values.back()).written = done;
    for (const int i : {step.a, step.b}) values[i].uses.push_back(done);
  }
  return values;
}
// %%

// On one stream, with launch blocking.
std::vector<Value> RunBlocking(const std::vector<Step>& program,
                               const Tensor& x) {
  const bool before = LaunchBlocking();
  SetLaunchBlocking(true);
  std::vector<Value> values =
      RunOnStreams(program, x, {&DefaultStream(First())});
  SetLaunchBlocking(before);
  return values;
}

// %% d2l/random-dag
// RunBlocking stands above. Tally: chapters/auto_parallelism/random_program.h
void RandomDag(Cell& cell) {
  const std::vector<Stream*> streams = TwoStreamsEach();
  const Tensor x = Tanh(Randn({24, 24}, First()));
  std::mt19937_64 random(13);
  Tally on_streams, blocking;
  for (int i = 0; i < cell.BySize(50, 500, 500); ++i) {
    const std::vector<Step> program = RandomProgram(random, 30, streams);
    const std::vector<Value> expected =
        RunOnStreams(program, x, {&DefaultStream(First())});
    on_streams.Count(program, streams);
    on_streams.Compare(RunOnStreams(program, x, streams), expected);
    blocking.Compare(RunBlocking(program, x), expected);
  }
  const std::vector<Step> drawn = RandomProgram(random, 8, streams);
  const TracedProgram run =
      TraceProgram([&] { RunOnStreams(drawn, x, streams); });
  cell.ShowIfVerbose(DrawGraph(run.graph, "one more, of 8 operations"));
  const Judgement equal = on_streams.AllEqual(on_streams.Crossings());
  cell.Check(equal.verdict == Verdict::kHolds, equal.evidence);
  cell.Claim("{} values differ from those of one stream.", equal,
             Say("An operation did not wait for what it reads or overwrites."));
  cell.Claim(
      "With launch blocking, {} values differ: asynchrony is invisible to the "
      "caller.",
      blocking.AllEqual(Say("both on one stream")));
}
// %%

[[maybe_unused]] const bool registered =
    RegisterLesson({3,
                    "auto_parallelism",
                    2,
                    {{"000/In2", In2},
                     {"000/In3", In3},
                     {"000/In6", In6},
                     {"000/In7", In7},
                     {"d2l/mm-4000", Mm4000},
                     {"d2l/overlap", Overlap},
                     {"002/two-device-graph", Graph},
                     {"d2l/streams", Streams},
                     {"d2l/size-sweep", SizeSweep},
                     {"d2l/random-dag", RandomDag}}});

}  // namespace
}  // namespace d2l
