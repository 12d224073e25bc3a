// The cost of a tape: requests with and without one, in turn, so that both see
// the machine in the same state.

#include <algorithm>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/autograd/tape.h"
#include "common/base/timer.h"
#include "common/device/device_table.h"
#include "common/ops/ops.h"

namespace d2l {
namespace {

constexpr int kOperations = 100;

double Median(std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// ns for each request of f(y), of y = f(y) and so on.
template <typename F>
double Time(const Tensor& x, F f) {
  const Timer timer;
  Tensor y = x;
  for (int i = 0; i < kOperations; ++i) y = f(y);
  const double ns = 1e9 * timer.Seconds() / kOperations;
  Synchronize(Device());
  return ns;
}

template <typename F>
void Compare(benchmark::State& state, F f) {
  const Tensor x = Rand({8, 8});
  std::vector<double> without, with, backward;
  for (auto _ : state) {
    without.push_back(Time(x, f));
    GradientTape tape({x});
    Tensor last;
    with.push_back(Time(x, [&](const Tensor& y) { return last = f(y); }));
    const Timer timer;
    tape.Backward(Sum(last));
    backward.push_back(1e9 * timer.Seconds() / kOperations);
    Synchronize(Device());
  }
  state.counters["without_ns"] = Median(without);
  state.counters["tape_ns"] = Median(with) - Median(without);
  state.counters["backward_ns"] = Median(backward);
}

void BM_TapeUnary(benchmark::State& state) {
  Compare(state, [](const Tensor& y) { return Tanh(y); });
}
BENCHMARK(BM_TapeUnary)->UseRealTime();

void BM_TapeBinary(benchmark::State& state) {
  const Tensor w = Rand({8, 8});
  Compare(state, [&w](const Tensor& y) { return y * w; });
}
BENCHMARK(BM_TapeBinary)->UseRealTime();

void BM_TapeMatMul(benchmark::State& state) {
  const Tensor w = Rand({8, 8});
  Compare(state, [&w](const Tensor& y) { return MatMul(y, w); });
}
BENCHMARK(BM_TapeMatMul)->UseRealTime();

}  // namespace
}  // namespace d2l

BENCHMARK_MAIN();
