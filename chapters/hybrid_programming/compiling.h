// What lesson.cc and networks.cc use of each other: how programs are compiled.
//
//   nn::Hybrid net = CompiledMlp(512, TryGpu());
//   net(Randn({1, 512}, TryGpu()));
//
// Threads and errors: as the functions that they call.

#ifndef D2L_CHAPTERS_HYBRID_PROGRAMMING_COMPILING_H_
#define D2L_CHAPTERS_HYBRID_PROGRAMMING_COMPILING_H_

#include <cstdint>
#include <vector>

#include "common/d2l.h"

namespace d2l::hybrid_programming {

// Traces the function, and runs all passes: lesson.cc.
ir::Graph TraceAndOptimize(const ir::TensorFunction& function,
                           const std::vector<Tensor>& inputs, const char* name);
// Options for an ir::Captured that runs generated C++: lesson.cc.
ir::CapturedOptions GenerateCpp();

// Layers of n, n/2, n/4 and 2 (d2l 13.1, where n is 512). CompiledMlp's has
// been called once, and is compiled: networks.cc.
nn::Sequential Mlp(std::int64_t n, Device device);
nn::Hybrid CompiledMlp(std::int64_t n, Device device);

}  // namespace d2l::hybrid_programming

#endif  // D2L_CHAPTERS_HYBRID_PROGRAMMING_COMPILING_H_
