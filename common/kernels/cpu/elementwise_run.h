// What drives a loop_fn (elementwise_blocks.h) over all elements of an
// operation: on a device's cores, past the caches, over rows that are not side
// by side.
//
//   if (numel * out_size <= kLargeBytes) loop_fn(out, a, b, nullptr, numel);
//   else RunLarge({loop_fn, {out, 4, …}, {{a, 4, …}, {b, 4, …}}, numel});
//
// Called by the worker of a stream. Nothing is allocated, nothing fails.

#ifndef D2L_COMMON_KERNELS_CPU_ELEMENTWISE_RUN_H_
#define D2L_COMMON_KERNELS_CPU_ELEMENTWISE_RUN_H_

#include <cstdint>

#include "common/kernels/cpu/elementwise_loops.h"
#include "common/kernels/layout.h"
#include "common/tensor/shape.h"

namespace d2l::kernels::cpu {

// Up to here an operation is one call of its loop_fn.
inline constexpr std::int64_t kLargeBytes = 1 << 16;

// All operands contiguous. size: of an element in bytes, 0 for a number, which
// stays where it is.
struct ContiguousLoop {
  LoopFn loop_fn;
  void* out;
  int out_size;
  const void* in[kMaxInputs];
  int in_size[kMaxInputs];
  std::int64_t numel;
};

void RunLarge(const ContiguousLoop& loop);

// Copies bytes, likewise.
void CopyLarge(void* out, const void* in, std::int64_t bytes);

struct StridedOperand {
  char* data;
  int size;     // of an element in bytes
  bool number;  // for the loop_fn; see by_rows
  std::int64_t strides[kMaxRank];
};

struct StridedLoop {
  LoopFn loop_fn;  // null: copies the first input, of elements of the same size
  // The loop_fn is called on parts of rows: along the last dimension, strides
  // are 1, and 0 for a number. Otherwise all strides of a number are 0.
  bool by_rows;
  int inputs;
  int rank;  // at least 1
  std::int64_t shape[kMaxRank];
  StridedOperand out;
  StridedOperand in[kMaxInputs];
};

void RunStrided(const StridedLoop& loop);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_ELEMENTWISE_RUN_H_
