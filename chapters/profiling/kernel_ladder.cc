// Cell: a matrix product as a kernel, in four steps.

#include "chapters/profiling/ladders/kernel_ladder.h"

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "chapters/profiling/profiled_runs.h"
#include "common/d2l.h"
#include "common/kernels/cuda/fake/check.h"
#include "common/kernels/cuda/fake/checked_array.h"
#include "common/kernels/cuda/fake/grid.h"
#include "common/lesson/cell/cell.h"

namespace d2l::profiling {
namespace {

using kernels::cuda::CheckedArray;

// What a step's warps ask of memory in a product on the model of a GPU, which
// counts the first 16 blocks of a launch: here, all.
struct Asked {
  std::int64_t requests = 0;  // 0 in a build with a sanitizer: not counted
  std::int64_t sectors = 0;   // of 32 bytes
  bool is_clean = false;      // no races and the like
  std::vector<float> c;
};

// Small whole numbers, whose sums are exact.
float NumberOfA(int i) { return static_cast<float>(i * 7 % 11); }
float NumberOfB(int i) { return static_cast<float>(i * 5 % 13); }

Asked AskedBy(const KernelStep& step) {
  constexpr int n = kLadderSide;
  CheckedArray<float> a(n * n), b(n * n), c(n * n);
  for (int i = 0; i < n * n; ++i) {
    a.data()[i] = NumberOfA(i);
    b.data()[i] = NumberOfB(i);
  }
  float* const to = c.data();
  const float *const left = a.data(), *const right = b.data();
  const auto kernel = step.kernel;
  kernels::cuda::CheckedRun(reinterpret_cast<const void*>(kernel),
                            {dim3(step.blocks_x(n), step.blocks_y(n)),
                             dim3(step.threads_x, step.threads_y),
                             [=] { kernel(to, left, right, n); }},
                            kernels::cuda::FindCheckedArray);
  const kernels::cuda::CheckReport report = kernels::cuda::TakeCheckReport();
  Asked asked;
  asked.is_clean = report.findings.empty();
  for (const kernels::cuda::Requests& r : report.requests) {
    if (r.shared) continue;
    asked.requests += r.requests;
    asked.sectors += r.sectors;
  }
  asked.c.assign(c.begin(), c.end());
  return asked;
}

std::vector<float> ExpectedProduct() {
  constexpr int n = kLadderSide;
  std::vector<float> c(n * n);
  for (int i = 0; i < n * n; ++i) {
    for (int p = 0; p < n; ++p) {
      c[i] += NumberOfA(i / n * n + p) * NumberOfB(p * n + i % n);
    }
  }
  return c;
}

// The steps' times on a GPU, beside cuBLAS, which computes MatMul there.
void TimeOnGpu(Cell& cell, Device device) {
  const int n = cell.BySize(256, 1024, 4096);
  const Tensor a = Rand({n, n}, device), b = Rand({n, n}, device);
  Tensor c = Empty({n, n}, device), expected = MatMul(a, b);
  std::vector<Alternative> steps;
  for (const KernelStep& step : StepsForGpu()) {
    EnqueueStep(step, c, a, b);
    cell.CheckClose(step.name, ToVector<float>(c), ToVector<float>(expected),
                    1e-3);
    steps.push_back({step.name, {device}, [&] { EnqueueStep(step, c, a, b); }});
  }
  steps.push_back({"cuBLAS", {device}, [&] { expected = MatMul(a, b); }});
  const Timings t = cell.TimeInterleaved(steps);
  std::cout << Say("\nOn %s, n = %d:\n", GetDeviceInfo(device).Describe(), n);
  for (const Timing& timing : t) {
    const double seconds = timing.completion.value.median;
    std::cout << Say("  %s %9s %9.3g GFLOP/s\n",
                     Padded(timing.completion.label, 16), Took(timing),
                     2e-9 * n * n * n / seconds);
  }
}

// %% d2l/kernel-ladder, measured
// AskedBy runs a step on the model of a GPU; TimeOnGpu: above this cell.
void KernelLadder(Cell& cell) {
  constexpr double n = kLadderSide;
  std::vector<Figure> sectors, rates;
  std::vector<std::string> bytes;
  const std::vector<float> product = ExpectedProduct();
  std::cout << Say("  n = %d         sectors a request  operations a byte\n",
                   kLadderSide);
  for (const KernelStep& step : StepsForModel()) {
    const Asked asked = AskedBy(step);
    cell.CheckClose(step.name, asked.c, product, 0);
    if (asked.requests == 0) {
      std::cout << Say("A build with a sanitizer does not count requests.\n");
      return;
    }
    cell.Check(asked.is_clean, step.name);
    const std::int64_t moved = kernels::cuda::kSectorBytes * asked.sectors;
    bytes.push_back(FormatBytes(moved));
    sectors.push_back(cell.Report(
        Known(Worded("sectors a request, %s", Phrase(step.name)), "sectors",
              static_cast<double>(asked.sectors) /
                  static_cast<double>(asked.requests))));
    rates.push_back(
        cell.Report(Known(Worded("operations a byte, %s", Phrase(step.name)),
                          "", 2 * n * n * n / static_cast<double>(moved))));
    std::cout << Say("  %s %17.3g  %17.3g\n", Padded(step.name, 14),
                     sectors.back().value.median, rates.back().value.median);
  }
  const Device device = TryGpu();
  if (!StepsForGpu().empty() && device.type() == DeviceType::kCuda) {
    TimeOnGpu(cell, device);
  }
  const Figure &naive = sectors[0], &coalesced = sectors[1];
  cell.Claim("Neighbours of different rows ask for more sectors at once: {}.",
             Less(coalesced, naive, kClearly),
             Say("All in all they move %s, neighbours of one row %s.", bytes[0],
                 bytes[1]));
  cell.Claim(
      "Threads with tiles in registers do more operations for each byte than "
      "threads that read for themselves: {}.",
      Both(Less(rates[1], rates[3], kClearly),
           Less(rates[2], rates[3], kClearly),
           Say("than tiles in shared memory alone")),
      Say("They move %s, tiles in shared memory %s, each thread for "
          "itself %s.",
          bytes[3], bytes[2], bytes[1]));
}
// %%
D2L_CELL("d2l/kernel-ladder", KernelLadder);

}  // namespace
}  // namespace d2l::profiling
