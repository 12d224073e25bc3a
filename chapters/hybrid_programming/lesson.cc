// Hybrid programming: write statements, run a program.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "chapters/hybrid_programming/compiling.h"
#include "common/d2l.h"
#include "common/graph/generated/load_cpp.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"

namespace d2l::hybrid_programming {

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

ir::CapturedOptions GenerateCpp() {
  ir::CapturedOptions options;
  options.generate_cpp = true;
  return options;
}

namespace {

// %% 000/In1
// Statements, each of which enqueues an operation.
Tensor Add(const Tensor& a, const Tensor& b) { return a + b; }

std::vector<Tensor> FancyFunc(const std::vector<Tensor>& abcd) {
  const Tensor e = Add(abcd[0], abcd[1]);
  const Tensor f = Add(abcd[2], abcd[3]);
  const Tensor g = Add(e, f);
  return {g};
}
// %%

// Vectors of n ones, twos, threes and fours.
std::vector<Tensor> OneToFour(std::int64_t n, Device device) {
  std::vector<Tensor> numbers;
  for (const float value : {1.F, 2.F, 3.F, 4.F}) {
    numbers.push_back(Full({n}, value, device));
  }
  return numbers;
}

// C++ is generated for CPU devices: cpu:0, if it is there.
Device FusingDevice() { return HasDevice(Device()) ? Device() : TryGpu(); }

// Judges whether e and f can be read on the way, eagerly and compiled.
void JudgeReading(Cell& cell, const std::vector<Tensor>& abcd) {
  int read = 0;
  const auto program = [&](const std::vector<Tensor>& in) {
    const Tensor e = in[0] + in[1], f = in[2] + in[3];
    for (const Tensor& value : {e, f}) read += Item(value) > 0 ? 1 : 0;
    return std::vector<Tensor>{e + f};
  };
  program(abcd);
  const int by_statements = std::exchange(read, 0);
  try {
    ir::Trace(program, abcd, {"fancy_func"});
  } catch (const std::logic_error&) {  // while it is traced, e has no value
  }
  cell.Claim("Statement by statement, intermediate results can be read: {}.",
             Counted(by_statements == 2 && read == 0, Say("compiled: %d", read),
                     absl::StrCat(by_statements)));
}

// Prints and judges the costs of the statements and of the program. t: of calls
// with four numbers.
void JudgeFusion(Cell& cell, Device device, const Timings& t, int calls) {
  const std::vector<Tensor> large =
      OneToFour(cell.BySize(1'000'000, 2'000'000, 10'000'000), device);
  // Traced before, since tracing runs the statements.
  const ir::Graph whole = TraceAndOptimize(FancyFunc, large, "fancy_func");
  const auto peak = [&](const Phrase& label, const auto& program) {
    return cell.PeakMemory(label, device, Memory(device), [&] {
      for (int call = 0; call < 3; ++call) {
        program(large);
        Synchronize(device);
      }
    });
  };
  const Figure eager = peak("peak, statement by statement", FancyFunc);
  const Figure fused = peak(
      "peak, compiled", [&](const auto& in) { ir::Captured(whole).Run(in); });
  ir::Captured compiled(whole);
  const Timings vectors = cell.TimeInterleaved(
      {{"statements, vectors", {device}, [&] { FancyFunc(large); }},
       {"compiled, vectors", {device}, [&] { compiled.Run(large); }}});
  for (std::size_t i = 0; i < t.size(); ++i) {
    std::cout << Say("  %s  %8s a call; with vectors %8s and %8s\n",
                     Padded(t[i].completion.label, 22),
                     Each(t[i].completion, calls),
                     FormatMedian(vectors[i].completion.value, "s"),
                     FormatMedian((i == 0 ? eager : fused).value, "B"));
  }
  const int enqueued =
      ir::CountOperations(ir::Trace(FancyFunc, large, {"fancy_func"}));
  const int left = ir::CountOperations(whole);
  cell.Claim("With long vectors, the compiled program is faster: {}.",
             Faster(vectors[1], vectors[0], 1.1),
             Say("A call takes %s statement by statement, and %s compiled.",
                 FormatMedian(vectors[0].completion.value, "s"),
                 FormatMedian(vectors[1].completion.value, "s")));
  cell.Claim(
      "Keeping e and f takes more memory than the compiled program: {}.",
      Less(fused, eager, kClearly),
      Say("Statement by statement the program takes %s, compiled it takes %s.",
          FormatMedian(eager.value, "B"), FormatMedian(fused.value, "B")));
  cell.Claim("Statement by statement, more than one operation is enqueued: {}.",
             Counted(enqueued == 3 && left == 1, Say("compiled: %d", left),
                     absl::StrCat(enqueued)),
             Say("The compiled program has %d operations.", left));
  JudgeReading(cell, OneToFour(1, device));
}

// %% 000/In1, measured
// JudgeReading and JudgeFusion stand above this cell.
void In1(Cell& cell) {
  const Device device = FusingDevice();
  const std::vector<Tensor> abcd = OneToFour(1, device);
  std::cout << "  " << Item(FancyFunc(abcd)[0]) << "\n";
  ir::Captured compiled(TraceAndOptimize(FancyFunc, abcd, "fancy_func"));
  Tensor g;
  const int n = cell.BySize(200, 1000, 1000);
  const Timings t = cell.TimeInterleaved(
      {{"statement by statement",
        {device},
        Loop(n, [&] { g = FancyFunc(abcd)[0]; })},
       {"compiled", {device}, Loop(n, [&] { g = compiled.Run(abcd)[0]; })}});
  cell.Check(Item(g) == 10, "the compiled program's result");
  JudgeFusion(cell, device, t, n);
}
// %%
D2L_CELL("000/In1", In1);

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
// %%

// Prints which framework is imperative, symbolic or hybrid.
void PrintFrameworks() {
  for (const char* framework :
       {"Theano         symbolic",
        "TensorFlow     symbolic; from version 2 imperative, or hybrid with "
        "tf.function",
        "Chainer        imperative",
        "PyTorch        imperative, or hybrid with torch.compile",
        "Gluon (MXNet)  imperative, or hybrid with net.hybridize()"}) {
    std::cout << Translated(framework) << "\n";
  }
}

Judgement NotMeasured() {
  return {Verdict::kInconclusive, "?", Say("not measured")};
}

// Claims what the compiler leaves of the program, and how fast that is.
void ClaimOptimised(Cell& cell, const Judgement& left, const Judgement& faster,
                    const std::string& because) {
  cell.Claim("-O2 leaves hardly any instructions: {}.", left, because);
  cell.Claim("With -O2 the program is faster than with -O0: {}.", faster,
             because);
}

// Judges the program as it is written (-O0) and optimised (-O2). The control is
// what the compiler makes of the constant alone.
absl::Status JudgeOptimised(Cell& cell, const std::string& prog,
                            int (*as_written)(), int (*optimised)()) {
  const TemporaryDirectory directory;
  const auto compiled = [&](const std::string& text, const char* level) {
    return ir::MachineInstructions(text, {level, "-fPIC"}, {directory.path()});
  };
  const auto all = compiled(prog, "-O0"), left = compiled(prog, "-O2");
  const auto constant =
      compiled("extern \"C\" int evoke() { return 10; }\n", "-O2");
  for (const auto& instructions : {all, left, constant}) {
    if (!instructions.ok()) return instructions.status();
  }
  const int n = cell.BySize(10'000, 1'000'000, 1'000'000);
  const Timings t = cell.TimeInterleaved(
      {{"-O0", {}, Loop(n, [as_written] { as_written(); })},
       {"-O2", {}, Loop(n, [optimised] { optimised(); })}});
  const std::string text = absl::StrJoin(*left, "; ");
  if (cell.verbose()) std::cout << absl::StrJoin(*all, "\n") << "\n";
  std::cout << "-O0:     " << Say("%d instructions", all->size()) << "\n"
            << "-O2:     " << text << "\n";
  ClaimOptimised(
      cell,
      Counted(*left == *constant,
              Say("-O0: %d; return 10: %d", all->size(), constant->size()),
              absl::StrCat(left->size())),
      Faster(t["-O2"], t["-O0"], kClearly),
      Say("-O2 leaves %s, and a call takes %s with -O0 and %s with -O2.", text,
          Each(t["-O0"].completion, n), Each(t["-O2"].completion, n)));
  return absl::OkStatus();
}

// Traces the program with tensors, and judges what the passes leave of it.
void JudgeTraced(Cell& cell) {
  const auto evoke = [](const std::vector<Tensor>&) {
    return FancyFunc(OneToFour(1, TryGpu()));
  };
  ir::Graph program = ir::Trace(evoke, {}, {"evoke"});
  const int traced = ir::CountOperations(program);
  if (cell.verbose()) std::cout << ir::ToText(program, /*with_lines=*/false);
  ir::Optimize(program);
  const std::string text = ir::ToText(program, /*with_lines=*/false);
  std::cout << "\n" << text << "\n";
  cell.Check(Item(ir::Run(program, {})[0]) == 10, "the traced program");
  const int left = ir::CountOperations(program);
  cell.Claim(
      "The passes leave none of the traced program's operations: {}.",
      Counted(left == 0, Say("as traced: %d", traced), absl::StrCat(left)),
      Say("The program above still has operations: no pass could compute them "
          "before the program runs."));
}

// %% 001/c2, measured
// PrintFrameworks and what judges stand above this cell.
void C2(Cell& cell) {
  const std::string prog = EvokeStr();
  std::cout << prog;
  const absl::StatusOr<int (*)()> y = CompileText(prog, "-O0");
  const absl::StatusOr<int (*)()> optimised = CompileText(prog, "-O2");
  absl::Status status = optimised.status();
  if (y.ok() && optimised.ok()) {
    std::cout << Padded("Output:", 9) << (*y)() << "\n";
    cell.Check((*y)() == 10 && (*optimised)() == 10, "the compiled program");
    status = JudgeOptimised(cell, prog, *y, *optimised);
  }
  if (!status.ok()) {
    ClaimOptimised(cell, NotMeasured(), NotMeasured(),
                   Say("Nothing was compiled: %s.", status.message()));
  }
  JudgeTraced(cell);
  PrintFrameworks();
}
// %%
D2L_CELL("001/c2", C2);

// %% d2l/fused-chain
// A chain of element-wise operations.
std::vector<Tensor> Chain(int operations, const std::vector<Tensor>& in) {
  Tensor x = in[0];
  for (int i = 0; i < operations; ++i) x = i % 2 == 0 ? x + in[1] : x * 0.5;
  return {x};
}
// %%

// figures: by length; one by one, in strips, and as generated C++ if possible.
void JudgeChains(Cell& cell, std::map<int, std::vector<Figure>>& figures,
                 const std::string& no_cpp) {
  const auto one_and_twenty = [](const Figure& one, const Figure& twenty) {
    return Say("One operation takes %s, twenty take %s.",
               FormatMedian(one.value, "s"), FormatMedian(twenty.value, "s"));
  };
  cell.Claim(
      "One by one, twenty operations take many times as long as one: {}.",
      Less(figures[1][0], figures[20][0], 5),
      one_and_twenty(figures[1][0], figures[20][0]));
  const Figure &first = figures[1].back(), &last = figures[20].back();
  cell.Claim(
      Worded(
          "Fused, as %s, twenty operations take less than 4 times as long as "
          "one: {}.",
          Phrase(no_cpp.empty() ? "generated C++" : "strips")),
      AboutEqual(last, first, 4), one_and_twenty(first, last));
  cell.Claim("Ten operations are faster in strips than one by one: {}.",
             Less(figures[10][1], figures[10][0], kClearly),
             Say("One by one the operations take %s, in strips %s.",
                 FormatMedian(figures[10][0].value, "s"),
                 FormatMedian(figures[10][1].value, "s")));
}

// %% d2l/fused-chain, measured
// JudgeChains stands above this cell.
void FusedChain(Cell& cell) {
  const Device device = FusingDevice();
  const std::int64_t n = cell.BySize(1'000'000, 10'000'000, 50'000'000);
  const std::vector<Tensor> in = {Randn({n}, device), Randn({n}, device)};
  std::cout << Say("  operations  one by one      strips   generated\n");
  std::map<int, std::vector<Figure>> figures;  // by length
  std::string no_cpp;
  for (const int length : {1, 2, 5, 10, 20}) {
    cell.At("operations", length);
    const auto chain = [&](const std::vector<Tensor>& x) {
      return Chain(length, x);
    };
    const ir::Graph graph = TraceAndOptimize(chain, in, "chain");
    ir::Captured strips(graph), generated(graph, GenerateCpp());
    no_cpp = generated.not_generated();
    std::vector<Tensor> a, b, c;
    std::vector<Alternative> alternatives = {
        {"one by one", {device}, [&] { a = chain(in); }},
        {"strips", {device}, [&] { b = strips.Run(in); }}};
    if (no_cpp.empty()) {
      alternatives.push_back(
          {"generated", {device}, [&] { c = generated.Run(in); }});
    }
    std::cout << absl::StrFormat("  %10d", length);
    for (const Timing& timing : cell.TimeInterleaved(alternatives)) {
      figures[length].push_back(timing.completion);
      std::cout << absl::StrFormat("  %10s",
                                   FormatMedian(timing.completion.value, "s"));
    }
    std::cout << "\n";
    for (const Tensor& result : {b[0], c.empty() ? b[0] : c[0]}) {
      cell.Check(Item(Min(result == a[0])) == 1,
                 absl::StrCat("a chain of ", length, ", bit for bit"));
    }
  }
  if (!no_cpp.empty()) std::cout << Wrap(Say("No generated C++: %s.", no_cpp));
  JudgeChains(cell, figures, no_cpp);
}
// %%
D2L_CELL("d2l/fused-chain", FusedChain);

// Prints a line: the cost of compiling, the time that it saves per call, and
// the number of calls after which it has paid.
Figure CallsToPay(Cell& cell, const Phrase& label, double cost, int calls,
                  const Timing& before, const Timing& after,
                  std::string* why = nullptr) {
  Figure figure = PerRepeat(
      Worded("calls to pay, %s", label), "calls", before.completion,
      after.completion, [&](double slow, double fast) {
        return std::min(cost * calls / std::max(slow - fast, 1e-12), 1e6);
      });
  const double saved =
      (before.completion.value.median - after.completion.value.median) / calls;
  if (saved > 0) figure = cell.Report(figure);  // otherwise it never pays
  std::cout << absl::StrFormat(
      "  %s%10s%14s%s\n", Padded(label, 30), FormatDuration(cost),
      FormatDuration(std::max(saved, 0.0)),
      saved > 0 ? absl::StrFormat("%12.0f", std::ceil(figure.value.median))
                : Padded("never", -12));
  if (why != nullptr) {
    *why = Say("Compiling costs %s, and saves %s in each call.",
               FormatDuration(cost), FormatDuration(std::max(saved, 0.0)));
  }
  return figure;
}

// The number of calls after which tracing a network has paid. *compiling is set
// to the time of tracing, *why to the costs in words.
Figure NetworkPays(Cell& cell, Device device, std::int64_t width,
                   Figure* compiling, std::string* why) {
  const int n = cell.BySize(50, 1000, 1000);
  const Tensor x = Randn({1, width}, device);
  nn::Hybrid net = CompiledMlp(width, device);
  const Timings t = cell.TimeInterleaved(
      {{Worded("statements, %d", width),
        {device},
        Loop(n, [&] { net.module()(x); })},
       {Worded("compiled, %d", width), {device}, Loop(n, [&] { net(x); })}});
  const Phrase name = Worded("network %d wide, traced", width);
  *compiling = cell.TimeHost(Worded("compiling, %s", name), [&] {
    const auto forward = [&](const std::vector<Tensor>& in) {
      return std::vector<Tensor>{net.module()(in[0])};
    };
    TraceAndOptimize(forward, {x}, "mlp");
  });
  return CallsToPay(cell, name, compiling->value.median, n, t[0], t[1], why);
}

// %% d2l/break-even, measured
// NetworkPays, CallsToPay and Chain stand above this cell.
void BreakEven(Cell& cell) {
  const Device device = TryGpu();
  std::cout << "  " << Padded("", 30) << Padded("costs", -10)
            << Padded("saves a call", -14) << Padded("pays after", -12) << "\n";
  Figure compiling, compiling_narrow;
  std::string why, why_narrow, why_cpp;
  const Figure narrow =
      NetworkPays(cell, device, 8, &compiling_narrow, &why_narrow);
  NetworkPays(cell, device, 512, &compiling, &why);

  const std::int64_t n = cell.BySize(100'000, 10'000'000, 50'000'000);
  const Device cpu = FusingDevice();
  const std::vector<Tensor> in = {Randn({n}, cpu), Randn({n}, cpu)};
  const auto chain = [](const std::vector<Tensor>& x) { return Chain(10, x); };
  const Figure tracing = cell.TimeHost(
      "compiling, chain", [&] { TraceAndOptimize(chain, in, "chain"); });
  const TemporaryDirectory cache;  // empty: the compiler has to run
  ir::CapturedOptions options = GenerateCpp();
  options.cache_directory = cache.path();
  const ir::Graph graph = TraceAndOptimize(chain, in, "chain");
  ir::Captured strips(graph), generated(graph, options);
  const Timings t = cell.TimeInterleaved(
      {{"statements, chain", {cpu}, [&] { chain(in); }},
       {"strips, chain", {cpu}, [&] { strips.Run(in); }},
       {"generated, chain", {cpu}, [&] { generated.Run(in); }}});
  CallsToPay(cell, "chain of 10, traced", tracing.value.median, 1, t[0], t[1]);
  const std::string& no_cpp = generated.not_generated();
  const Judgement compiler_pays =
      no_cpp.empty() ? Below(CallsToPay(cell, "chain of 10, C++ after strips",
                                        generated.compile_seconds(), 1, t[1],
                                        t[2], &why_cpp),
                             1000)
                     : NotMeasured();

  cell.Claim(
      "Tracing and all passes of the network take less than 1 ms: {}.",
      Below(compiling, 1e-3),
      Say("8 wide it takes %s.", FormatMedian(compiling_narrow.value, "s")));
  cell.Claim("8 wide, tracing has paid for itself within a thousand calls: {}.",
             Below(narrow, 1000), why_narrow);
  cell.Claim(
      "The C++ compiler has paid for itself within a thousand calls: {}.",
      compiler_pays,
      no_cpp.empty() ? why_cpp : Say("No generated C++: %s.", no_cpp));
}
// %%
D2L_CELL("d2l/break-even", BreakEven);

// Benchmarks, at the course's size.

// How often a cell runs its program.
constexpr int kCalls = 1000;

// Calls of a program that was compiled from its text.
bool BenchmarkText(const std::string& name, const char* level) {
  return BenchmarkHost(name, kCalls, [level] {
    const absl::StatusOr<int (*)()> evoke = CompileText(EvokeStr(), level);
    if (!evoke.ok()) throw std::runtime_error(evoke.status().ToString());
    return Loop(kCalls, [run = *evoke] {
      volatile const int result = run();  // so that no call is left out
      static_cast<void>(result);
    });
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

[[maybe_unused]] const bool benchmarks[] = {
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
