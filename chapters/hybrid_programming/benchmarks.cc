// The programs of the cells as benchmarks, at the course's size.

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chapters/hybrid_programming/programs.h"
#include "common/d2l.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"

namespace d2l::hybrid_programming {
namespace {

// How often a cell runs its program.
constexpr int kCalls = 1000;

// Calls of a program that was compiled from its text.
bool BenchmarkText(const std::string& name, const char* level) {
  return BenchmarkHost(name, kCalls, [level] {
    const absl::StatusOr<int (*)()> evoke = CompileText(EvokeStr(), level);
    if (!evoke.ok()) throw std::runtime_error(evoke.status().ToString());
    return Loop(kCalls, [run = *evoke] { KeepValue(run()); });
  });
}

bool BenchmarkNetwork(const std::string& name, int width, bool compiled) {
  return BenchmarkWork(
      name, kCalls, [width, compiled](Device device) -> std::function<void()> {
        const auto net =
            std::make_shared<nn::Hybrid>(CompiledMlp(width, device));
        const Tensor x = Randn({1, width}, device);
        if (compiled) return Loop(kCalls, [net, x] { (*net)(x); });
        return Loop(kCalls, [net, x] { net->module()(x); });
      });
}

std::vector<Tensor> TenOperations(const std::vector<Tensor>& in) {
  return Chain(10, in);
}

std::vector<Tensor> TwoVectors(Device device) {
  constexpr std::int64_t kNumbers = 10'000'000;
  return {Randn({kNumbers}, device), Randn({kNumbers}, device)};
}

// A function's program on these inputs.
std::function<void()> Captured(const ir::TensorFunction& function,
                               const std::vector<Tensor>& in,
                               const ir::CapturedOptions& options = {}) {
  const auto program = std::make_shared<ir::Captured>(
      TraceAndOptimize(function, in, "program"), options);
  if (options.generate_cpp && !program->not_generated().empty()) {
    throw std::runtime_error(program->not_generated());
  }
  return [program, in] { program->Run(in); };
}

[[maybe_unused]] const bool registered[] = {
    BenchmarkText("BM_001_c2_Text_AsWritten_Host", "-O0"),
    BenchmarkText("BM_001_c2_Text_Rewritten_Host", "-O2"),
    BenchmarkWork("BM_000_In1_FancyFunc_Statements", kCalls,
                  [](Device device) {
                    return Loop(kCalls,
                                [in = OneToFour(1, device)] { FancyFunc(in); });
                  }),
    BenchmarkWork("BM_000_In1_FancyFunc_Compiled", kCalls,
                  [](Device device) {
                    return Loop(kCalls,
                                Captured(FancyFunc, OneToFour(1, device)));
                  }),
    BenchmarkNetwork("BM_d2l_hybridize_mlp_Statements", 512, false),
    BenchmarkNetwork("BM_d2l_hybridize_mlp_Compiled", 512, true),
    BenchmarkNetwork("BM_d2l_width_sweep_8Wide_Statements", 8, false),
    BenchmarkNetwork("BM_d2l_width_sweep_8Wide_Compiled", 8, true),
    BenchmarkWork("BM_d2l_fused_chain_Ten_Statements", 1,
                  [](Device device) {
                    return [in = TwoVectors(device)] { TenOperations(in); };
                  }),
    BenchmarkWork("BM_d2l_fused_chain_Ten_Strips", 1,
                  [](Device device) {
                    return Captured(TenOperations, TwoVectors(device));
                  }),
    BenchmarkWork("BM_d2l_fused_chain_Ten_Generated", 1,
                  [](Device device) {
                    return Captured(TenOperations, TwoVectors(device),
                                    GenerateCpp());
                  }),
    BenchmarkWork("BM_d2l_break_even_TraceAndPasses", 1,
                  [](Device device) {
                    const auto net =
                        std::make_shared<nn::Sequential>(Mlp(512, device));
                    const std::vector<Tensor> in = {Randn({1, 512}, device)};
                    const auto forward = [net](const std::vector<Tensor>& x) {
                      return std::vector<Tensor>{(*net)(x[0])};
                    };
                    return [=] { TraceAndOptimize(forward, in, "mlp"); };
                  }),
};

}  // namespace
}  // namespace d2l::hybrid_programming
