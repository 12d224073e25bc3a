#include "chapters/hybrid_programming/programs.h"

#include "absl/status/statusor.h"
#include "common/graph/generated/load_cpp.h"

namespace d2l::hybrid_programming {
namespace {

// %% 000/In1
// Statements, each of which enqueues an operation.
Tensor Add(const Tensor& a, const Tensor& b) { return a + b; }
// %%

}  // namespace

// %% 000/In1
std::vector<Tensor> FancyFunc(const std::vector<Tensor>& abcd) {
  const Tensor e = Add(abcd[0], abcd[1]);
  const Tensor f = Add(abcd[2], abcd[3]);
  const Tensor g = Add(e, f);
  return {g};
}
// %% 000/In1, d2l/fused-chain, d2l/break-even
// A program of a function's operations, rewritten by all passes. ir::Captured
// runs it.
ir::Graph TraceAndOptimize(const ir::TensorFunction& function,
                           const std::vector<Tensor>& inputs,
                           const char* name) {
  ir::Graph graph = ir::Trace(function, inputs, {name});
  ir::Optimize(graph);
  return graph;
}
// %%

std::vector<Tensor> OneToFour(std::int64_t n, Device device) {
  std::vector<Tensor> numbers;
  for (const float value : {1.F, 2.F, 3.F, 4.F}) {
    numbers.push_back(Full({n}, value, device));
  }
  return numbers;
}

ir::CapturedOptions GenerateCpp() {
  ir::CapturedOptions options;
  options.generate_cpp = true;
  return options;
}

// %% 001/c2
// What is static is called by this program alone: a compiler may leave it out.
std::string AddStr() {
  return "static int add(int a, int b) { return a + b; }\n";
}

std::string FancyFuncStr() {
  return "static int fancy_func(int a, int b, int c, int d) {\n"
         "  int e = add(a, b);\n"
         "  int f = add(c, d);\n"
         "  int g = add(e, f);\n"
         "  return g;\n"
         "}\n";
}

std::string EvokeStr() {
  return AddStr() + FancyFuncStr() +
         "extern \"C\" int evoke() { return fancy_func(1, 2, 3, 4); }\n";
}

// Compiles the program, and loads it into this one. Who calls the function that
// is returned runs it.
absl::StatusOr<int (*)()> CompileText(const std::string& prog,
                                      const std::string& level) {
  const TemporaryDirectory directory;  // of the compiler's files
  const absl::StatusOr<ir::CompiledCpp> y =
      ir::LoadCpp(prog, {level, "-fPIC", "-shared"}, {directory.path()});
  if (!y.ok()) return y.status();
  return reinterpret_cast<int (*)()>(y->Function("evoke"));
}
// %% d2l/mlp-program, d2l/hybridize-mlp, d2l/width-sweep, d2l/hybridize-save
nn::Sequential Mlp(std::int64_t n, Device device) {
  return nn::Sequential(nn::Linear(n, n / 2, device), nn::ReLU(),
                        nn::Linear(n / 2, n / 4, device), nn::ReLU(),
                        nn::Linear(n / 4, 2, device));
}
// %% d2l/mlp-program, d2l/hybridize-mlp, d2l/width-sweep
// The first call traces the network; the later ones run the program.
nn::Hybrid CompiledMlp(std::int64_t n, Device device) {
  nn::Hybrid net = nn::Hybridize(Mlp(n, device));
  net(Randn({1, n}, device));
  return net;
}
// %% d2l/hybridize-save
// Writes the program and the weights. The network may go: they are all that
// another program needs (tools/run_program).
absl::Status SaveMlp(const Tensor& x, const std::string& prefix, Tensor* y) {
  nn::Hybrid net = nn::Hybridize(Mlp(512, x.device()));
  *y = net(x);
  return net.Save(prefix);
}
// %%

ir::TensorFunction ProductsOf(const nn::Module& mlp) {
  std::vector<Tensor> weights;
  for (const auto& [name, parameter] : nn::NamedParameters(mlp)) {
    if (parameter.dim() == 2) weights.push_back(parameter);
  }
  return [weights](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    Tensor y = in[0];
    for (const Tensor& weight : weights) y = MatMul(y, T(weight));
    return {y};
  };
}

// %% d2l/fused-chain
// A chain of element-wise operations.
std::vector<Tensor> Chain(int operations, const std::vector<Tensor>& in) {
  Tensor x = in[0];
  for (int i = 0; i < operations; ++i) x = i % 2 == 0 ? x + in[1] : x * 0.5;
  return {x};
}
// %%

}  // namespace d2l::hybrid_programming
