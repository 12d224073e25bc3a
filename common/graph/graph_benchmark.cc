// What running a program as one task saves, beside its operations one by one,
// and what the C++ compiler adds.
//
//   bazel run -c opt //common/graph:graph_benchmark

#include <algorithm>
#include <cstdint>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/base/timer.h"
#include "common/graph/captured.h"
#include "common/graph/ir.h"
#include "common/graph/passes/passes.h"
#include "common/graph/trace.h"
#include "common/ops/ops.h"

namespace d2l::ir {
namespace {

using Values = std::vector<Tensor>;

// Layers of n, n/2, n/4 and 2, for one sample.
class Mlp {
 public:
  explicit Mlp(std::int64_t n) : input({Randn({1, n})}) {
    const std::int64_t sizes[] = {n, n / 2, n / 4, 2};
    for (int i = 0; i < 3; ++i) {
      weights_.push_back(Randn({sizes[i + 1], sizes[i]}));
      biases_.push_back(Randn({sizes[i + 1]}));
    }
  }

  Values operator()(const Values& in) const {
    Tensor x = in[0];
    for (int i = 0; i < 3; ++i) {
      x = MatMul(x, T(weights_[i])) + biases_[i];
      if (i < 2) x = Relu(x);
    }
    return {x};
  }

  const Values input;

 private:
  Values weights_;
  Values biases_;
};

// Ten operations over 10^7 elements.
Values Chain(const Values& in) {
  Tensor x = in[0];
  for (int i = 0; i < 5; ++i) x = (x + in[1]) * 0.5;
  return {x};
}

// Ten, of which four are not cheap.
Values MixedChain(const Values& in) {
  const Tensor x = Tanh(in[0] * 0.5 + in[1]);
  return {Log(Sigmoid(Exp(x - in[1]) * 0.25 + 1) * in[0]) + in[1]};
}

CapturedOptions Generating() {
  CapturedOptions options;
  options.generate_cpp = true;
  return options;
}

double Median(std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// In turn, 1000 calls each, so that both have the machine as it is.
void BM_Mlp(benchmark::State& state) {
  const Mlp mlp(state.range(0));
  Graph graph = Trace([&](const Values& in) { return mlp(in); }, mlp.input);
  Optimize(graph);
  Captured captured(graph);
  Captured compiled(graph, Generating());
  constexpr int kCalls = 1000;
  const auto time = [&](const auto& call) {
    const Timer timer;
    for (int i = 0; i < kCalls; ++i) call(mlp.input);
    Synchronize(Device());
    return 1e6 * timer.Seconds() / kCalls;
  };
  std::vector<double> eager, replayed, generated;
  for (auto _ : state) {
    eager.push_back(time([&](const Values& in) { return mlp(in); }));
    replayed.push_back(
        time([&](const Values& in) { return captured.Run(in); }));
    generated.push_back(
        time([&](const Values& in) { return compiled.Run(in); }));
  }
  state.counters["eager_us"] = Median(eager);
  state.counters["captured_us"] = Median(replayed);
  state.counters["generated_us"] = Median(generated);
  state.SetLabel(compiled.not_generated());
}
BENCHMARK(BM_Mlp)->Arg(8)->Arg(32)->Arg(128)->Arg(512)->UseRealTime();

void BM_Chain(benchmark::State& state, Values (*chain)(const Values&)) {
  const Values in = {Randn({10'000'000}), Randn({10'000'000})};
  Graph graph = Trace(chain, in);
  Optimize(graph);
  Captured captured(graph);
  Captured compiled(graph, Generating());
  const auto time = [&](const auto& call) {
    const Timer timer;
    call();
    Synchronize(Device());
    return 1e3 * timer.Seconds();
  };
  std::vector<double> eager, strips, generated, product;
  for (auto _ : state) {
    eager.push_back(time([&] { return chain(in); }));
    strips.push_back(time([&] { return captured.Run(in); }));
    generated.push_back(time([&] { return compiled.Run(in); }));
    product.push_back(time([&] { return in[0] * in[1]; }));
  }
  state.counters["eager_ms"] = Median(eager);
  state.counters["strips_ms"] = Median(strips);
  state.counters["generated_ms"] = Median(generated);
  state.counters["x*y_ms"] = Median(product);
  state.SetLabel(compiled.not_generated());
}
BENCHMARK_CAPTURE(BM_Chain, cheap, Chain)->UseRealTime();
BENCHMARK_CAPTURE(BM_Chain, mixed, MixedChain)->UseRealTime();

// Tracing and passes: paid once.
void BM_TraceAndOptimizeMlp(benchmark::State& state) {
  const Mlp mlp(512);
  for (auto _ : state) {
    Graph graph = Trace([&](const Values& in) { return mlp(in); }, mlp.input);
    Optimize(graph);
    benchmark::DoNotOptimize(graph);
  }
  Synchronize(Device());
}
BENCHMARK(BM_TraceAndOptimizeMlp)->UseRealTime();

}  // namespace
}  // namespace d2l::ir

BENCHMARK_MAIN();
