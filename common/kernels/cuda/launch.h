// Launch: starts a family's kernels on a GPU. kernels.h says what they compute;
// enqueue.cc makes operations of them.
//
//   stream.Launch(label, [&](const CudaLaunch& launch) {
//     Launch(launch, args);
//   });
//
// A launcher starts its kernels on launch.stream and returns; it does not wait,
// and leaves a failed launch to cudaGetLastError. It throws
// std::invalid_argument for arguments that it cannot launch at all, such as a
// dimension too long for a kernel; a product or a convolution throws
// std::runtime_error if cuBLAS is needed and not found, or refuses.
// Thread-safe, as long as the stream lives.

#ifndef D2L_COMMON_KERNELS_CUDA_LAUNCH_H_
#define D2L_COMMON_KERNELS_CUDA_LAUNCH_H_

#include <cstddef>
#include <cstdint>

#include "common/device/cuda/cuda_launch.h"
#include "common/kernels/cuda/index/gemm_call.h"
#include "common/kernels/kernels.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {

void Launch(const CudaLaunch& launch, const FillArgs& args);
void Launch(const CudaLaunch& launch, const ArangeArgs& args);
void Launch(const CudaLaunch& launch, const RandomArgs& args);
void Launch(const CudaLaunch& launch, const CopyArgs& args);
void Launch(const CudaLaunch& launch, const UnaryArgs& args);
void Launch(const CudaLaunch& launch, const BinaryArgs& args);
void Launch(const CudaLaunch& launch, const WhereArgs& args);
void Launch(const CudaLaunch& launch, const FusedArgs& args);
void Launch(const CudaLaunch& launch, const SoftmaxArgs& args);
// cuBLAS computes it, or a kernel of our own if it is small (gemm_call.h says
// which).
void Launch(const CudaLaunch& launch, const MatMulArgs& args);
void Launch(const CudaLaunch& launch, const CatArgs& args);
void Launch(const CudaLaunch& launch, const IndexArgs& args);
void Launch(const CudaLaunch& launch, const Pool2dArgs& args);
void Launch(const CudaLaunch& launch, const CrossEntropyArgs& args);
void Launch(const CudaLaunch& launch, const AxpbyArgs& args);
void Launch(const CudaLaunch& launch, const AxpbyListArgs& args);

// ---- Device memory that a kernel needs as workspace, in bytes. The pointer is
// aligned to 16, valid until the kernels have run, and null for 0 bytes.

std::size_t WorkspaceBytes(const ReduceArgs& args);  // 0 for most
void Launch(const CudaLaunch& launch, const ReduceArgs& args, void* workspace);

// At most 64 MB, or the size for one image: images are processed in groups. 0
// if no patches are stored.
std::size_t WorkspaceBytes(const Conv2dArgs& args);
void Launch(const CudaLaunch& launch, const Conv2dArgs& args, void* workspace);

std::size_t WorkspaceBytes(const BatchNormArgs& args);
void Launch(const CudaLaunch& launch, const BatchNormArgs& args,
            void* workspace);

std::size_t WorkspaceBytes(const IndexAddArgs& args);
void Launch(const CudaLaunch& launch, const IndexAddArgs& args,
            void* workspace);

// The other families need no workspace.
template <typename Args>
std::size_t WorkspaceBytes(const Args&) {
  return 0;
}
template <typename Args>
void Launch(const CudaLaunch& launch, const Args& args, void*) {
  Launch(launch, args);
}

// ---- Parts of a family.

// Calls f(T{}), T float or double.
template <class F>
void VisitFloat(DType dtype, F f) {
  if (dtype == DType::kFloat64) {
    f(double{});
  } else {
    f(float{});
  }
}

// A product by a library: in blas_gemm.cc by cuBLAS, in emulated_gemm.cc for
// tests without a GPU. Throws std::runtime_error if cuBLAS is not found or
// refuses.
void LaunchBlasGemm(const CudaLaunch& launch, DType dtype,
                    const GemmCall& call);

// A convolution whose patches are never stored: forward or, at stride 1, the
// gradient of the input; of float32, and FitsImplicit(args) (implicit_conv.h).
void LaunchImplicitConv(const CudaLaunch& launch, const Conv2dArgs& args);

// Arguments of im2col and col2im. `patches` is a matrix of what the windows
// see, in `channels` channels of `batch` images: its rows are (channels,
// kernel_height, kernel_width), its columns (batch, out_height, out_width). x
// is (batch, channels, height, width).
struct Im2colArgs {
  DType dtype;
  std::int64_t batch, channels;
  Window2d window;
};
void LaunchIm2col(const CudaLaunch& launch, const Im2colArgs& args,
                  void* patches, const void* x);
// The reverse: each element of x is the sum of its places in the patches.
void LaunchCol2im(const CudaLaunch& launch, const Im2colArgs& args, void* x,
                  const void* patches);

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_LAUNCH_H_
