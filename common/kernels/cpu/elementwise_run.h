// Runs a loop (elementwise_loops.h) over all elements of an operation: on a
// device's cores, with non-temporal stores, over strided rows.
//
//   ContiguousLoop add = {loop, out, 4, numel, {a, b}, {4, 4}};
//   RunContiguous(add);
//
// Called by the worker of a stream. Nothing is allocated, nothing fails.

#ifndef D2L_COMMON_KERNELS_CPU_ELEMENTWISE_RUN_H_
#define D2L_COMMON_KERNELS_CPU_ELEMENTWISE_RUN_H_

#include <cstdint>

#include "common/kernels/cpu/elementwise_loops.h"
#include "common/kernels/layout.h"
#include "common/tensor/shape.h"

namespace d2l::kernels::cpu {

// An operation of at most this size is one call of its loop, or of memcpy.
inline constexpr std::int64_t kLargeBytes = 1 << 16;

// All operands are contiguous. Sizes are those of an element in bytes; an
// input's size is 0 if the input is one number.
struct ContiguousLoop {
  LoopFn loop;
  void* out;
  int out_size;
  std::int64_t numel;
  const void* in[kMaxInputs];
  int in_size[kMaxInputs];
};

void RunContiguous(const ContiguousLoop& loop);

// Copies bytes in the same way.
void CopyContiguous(void* out, const void* in, std::int64_t bytes);

// The address of elements, or the bytes of one number.
union Source {
  const void* data;
  alignas(8) unsigned char number[8];
};

enum class Walk : std::uint8_t {
  // Copies the only input, whose elements have the output's size.
  kCopy,
  // The loop runs along the last dimension, where every stride is 1, or 0 for a
  // scalar.
  kRows,
  // The loop runs over small blocks, for which operands are made contiguous.
  // All strides of a scalar are 0.
  kTiles,
};

// Operands with strides; operand 0 is the output. kRank and Stride are the
// largest rank and the type of the strides.
template <int kInputs, int kRank, typename Stride>
struct Strided {
  LoopFn loop;  // not for kCopy
  Source source[1 + kInputs];
  Stride strides[1 + kInputs][kRank];
  Stride shape[kRank];
  bool is_number[1 + kInputs];     // whether source is one; all strides are 0
  bool is_scalar[1 + kInputs];     // for the loop; see Walk
  std::uint8_t size[1 + kInputs];  // of an element in bytes
  std::uint8_t inputs;
  std::uint8_t rank;  // at least 1
  Walk walk;
};
using StridedLoop = Strided<kMaxInputs, kMaxRank, std::int64_t>;

void RunStrided(const StridedLoop& loop);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_ELEMENTWISE_RUN_H_
