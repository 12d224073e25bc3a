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
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "chapters/profiling/kernel_requests.h"
#include "chapters/profiling/ladders/kernel_ladder.h"
#include "chapters/profiling/ladders/product_ladder.h"
#include "chapters/profiling/latencies/latencies.h"
#include "chapters/profiling/latencies/pointer_chase.h"
#include "chapters/profiling/latencies/sampling.h"
#include "chapters/profiling/machine_drawing.h"
#include "chapters/profiling/machine_load.h"
#include "chapters/profiling/profiled_runs.h"
#include "chapters/profiling/programs.h"
#include "common/base/machine.h"
#include "common/d2l.h"
#include "common/drawing/sectors.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/cell/host_library.h"

namespace d2l::profiling {
namespace {

Figure Report(Cell& cell, const Phrase& label, Device device,
              const std::vector<double>& seconds) {
  return cell.Report(Sampled(label, MeasuredOn(device), "s", seconds));
}

// Measures at which size ten products take about `seconds` on this thread.
int FittedSize(double seconds) {
  constexpr int kProbe = 256;
  const std::vector<float> x = HostRandn(kProbe * kProbe);
  HostMatMul(x, x, kProbe);
  const double took = Seconds([&] { HostMatMul(x, x, kProbe); });
  const double n = kProbe * std::cbrt(seconds / 10 / took);
  return std::clamp(static_cast<int>(n) / 100 * 100, 100, 10000);
}

// 10000, as in the course, if there is time for it.
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
    cell.Rest();
    const UndisturbedTimer timer;
    products();
    alone.push_back(timer.Read());
    const BusyCores others(threads);  // started before the clock is
    beside.push_back(Seconds(products));
  }
  const Figure quiet = cell.ReportTimes("alone", MeasuredOn(device), alone);
  const Figure busy = Report(cell, "beside them", device, beside);
  cell.CheckClose("x @ x.T", ToVector<float>(y),
                  HostSquare(ToVector<float>(x), n), 1e-3);
  cell.Claim(
      Worded("Beside %d busy threads the products take longer: {}.", threads),
      Less(quiet, busy, kClearly),
      Say("On %s, %s%s", GetDeviceInfo(device).Describe(), Took(quiet, busy),
          load.warnings.empty() ? ""
                                : Say(" The machine was not quiet before.")));
}
// %%
D2L_CELL("003/c1", QuietMachine);

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
D2L_CELL("003/c2", FirstProfile);

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
D2L_CELL("003/c12", LargeOnTheHost);

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
      Worded("With n = %d the device is faster than the host: {}.", n),
      Both(Above(large, kClearly), Less(tiny, large, kClearly),
           "gain over 3x3"),
      Say("%s against one thread; with 3x3 it is %s as fast.",
          GetDeviceInfo(device).Describe(), FormatFactor(tiny.value.median)));
}
// %%
D2L_CELL("003/c16", LargeOnTheDevice);

// The time of a load, by how much memory the program goes through; with a line
// at each cache's size, from /sys.
Drawing LatencyPlot(const LatencyOptions& options) {
  std::vector<double> bytes, seconds;
  for (const SizeLatency& point :
       LatencyBySize(options.max_buffer_bytes, 25, options.seconds / 2)) {
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
    options = {0.4, std::int64_t{1} << 26};
  }
  const std::vector<LatencyRow> rows = MeasureLatencies(options);
  std::cout << LatencyTable(rows);
  if (cell.verbose()) std::cout << WhyNotMeasured(rows);
  for (const LatencyRow& row : rows) {
    const Measurement& yours = row.yours;
    cell.Check(yours.seconds.empty() == !yours.why_not.empty(), row.what);
    if (yours.seconds.empty()) continue;
    cell.Report(Sampled(row.what, "host", "s", yours.seconds));
  }
  cell.ShowIfVerbose(DrawMachine(FindMachineParts()));
  cell.Show(LatencyPlot(options));
}
// %%
D2L_CELL("d2l/latencies", Latencies);

// %% d2l/kernel-requests, measured
void KernelRequests(Cell& cell) {
  const int n = cell.BySize(64, 128, 256);
  const WarpLoads columns = LoadsOf(SumColumns, n);
  const WarpLoads rows = LoadsOf(SumRows, n);
  if (columns.requests == 0) {
    std::cout << Say("A build with a sanitizer does not count requests.\n");
    return;
  }
  cell.Show(DrawSectors("by columns", columns.first));
  cell.Show(DrawSectors("by rows", rows.first));
  cell.Check(columns.bytes == rows.bytes && columns.bytes == 4L * n * n,
             "both load each element once");
  std::vector<float> of_columns(n), of_rows(n);
  for (int i = 0; i < n * n; ++i) {
    of_columns[i % n] += Element(i / n, i % n);
    of_rows[i / n] += Element(i / n, i % n);
  }
  cell.CheckClose("sums of columns", columns.sums, of_columns, 0);
  cell.CheckClose("sums of rows", rows.sums, of_rows, 0);
  const auto per_request = [&](const Phrase& label, const WarpLoads& loads) {
    return cell.Report(Known(label, "sectors",
                             static_cast<double>(loads.sectors) /
                                 static_cast<double>(loads.requests)));
  };
  const Figure by_columns = per_request("a load by columns", columns);
  const Figure by_rows = per_request("a load by rows", rows);
  cell.Claim("By rows a warp's load touches more sectors: {}.",
             Less(by_columns, by_rows, kClearly));
}
// %%
D2L_CELL("d2l/kernel-requests", KernelRequests);

// %% d2l/roofline
// PeaksOf, BoundOf: common/profiler/peaks.cc
// The operations of the course beside what the device's peaks need for them.
Profile WithBounds(Device device, int n) {
  const Tensor x = Rand({n, n}, device), y = Rand({n, n}, device);
  const Tensor images = Rand({32, 16, 28, 28}, device);
  const Tensor weight = Rand({32, 16, 5, 5}, device);
  ProfilerOptions options;
  options.with_bounds = true;
  Profiler profiler(options);
  for (int i = 0; i < 3; ++i) {  // the last run counts
    const ProfileScope scope(profiler);
    MatMul(x, y);
    Conv2d(images, weight);
    Tensor z = x + y;
    Exp(x);
    Sum(x);
    Softmax(x, 1);
    Synchronize(device);
  }
  return profiler.profile();
}
// %%

// %% d2l/roofline, measured
void Roofline(Cell& cell) {
  const int n = cell.BySize(200, 1000, 4000);
  const Device device = TryGpu();
  const Profile profile = WithBounds(device, n);
  if (cell.verbose()) std::cout << KeyAverages(profile).BoundTable();
  cell.Show(DrawRoofline(profile, "roofline"));

  const Tensor x = Rand({n, n}, device), y = Rand({n, n}, device);
  const Tensor column = Rand({n, 1}, device), row = Rand({1, n}, device);
  Tensor thin;
  const Timings t = cell.TimeInterleaved(
      {{"product", {device}, [&] { MatMul(x, y); }},
       {"thin product", {device}, [&] { thin = MatMul(column, row); }},
       {"addition", {device}, [&] { const Tensor z = x + y; }}});
  cell.CheckClose("column @ row", ToVector<float>(thin),
                  ToVector<float>(column * row), 0);
  // How many times as many operations a second as the addition, which does one
  // for each element.
  const auto rate = [&](const Phrase& label, const Timing& timing,
                        double flop) {
    return cell.Report(PerRepeat(
        label, "x", t["addition"].completion, timing.completion,
        [=](double addition, double a) { return flop * addition / a; }));
  };
  const Figure product = rate("product / addition", t["product"], 2.0 * n);
  const Figure thin_product =
      rate("thin product / addition", t["thin product"], 2);
  cell.Claim(
      "A product does more operations a second than an addition: {}.",
      Both(Above(product, kClearly), Less(thin_product, product, kClearly),
           Say("gain over a product of inner size 1")),
      PeaksOf(device).ToText(device.ToString()));
}
// %%
D2L_CELL("d2l/roofline", Roofline);

}  // namespace

namespace {

// ---- Benchmarks, at the course's size.

[[maybe_unused]] const bool benchmarks[] = {
    BenchmarkOnTheHost("BM_003_c12_LargeProducts_Host", 1000, 10),
    BenchmarkProducts("BM_003_c1_Products_Alone", 300, 10),
    BenchmarkProfiled("BM_003_c2_Operations_Unprofiled", 300, false,
                      HundredTimes),
    BenchmarkProfiled("BM_003_c2_Operations_Profiled", 300, true, HundredTimes),
    BenchmarkProducts("BM_003_c16_LargeProducts", 1000, 10),
    BenchmarkHost("BM_d2l_latencies_64MiB_Host", 1000,
                  [] {
                    return [chase = std::make_shared<PointerChase>(
                                std::int64_t{1} << 26, /*seed=*/1)] {
                      KeepValue(chase->Walk(1000));
                    };
                  }),
    BenchmarkProducts("BM_d2l_roofline_Product", 1000, 1),
    BenchmarkWork(
        "BM_d2l_roofline_Addition", 1,
        [](Device device) {
          return [x = Rand({1000, 1000}, device)] { x + x; };
        },
        /*flop=*/1000 * 1000),
};

}  // namespace
}  // namespace d2l::profiling
