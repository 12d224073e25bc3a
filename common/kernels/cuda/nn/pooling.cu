// Pooling. In a gradient each element of the input looks for the windows that
// see it: no two threads add to the same pixel, and the order is fixed.

#include <cstdint>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/nn/sliding_window.h"
#include "common/kernels/cuda/start_kernel.cuh"

namespace d2l::kernels::cuda {
namespace {

using PixelIndex = SlidingWindow::PixelIndex;

template <typename T>
struct MeanOfWindow {
  const T* in;
  SlidingWindow window;

  __device__ T operator()(std::int64_t e) const {
    const PixelIndex pixel = window.OfOutput(e);
    const Span rows = window.vertical.Inside(pixel.row);
    const Span columns = window.horizontal.Inside(pixel.column);
    const T* const image = in + pixel.image * window.image_size();
    T sum = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
#pragma unroll 4
      for (std::int64_t j = columns.begin; j < columns.end; ++j) {
        sum += image[i * window.horizontal.size() + j];
      }
    }
    return sum / static_cast<T>(window.area());
  }
};

template <typename T>
struct MeanGradient {
  const T* dy;
  SlidingWindow window;

  __device__ T operator()(std::int64_t e) const {
    const PixelIndex pixel = window.OfInput(e);
    const Span rows = window.vertical.SeenBy(pixel.row);
    const Span columns = window.horizontal.SeenBy(pixel.column);
    const T* const image = dy + pixel.image * window.out_image_size();
    T sum = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      for (std::int64_t j = columns.begin; j < columns.end; ++j) {
        sum += image[i * window.horizontal.out_size() + j];
      }
    }
    return sum / static_cast<T>(window.area());
  }
};

template <typename T>
struct Largest {
  T value;
  std::int64_t at;  // in the image
};

// Finds the first of the largest in reading order, or the last NaN.
template <typename T>
__device__ Largest<T> LargestInWindow(const T* image,
                                      const SlidingWindow& window,
                                      std::int64_t row, std::int64_t column) {
  const Span rows = window.vertical.Inside(row);
  const Span columns = window.horizontal.Inside(column);
  std::int64_t at = rows.begin * window.horizontal.size() + columns.begin;
  Largest<T> largest = {image[at], at};
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
#pragma unroll 4
    for (std::int64_t j = columns.begin; j < columns.end; ++j) {
      at = i * window.horizontal.size() + j;
      const T x = image[at];
      if (x > largest.value || x != x) largest = {x, at};
    }
  }
  return largest;
}

template <typename T>
struct MaxOfWindow {
  const T* in;
  SlidingWindow window;

  __device__ T operator()(std::int64_t e) const {
    const PixelIndex pixel = window.OfOutput(e);
    return LargestInWindow(in + pixel.image * window.image_size(), window,
                           pixel.row, pixel.column)
        .value;
  }
};

template <typename T>
struct MaxGradient {
  const T* dy;
  const T* in;
  SlidingWindow window;

  __device__ T operator()(std::int64_t e) const {
    const PixelIndex pixel = window.OfInput(e);
    const Span rows = window.vertical.SeenBy(pixel.row);
    const Span columns = window.horizontal.SeenBy(pixel.column);
    const T* const image = in + pixel.image * window.image_size();
    const T* const gradient = dy + pixel.image * window.out_image_size();
    const std::int64_t index =
        pixel.row * window.horizontal.size() + pixel.column;
    T sum = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      for (std::int64_t j = columns.begin; j < columns.end; ++j) {
        if (LargestInWindow(image, window, i, j).at != index) continue;
        sum += gradient[i * window.horizontal.out_size() + j];
      }
    }
    return sum;
  }
};

template <typename T>
void Run(const CudaLaunch& launch, const Pool2dArgs& args) {
  const SlidingWindow window(args.window, args.images);
  const T* const in = static_cast<const T*>(args.in);
  switch (args.op) {
    case Pool2dOp::kAvg:
      return ForEach<T>(launch, args.out, window.outputs,
                        MeanOfWindow<T>{in, window});
    case Pool2dOp::kMax:
      return ForEach<T>(launch, args.out, window.outputs,
                        MaxOfWindow<T>{in, window});
    case Pool2dOp::kAvgGradient:
      return ForEach<T>(launch, args.out, window.inputs,
                        MeanGradient<T>{in, window});
    case Pool2dOp::kMaxGradient:
      return ForEach<T>(
          launch, args.out, window.inputs,
          MaxGradient<T>{in, static_cast<const T*>(args.forward_input),
                         window});
  }
}

}  // namespace

void Launch(const CudaLaunch& launch, const Pool2dArgs& args) {
  VisitFloat(args.dtype, [&](auto zero) { Run<decltype(zero)>(launch, args); });
}

}  // namespace d2l::kernels::cuda
