// The time that Hybridize saves, by a network's width: layers (n, n/2, n/4, 2)
// for one sample, beside their products alone. Also a step of SGD, on all
// parameters at once and one by one; and 100 MB of parameters, to a file and
// back: in /dev/shm, where fsync costs nothing, and in $TMPDIR.
//
//   bazel run -c opt //common/nn:nn_benchmark

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "common/base/timer.h"
#include "common/graph/captured.h"
#include "common/graph/ir.h"
#include "common/nn/hybrid.h"
#include "common/nn/layers.h"
#include "common/nn/sgd.h"
#include "common/nn/state_dict.h"
#include "common/ops/ops.h"

namespace d2l::nn {
namespace {

Sequential Mlp(std::int64_t n) {
  return Sequential(Linear(n, n / 2), ReLU(), Linear(n / 2, n / 4), ReLU(),
                    Linear(n / 4, 2));
}

// The products of the layers, one after the other.
class Products : public Module {
 public:
  explicit Products(const Module& mlp) {
    for (const auto& [name, parameter] : NamedParameters(mlp)) {
      if (parameter.dim() == 2) weights_.push_back(parameter);
    }
  }
  Tensor Forward(const Tensor& x) override {
    Tensor y = x;
    for (const Tensor& weight : weights_) y = MatMul(y, T(weight));
    return y;
  }
  std::string Name() const override { return "Products"; }

 private:
  std::vector<Tensor> weights_;
};

double Median(std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// In turn, 1000 calls each, so that the machine is the same for both.
void BM_Hybrid(benchmark::State& state) {
  const Tensor x = Randn({1, state.range(0)});
  Hybrid hybrid = Hybridize(Mlp(state.range(0)));
  Module& eager = hybrid.module();
  Products products(eager);
  Hybrid hybrid_products = Hybridize(Products(eager));
  hybrid(x);
  ir::Captured captured(hybrid.graph());
  constexpr int kCalls = 1000;
  const auto time = [&](auto&& call, std::vector<double>& times) {
    const Timer timer;
    for (int i = 0; i < kCalls; ++i) call(x);
    Synchronize(Device());
    times.push_back(1e6 * timer.Seconds() / kCalls);
  };
  std::vector<double> eager_us, hybrid_us, captured_us, products_us,
      hybrid_products_us;
  const std::vector<Tensor> arguments = {x};
  for (auto _ : state) {
    time(eager, eager_us);
    time(hybrid, hybrid_us);
    time([&](const Tensor&) { return captured.Run(arguments); }, captured_us);
    time(products, products_us);
    time(hybrid_products, hybrid_products_us);
  }
  state.counters["eager_us"] = Median(eager_us);
  state.counters["hybrid_us"] = Median(hybrid_us);
  state.counters["captured_us"] = Median(captured_us);
  state.counters["products_us"] = Median(products_us);
  state.counters["hybrid_products_us"] = Median(hybrid_products_us);
}
BENCHMARK(BM_Hybrid)->Arg(8)->Arg(128)->Arg(512)->UseRealTime();

// A step of SGD with momentum on that many parameters of 64 numbers each; then
// the same one by one.
void BM_SgdStep(benchmark::State& state) {
  std::vector<Tensor> parameters, gradients;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    parameters.push_back(Ones({64}));
    gradients.push_back(Ones({64}));
  }
  const SGDOptions options = {/*lr=*/1e-6, /*momentum=*/0.9};
  SGD all(parameters, options);
  all.Step(gradients);
  const std::vector<Tensor>& v = all.momentum_buffers();
  constexpr int kSteps = 100;
  std::vector<double> all_us, each_us;
  const auto time = [&](auto&& step, std::vector<double>& times) {
    const Timer timer;
    for (int i = 0; i < kSteps; ++i) step();
    Synchronize(Device());
    times.push_back(1e6 * timer.Seconds() / kSteps);
  };
  for (auto _ : state) {
    time([&] { all.Step(gradients); }, all_us);
    time(
        [&] {
          for (std::size_t i = 0; i < v.size(); ++i) {
            AxpbyInPlace(v[i], 1, gradients[i], options.momentum);
            AxpbyInPlace(parameters[i], -options.lr, v[i], 1);
          }
        },
        each_us);
  }
  state.counters["all_us"] = Median(all_us);
  state.counters["each_us"] = Median(each_us);
}
BENCHMARK(BM_SgdStep)->Arg(1)->Arg(4)->Arg(10)->Arg(76)->UseRealTime();

// The argument says whether the file is in memory, without an fsync.
std::string StateDictPath(const benchmark::State& state) {
  const char* directory = std::getenv("TMPDIR");
  if (state.range(0) != 0) directory = "/dev/shm";
  return absl::StrCat(directory == nullptr ? "/tmp" : directory,
                      "/nn_benchmark-", getpid(), ".safetensors");
}

void SaveState(benchmark::State& state) {
  const Linear net(5000, 5000);
  const std::string path = StateDictPath(state);
  for (auto _ : state) {
    const absl::Status saved = SaveStateDict(net, path);
    if (!saved.ok()) state.SkipWithError(saved.ToString().c_str());
  }
  std::filesystem::remove(path);
}
BENCHMARK(SaveState)->Arg(1)->Arg(0)->UseRealTime()->Unit(
    benchmark::kMillisecond);

void LoadState(benchmark::State& state) {
  Linear net(5000, 5000);
  const std::string path = StateDictPath(state);
  SaveStateDict(net, path).IgnoreError();
  for (auto _ : state) {
    const absl::Status loaded = LoadStateDict(net, path).status();
    if (!loaded.ok()) state.SkipWithError(loaded.ToString().c_str());
    WaitToRead(net.weight());
  }
  std::filesystem::remove(path);
}
BENCHMARK(LoadState)->Arg(1)->Arg(0)->UseRealTime()->Unit(
    benchmark::kMillisecond);

}  // namespace
}  // namespace d2l::nn

BENCHMARK_MAIN();
