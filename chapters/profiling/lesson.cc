// Profiling, as a notebook in C++.
//
//   bazel run //chapters/profiling:lesson
//   bazel run //chapters/profiling:lesson -- --cell=003/c9
//   bazel run //chapters/profiling:lesson -- --trace=trace.json
//   --html=page.html
//
// "Host" is the library call on this thread, which returns when it is done.
// "Device" is a GPU or a virtual device: this thread asks, another works.

#include "common/lesson/lesson.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/profiling/busy_cores.h"
#include "chapters/profiling/cold_start.h"
#include "chapters/profiling/latencies/latencies.h"
#include "chapters/profiling/machine_load/machine_load.h"
#include "chapters/profiling/profiled_runs.h"
#include "common/base/statistics.h"
#include "common/base/text.h"
#include "common/base/timer.h"
#include "common/base/usable_cores.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/drawing/drawing.h"
#include "common/drawing/plot.h"
#include "common/drawing/timeline.h"
#include "common/lesson/cell.h"
#include "common/lesson/host_library.h"
#include "common/lesson/judge.h"
#include "common/ops/ops.h"
#include "common/profiler/key_averages.h"
#include "common/profiler/profiler.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

// Two times that differ by less may differ because the machine is noisy.
constexpr double kClearly = 1.3;

std::vector<float> Transposed(const std::vector<float>& x, int n) {
  std::vector<float> result(x.size());
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) result[j * n + i] = x[i * n + j];
  }
  return result;
}

// x @ x.T on the host.
std::vector<float> HostSquare(const Tensor& x) {
  const int n = static_cast<int>(x.size(0));
  const std::vector<float> values = ToVector<float>(x);
  return HostMatMul(values, Transposed(values, n), n);
}

// A size at which ten products take about `seconds` on this thread, measured.
int FittedSize(double seconds) {
  constexpr int kProbe = 256;
  const std::vector<float> x = HostRandn(kProbe * kProbe);
  HostMatMul(x, x, kProbe);
  const Timer timer;
  HostMatMul(x, x, kProbe);
  const double n = kProbe * std::cbrt(seconds / 10 / timer.Seconds());
  return std::clamp(static_cast<int>(n) / 100 * 100, 100, 10000);
}

// 10000, as in the course, where there is time for it.
int LargeSize(const Cell& cell) {
  if (cell.size() == Size::kLarge) return 10000;
  return FittedSize(cell.size() == Size::kCourse ? 0.2 : 0.01);
}

constexpr CellText kC1 = {
    .id = "003/c1",
    .title = "Is the machine quiet?",
    .context =
        "Is the machine quiet? Who else is at work spoils what is measured. "
        "First a look around; then the same products alone, and beside a busy "
        "thread on every core.",
    .python = R"py(
$ top
$ nvidia-smi
)py",
};

// %% 003/c1
void QuietMachine(Cell& cell) {
  const MachineLoad load = LookAtMachine({});
  std::cout << load.ToText();

  const int n = cell.BySize(100, 300, 1000);
  const int cores = UsableCores();
  const Device device = TryGpu();
  const Tensor x = Rand({n, n}, device);
  Tensor y;
  const auto products = [&] {
    for (int i = 0; i < 10; ++i) y = MatMul(x, T(x));
    Synchronize(device);
  };
  const auto beside_other_load = [&] {
    const BusyCores others(cores);
    products();
  };
  const std::vector<Timing> times = cell.TimeInterleaved(
      {{"alone", {device}, products},
       {"beside other load", {device}, beside_other_load}});
  cell.CheckClose("x @ x.T", ToVector<float>(y), HostSquare(x), 1e-3);
  cell.Claim("Other load spoils results.",
             Less(times[0].completion, times[1].completion, kClearly),
             load.warnings.empty() ? "" : "The machine was not quiet before.");
}
// %%

constexpr CellText kC2 = {
    .id = "003/c2",
    .title = "A first profile",
    .context =
        "A first profile. Every operation is in the table with the time of its "
        "request (CPU) and its own time on the device; below, a timeline of "
        "the "
        "same calls.",
    .python = R"py(
with torch.autograd.profiler.profile(enabled=True) as prof:
    for i in range(100):
        y = x @ x.T
        z = y * y
        w = z + x
print(prof.key_averages().table())
)py",
};

// %% 003/c2
void FirstProfile(Cell& cell) {
  const Device device = TryGpu();
  const Tensor x = Rand({3, 3}, device);
  Tensor y, z, w;
  const auto hundred_times = [&] {
    for (int i = 0; i < 100; ++i) {
      y = MatMul(x, T(x));
      z = y * y;
      w = z + x;
    }
  };
  Profiler prof;
  const auto profiled = [&] {
    ProfileScope scope(prof);
    hundred_times();
  };
  cell.TimeInterleaved({{"without a profiler", {device}, hundred_times},
                        {"with", {device}, profiled}});
  const KeyAverages averages = prof.KeyAverages();
  std::cout << averages.Table();

  std::vector<float> expected = HostSquare(x);
  const std::vector<float> x_values = ToVector<float>(x);
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

constexpr CellText kC5 = {
    .id = "003/c5",
    .title = "Small products on the host",
    .also = {"003/c3", "003/c4"},
    .context =
        "Ten thousand products of 3x3 matrices on the host. The course found "
        "the first run much slower than the next; so the first and the next "
        "ones are taken in processes that have done nothing before.",
    .python = R"py(
x = torch.rand((3,3))
with torch.profiler.profile(activities=[CPU, CUDA]) as p:
    for i in range(10000):
        y = x @ x.T
print(p.key_averages().table())
)py",
};

// %% 003/c5
void SmallOnTheHost(Cell& cell) {
  const int count = cell.BySize(1000, 10000, 10000);
  const std::vector<float> x = HostRandn(9);
  const std::vector<float> x_t = Transposed(x, 3);
  std::vector<float> y;
  Profiler p;
  {
    ProfileScope scope(p);
    for (int i = 0; i < count; ++i) {
      RecordFunction call("HostMatMul");
      y = HostMatMul(x, x_t, 3);
    }
  }
  std::cout << p.KeyAverages().Table();

  const Tensor on_a_device = FromVector(x, {3, 3}, TryGpu());
  cell.CheckClose("x @ x.T", y,
                  ToVector<float>(MatMul(on_a_device, T(on_a_device))), 1e-5);
  const ColdStart cold = MeasureColdStart(cell, "host", count);
  cell.Claim("The first run is much slower than the next.",
             Less(cold.next_run, cold.first_run, kClearly));
  cell.Claim("The first product is much slower than a later one.",
             Less(cold.next_call, cold.first_call, kClearly));
}
// %%

constexpr CellText kC9 = {
    .id = "003/c9",
    .title = "Small products on the device",
    .also = {"003/c6", "003/c7", "003/c8"},
    .context =
        "The same on the device: this thread asks ten thousand times, and "
        "waits. For work this small, asking costs more than the work.",
    .python = R"py(
x_gpu = x.cuda()
with torch.profiler.profile(activities=[CPU, CUDA]) as p:
    for i in range(10000):
        y_gpu = x_gpu @ x_gpu.T
print(p.key_averages().table())
)py",
};

// %% 003/c9
void SmallOnTheDevice(Cell& cell) {
  const int count = cell.BySize(1000, 10000, 10000);
  const Device device = TryGpu();
  const Tensor x = Rand({3, 3}, device);
  Tensor y;
  const auto products = [&] {
    for (int i = 0; i < count; ++i) y = MatMul(x, T(x));
  };
  const ProfiledRuns runs = RunProfiled(cell, "profiled", device, products);
  std::cout << KeyAverages(runs.last).Table();
  cell.CheckClose("x @ x.T", ToVector<float>(y), HostSquare(x), 1e-5);

  const std::vector<float> x_host = ToVector<float>(x);
  const std::vector<float> x_host_t = Transposed(x_host, 3);
  const auto on_the_host = [&] {
    for (int i = 0; i < count; ++i) HostMatMul(x_host, x_host_t, 3);
  };
  const std::vector<Timing> times = cell.TimeInterleaved(
      {{"host", {}, on_the_host}, {"device", {device}, products}});
  MeasureColdStart(cell, device.ToString(), count);
  cell.Claim("The device's own time is small.",
             Less(runs.device, runs.total, kClearly));
  cell.Claim("The total is slower than the host's.",
             Less(times[0].completion, times[1].completion, kClearly));
}
// %%

constexpr CellText kC12 = {
    .id = "003/c12",
    .title = "Large products on the host",
    .also = {"003/c10", "003/c11"},
    .context =
        "Ten large products on the host. The size is fitted to this machine, "
        "at "
        "most 10000, so that they take some tenths of a second; --size=large "
        "takes 10000, which on a CPU is a matter of many minutes.",
    .python = R"py(
x = torch.rand((10000,10000))
with torch.profiler.profile(activities=[CPU, CUDA]) as p:
    for i in range(10):
        y = x @ x.T
print(p.key_averages().table())
)py",
    .course_printed = "11-13 s",
};

// %% 003/c12
void LargeOnTheHost(Cell& cell) {
  const int n = LargeSize(cell);
  std::cout << "n = " << n << std::endl;
  const std::vector<float> x = HostRandn(n * n);
  const std::vector<float> x_t = Transposed(x, n);
  std::vector<float> y;
  Profiler p;
  cell.TimeHost(absl::StrCat("one product, n = ", n),
                [&] { y = HostMatMul(x, x_t, n); });
  cell.TimeHost(absl::StrCat("10 products, n = ", n), [&] {
    ProfileScope scope(p);
    for (int i = 0; i < 10; ++i) {
      RecordFunction call("HostMatMul");
      y = HostMatMul(x, x_t, n);
    }
  });
  std::cout << p.KeyAverages().Table();
  // A product with its transpose is symmetric; its first element, a norm.
  double norm = 0;
  for (int k = 0; k < n; ++k) norm += double{x[k]} * double{x[k]};
  const std::vector<float> got = {y[0], y[n - 1]};
  cell.CheckClose("y[0, 0] and y[0, n - 1]", got,
                  std::vector<float>{static_cast<float>(norm), y[(n - 1) * n]},
                  1e-3);
}
// %%

constexpr CellText kC16 = {
    .id = "003/c16",
    .title = "Large products on the device",
    .also = {"003/c13", "003/c14", "003/c15"},
    .context =
        "The same products on the device, in turn with the host's. Where the "
        "device is a GPU, this is what it is for; a virtual device has no more "
        "than some of the host's own cores.",
    .python = R"py(
x_gpu = x.cuda()
with torch.profiler.profile(activities=[CPU, CUDA]) as p:
    for i in range(10):
        y_gpu = x_gpu @ x_gpu.T
print(p.key_averages().table())
)py",
    .course_printed =
        "Self CPU time total: 2.533s\nSelf CUDA time total: 2.527s",
};

// %% 003/c16
void LargeOnTheDevice(Cell& cell) {
  const int n = LargeSize(cell);
  std::cout << "n = " << n << std::endl;
  const Device device = TryGpu();
  const Tensor x = Rand({n, n}, device);
  Tensor y;
  const auto products = [&] {
    for (int i = 0; i < 10; ++i) y = MatMul(x, T(x));
  };
  Profiler p;
  {
    ProfileScope scope(p);
    products();
    Synchronize(device);
  }
  std::cout << p.KeyAverages().Table();

  const std::vector<float> x_host = ToVector<float>(x);
  const std::vector<float> x_host_t = Transposed(x_host, n);
  std::vector<float> y_host;
  const auto on_the_host = [&] {
    for (int i = 0; i < 10; ++i) y_host = HostMatMul(x_host, x_host_t, n);
  };
  const std::vector<Timing> times = cell.TimeInterleaved(
      {{"host", {}, on_the_host}, {"device", {device}, products}});
  cell.CheckClose("x @ x.T", ToVector<float>(y), y_host, 1e-3);
  cell.Report(RatioPerRepeat("host / device", times[0].completion,
                             times[1].completion));
  cell.Claim("The device is for large parallel work.",
             Less(times[1].completion, times[0].completion, kClearly),
             GetDeviceInfo(device).Describe() + " against one thread.");
}
// %%

constexpr CellText kC18 = {
    .id = "003/c18",
    .title = "A loop of small operations",
    .also = {"003/c17"},
    .context =
        "Twenty thousand times two small operations, requested in a loop. The "
        "profile tells how long the loop asked and how long the device worked.",
    .python = R"py(
with torch.profiler.profile(activities=[CPU, CUDA]) as p:
    for i in range(20000):
        x_gpu = torch.rand((10,10), device=0)
        y_gpu = x_gpu * x_gpu
print(p.key_averages().table())
)py",
    .course_printed =
        "Self CPU time total: 875.584ms\nSelf CUDA time total: 40.393ms",
};

// %% 003/c18
void OneByOne(Cell& cell) {
  const int count = cell.BySize(2000, 20000, 20000);
  const Device device = TryGpu();
  Tensor x, y;
  const ProfiledRuns runs = RunProfiled(cell, "loop", device, [&] {
    for (int i = 0; i < count; ++i) {
      x = Rand({10, 10}, device);
      y = x * x;
    }
  });
  std::cout << KeyAverages(runs.last).Table();
  std::vector<float> expected = ToVector<float>(x);
  for (float& value : expected) value *= value;
  cell.CheckClose("x * x", ToVector<float>(y), expected, 0);
  cell.Report(
      RatioPerRepeat("requests / on the device", runs.requests, runs.device));
  cell.Claim("Loop overhead dominates: asking takes longer than the work.",
             Less(runs.device, runs.requests, kClearly),
             GetDeviceInfo(device).Describe() + " does the work.");
}
// %%

constexpr CellText kC20 = {
    .id = "003/c20",
    .title = "False vectorisation",
    .also = {"003/c19"},
    .context =
        "False vectorisation: the same random numbers are first put into one "
        "large tensor, row by row, and then multiplied at once. The loop is "
        "still there. The course's large tensor is on the CPU (torch.zeros "
        "without a device), so each row is copied to the host as well; here it "
        "is filled in both places.",
    .python = R"py(
with torch.profiler.profile(activities=[CPU, CUDA]) as p:
    for i in range(20):
        vec_gpu = torch.zeros((1000, 10, 10))
        for j in range(1000):
            x_gpu = torch.rand((10,10), device=0)
            vec_gpu[j] = x_gpu
        vec_res_gpu = vec_gpu * vec_gpu
)py",
    .course_printed =
        "Self CPU time total: 1.207s\nSelf CUDA time total: 40.182ms",
};

// %% 003/c20
void FalseVectorisation(Cell& cell) {
  const int times = cell.BySize(2, 20, 20), rows = 1000;
  const Device device = TryGpu();
  Tensor x, y, vec = Zeros({rows, 10, 10}, device);
  std::vector<float> host(vec.numel()), result(vec.numel());
  const auto one_by_one = [&] {
    for (int i = 0; i < times * rows; ++i) {
      x = Rand({10, 10}, device);
      y = x * x;
    }
  };
  const auto on_the_device = [&] {
    for (int i = 0; i < times; ++i) {
      for (int j = 0; j < rows; ++j) vec[j] = Rand({10, 10}, device);
      y = vec * vec;
    }
  };
  const auto on_the_host = [&] {  // as the course does, unawares
    for (int i = 0; i < times; ++i) {
      for (int j = 0; j < rows; ++j) {
        const std::vector<float> row = ToVector<float>(Rand({10, 10}, device));
        std::copy(row.begin(), row.end(), host.begin() + j * 100);
      }
      for (std::size_t k = 0; k < host.size(); ++k)
        result[k] = host[k] * host[k];
    }
  };
  const std::vector<Timing> t =
      cell.TimeInterleaved({{"one by one", {device}, one_by_one},
                            {"filled on the device", {device}, on_the_device},
                            {"filled on the host", {device}, on_the_host}});
  on_the_device();
  cell.Check(Equal(y, vec * vec) && Item(Min(vec)) < Item(Max(vec)), "vec");
  cell.Claim("Filled on the host, as in the course: even slower.",
             Less(t[0].completion, t[2].completion, kClearly));
  cell.Claim("Filled on the device: even slower.",
             Less(t[0].completion, t[1].completion, kClearly));
}
// %%

constexpr CellText kC21 = {
    .id = "003/c21",
    .title = "Vectorising that pays",
    .context =
        "What is stacked once and used two hundred times pays. The course's "
        "result is on the CPU again, so its gain is that of vectorising and "
        "that of fewer copies to the host in one figure; taken apart, both are "
        "done with the result on the device as well.",
    .python = R"py(
res = torch.zeros((len(b),10,10,100))
a_tensor = torch.dstack(a)
for i in range(len(b)):
    bi_tensor = torch.dstack(b[i])
    res[i] = a_tensor * bi_tensor

res_slow = torch.zeros((len(b),10,10,100))
for i in range(len(b)):
    for j in range(len(a)):
        res_slow[i,:,:,j] = a[j] * b[i][j]
print(res.equal(res_slow))
)py",
    .course_printed = "0.046735525131225586\n1.034254550933838\nTrue",
};

// 100 small tensors, and `count` hundreds of them.
struct Small {
  std::vector<Tensor> a;
  std::vector<std::vector<Tensor>> b;
};

Small MakeSmall(int count, Device device) {
  Small small;
  for (int j = 0; j < 100; ++j) small.a.push_back(Rand({10, 10}, device));
  for (int i = 0; i < count; ++i) {
    small.b.emplace_back();
    for (int j = 0; j < 100; ++j) {
      small.b.back().push_back(Rand({10, 10}, device));
    }
  }
  return small;
}

// Where the results go: a tensor on the device, or, as in the course, memory of
// the host, to which each result is copied when it is done.
struct Results {
  Tensor on_device;  // (count, 10, 10, 100)
  std::vector<float> on_host;
  bool to_host;

  // Of b[i], all of it.
  void PutAll(int i, const Tensor& product) {
    if (!to_host) {
      on_device[i] = product;
      return;
    }
    const std::vector<float> values = ToVector<float>(product);
    std::copy(values.begin(), values.end(), on_host.begin() + i * 10000);
  }
  // Of b[i][j].
  void PutOne(int i, int j, const Tensor& product) {
    if (!to_host) {
      on_device[{i, kAll, kAll, j}] = product;
      return;
    }
    const std::vector<float> values = ToVector<float>(product);
    for (int k = 0; k < 100; ++k) on_host[i * 10000 + k * 100 + j] = values[k];
  }
};

Results MakeResults(int count, Device device, bool to_host) {
  return {Zeros({count, 10, 10, 100}, device),
          std::vector<float>(std::size_t{10000} * count), to_host};
}

// How much of a gain is not vectorising, in words.
std::string GainFact(const Figure& all, const Figure& vectorising) {
  const double rest = all.value.median / vectorising.value.median;
  const std::string facts = absl::StrFormat(
      "The gain with copies to the host is %s, without them, of vectorising "
      "alone, %s. ",
      FormatFactor(all.value.median), FormatFactor(vectorising.value.median));
  if (rest < 1) {
    return facts + "Copying, which both ways do, hides a part of it here.";
  }
  return facts +
         absl::StrFormat("The rest, %s, is fewer copies.", FormatFactor(rest));
}

// %% 003/c21
void Stacked(const Small& x, Results& res) {
  const Tensor a_tensor = DStack(x.a);
  for (std::size_t i = 0; i < x.b.size(); ++i) {
    res.PutAll(i, a_tensor * DStack(x.b[i]));
  }
}

void DoubleLoop(const Small& x, Results& res_slow) {
  for (std::size_t i = 0; i < x.b.size(); ++i) {
    for (int j = 0; j < 100; ++j) res_slow.PutOne(i, j, x.a[j] * x.b[i][j]);
  }
}

void Reuse(Cell& cell) {
  const int count = cell.BySize(20, 200, 200);
  const Device device = TryGpu();
  const Small x = MakeSmall(count, device);
  Results host = MakeResults(count, device, true), host_slow = host;
  Results dev = MakeResults(count, device, false);
  Results dev_slow = MakeResults(count, device, false);
  const std::vector<Timing> t = cell.TimeInterleaved(
      {{"stacked, to the host", {device}, [&] { Stacked(x, host); }},
       {"loop, to the host", {device}, [&] { DoubleLoop(x, host_slow); }},
       {"stacked, on the device", {device}, [&] { Stacked(x, dev); }},
       {"loop, on the device", {device}, [&] { DoubleLoop(x, dev_slow); }}});
  const bool equal = host.on_host == host_slow.on_host &&
                     Equal(dev.on_device, dev_slow.on_device) &&
                     ToVector<float>(dev.on_device) == host.on_host;
  std::cout << t[0].completion.value.median << "\n"
            << t[1].completion.value.median << "\n"
            << (equal ? "True" : "False") << "\n";
  cell.Check(equal, "the loop and the stacked product are equal");
  const Figure all = cell.Report(
      RatioPerRepeat("gain, to the host", t[1].completion, t[0].completion));
  const Figure vectorising = cell.Report(
      RatioPerRepeat("gain, on the device", t[3].completion, t[2].completion));
  cell.Claim("Reuse makes vectorising pay, as in the course.",
             Less(t[0].completion, t[1].completion, kClearly),
             GainFact(all, vectorising));
  cell.Claim("Reuse makes vectorising pay without the copies.",
             Less(t[2].completion, t[3].completion, kClearly));
}
// %%

// How long a load takes, by how much memory the program goes through.
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
  return plot.Draw("latency by size");
}

constexpr CellText kLatencies = {
    .id = "d2l/latencies",
    .title = "Latencies, the book's and yours",
    .context =
        "The book's latencies and yours, each measured now; and how long a "
        "load "
        "takes by how much memory the program goes through, the caches' sizes "
        "in a curve.",
    .course_printed =
        "L1 cache 1.5 ns, L2 5 ns, L3 16-40 ns, mutex 25 ns,\n"
        "CUDA kernel launch 10 us, GPU shared memory 30 ns, global 200 ns, ...",
};

// %% d2l/latencies
void Latencies(Cell& cell) {
  LatencyOptions options;
  options.seconds = cell.BySize(1.0, 10.0, 10.0);
  options.max_buffer_bytes = cell.BySize(
      std::int64_t{1} << 26, std::int64_t{1} << 30, std::int64_t{1} << 30);
  options.file_bytes = cell.BySize(std::int64_t{1} << 23, std::int64_t{1} << 26,
                                   std::int64_t{1} << 26);
  const std::vector<LatencyRow> rows = MeasureLatencies(TryGpu(), options);
  std::cout << LatencyTable(rows) << "\n" << LatencyNotes(rows) << "\n";
  for (const LatencyRow& row : rows) {
    const Measurement& yours = row.yours;
    cell.Check(yours.seconds.empty() == !yours.why_not.empty(), row.what);
    if (yours.seconds.empty()) continue;
    cell.Report(Sampled(row.what, "host", "s", yours.seconds));
  }
  cell.Show(LatencyPlot(options));
}
// %%

constexpr CellText kSummary = {
    .id = "003/summary",
    .title = "Three questions",
    .context =
        "The course closes with three questions to ask before one uses a "
        "device: is the work large, are loops on the host saved, are tensors "
        "used and not lists? Each is answered here by figures of this machine.",
};

// Per product of n x n matrices, how long they take on the host and on a
// device; for a plot.
struct Sweep {
  std::vector<double> n, host, device;
  Figure smallest_host, smallest_device;
};

Sweep SweepSizes(Cell& cell, Device device, const std::vector<int>& sizes) {
  Sweep sweep;
  for (const int n : sizes) {
    const int count =
        static_cast<int>(std::clamp(3e8 / n / n / n, 2.0, 2000.0));
    const Tensor x = Rand({n, n}, device);
    const std::vector<float> x_host = ToVector<float>(x);
    Tensor y;
    std::vector<float> y_host;
    const auto on_the_host = [&] {
      for (int i = 0; i < count; ++i) y_host = HostMatMul(x_host, x_host, n);
    };
    const auto on_the_device = [&] {
      for (int i = 0; i < count; ++i) y = MatMul(x, x);
    };
    const std::string size = absl::StrCat("n = ", n);
    const std::vector<Timing> t =
        cell.TimeInterleaved({{size + ": host", {}, on_the_host},
                              {size + ": device", {device}, on_the_device}});
    cell.CheckClose("x @ x", ToVector<float>(y), y_host, 1e-3);
    sweep.n.push_back(n);
    sweep.host.push_back(t[0].completion.value.median / count);
    sweep.device.push_back(t[1].completion.value.median / count);
    if (sweep.n.size() > 1) continue;
    sweep.smallest_host = t[0].completion;
    sweep.smallest_device = t[1].completion;
  }
  return sweep;
}

// %% 003/summary
void ThreeQuestions(Cell& cell) {
  const Device device = TryGpu();
  const Sweep sweep =
      SweepSizes(cell, device,
                 cell.BySize<std::vector<int>>(
                     {3, 30, 100}, {3, 10, 30, 100, 200, 400, 800},
                     {3, 10, 30, 100, 300, 1000, 3000}));
  Plot plot("n", "", "time per product", "s");
  plot.LogX().LogY();
  plot.MarkCrossover(plot.AddLine("host", sweep.n, sweep.host),
                     plot.AddLine("device", sweep.n, sweep.device));
  cell.Show(plot.Draw("from which size the device beats the host"));

  const int rows = cell.BySize(1000, 10000, 10000);
  const Tensor all = Rand({rows, 100}, device);
  std::vector<Tensor> list;  // the same numbers
  for (int i = 0; i < rows; ++i) list.push_back(Clone(all[i]));
  Tensor y, sum, sum_of_list;
  const auto one_operation = [&] { y = all * 2; };
  const auto loop = [&] {
    for (int i = 0; i < rows; ++i) y = all[i] * 2;
  };
  const auto tensor = [&] { sum = Sum(all, {0}); };
  const auto of_a_list = [&] {
    sum_of_list = list[0];
    for (int i = 1; i < rows; ++i) sum_of_list = sum_of_list + list[i];
  };
  const std::vector<Timing> t =
      cell.TimeInterleaved({{"one operation", {device}, one_operation},
                            {"a loop over rows", {device}, loop},
                            {"sum of a tensor", {device}, tensor},
                            {"sum of a list", {device}, of_a_list}});
  cell.Check(AllClose(sum_of_list, sum, {1e-3, 1e-3}), "both sums agree");
  cell.Claim("Is the work large? If not, the device is slower than the host.",
             Less(sweep.smallest_host, sweep.smallest_device, kClearly));
  cell.Claim("Fewer loops on the host: one operation beats many.",
             Less(t[0].completion, t[1].completion, kClearly));
  cell.Claim("Tensors, not lists: one tensor beats a list of them.",
             Less(t[2].completion, t[3].completion, kClearly));
}
// %%

[[maybe_unused]] const bool registered = RegisterLesson(
    {5,
     "profiling",
     "Profiling",
     "A reader's notes on timing with PyTorch's profiler, and Dive into Deep "
     "Learning, section 13.4\n"
     "https://d2l.ai/chapter_computational-performance/hardware.html",
     1,
     {{kC1, QuietMachine},
      {kC2, FirstProfile},
      {kC5, SmallOnTheHost},
      {kC9, SmallOnTheDevice},
      {kC12, LargeOnTheHost},
      {kC16, LargeOnTheDevice},
      {kC18, OneByOne},
      {kC20, FalseVectorisation},
      {kC21, Reuse},
      {kLatencies, Latencies},
      {kSummary, ThreeQuestions}}});

}  // namespace
}  // namespace d2l
