// The steps of the cell d2l/kernel-ladder: a matrix product as a kernel, each
// step with more operations for each byte that it moves.
//
// The kernels are compiled twice: for the model of a GPU, which checks them and
// counts what their warps ask of memory, on every machine; and by nvcc in
// builds with --config=cuda.

#ifndef D2L_CHAPTERS_PROFILING_LADDERS_KERNEL_LADDER_H_
#define D2L_CHAPTERS_PROFILING_LADDERS_KERNEL_LADDER_H_

#include <vector>

namespace d2l {
class Tensor;
}  // namespace d2l

namespace d2l::profiling {

// The sides of all matrices are multiples of this.
inline constexpr int kLadderSide = 64;

struct KernelStep {
  const char* name;
  // c = a b: n x n, row-major.
  void (*kernel)(float* c, const float* a, const float* b, int n);
  // What a block computes of c, and its threads. Blocks go along columns in x
  // and along rows in y, or the other way round.
  int rows, columns;
  unsigned threads_x, threads_y;
  bool rows_in_x = false;

  unsigned blocks_x(int n) const { return n / (rows_in_x ? rows : columns); }
  unsigned blocks_y(int n) const { return n / (rows_in_x ? columns : rows); }
};

std::vector<KernelStep> StepsForModel();
// As compiled by nvcc; empty in builds without CUDA.
std::vector<KernelStep> StepsForGpu();

// Enqueues a step of StepsForGpu on the current stream of c's GPU. All are
// contiguous, of float32, and live until it is done.
void EnqueueStep(const KernelStep& step, const Tensor& c, const Tensor& a,
                 const Tensor& b);

}  // namespace d2l::profiling

#endif  // D2L_CHAPTERS_PROFILING_LADDERS_KERNEL_LADDER_H_
