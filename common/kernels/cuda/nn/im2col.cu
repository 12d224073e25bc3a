// im2col and col2im.

#include <cstdint>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/nn/sliding_window.h"
#include "common/kernels/cuda/start_kernel.cuh"

namespace d2l::kernels::cuda {
namespace {

// The patches' columns and x's images lie one after the other, channel by
// channel and image by image.
struct Patches {
  explicit Patches(const Im2colArgs& args)
      : window(args.window, args.channels * args.batch),
        channels(args.channels),
        batch(args.batch),
        columns(batch * window.out_image_size()),
        by_batch(batch, channels * batch),
        by_channels(channels, channels * batch) {}

  SlidingWindow window;
  std::int64_t channels, batch;
  std::int64_t columns;  // of the patches
  Splitter by_batch, by_channels;
};

// A thread has one channel of a column: all that one window sees there. Its
// neighbour has the next column, which is written next to it, and reads mostly
// the same elements.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    Im2colKernel(T* __restrict__ out, const T* __restrict__ x, Patches p) {
  const SlidingAxis& vertical = p.window.vertical;
  const SlidingAxis& horizontal = p.window.horizontal;
  for (std::int64_t e = ThreadInGrid(); e < p.window.outputs;
       e += ThreadsOfGrid()) {
    const SlidingWindow::PixelIndex pixel = p.window.OfOutput(e);
    std::int64_t n;
    const std::int64_t channel = p.by_batch.Split(pixel.image, &n);
    const T* const image =
        x + (n * p.channels + channel) * p.window.image_size();
    // Column e - channel * columns of the channel's first row.
    T* to = out + channel * (p.window.area() - 1) * p.columns + e;
    const std::int64_t top = vertical.Begin(pixel.row);
    const std::int64_t left = horizontal.Begin(pixel.column);
    for (std::int64_t i = top; i < top + vertical.kernel(); ++i) {
      const bool in_rows = i >= 0 && i < vertical.size();
#pragma unroll 4
      for (std::int64_t j = left; j < left + horizontal.kernel(); ++j) {
        const bool inside = in_rows && j >= 0 && j < horizontal.size();
        *to = inside ? image[i * horizontal.size() + j] : T{0};
        to += p.columns;
      }
    }
  }
}

// Computes an element of x from all windows that see it, in a fixed order.
template <typename T>
struct Col2im {
  const T* patches;
  Patches p;

  __device__ T operator()(std::int64_t e) const {
    const SlidingWindow::PixelIndex pixel = p.window.OfInput(e);
    const SlidingAxis& vertical = p.window.vertical;
    const SlidingAxis& horizontal = p.window.horizontal;
    const Span rows = vertical.SeenBy(pixel.row);
    const Span columns = horizontal.SeenBy(pixel.column);
    std::int64_t channel;
    const std::int64_t n = p.by_channels.Split(pixel.image, &channel);
    const T* const from = patches + channel * p.window.area() * p.columns +
                          n * p.window.out_image_size();
    T sum = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      const std::int64_t tap =
          (pixel.row - vertical.Begin(i)) * horizontal.kernel();
#pragma unroll 4
      for (std::int64_t j = columns.begin; j < columns.end; ++j) {
        sum += from[(tap + pixel.column - horizontal.Begin(j)) * p.columns +
                    i * horizontal.out_size() + j];
      }
    }
    return sum;
  }
};

}  // namespace

void LaunchIm2col(const CudaLaunch& launch, const Im2colArgs& args,
                  void* patches, const void* x) {
  const Patches p(args);
  if (p.window.outputs == 0) return;
  VisitFloat(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    StartGrid(launch, p.window.outputs, 1, Im2colKernel<T>,
              static_cast<T*>(patches), static_cast<const T*>(x), p);
  });
}

void LaunchCol2im(const CudaLaunch& launch, const Im2colArgs& args, void* x,
                  const void* patches) {
  const Patches p(args);
  VisitFloat(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    ForEach<T>(launch, x, p.window.inputs,
               Col2im<T>{static_cast<const T*>(patches), p});
  });
}

}  // namespace d2l::kernels::cuda
