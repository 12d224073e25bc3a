// Cells: networks as programs: what compiling gains, their files, and what is
// frozen when they are traced.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/hybrid_programming/compiling.h"
#include "common/base/child_process.h"
#include "common/d2l.h"
#include "common/graph/generated/load_cpp.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"

namespace d2l::hybrid_programming {

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
// %%

namespace {

// %% d2l/mlp-program, measured
void MlpProgram(Cell& cell) {
  const Device device = TryGpu();
  const nn::Hybrid compiled = CompiledMlp(512, device);
  if (cell.verbose()) {
    std::cout << Mlp(512, device) << Say("\nAs it was traced:\n")
              << ir::ToText(compiled.traced(), /*with_lines=*/false);
  }
  const std::vector<ir::PassReport> passes =
      compiled.Report().programs.back().passes;
  std::cout << "  " << Padded("", 24) << Padded("operations", -12)
            << Padded("peak", -12) << Padded("took", -12) << "\n";
  for (const ir::PassReport& pass : passes) {
    std::cout << absl::StrFormat("  %-24s%12d%12s%12s\n", pass.name,
                                 pass.operations, FormatBytes(pass.peak_bytes),
                                 FormatDuration(pass.seconds));
  }
  if (cell.verbose()) {
    const ir::Captured generated(compiled.graph(), GenerateCpp());
    std::cout << Say("\nAfter the passes:\n")
              << ir::ToText(compiled.graph(), /*with_lines=*/false)
              << Say("\nThe generated C++:\n") << generated.generated_source();
  }
  cell.ShowIfVerbose(DrawGraph(ir::ToProgramGraph(compiled.traced().main()),
                               "as it was traced"));
  cell.ShowIfVerbose(DrawGraph(ir::ToProgramGraph(compiled.graph().main()),
                               "after the passes"));
  const ir::PassReport &first = passes.front(), &last = passes.back();
  cell.Claim(
      "The compiled program has fewer operations than the program as written: "
      "{}.",
      Counted(last.operations < first.operations,
              Say("as written: %d", first.operations),
              absl::StrCat(last.operations)));
  cell.Claim(
      "The compiled program's intermediate results take less memory than those "
      "of the program as written: {}.",
      Counted(last.peak_bytes < first.peak_bytes,
              Say("as written: %s", FormatBytes(first.peak_bytes)),
              FormatBytes(last.peak_bytes)));
}
// %%
D2L_CELL("d2l/mlp-program", MlpProgram);

// The products of an MLP's layers, one after the other, and nothing else.
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

// Judges the gain of compiling, and its limit.
void JudgeNetwork(Cell& cell, const Timings& t, int operations, int calls) {
  const Timing& without = t["without compiling"];
  const Figure& arithmetic = t["its products alone"].completion;
  const Figure& addition = t["an addition"].completion;
  const Figure predicted = cell.Report(
      PerRepeat("predicted", "s", addition, arithmetic,
                [&](double enqueueing, double computing) {
                  return std::max(operations * enqueueing, computing);
                }));
  const double percent =
      100 * arithmetic.value.median / without.completion.value.median;
  cell.Claim("Compiled, the network is clearly faster: {}.",
             Faster(t["compiled"], without, kClearly),
             percent < 90
                 ? Say("The products alone take %.0f %% of its time.", percent)
                 : Say("The products alone take %.0f %% of its time, and no "
                       "compiler makes them faster.",
                       percent));
  std::string costs =
      Say("Enqueueing each of %d operations takes %s, the products take %s.",
          operations, Each(addition, calls), Each(arithmetic, calls));
  if (predicted.value.median < without.completion.value.median) {
    costs = Lead(costs) +
            Say("Neither enqueueing nor the products hides the other.");
  }
  cell.Claim(
      "max(operations * enqueueing, products) predicts the network's time: {}.",
      AboutEqual(predicted, without.completion, 1.5), costs);
}

// %% d2l/hybridize-mlp, measured
// JudgeNetwork and ProductsOf stand above this cell, GenerateCpp in
// chapters/hybrid_programming/lesson.cc.
void HybridizeMlp(Cell& cell) {
  const Device device = TryGpu();
  const int n = cell.BySize(50, 1000, 1000), width = 512;
  const Tensor x = Randn({1, width}, device), one = Ones({1, 2}, device);
  nn::Hybrid net = CompiledMlp(width, device);
  nn::Module& eager = net.module();
  ir::Captured generated(net.graph(), GenerateCpp());
  ir::Captured products(TraceAndOptimize(ProductsOf(eager), {x}, "products"));
  const std::vector<Tensor> in = {x};
  Tensor y, compiled, from_cpp;
  std::vector<Alternative> alternatives = {
      {"without compiling", {device}, Loop(n, [&] { y = eager(x); })},
      {"compiled", {device}, Loop(n, [&] { compiled = net(x); })},
      {"its products alone", {device}, Loop(n, [&] { products.Run(in); })},
      {"an addition", {device}, Loop(n, [&] { one + 1; })}};
  if (generated.not_generated().empty()) {
    alternatives.push_back({"compiled, generated C++", {device}, Loop(n, [&] {
                              from_cpp = generated.Run(in)[0];
                            })});
  } else {
    std::cout << Wrap(Say("No generated C++: %s.", generated.not_generated()));
  }
  const Timings t = cell.TimeInterleaved(alternatives);
  cell.Check(nn::NumParameters(eager) == 164'482, "the number of parameters");
  for (const Tensor& result : {compiled, from_cpp}) {
    if (!result.defined()) continue;  // no generated C++
    cell.Check(ToVector<float>(y) == ToVector<float>(result),
               "the compiled network's result, bit for bit");
  }
  cell.PrintTimes(t);
  JudgeNetwork(cell, t, ir::CountOperations(net.traced()), n);
}
// %%
D2L_CELL("d2l/hybridize-mlp", HybridizeMlp);

// %% d2l/width-sweep, measured
void WidthSweep(Cell& cell) {
  const Device device = TryGpu();
  const int n = cell.BySize(50, 1000, 1000);
  std::cout << Say("  width  statements    compiled    products   gain\n");
  std::vector<Figure> gains;
  Judgement narrowest;
  for (const std::int64_t width : {8, 32, 128, 256, 512}) {
    cell.At("width", static_cast<double>(width));
    const Tensor x = Randn({1, width}, device);
    nn::Hybrid net = CompiledMlp(width, device);
    ir::Captured products(
        TraceAndOptimize(ProductsOf(net.module()), {x}, "products"));
    const std::vector<Tensor> in = {x};
    Tensor y, compiled;
    const Timings t = cell.TimeInterleaved(
        {{"statements", {device}, Loop(n, [&] { y = net.module()(x); })},
         {"compiled", {device}, Loop(n, [&] { compiled = net(x); })},
         {"products", {device}, Loop(n, [&] { products.Run(in); })}});
    const Timing &statements = t[0], &whole = t[1], &alone = t[2];
    cell.Check(ToVector<float>(y) == ToVector<float>(compiled),
               absl::StrCat("the result at width ", width, ", bit for bit"));
    gains.push_back(cell.Report(
        RatioPerRepeat("gain", statements.completion, whole.completion)));
    if (width == 8) narrowest = Faster(whole, statements, kClearly);
    std::cout << absl::StrFormat(
        "  %5d  %10s  %10s  %10s   %s\n", width, Each(statements.completion, n),
        Each(whole.completion, n), Each(alone.completion, n),
        FormatSummary(gains.back().value, "x"));
  }
  const std::string why = Say("The gain is %s at width 8 and %s at 512.",
                              FormatFactor(gains.front().value.median),
                              FormatFactor(gains.back().value.median));
  cell.Claim("8 wide, the compiled network is faster: {}.", narrowest, why);
  cell.Claim("Compiling gains more 8 wide than 512 wide: {}.",
             Less(gains.back(), gains.front(), kClearly), why);
}
// %%
D2L_CELL("d2l/width-sweep", WidthSweep);

// %% d2l/hybridize-save
// Writes the program and the weights. The network may go: they are all that
// another program needs (tools/run_program).
absl::Status SaveMlp(const Tensor& x, const std::string& prefix, Tensor* y) {
  nn::Hybrid net = nn::Hybridize(Mlp(512, x.device()));
  *y = net(x);
  return net.Save(prefix);
}
// %%

namespace fs = std::filesystem;

// The size and the name of each file, by name, as `ls -lh` prints them.
std::string ListFiles(const std::string& directory) {
  std::map<std::string, std::string> sizes;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    sizes[entry.path().filename().string()] =
        FormatBytes(static_cast<std::int64_t>(entry.file_size()));
  }
  std::string text;
  for (const auto& [name, size] : sizes) {
    text += absl::StrFormat("  %10s  %s\n", size, name);
  }
  return text;
}

// The path of tools/run_program, in the working directory or beside the lesson
// itself; "run_program" if it is in neither.
std::string OtherProgram() {
  const std::string name = "tools/run_program";
  std::error_code error;
  // The runfiles of `bazel run` and `bazel test`.
  if (fs::exists(name, error)) return fs::absolute(name).string();
  // Beside the lesson in bazel-bin.
  for (fs::path at = fs::read_symlink("/proc/self/exe", error);
       at.has_relative_path(); at = at.parent_path()) {
    if (fs::exists(at.parent_path() / name, error)) {
      return (at.parent_path() / name).string();
    }
  }
  return "run_program";
}

// %% d2l/hybridize-save, measured
// ListFiles and OtherProgram stand above this cell.
void HybridizeSave(Cell& cell) {
  const TemporaryDirectory directory;
  const std::string prefix = directory.path() + "/my_mlp";
  const Tensor x = Randn({1, 512}, TryGpu());
  Tensor y;
  const absl::Status saved = SaveMlp(x, prefix, &y);
  cell.Check(saved.ok(), std::string(saved.message()));
  std::cout << ListFiles(directory.path());

  const std::string in = directory.path() + "/x.safetensors";
  const std::string out = directory.path() + "/y.safetensors";
  cell.Check(safetensors::SaveFile({{"0", x}}, in).ok(), "x was saved");
  const ProgramResult other =
      RunProgram(OtherProgram(), {prefix, "--input=" + in, "--output=" + out});
  std::cout << "$ run_program my_mlp\n" << other.output;
  std::int64_t equal = 0;
  if (other.failure.empty()) {
    const auto file = safetensors::LoadFile(out, TryGpu());
    cell.Check(file.ok() && file->tensors.count("output_0") == 1,
               "the other binary's file");
    if (file.ok() && file->tensors.count("output_0") == 1) {
      const std::vector<float> got =
          ToVector<float>(file->tensors.at("output_0"));
      const std::vector<float> expected = ToVector<float>(y);
      cell.CheckClose("the other binary's result", got, expected, 1e-5);
      for (std::size_t i = 0; i < got.size(); ++i)
        equal += got[i] == expected[i];
    }
  }
  cell.Claim("Another binary computes the same numbers as the network: {}.",
             Counted(equal == 2, "bit for bit", Say("%d of %d", equal, 2)),
             other.failure.empty()
                 ? Say("The other binary has run the program on another kind "
                       "of device.")
                 : absl::StrCat(OtherProgram(), " ", other.failure, "."));
}
// %%
D2L_CELL("d2l/hybridize-save", HybridizeSave);

// %% d2l/hybridnet
struct HybridNet : nn::Module {
  Tensor Forward(const Tensor& x) override {
    ++prints;
    std::cout << Say("  Forward runs.\n");
    const Tensor h = Relu(hidden(x));
    if (reads && Item(Sum(h)) < 0) return h;
    return halves ? output(h) * 0.5 : output(h);
  }
  std::string Name() const override { return "HybridNet"; }
  void Members(nn::MemberVisitor& visitor) override {
    visitor.Child("hidden", hidden);
    visitor.Child("output", output);
  }

  nn::Linear hidden{3, 4, true, TryGpu()};
  nn::Linear output{4, 2, true, TryGpu()};
  bool reads = false;
  bool halves = false;
  int prints = 0;
};
// %%

// %% d2l/hybridnet, measured
void ThreeSurprises(Cell& cell) {
  const Tensor x = Randn({1, 3}, TryGpu());
  nn::Hybrid net = nn::Hybridize(HybridNet());
  auto& module = dynamic_cast<HybridNet&>(net.module());
  std::cout << Say("net(x), three times:\n");
  const std::vector<float> first = ToVector<float>(net(x));
  for (int i = 0; i < 2; ++i) net(x);
  const int prints = module.prints;
  cell.ShowIfVerbose(
      DrawGraph(ir::ToProgramGraph(net.graph().main()), "what net(x) runs"));
  std::cout << Say("A flag is changed. net(x), and Forward(x):\n");
  module.halves = true;
  const std::vector<float> frozen = ToVector<float>(net(x));
  const std::vector<float> eager = ToVector<float>(module.Forward(x));
  std::cout << Say("Now Forward reads a value. net(x) with a larger x:\n");
  module.reads = true;
  bool refused = false;
  try {
    net(Randn({2, 3}, TryGpu()));
  } catch (const std::logic_error& error) {
    refused = true;
    std::cout << Wrap(error.what(), "  ");
  }
  cell.Claim(
      "Of three calls only one printed: {}.",
      Counted(prints == 1, "statement by statement: 3", absl::StrCat(prints)));
  cell.Claim("The read in Forward was refused, and its line was named: {}.",
             Counted(refused, "a std::logic_error",
                     refused ? Say("%d of %d", 1, 1) : Say("%d of %d", 0, 1)));
  cell.Claim("Changing a flag does not change the program's output: {}.",
             Counted(frozen == first && eager != first,
                     "2 of 2 statement by statement",
                     frozen == first ? "0 of 2" : "2 of 2"));
}
// %%
D2L_CELL("d2l/hybridnet", ThreeSurprises);

// Benchmarks, at the course's size.

// How often a cell runs its program.
constexpr int kCalls = 1000;

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

[[maybe_unused]] const bool benchmarks[] = {
    BenchmarkNetwork("BM_d2l_hybridize_mlp_Statements", 512, false),
    BenchmarkNetwork("BM_d2l_hybridize_mlp_Compiled", 512, true),
    BenchmarkNetwork("BM_d2l_width_sweep_8Wide_Statements", 8, false),
    BenchmarkNetwork("BM_d2l_width_sweep_8Wide_Compiled", 8, true),
};

}  // namespace
}  // namespace d2l::hybrid_programming
