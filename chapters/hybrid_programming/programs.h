// The programs that this chapter teaches: its lesson judges them, its
// benchmarks time them. programs.cc marks each with its cells' ids.
//
//   nn::Hybrid net = CompiledMlp(512, TryGpu());
//   net(Randn({1, 512}, TryGpu()));
//
// Threads and errors: as the functions that they call.

#ifndef D2L_CHAPTERS_HYBRID_PROGRAMMING_PROGRAMS_H_
#define D2L_CHAPTERS_HYBRID_PROGRAMMING_PROGRAMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/d2l.h"
#include "common/lesson/cell/cell.h"

namespace d2l::hybrid_programming {

// The course's function (000/In1): (a + b) + (c + d), each sum in a call.
// OneToFour makes its inputs: vectors of n ones, twos, threes and fours.
std::vector<Tensor> FancyFunc(const std::vector<Tensor>& abcd);
std::vector<Tensor> OneToFour(std::int64_t n, Device device);

// Traces the function, and runs all passes.
ir::Graph TraceAndOptimize(const ir::TensorFunction& function,
                           const std::vector<Tensor>& inputs, const char* name);
// Options for an ir::Captured that runs generated C++.
ir::CapturedOptions GenerateCpp();

// The text of a program, in C++ (001/c2), and its function evoke, compiled at
// this level of optimisation: "-O0", "-O2".
std::string EvokeStr();
absl::StatusOr<int (*)()> CompileText(const std::string& prog,
                                      const std::string& level);

// Layers of n, n/2, n/4 and 2 (d2l 13.1, where n is 512). CompiledMlp's has
// been called once, and is compiled.
nn::Sequential Mlp(std::int64_t n, Device device);
nn::Hybrid CompiledMlp(std::int64_t n, Device device);

// The products of an MLP's layers, one after the other, and nothing else.
ir::TensorFunction ProductsOf(const nn::Module& mlp);

// Element-wise operations, in turn x + y and x * 0.5. `in` is x and y.
std::vector<Tensor> Chain(int operations, const std::vector<Tensor>& in);

// Saves an Mlp as PREFIX.safetensors. *y is set to its output for x.
absl::Status SaveMlp(const Tensor& x, const std::string& prefix, Tensor* y);

// Cells: networks.cc
void MlpProgram(Cell& cell);
void HybridizeMlp(Cell& cell);
void WidthSweep(Cell& cell);
void HybridizeSave(Cell& cell);
void ThreeSurprises(Cell& cell);

}  // namespace d2l::hybrid_programming

#endif  // D2L_CHAPTERS_HYBRID_PROGRAMMING_PROGRAMS_H_
