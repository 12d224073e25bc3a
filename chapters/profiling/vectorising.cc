// Cells: one operation on many numbers against many operations on few.

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chapters/profiling/profiled_runs.h"
#include "chapters/profiling/programs.h"
#include "common/d2l.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/cell/host_library.h"

namespace d2l::profiling {

// %% 003/c18, 003/c20
std::pair<Tensor, Tensor> RandAndMultiply(int count, Device device) {
  Tensor x, y;
  for (int i = 0; i < count; ++i) {
    x = Rand({10, 10}, device);
    y = x * x;
  }
  return {x, y};
}
// %%

// %% 003/c20
Tensor FillOnTheDevice(int times, Tensor& vec) {
  Tensor y;
  for (int i = 0; i < times; ++i) {
    for (int j = 0; j < vec.size(0); ++j) vec[j] = Rand({10, 10}, vec.device());
    y = vec * vec;
  }
  return y;
}

// As the course does. Its product is left out, which only makes this faster.
void FillOnTheHost(int times, Device device, std::vector<float>* vec) {
  for (int i = 0; i < times; ++i) {
    for (std::size_t at = 0; at < vec->size(); at += 100) {
      const std::vector<float> row = ToVector<float>(Rand({10, 10}, device));
      std::copy(row.begin(), row.end(), vec->begin() + at);
    }
  }
}
// %%

// The products b[i][j] * a[j] of 100 small tensors a[j] and `count` hundreds of
// others; on the device or, as in the course, each copied to the host when
// done.
struct Hundreds {
  Hundreds(int count, Device device);

  // on_host[i] = product, of all of b[i]; waits.
  void CopyToHost(int i, const Tensor& product);
  // on_host[i, :, :, j] = product, of b[i][j]; waits.
  void CopyToHost(int i, int j, const Tensor& product);

  std::vector<Tensor> a;
  std::vector<std::vector<Tensor>> b;
  Tensor on_device;            // (count, 10, 10, 100)
  std::vector<float> on_host;  // as on_device
};
Hundreds::Hundreds(int count, Device device)
    : on_device(Zeros({count, 10, 10, 100}, device)),
      on_host(std::size_t{10000} * count) {
  const auto hundred = [&] {
    std::vector<Tensor> tensors;
    for (int j = 0; j < 100; ++j) tensors.push_back(Rand({10, 10}, device));
    return tensors;
  };
  a = hundred();
  for (int i = 0; i < count; ++i) b.push_back(hundred());
}

void Hundreds::CopyToHost(int i, const Tensor& product) {
  const std::vector<float> values = ToVector<float>(product);
  std::copy(values.begin(), values.end(), on_host.begin() + i * 10000);
}

void Hundreds::CopyToHost(int i, int j, const Tensor& product) {
  const std::vector<float> values = ToVector<float>(product);
  for (std::size_t k = 0; k < values.size(); ++k) {
    on_host[i * 10000 + k * 100 + j] = values[k];
  }
}

// %% 003/c21
// Hundreds has a[j], b[i][j], and room for products. anew: stacks a[j] again.
void Stacked(Hundreds& h, bool to_host, bool anew = false) {
  Tensor a = DStack(h.a);
  for (int i = 0; i < h.on_device.size(0); ++i) {
    if (anew) a = DStack(h.a);
    const Tensor product = a * DStack(h.b[i]);
    if (to_host) {
      h.CopyToHost(i, product);
    } else {
      h.on_device[i] = product;
    }
  }
}

void DoubleLoop(Hundreds& h, bool to_host) {
  for (int i = 0; i < h.on_device.size(0); ++i) {
    for (int j = 0; j < 100; ++j) {
      if (to_host) {
        h.CopyToHost(i, j, h.a[j] * h.b[i][j]);
      } else {
        h.on_device[{i, kAll, kAll, j}] = h.a[j] * h.b[i][j];
      }
    }
  }
}
// %%

// %% 003/summary
Tensor Doubled(const Tensor& all) { return all * 2; }

Tensor DoubledByRow(const Tensor& all) {
  Tensor y;
  for (int i = 0; i < all.size(0); ++i) y = all[i] * 2;
  return y;
}

Tensor SumOfRows(const Tensor& all) { return Sum(all, {0}); }

Tensor SumOfRows(const std::vector<Tensor>& list) {
  return Sum(Stack(list), {0});
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
  cell.Claim("The loop enqueues for longer than the device works: {}.",
             Less(runs.device, runs.enqueueing, kClearly),
             Say("An operation takes %s to enqueue, without waits for room in "
                 "the queue, and %s to compute on %s.",
                 Each(runs.enqueueing, 2 * count), Each(runs.device, 2 * count),
                 GetDeviceInfo(device).Describe()));
}
// %%
D2L_CELL("003/c18", OneByOne);

// %% 003/c20, measured
void FalseVectorisation(Cell& cell) {
  const int times = cell.BySize(1, 20, 20), rows = cell.BySize(100, 1000, 1000);
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
      "Filled on the host, as in the notebook, it takes longer than one by "
      "one: {}.",
      Faster(t["one by one"], t["filled on the host"], kClearly),
      rows_cost("filled on the host"));
  cell.Claim("Filled on the device it takes longer than one by one: {}.",
             Faster(t["one by one"], t["filled on the device"], kClearly),
             rows_cost("filled on the device"));
}
// %%
D2L_CELL("003/c20", FalseVectorisation);

// %% 003/c21, measured
void Reuse(Cell& cell) {
  const Device device = TryGpu();
  Hundreds h(cell.BySize(4, 200, 200), device), slow = h;
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
      "With copies to the host, stacking is faster than the loop: {}.",
      Both(Faster(t["stacked, to the host"], t["loop, to the host"], kClearly),
           alone, "without copies"),
      Say("Without them it is %s.", alone.number));
  cell.Claim("Without them, stacking once is faster than the loop: {}.",
             Both(alone, Faster(t["stacked"], t["stacked anew each time"], 1),
                  "stacked anew"),
             Say("Stacked once %s, stacked anew %s, in a loop %s: "
                 "b, which is not used again, is stacked too.",
                 Took(t["stacked"]), Took(t["stacked anew each time"]),
                 Took(t["loop"])));
}
// %%
D2L_CELL("003/c21", Reuse);

namespace {

// How long `count` products of n x n matrices take.
struct SizePoint {
  int n, count;
  Figure host, device;

  SweepPoint Ratio() const {
    return {static_cast<double>(n),
            RatioPerRepeat("host / device", host, device)};
  }
};

// Also prints a line for each size.
std::vector<SizePoint> SweepSizes(Cell& cell, Device device,
                                  const std::vector<int>& sizes) {
  std::vector<SizePoint> points;
  for (const int n : sizes) {
    cell.At("n", n);
    const int count = static_cast<int>(std::clamp(1e7 / n / n / n, 2.0, 500.0));
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

// Judges the first question.
void JudgeSizes(Cell& cell, Device device,
                const std::vector<SizePoint>& points) {
  const SizePoint &small = points.front(), &large = points.back();
  std::vector<SweepPoint> ratios;
  for (const SizePoint& point : points) ratios.push_back(point.Ratio());
  cell.Claim(
      Worded("At n = %d the device takes longer than the host: {}.", small.n),
      Both(Less(small.host, small.device, kClearly),
           Less(ratios.front().ratio, ratios.back().ratio, kClearly),
           "gain at the largest n / gain here"),
      Say("A product takes %s on the host, %s on the device.",
          Each(small.host, small.count), Each(small.device, small.count)));
  cell.Claim(
      "The device is reliably faster than the host from a size on: {}.",
      SureFrom("n", ratios, 1),
      Say("At n = %d a product takes %s on one thread of the host, "
          "%s on %s.",
          large.n, Each(large.host, large.count),
          Each(large.device, large.count), GetDeviceInfo(device).Describe()));
}

}  // namespace

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
  cell.Claim("One operation is faster than a loop over the rows: {}.",
             Less(one, many, kClearly), Took(one, many));
  cell.Claim(
      "A tensor is summed faster than a list, which has to be stacked: {}.",
      Less(of_tensor, of_list, kClearly), Took(of_tensor, of_list));
}
// %%
D2L_CELL("003/summary", ThreeQuestions);

namespace {

// ---- Benchmarks, at the course's size.

constexpr int kRows = 1000;
constexpr int kTimes = 20;

bool BenchmarkHundreds(const std::string& name,
                       const std::function<void(Hundreds& h)>& work) {
  return BenchmarkWork(name, 20000, [work](Device device) {
    return [work, h = std::make_shared<Hundreds>(200, device)] { work(*h); };
  });
}

std::vector<Tensor> ListOfRows(const Tensor& all) {
  std::vector<Tensor> list;
  for (int i = 0; i < kRows; ++i) list.push_back(Clone(all[i]));
  return list;
}

[[maybe_unused]] const bool benchmarks[] = {
    BenchmarkWork("BM_003_c18_RandMultiply", kTimes* kRows,
                  [](Device device) {
                    return
                        [device] { RandAndMultiply(kTimes * kRows, device); };
                  }),
    BenchmarkWork("BM_003_c20_FilledRowByRow", kTimes* kRows,
                  [](Device device) {
                    return [vec = Zeros({kRows, 10, 10}, device)]() mutable {
                      FillOnTheDevice(kTimes, vec);
                    };
                  }),
    BenchmarkHundreds("BM_003_c21_Hundreds_Stacked",
                      [](Hundreds& h) { Stacked(h, /*to_host=*/false); }),
    BenchmarkHundreds("BM_003_c21_Hundreds_Loop",
                      [](Hundreds& h) { DoubleLoop(h, /*to_host=*/false); }),
    BenchmarkWork(
        "BM_003_summary_Sum_Tensor", kRows,
        [](Device device) {
          return [all = Rand({kRows, 100}, device)] { SumOfRows(all); };
        }),
    BenchmarkWork("BM_003_summary_Sum_List", kRows,
                  [](Device device) {
                    return [list = ListOfRows(Rand({kRows, 100}, device))] {
                      SumOfRows(list);
                    };
                  }),
};

}  // namespace
}  // namespace d2l::profiling
