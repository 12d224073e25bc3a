// The programs that this chapter compiles, for its lesson and its benchmarks.
// Pure functions.

#ifndef D2L_CHAPTERS_HYBRID_PROGRAMMING_PROGRAMS_H_
#define D2L_CHAPTERS_HYBRID_PROGRAMMING_PROGRAMS_H_

#include <cstdint>
#include <vector>

#include "common/device/device.h"
#include "common/graph/captured.h"
#include "common/graph/ir.h"
#include "common/graph/trace.h"
#include "common/nn/layers.h"
#include "common/tensor/tensor.h"

namespace d2l::hybrid {

// The course's (000/In1): (a + b) + (c + d), each sum in a call.
Tensor FancyFunc(const Tensor& a, const Tensor& b, const Tensor& c,
                 const Tensor& d);
// The same for ir::Trace.
std::vector<Tensor> FancyFuncOf(const std::vector<Tensor>& abcd);

// Layers of n, n/2, n/4 and 2 (d2l 13.1, where n is 512).
nn::Sequential Mlp(std::int64_t n, Device device);

// The products of an MLP's layers, one after the other, and nothing else.
ir::TensorFunction ProductsOf(const nn::Module& mlp);

// So many element-wise operations, in turn x + y and x * 0.5. `in` is x and y.
std::vector<Tensor> Chain(int operations, const std::vector<Tensor>& in);

// Trace and all passes.
ir::Graph TraceAndOptimize(const ir::TensorFunction& function,
                           const std::vector<Tensor>& inputs, const char* name);

}  // namespace d2l::hybrid

#endif  // D2L_CHAPTERS_HYBRID_PROGRAMMING_PROGRAMS_H_
