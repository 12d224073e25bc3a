// The cells of the lesson as benchmarks, at the course's size.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "chapters/hybrid_programming/programs.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/graph/captured.h"
#include "common/graph/ir.h"
#include "common/graph/language/language.h"
#include "common/graph/passes/passes.h"
#include "common/lesson/benchmark_devices.h"
#include "common/nn/hybrid.h"
#include "common/nn/module.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using hybrid::Chain;
using hybrid::FancyFuncOf;
using hybrid::Mlp;
using hybrid::TraceAndOptimize;

// Of a cell that runs its program again and again.
constexpr int kCalls = 1000;

template <typename Call>
void Repeat(benchmark::State& state, Device device, int calls,
            const Call& call) {
  call();
  Synchronize(device);
  for (auto _ : state) {
    for (int i = 0; i < calls; ++i) call();
    Synchronize(device);
  }
  state.SetItemsProcessed(state.iterations() * calls);
}

std::vector<Tensor> OneToFour(Device device) {
  std::vector<Tensor> numbers;
  for (const float value : {1.F, 2.F, 3.F, 4.F}) {
    numbers.push_back(Full({1}, value, device));
  }
  return numbers;
}

void Statements(benchmark::State& state, Device device) {
  const std::vector<Tensor> in = OneToFour(device);
  Repeat(state, device, kCalls, [&] { FancyFuncOf(in); });
}
[[maybe_unused]] const bool registered_statements =
    BenchmarkOnDevices("BM_000_In1_FancyFunc_Statements", Statements);

void Compiled(benchmark::State& state, Device device) {
  const std::vector<Tensor> in = OneToFour(device);
  ir::Captured program(TraceAndOptimize(FancyFuncOf, in, "fancy_func"));
  Repeat(state, device, kCalls, [&] { program.Run(in); });
}
[[maybe_unused]] const bool registered_compiled =
    BenchmarkOnDevices("BM_000_In1_FancyFunc_Compiled", Compiled);

constexpr char kProgram[] =
    "def add(a, b):\n"
    "    return a + b\n"
    "def fancy_func(a, b, c, d):\n"
    "    e = add(a, b)\n"
    "    f = add(c, d)\n"
    "    g = add(e, f)\n"
    "    return g\n"
    "print(fancy_func(1, 2, 3, 4))\n";

void BM_001_c2_Text_AsWritten_Host(benchmark::State& state) {
  const language::Program program =
      language::Compile(kProgram, "prog.py", TryGpu()).value();
  for (auto _ : state) benchmark::DoNotOptimize(language::Run(program));
}
BENCHMARK(BM_001_c2_Text_AsWritten_Host)->UseRealTime();

void BM_001_c2_Text_Rewritten_Host(benchmark::State& state) {
  language::Program program =
      language::Compile(kProgram, "prog.py", TryGpu()).value();
  ir::Optimize(program.graph);
  for (auto _ : state) benchmark::DoNotOptimize(language::Run(program));
}
BENCHMARK(BM_001_c2_Text_Rewritten_Host)->UseRealTime();

void NetworkStatements(benchmark::State& state, Device device, int width) {
  nn::Sequential net = Mlp(width, device);
  const Tensor x = Randn({1, width}, device);
  Repeat(state, device, kCalls, [&] { net(x); });
}

void NetworkCompiled(benchmark::State& state, Device device, int width) {
  nn::Hybrid net = nn::Hybridize(Mlp(width, device));
  const Tensor x = Randn({1, width}, device);
  Repeat(state, device, kCalls, [&] { net(x); });
}

void Statements512(benchmark::State& state, Device device) {
  NetworkStatements(state, device, 512);
}
void Compiled512(benchmark::State& state, Device device) {
  NetworkCompiled(state, device, 512);
}
void Statements8(benchmark::State& state, Device device) {
  NetworkStatements(state, device, 8);
}
void Compiled8(benchmark::State& state, Device device) {
  NetworkCompiled(state, device, 8);
}
[[maybe_unused]] const bool registered_networks =
    BenchmarkOnDevices("BM_d2l_hybridize_mlp_Statements", Statements512) &&
    BenchmarkOnDevices("BM_d2l_hybridize_mlp_Compiled", Compiled512) &&
    BenchmarkOnDevices("BM_d2l_width_sweep_8Wide_Statements", Statements8) &&
    BenchmarkOnDevices("BM_d2l_width_sweep_8Wide_Compiled", Compiled8);

constexpr std::int64_t kNumbers = 10'000'000;

std::vector<Tensor> TenOperations(const std::vector<Tensor>& in) {
  return Chain(10, in);
}

void ChainStatements(benchmark::State& state, Device device) {
  const std::vector<Tensor> in = {Randn({kNumbers}, device),
                                  Randn({kNumbers}, device)};
  Repeat(state, device, 1, [&] { TenOperations(in); });
}

void ChainFused(benchmark::State& state, Device device) {
  const std::vector<Tensor> in = {Randn({kNumbers}, device),
                                  Randn({kNumbers}, device)};
  ir::Captured chain(TraceAndOptimize(TenOperations, in, "chain"));
  Repeat(state, device, 1, [&] { chain.Run(in); });
}

void ChainGenerated(benchmark::State& state, Device device) {
  const std::vector<Tensor> in = {Randn({kNumbers}, device),
                                  Randn({kNumbers}, device)};
  ir::CapturedOptions options;
  options.generate_cpp = true;
  ir::Captured chain(TraceAndOptimize(TenOperations, in, "chain"), options);
  if (!chain.not_generated().empty()) {
    state.SkipWithError(chain.not_generated().c_str());
    return;
  }
  Repeat(state, device, 1, [&] { chain.Run(in); });
}
[[maybe_unused]] const bool registered_chains =
    BenchmarkOnDevices("BM_d2l_fused_chain_Ten_Statements", ChainStatements) &&
    BenchmarkOnDevices("BM_d2l_fused_chain_Ten_Strips", ChainFused) &&
    BenchmarkOnDevices("BM_d2l_fused_chain_Ten_Generated", ChainGenerated);

void TraceAndPasses(benchmark::State& state, Device device) {
  nn::Sequential net = Mlp(512, device);
  const std::vector<Tensor> in = {Randn({1, 512}, device)};
  const auto forward = [&](const std::vector<Tensor>& x) {
    return std::vector<Tensor>{net(x[0])};
  };
  Repeat(state, device, 1, [&] { TraceAndOptimize(forward, in, "mlp"); });
}
[[maybe_unused]] const bool registered_trace =
    BenchmarkOnDevices("BM_d2l_break_even_TraceAndPasses", TraceAndPasses);

}  // namespace
}  // namespace d2l
