// Cells: products of 3x3 matrices, on the host and on a device; and what the
// first ones of a process cost.

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "chapters/profiling/profiled_runs.h"
#include "chapters/profiling/programs.h"
#include "common/base/undisturbed_timer.h"
#include "common/d2l.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/cell/host_library.h"
#include "common/lesson/run/fresh_process.h"

namespace d2l::profiling {
namespace {

constexpr char kProbe[] = "profiling/cold_start";
// If other programs run, only undisturbed processes count.
constexpr int kProcesses = 27;
constexpr int kNextCalls = 100;

// Runs in the fresh process. The arguments: "host" or the only device, and the
// number of products.
std::vector<double> Probe(const std::vector<std::string>& arguments) {
  const std::string& where = arguments.at(0);
  const int products = std::stoi(arguments.at(1));
  const std::vector<float> x_host = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  Tensor x, y;
  // The time until `count` products are done.
  const auto run = [&](int count) {
    const UndisturbedTimer timer;
    if (where == "host") {
      for (int i = 0; i < count; ++i) HostMatMul(x_host, x_host, 3);
      return timer.Read();
    }
    // Nothing of the device is touched before the clock runs.
    if (!x.defined()) {
      const absl::Status made = InitializeDevices(where);
      if (!made.ok()) throw std::runtime_error(made.ToString());
      x = Ones({3, 3}, Devices()[0].device);
    }
    for (int i = 0; i < count; ++i) y = MatMul(x, T(x));
    Synchronize(x.device());
    return timer.Read();
  };
  const Elapsed first_call = run(1), others = run(products - 1);
  const Elapsed first_run = {first_call.seconds + others.seconds,
                             first_call.undisturbed && others.undisturbed};
  const Elapsed next_run = run(products);
  std::vector<Elapsed> calls;
  for (int i = 0; i < kNextCalls; ++i) calls.push_back(run(1));
  std::sort(calls.begin(), calls.end(), [](const Elapsed& a, const Elapsed& b) {
    return a.seconds < b.seconds;
  });
  std::vector<double> result;
  for (const Elapsed& e :
       {first_call, calls[kNextCalls / 2], first_run, next_run}) {
    result.insert(result.end(), {e.seconds, e.undisturbed ? 1.0 : 0.0});
  }
  return result;
}

[[maybe_unused]] const bool registered = RegisterProbe(kProbe, Probe);

// The device list that makes `where` the only device of the new process.
std::string SpecOf(const std::string& where) {
  if (where == "host") return where;
  for (const DeviceInfo& info : Devices()) {
    if (info.device.ToString() != where) continue;
    return Device(info.device.type(), info.physical_index).ToString();
  }
  throw std::invalid_argument(absl::StrCat("there is no device ", where));
}

// In seconds; all are reported as figures of the cell.
struct ColdStart {
  Figure first_call;  // the first product of 3x3 matrices, until it is done
  Figure next_call;   // the median of the hundred after it
  Figure first_run;   // all products of the first run; the first one is in it
  Figure next_run;    // of the second run
};

// What the first products of a process cost, and the next ones. A process is
// cold only once, so each sample is taken in a process of its own, which does
// nothing else. where: "host", for the host library, or a device such as
// "cpu:0" or "cuda:1" of this program's table. Making that device is a part of
// the first product. Throws std::runtime_error if a process fails.
ColdStart MeasureColdStart(Cell& cell, const std::string& where, int products) {
  const std::string spec = SpecOf(where);
  std::vector<Device> devices;
  if (where != "host") devices.push_back(Device::Parse(where));
  std::vector<std::vector<Elapsed>> samples(4);
  for (int i = 0; i < kProcesses; ++i) {
    const absl::StatusOr<std::vector<double>> taken =
        RunInFreshProcess(kProbe, {spec, absl::StrCat(products)});
    if (!taken.ok()) throw std::runtime_error(taken.status().ToString());
    for (std::size_t f = 0; f < samples.size(); ++f) {
      samples[f].push_back({taken->at(2 * f), taken->at(2 * f + 1) == 1});
    }
  }
  const Phrase on = Worded("%s, fresh processes", MeasuredOn(devices));
  const auto figure = [&](const Phrase& what, std::size_t f) {
    return cell.ReportTimes(what, on, samples[f]);
  };
  return {figure("the first product", 0), figure("a later one", 1),
          figure(Worded("the first %d", products), 2),
          figure(Worded("the next %d", products), 3)};
}

// The spread of runs of 100 products, and of runs of more: the range of the
// middle half of 20 runs, in seconds a product.
void JudgeRepeats(Cell& cell, const std::vector<float>& x, int more) {
  const auto spread = [&](int products) {
    cell.Rest();
    const UndisturbedTimer timer;
    std::vector<double> runs;
    for (int run = 0; run < 20; ++run) {
      runs.push_back(Seconds(Loop(products, [&] { HostSquare(x, 3); })));
    }
    std::sort(runs.begin(), runs.end());
    return Elapsed{std::max((runs[14] - runs[5]) / products, 1e-12),
                   timer.Read().undisturbed};
  };
  std::vector<Elapsed> hundred, many;
  for (int round = cell.BesideOthers() ? 27 : 9; round > 0; --round) {
    hundred.push_back(spread(100));
    many.push_back(spread(more));
  }
  const Figure few = cell.ReportTimes("spread of 100", "host", hundred);
  const Figure all = cell.ReportTimes("spread of all", "host", many);
  cell.Claim(
      Worded("Runs of 100 products spread more than runs of %d: {}.", more),
      Less(all, few, kClearly),
      Say("Runs of 100 spread by %s a product, runs of %d by %s.", Took(few),
          more, Took(all)));
}

}  // namespace

// %% 003/c5, measured
// JudgeRepeats and MeasureColdStart stand above this cell; PrintProfile:
// chapters/profiling/profiled_runs.cc
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
      "The first run takes longer than the next: {}.",
      Less(cold.next_run, cold.first_run, kClearly),
      Say("The first product's %s are %.0f %% of the first "
          "run's %s.",
          Took(cold.first_call),
          100 * cold.first_call.value.median / cold.first_run.value.median,
          Took(cold.first_run)));
  cell.Claim("The first product takes longer than a later one: {}.",
             Less(cold.next_call, cold.first_call, kClearly),
             Took(cold.first_call, cold.next_call));
  JudgeRepeats(cell, x, count);
}
// %%
D2L_CELL("003/c5", SmallOnTheHost);

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
  cell.Claim("All together takes longer than the device's own work: {}.",
             Less(runs.device, runs.total, kClearly), work);
  cell.Claim("The device takes longer than the host: {}.",
             Faster(t["host"], t["device"], kClearly), work);
}
// %%
D2L_CELL("003/c9", SmallOnTheDevice);

namespace {

// ---- Benchmarks, at the course's size.

[[maybe_unused]] const bool benchmarks[] = {
    BenchmarkOnTheHost("BM_003_c5_SmallProducts_Host", 3, 10000),
    BenchmarkProducts("BM_003_c9_SmallProducts", 3, 10000),
    BenchmarkProfiled("BM_003_c9_SmallProducts_Profiled", 10000, true,
                      [](const Tensor& x) {
                        Products(x, 10000);
                        Synchronize(x.device());
                      }),
};

}  // namespace
}  // namespace d2l::profiling
