// Convolution on the CPU (Conv2dArgs, kernels.h): as matrix products of the
// patches that the kernel sees (im2col), or by Winograd's algorithm.
//
//   Conv2d<float>(args);  // by the device's cores, as gemm.h says
//
// An image's result, and its gradient, have the same bits whatever else is in
// the batch. The gradient of the weight is summed over groups of images from
// the first to the last; the images' sizes determine the groups.
//
// Thread-safety: any thread may call these. Each keeps its workspace for its
// next call: a megabyte or so for patches, four times the largest weight, and
// more, for Winograd's algorithm. Throws std::bad_alloc if it cannot get that.

#ifndef D2L_COMMON_KERNELS_CPU_NN_CONVOLUTION_H_
#define D2L_COMMON_KERNELS_CPU_NN_CONVOLUTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "common/kernels/kernels.h"

namespace d2l::kernels::cpu {

// T is float or double.
template <typename T>
void Conv2d(const Conv2dArgs& args);

// ---- im2col and col2im (torch.nn.functional.unfold and fold): a matrix of
// patches, the parts of the images that the kernel sees.
//
//   const Im2colRange range = {0, channels, 0, 4 * window.out_height};
//   Im2col(args, range, x, patches);  // of four images
//
// Row (c, kh, kw), for each channel of the range, is element (kh, kw) of the
// window in channel c; column (n, oh, ow), for each row of outputs, that
// position of the window in image n. x and patches are of args.dtype.

struct Im2colRange {
  std::int64_t first_channel, last_channel;  // up to last_channel - 1
  // Of the rows (n, oh) of all outputs, [first_row, last_row).
  std::int64_t first_row, last_row;
};

// Copies the patches of x, with zeros for the padding.
void Im2col(const Conv2dArgs& args, const Im2colRange& range, const void* x,
            void* patches);

// Copies columns [first_tap, first_tap + count) of the transpose of that
// matrix, at most kPatchPanel, for the rows of outputs [first_row, last_row):
// a panel that a product reads as it is. Its rows are kPatchPanel elements
// apart. What is between them, and kBehindPanel elements behind the last, is
// undefined.
inline constexpr std::int64_t kPatchPanel = 48;
inline constexpr std::int64_t kBehindPanel = 16;
void Im2row(const Conv2dArgs& args, std::int64_t first_row,
            std::int64_t last_row, std::int64_t first_tap, std::int64_t count,
            const void* x, void* panel);

// Writes to each element of x the sum of its copies in the patches. The range
// consists of whole images.
void Col2im(const Conv2dArgs& args, const Im2colRange& range,
            const void* patches, void* x);

// ---- Winograd's algorithm, as Lavin and Gray (2015) describe it for
// networks: F(4x4, 3x3). A 3 x 3 kernel of stride 1 is computed for tiles of
// 4 x 4 outputs, each from 6 x 6 inputs: with 36 multiplications for an input
// and an output channel, where the definition has 144, and transforms before
// and behind, whose cost many channels share.
//
//   if (WinogradPays(args) && WinogradConv2d(args)) return;
//   …  // by the definition
//
// The gradients are computed in this way, too: the input's is a convolution of
// the output's, and the weight's is the transpose of the algorithm.
//
// Errors are larger than the definition's. Of normally distributed numbers and
// 64 to 512 channels, their root mean square is 0.7e-6 to 2e-6 of the results'
// (the definition's: 0.2e-6 to 0.4e-6), the largest 2e-5 of it (4e-6). Where
// the inputs of a tile differ so much that an output could be wrong, or one is
// enormous, infinite or NaN, the tile's outputs are computed by the definition.

// Whether the algorithm applies and is faster than the definition. It applies
// to float32. Speed is judged by the sizes of the convolution without its
// batch, so that an image's result does not depend on the batch.
bool WinogradPays(const Conv2dArgs& args);

// False if all of it has to be computed by the definition, because numbers are
// enormous, infinite or NaN: the weight's or, for its gradient, any.
bool WinogradConv2d(const Conv2dArgs& args);

// ---- Memory of the calling thread that lasts until its next call. A thread
// keeps it until it ends, also one that has computed parts while it waited.
//
//   T* patches = Workspace<T>(Borrower::kPart, rows * columns);

// The borrower of the memory. A part of an operation (parallel_for.h) may run
// on the operation's own thread, so the two need different memory.
enum class Borrower { kOperation, kPart };

// At least `count` elements, aligned to cache lines, of any content. Throws
// std::bad_alloc.
template <typename T>
T* Workspace(Borrower borrower, std::int64_t count) {
  struct Delete {
    void operator()(std::byte* p) const {
      ::operator delete (p, std::align_val_t{64});
    }
  };
  struct Memory {
    std::unique_ptr<std::byte, Delete> data;
    std::size_t bytes = 0;
  };
  thread_local Memory memories[2];
  Memory& memory = memories[static_cast<int>(borrower)];
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
  if (memory.bytes < bytes) {
    memory.data.reset();
    memory.bytes = 0;
    memory.data.reset(
        static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64})));
    memory.bytes = bytes;
  }
  return reinterpret_cast<T*>(memory.data.get());
}

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_NN_CONVOLUTION_H_
