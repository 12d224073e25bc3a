// C++ generated from a program: a function for each of its fused regions.
//
//   ir::Optimize(graph);
//   const ir::GeneratedCpp code = ir::GenerateCpp(graph);
//   std::cout << code.source;  // to be read, and what a compiler gets
//
// prints, for f(x, b) = Relu(x * 2 + b),
//
//   extern "C" void f_0(void* const* memory, const Loop*, int64_t n) {
//     const float* const v0 = (const float*)memory[0];  // float32[3, 4]
//     const float* const v1 = (const float*)memory[1];  // float32[4]
//     float* const v4_out = (float*)memory[2];  // float32[3, 4]
//     INDEPENDENT
//     for (int64_t i = 0; i < n; ++i) {
//       const float v2 = v0[i] * 2.0f;
//       const float v3 = v2 + v1[i];
//       const float v4 = relu(v3);
//       v4_out[i] = v4;
//     }
//   }
//
// A function computes one strip of a region (strips.h): `memory` is where the
// strip begins in each argument and result. Operations without a formula among
// the cheap ones (Forms in cpp_code.cc), such as exp, and conversions to
// integers are calls of the kernels' own loops, between loops of the cheap
// ones: one loop for several calls runs out of registers.
//
// Results are bit for bit those of the kernels if the source is compiled with
// CppFlags(); but the sign and the payload of a NaN are those of either
// operand, depending on how the compiler orders them.
//
// Pure functions. Names in the graph may be hostile: only their letters, digits
// and underscores reach the code.

#ifndef D2L_COMMON_GRAPH_GENERATED_CPP_CODE_H_
#define D2L_COMMON_GRAPH_GENERATED_CPP_CODE_H_

#include <string>
#include <vector>

#include "common/graph/ir.h"
#include "common/kernels/cpu/elementwise_loops.h"

namespace d2l::ir {

struct GeneratedRegion {
  std::string name;  // of its RegionFn (strips.h); "" if there is none
  std::vector<kernels::cpu::LoopFn> loops;  // the loops that it calls
};

struct GeneratedCpp {
  std::string source;
  // The fused regions of the graph's main function, in their order.
  std::vector<GeneratedRegion> regions;
};

// `graph` is valid, and its calls are inlined (Inline).
GeneratedCpp GenerateCpp(const Graph& graph);

// The compiler's flags for the source, on this processor.
std::vector<std::string> CppFlags();

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_GENERATED_CPP_CODE_H_
