// The sum of several arrays, in the order in which they are given.
//
//   EnqueueOrderedSum(stream, label, {DType::kFloat32, n, out, {x, y, z}});
//   // out[i] = (x[i] + y[i]) + z[i], in one pass over memory
//
// All are contiguous, in memory of CPU devices; out may be one of the inputs.
// The result does not depend on how many threads compute it.
//
// Thread-safe.

#ifndef D2L_COMMON_KERNELS_CPU_ORDERED_SUM_H_
#define D2L_COMMON_KERNELS_CPU_ORDERED_SUM_H_

#include <cstdint>
#include <vector>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/op_label.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cpu {

struct OrderedSumArgs {
  DType dtype;
  std::int64_t numel;
  void* out;
  std::vector<const void*> inputs;  // at least two
};

// Computes the sum in the calling thread and its helpers (parallel_for.h).
void OrderedSum(const OrderedSumArgs& args);
// Returns the operation's number in the stream.
std::uint64_t EnqueueOrderedSum(CpuStream& stream, const OpLabel& label,
                                OrderedSumArgs args);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_ORDERED_SUM_H_
