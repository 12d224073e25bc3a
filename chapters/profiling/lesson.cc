// Profiling, as a notebook in C++.
//
//   bazel run //chapters/profiling:lesson
//   bazel run //chapters/profiling:lesson -- --cell=003/c9
//   bazel run //chapters/profiling:lesson -- --trace=trace.json
//
// "Host" is the library call on this thread, which returns when it is done.
// "Device" is a GPU or a virtual device: this thread enqueues, another works.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "chapters/profiling/cold_start.h"
#include "chapters/profiling/latencies/latencies.h"
#include "chapters/profiling/machine_load/machine_load.h"
#include "chapters/profiling/profiled_runs.h"
#include "chapters/profiling/programs.h"
#include "common/base/machine.h"
#include "common/d2l.h"
#include "common/lesson/cell.h"
#include "common/lesson/host_library.h"

namespace d2l::profiling {
namespace {

// Two times that differ by less may differ because the machine is noisy.
constexpr double kClearly = 1.3;

// "12.3 ms"
std::string Took(const Figure& time) {
  return FormatDuration(time.value.median);
}
std::string Took(const Timing& timing) { return Took(timing.completion); }

template <typename Work>
double Seconds(const Work& work) {
  const Timer timer;
  work();
  return timer.Seconds();
}

// "alone took 4.10 ms, beside other load 8.30 ms."
std::string Took(const Figure& a, const Figure& b) {
  return Say("%s took %s, %s %s.", a.label.shown, Took(a), b.label.shown,
             Took(b));
}

Figure Report(Cell& cell, const Phrase& label, Device device,
              const std::vector<double>& seconds) {
  return cell.Report(Sampled(label, MeasuredOn(device), "s", seconds));
}

std::vector<float> Transposed(const std::vector<float>& x, int n) {
  std::vector<float> result(x.size());
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) result[j * n + i] = x[i * n + j];
  }
  return result;
}

// x @ x.T on the host.
std::vector<float> HostSquare(const std::vector<float>& x, int n) {
  return HostMatMul(x, Transposed(x, n), n);
}

// Prints what a profiler sees of `work`.
void PrintProfile(const Cell& cell, const std::function<void()>& work) {
  Profiler profiler;
  Profiled(profiler, work);
  PrintAverages(cell, profiler.KeyAverages());
}

// A size at which ten products take about `seconds` on this thread, measured.
int FittedSize(double seconds) {
  constexpr int kProbe = 256;
  const std::vector<float> x = HostRandn(kProbe * kProbe);
  HostMatMul(x, x, kProbe);
  const double took = Seconds([&] { HostMatMul(x, x, kProbe); });
  const double n = kProbe * std::cbrt(seconds / 10 / took);
  return std::clamp(static_cast<int>(n) / 100 * 100, 100, 10000);
}

// 10000, as in the course, where there is time for it.
int LargeSize(const Cell& cell) {
  if (cell.size() == Size::kLarge) return 10000;
  return FittedSize(cell.size() == Size::kCourse ? 0.2 : 0.01);
}

// %% 003/c1, measured
// BusyCores: chapters/profiling/programs.h
void QuietMachine(Cell& cell) {
  const MachineLoad load = LookAtMachine({});
  std::cout << load.ToText();

  // Ten products take longer than a time slice, or the others get no turn.
  const int n = cell.BySize(450, 450, 1000), threads = 2 * UsableCores();
  const Device device = TryGpu();
  const Tensor x = Rand({n, n}, device);
  Tensor y;
  const auto products = [&] {
    y = Products(x, 10);
    Synchronize(device);
  };
  products();
  std::vector<Elapsed> alone;
  std::vector<double> beside;
  for (int i = 0; i < 15; ++i) {
    const UndisturbedTimer timer;
    products();
    alone.push_back(timer.Read());
    const BusyCores others(threads);  // started before the clock is
    beside.push_back(Seconds(products));
  }
  const Figure quiet = cell.ReportTimes("alone", MeasuredOn(device), alone);
  Figure busy = Report(cell, "beside them", device, beside);
  busy.exposed = false;  // load is what it shows
  cell.CheckClose("x @ x.T", ToVector<float>(y),
                  HostSquare(ToVector<float>(x), n), 1e-3);
  cell.Claim(
      Worded("Beside %d busy threads the products take {} as long.", threads),
      Less(quiet, busy, kClearly),
      Say("On %s, %s%s", GetDeviceInfo(device).Describe(), Took(quiet, busy),
          load.warnings.empty() ? ""
                                : Say(" The machine was not quiet before.")));
}
// %%

// %% 003/c2, measured
void FirstProfile(Cell& cell) {
  const Device device = TryGpu();
  const Tensor x = Rand({3, 3}, device);
  Tensor w;
  const auto hundred_times = [&] { w = HundredTimes(x); };
  hundred_times();
  Profiler prof;
  std::vector<double> without, with;
  for (int i = 0; i < 9; ++i) {  // few, so that --trace stays small
    without.push_back(Seconds(hundred_times));
    Profiled(prof, [&] { with.push_back(Seconds(hundred_times)); });
  }
  const KeyAverages averages = prof.KeyAverages();
  PrintAverages(cell, averages);
  std::cout << Say(
      "Medians of nine loops: %s without the profiler, %s with it.\n\n",
      Took(Report(cell, "without a profiler", device, without)),
      Took(Report(cell, "with it", device, with)));

  const std::vector<float> x_values = ToVector<float>(x);
  std::vector<float> expected = HostSquare(x_values, 3);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = expected[i] * expected[i] + x_values[i];
  }
  cell.CheckClose("w", ToVector<float>(w), expected, 1e-5);
  for (const char* name : {"transpose", "matmul", "mul", "add"}) {
    const KeyAverage* row = averages.Find(name);
    cell.Check(row != nullptr && row->calls == 100, name);
  }
  cell.Show(Timeline(prof.profile()).Draw("timeline"));
}
// %%

// The spread of runs of 100 products, and of runs of more: the range of the
// middle half of 20 runs, in seconds a product.
void JudgeRepeats(Cell& cell, const std::vector<float>& x, int more) {
  const auto spread = [&](int products) {
    std::vector<double> runs;
    for (int run = 0; run < 20; ++run) {
      runs.push_back(Seconds(Loop(products, [&] { HostSquare(x, 3); })));
    }
    std::sort(runs.begin(), runs.end());
    return std::max((runs[14] - runs[5]) / products, 1e-12);
  };
  std::vector<double> hundred, many;
  for (int round = 0; round < 9; ++round) {
    hundred.push_back(spread(100));
    many.push_back(spread(more));
  }
  const Figure few =
      cell.Report(Sampled("spread of 100", "host", "s", hundred));
  const Figure all = cell.Report(Sampled("spread of all", "host", "s", many));
  cell.Claim(
      Worded("Runs of 100 products spread {} as much as runs of %d.", more),
      Less(all, few, kClearly),
      Say("Runs of 100 spread by %s a product, runs of %d by %s.", Took(few),
          more, Took(all)));
}

// %% 003/c5, measured
// PrintProfile stands at the top, JudgeRepeats above this cell;
// MeasureColdStart: cold_start.cc
void SmallOnTheHost(Cell& cell) {
  const int count = cell.BySize(1000, 10000, 10000);
  const std::vector<float> x = HostRandn(9), x_t = Transposed(x, 3);
  std::vector<float> y;
  PrintProfile(cell, [&] { y = HostProducts(x, x_t, 3, count); });
  const Tensor on_a_device = FromVector(x, {3, 3}, TryGpu());
  cell.CheckClose("x @ x.T", y,
                  ToVector<float>(MatMul(on_a_device, T(on_a_device))), 1e-5);

  const ColdStart cold = MeasureColdStart(cell, "host", count);
  cell.Claim(
      "The first run takes {} as long as the next.",
      Less(cold.next_run, cold.first_run, kClearly),
      Say("The first product's %s are %.0f %% of the first "
          "run's %s.",
          Took(cold.first_call),
          100 * cold.first_call.value.median / cold.first_run.value.median,
          Took(cold.first_run)));
  cell.Claim("The first product takes {} as long as a later one.",
             Less(cold.next_call, cold.first_call, kClearly),
             Took(cold.first_call, cold.next_call));
  JudgeRepeats(cell, x, count);
}
// %%

// %% 003/c9, measured
// RunProfiled: chapters/profiling/profiled_runs.cc
void SmallOnTheDevice(Cell& cell) {
  const int count = cell.BySize(1000, 10000, 10000);
  const Device device = TryGpu();
  const Tensor x = Rand({3, 3}, device);
  Tensor y;
  const auto products = [&] { y = Products(x, count); };
  const ProfiledRuns runs = RunProfiled(cell, "products", device, products);
  PrintAverages(cell, KeyAverages(runs.last));
  const std::vector<float> x_host = ToVector<float>(x);
  cell.CheckClose("x @ x.T", ToVector<float>(y), HostSquare(x_host, 3), 1e-5);

  const Timings t = cell.TimeInterleaved(
      {{"host", {}, Loop(count, [&] { HostSquare(x_host, 3); })},
       {"device", {device}, products}});
  cell.PrintTimes(t);
  const ColdStart cold = MeasureColdStart(cell, device.ToString(), count);
  std::cout << Say("In a new process, %s\n",
                   Took(cold.first_call, cold.next_call));
  const std::string work =
      Say("A product took %s to enqueue and %s to compute; on the host, %s.",
          Each(runs.enqueueing, count), Each(runs.device, count),
          Each(t["host"].completion, count));
  cell.Claim("All together takes {} as long as the device's own work.",
             Less(runs.device, runs.total, kClearly), work);
  cell.Claim("The device takes {} as long as the host.",
             Faster(t["host"], t["device"], kClearly), work);
}
// %%

// %% 003/c12, measured
void LargeOnTheHost(Cell& cell) {
  const int n = LargeSize(cell);
  const std::vector<float> x = HostRandn(n * n), x_t = Transposed(x, n);
  std::vector<float> y;
  const auto products = [&](int count) {
    return [&, count] { y = HostProducts(x, x_t, n, count); };
  };
  PrintProfile(cell, products(1));
  const Figure one = cell.TimeHost("one product", products(1));
  const Figure ten = cell.TimeHost("ten products", products(10));
  std::cout << Say(
      "n = %d: one product %s, ten %s; %.2g multiplications a second.\n", n,
      Took(one), Took(ten), std::pow(n, 3) / one.value.median);
  // A product with its transpose is symmetric; its first element, a norm.
  double norm = 0;
  for (int k = 0; k < n; ++k) norm += double{x[k]} * double{x[k]};
  const std::vector<float> got = {y[0], y[n - 1]};
  cell.CheckClose("y[0, 0] and y[0, n - 1]", got,
                  std::vector<float>{static_cast<float>(norm), y[(n - 1) * n]},
                  1e-3);
}
// %%

// %% 003/c16, measured
void LargeOnTheDevice(Cell& cell) {
  const int n = LargeSize(cell);
  const Device device = TryGpu();
  const Tensor x = Rand({n, n}, device), small = Rand({3, 3}, device);
  Tensor y;
  const auto products = [&] { y = Products(x, 10); };
  PrintProfile(cell, [&] {
    products();
    Synchronize(device);
  });

  const std::vector<float> x_host = ToVector<float>(x);
  const std::vector<float> x_host_t = Transposed(x_host, n);
  const std::vector<float> small_host = ToVector<float>(small);
  std::vector<float> y_host;
  const auto on_the_host = [&] { y_host = HostMatMul(x_host, x_host_t, n); };
  const auto tiny_there = [&] { Products(small, 1000); };
  const auto tiny_here = [&] { HostSquare(small_host, 3); };
  const Timings t =
      cell.TimeInterleaved({{"host, large", {}, Loop(10, on_the_host)},
                            {"device, large", {device}, products},
                            {"host, 3x3", {}, Loop(1000, tiny_here)},
                            {"device, 3x3", {device}, tiny_there}});
  cell.PrintTimes(t);
  cell.CheckClose("x @ x.T", ToVector<float>(y), y_host, 1e-3);
  const Figure large =
      RatioPerRepeat("host / device, large", t["host, large"].completion,
                     t["device, large"].completion);
  const Figure tiny =
      RatioPerRepeat("host / device, 3x3", t["host, 3x3"].completion,
                     t["device, 3x3"].completion);
  cell.Claim(
      Worded("With n = %d the device is {} as fast as the host.", n),
      Both(Above(large, kClearly), Less(tiny, large, kClearly),
           "gain over 3x3"),
      Say("%s against one thread; with 3x3 it is %s as fast.",
          GetDeviceInfo(device).Describe(), FormatFactor(tiny.value.median)));
}
// %%

// %% 003/c18, measured
// RunProfiled: chapters/profiling/profiled_runs.cc
void OneByOne(Cell& cell) {
  const int count = cell.BySize(2000, 20000, 20000);
  const Device device = TryGpu();
  std::pair<Tensor, Tensor> last;
  const ProfiledRuns runs = RunProfiled(
      cell, "loop", device, [&] { last = RandAndMultiply(count, device); });
  PrintAverages(cell, KeyAverages(runs.last));
  std::vector<float> expected = ToVector<float>(last.first);
  for (float& value : expected) value *= value;
  cell.CheckClose("x * x", ToVector<float>(last.second), expected, 0);
  cell.Claim("The loop enqueues for {} as long as the device works.",
             Less(runs.device, runs.enqueueing, kClearly),
             Say("An operation takes %s to enqueue, without waits for room in "
                 "the queue, and %s to compute on %s.",
                 Each(runs.enqueueing, 2 * count), Each(runs.device, 2 * count),
                 GetDeviceInfo(device).Describe()));
}
// %%

// %% 003/c20, measured
void FalseVectorisation(Cell& cell) {
  const int times = cell.BySize(2, 20, 20), rows = 1000;
  const Device device = TryGpu();
  Tensor y, vec = Zeros({rows, 10, 10}, device);
  std::vector<float> host(vec.numel());
  const auto on_the_device = [&] { y = FillOnTheDevice(times, vec); };
  const auto on_the_host = [&] { FillOnTheHost(times, device, &host); };
  const Timings t = cell.TimeInterleaved(
      {{"one by one", {device}, [&] { RandAndMultiply(times * rows, device); }},
       {"filled on the device", {device}, on_the_device},
       {"filled on the host", {device}, on_the_host}});
  cell.PrintTimes(t);
  on_the_device();
  cell.Check(Equal(y, vec * vec) && Item(Min(vec)) < Item(Max(vec)), "vec");
  const auto rows_cost = [&](const std::string& filled) {
    return Say("A row takes %s to be multiplied and %s to be %s.",
               Each(t["one by one"].completion, times * rows),
               Each(t[filled].completion, times * rows), Translated(filled));
  };
  cell.Claim(
      "Filled on the host, as in the course, it takes {} as long as one by "
      "one.",
      Faster(t["one by one"], t["filled on the host"], kClearly),
      rows_cost("filled on the host"));
  cell.Claim("Filled on the device it takes {} as long as one by one.",
             Faster(t["one by one"], t["filled on the device"], kClearly),
             rows_cost("filled on the device"));
}
// %%

// %% 003/c21, measured
void Reuse(Cell& cell) {
  const Device device = TryGpu();
  Hundreds h(cell.BySize(20, 200, 200), device), slow = h;
  slow.on_device = Zeros(h.on_device.shape(), device);
  const Timings t = cell.TimeInterleaved(
      {{"stacked, to the host", {device}, [&] { Stacked(h, true); }},
       {"loop, to the host", {device}, [&] { DoubleLoop(slow, true); }},
       {"stacked anew each time", {device}, [&] { Stacked(h, false, true); }},
       {"stacked", {device}, [&] { Stacked(h, false); }},
       {"loop", {device}, [&] { DoubleLoop(slow, false); }}});
  cell.PrintTimes(t);
  const bool equal = h.on_host == slow.on_host &&
                     Equal(h.on_device, slow.on_device) &&
                     ToVector<float>(h.on_device) == h.on_host;
  std::cout << (equal ? "True" : "False") << "\n";
  cell.Check(equal, "the loop and the stacked product are equal");
  const Judgement alone = Faster(t["stacked"], t["loop"], kClearly);
  cell.Claim(
      "With copies to the host, stacking is {} as fast as the loop.",
      Both(Faster(t["stacked, to the host"], t["loop, to the host"], kClearly),
           alone, "without copies"),
      Say("Without them it is %s.", alone.number));
  cell.Claim("Without them, stacking once is {} as fast as the loop.",
             Both(alone, Faster(t["stacked"], t["stacked anew each time"], 1),
                  "stacked anew"),
             Say("Stacked once %s, stacked anew %s, in a loop %s: "
                 "b, which is not used again, is stacked too.",
                 Took(t["stacked"]), Took(t["stacked anew each time"]),
                 Took(t["loop"])));
}
// %%

// The time of a load, by how much memory the program goes through; /sys says
// where the caches end.
Drawing LatencyPlot(const LatencyOptions& options) {
  std::vector<double> bytes, seconds;
  for (const SizeLatency& point :
       LatencyBySize(options.max_buffer_bytes, 25, options.seconds / 4)) {
    bytes.push_back(static_cast<double>(point.bytes));
    seconds.push_back(Summarize(point.seconds).median);
  }
  Plot plot("memory", "B", "time of a load", "s");
  plot.LogX().LogY();
  plot.AddLine("a random load", bytes, seconds);
  const auto [low, high] = std::minmax_element(seconds.begin(), seconds.end());
  for (const int level : {1, 2, 3}) {
    const auto size = static_cast<double>(CacheBytes(level).value_or(0));
    if (size <= bytes.front() || size >= bytes.back()) continue;
    plot.AddLine(
        "L" + std::to_string(level) + ", " + FormatBytes(*CacheBytes(level)),
        {size, size}, {*low, *high});
  }
  return plot.Draw("latency by size");
}

// %% d2l/latencies
// MeasureLatencies: chapters/profiling/latencies/latencies.cc
void Latencies(Cell& cell) {
  LatencyOptions options;
  if (cell.size() == Size::kSmall) {
    options = {1, std::int64_t{1} << 26, std::int64_t{1} << 23};
  }
  const std::vector<LatencyRow> rows = MeasureLatencies(TryGpu(), options);
  if (cell.verbose()) {
    std::cout << LatencyTable(rows, true) << "\n" << LatencyNotes(rows) << "\n";
  } else {  // of one core and its memory
    std::cout << LatencyTable({rows.begin(), rows.begin() + 10}, false);
  }
  for (const LatencyRow& row : rows) {
    const Measurement& yours = row.yours;
    cell.Check(yours.seconds.empty() == !yours.why_not.empty(), row.what);
    if (yours.seconds.empty()) continue;
    cell.Report(Sampled(row.what, "host", "s", yours.seconds));
  }
  cell.Show(LatencyPlot(options));
}
// %%

// How long `count` products of n x n matrices take.
struct SizePoint {
  int n, count;
  Figure host, device;

  SweepPoint Ratio() const {
    return {static_cast<double>(n),
            RatioPerRepeat("host / device", host, device)};
  }
};

// Prints a line for each size as well.
std::vector<SizePoint> SweepSizes(Cell& cell, Device device,
                                  const std::vector<int>& sizes) {
  std::vector<SizePoint> points;
  for (const int n : sizes) {
    cell.At("n", n);
    const int count =
        static_cast<int>(std::clamp(3e8 / n / n / n, 2.0, 2000.0));
    const Tensor x = Rand({n, n}, device);
    const std::vector<float> x_host = ToVector<float>(x);
    Tensor y;
    std::vector<float> y_host;
    const auto on_the_host = [&] { y_host = HostMatMul(x_host, x_host, n); };
    const auto on_the_device = [&] { y = MatMul(x, x); };
    const Timings t = cell.TimeInterleaved(
        {{"host", {}, Loop(count, on_the_host)},
         {"device", {device}, Loop(count, on_the_device)}});
    cell.CheckClose("x @ x", ToVector<float>(y), y_host, 1e-3);
    points.push_back({n, count, t[0].completion, t[1].completion});
    std::cout << Say(
        "  n = %-5d host %8s   device %8s   %s\n", n,
        Each(points.back().host, count), Each(points.back().device, count),
        Measured(FormatSummary(points.back().Ratio().ratio.value, "x")));
  }
  cell.AtNoPlace();
  return points;
}

// The first question.
void JudgeSizes(Cell& cell, Device device,
                const std::vector<SizePoint>& points) {
  const SizePoint &small = points.front(), &large = points.back();
  std::vector<SweepPoint> ratios;
  for (const SizePoint& point : points) ratios.push_back(point.Ratio());
  cell.Claim(
      Worded("At n = %d the device takes {} as long as the host.", small.n),
      Both(Less(small.host, small.device, kClearly),
           Less(ratios.front().ratio, ratios.back().ratio, kClearly),
           "gain at the largest n / gain here"),
      Say("A product takes %s on the host, %s on the device.",
          Each(small.host, small.count), Each(small.device, small.count)));
  cell.Claim(
      "The device is surely faster than the host from {} on.",
      SureFrom("n", ratios, 1),
      Say("At n = %d a product takes %s on one thread of the host, "
          "%s on %s.",
          large.n, Each(large.host, large.count),
          Each(large.device, large.count), GetDeviceInfo(device).Describe()));
}

// %% 003/summary, measured
// SweepSizes and JudgeSizes stand above this cell.
void ThreeQuestions(Cell& cell) {
  const Device device = TryGpu();
  const std::vector<SizePoint> sweep =
      SweepSizes(cell, device,
                 cell.BySize<std::vector<int>>(
                     {3, 30, 100}, {3, 10, 30, 100, 200, 400, 800},
                     {3, 10, 30, 100, 300, 1000, 3000}));
  JudgeSizes(cell, device, sweep);

  const int rows = cell.BySize(1000, 10000, 10000);
  const Tensor all = Rand({rows, 100}, device);
  std::vector<Tensor> list;  // the same numbers
  for (int i = 0; i < rows; ++i) list.push_back(Clone(all[i]));
  Tensor y, sum, sum_of_list;
  const auto one_operation = [&] { y = Doubled(all); };
  const auto loop = [&] { y = DoubledByRow(all); };
  const auto tensor = [&] { sum = SumOfRows(all); };
  const auto of_a_list = [&] { sum_of_list = SumOfRows(list); };
  const Timings t =
      cell.TimeInterleaved({{"one operation", {device}, one_operation},
                            {"a loop over rows", {device}, loop},
                            {"sum of a tensor", {device}, tensor},
                            {"sum of a list", {device}, of_a_list}});
  cell.Check(AllClose(sum_of_list, sum, {1e-3, 1e-3}), "both sums agree");
  const Figure &one = t["one operation"].completion,
               &many = t["a loop over rows"].completion,
               &of_tensor = t["sum of a tensor"].completion,
               &of_list = t["sum of a list"].completion;
  cell.Claim("One operation is {} as fast as a loop over the rows.",
             Less(one, many, kClearly), Took(one, many));
  cell.Claim(
      "A tensor is summed {} as fast as a list, which has to be stacked.",
      Less(of_tensor, of_list, kClearly), Took(of_tensor, of_list));
}
// %%

[[maybe_unused]] const bool registered =
    RegisterLesson({5,
                    "profiling",
                    1,
                    {{"003/c1", QuietMachine},
                     {"003/c2", FirstProfile},
                     {"003/c5", SmallOnTheHost},
                     {"003/c9", SmallOnTheDevice},
                     {"003/c12", LargeOnTheHost},
                     {"003/c16", LargeOnTheDevice},
                     {"003/c18", OneByOne},
                     {"003/c20", FalseVectorisation},
                     {"003/c21", Reuse},
                     {"d2l/latencies", Latencies},
                     {"003/summary", ThreeQuestions}}});

}  // namespace
}  // namespace d2l::profiling
