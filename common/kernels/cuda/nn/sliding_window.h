// A window that slides over images, as kernels use it: the place of an element
// by its number, and which elements of the input and of the output see each
// other.
//
//   const SlidingWindow window(args.window, args.images);
//   const SlidingWindow::PixelIndex p = window.OfOutput(e);
//   const Span rows = window.vertical.Inside(p.row);  // of the input
//
// Plain values and pure functions; thread-safe.

#ifndef D2L_COMMON_KERNELS_CUDA_NN_SLIDING_WINDOW_H_
#define D2L_COMMON_KERNELS_CUDA_NN_SLIDING_WINDOW_H_

#include <cstdint>

#include "common/kernels/cuda/index/divider.h"
#include "common/kernels/host_device.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels::cuda {

// The range [begin, end).
struct Span {
  std::int64_t begin, end;
};

// One of the two dimensions.
class SlidingAxis {
 public:
  SlidingAxis(std::int64_t size, std::int64_t out_size, std::int64_t kernel,
              std::int64_t stride, std::int64_t padding)
      : size_(size),
        out_size_(out_size),
        kernel_(kernel),
        stride_(stride),
        padding_(padding),
        by_stride_(stride, size + padding) {}

  // Where the window of an output begins; a negative number is in the padding.
  D2L_HOST_DEVICE std::int64_t Begin(std::int64_t out) const {
    return out * stride_ - padding_;
  }
  // The part of the input that an output sees, without the padding.
  D2L_HOST_DEVICE Span Inside(std::int64_t out) const {
    const std::int64_t begin = Begin(out);
    const std::int64_t end = begin + kernel_;
    return {begin < 0 ? 0 : begin, end < size_ ? end : size_};
  }
  // The outputs that see an element of the input.
  D2L_HOST_DEVICE Span SeenBy(std::int64_t in) const {
    const std::int64_t at = in + padding_;
    std::int64_t rest;
    const std::int64_t begin =
        at < kernel_ ? 0 : by_stride_.Split(at - kernel_, &rest) + 1;
    const std::int64_t end = by_stride_.Split(at, &rest) + 1;
    return {begin, end < out_size_ ? end : out_size_};
  }

  D2L_HOST_DEVICE std::int64_t size() const { return size_; }
  D2L_HOST_DEVICE std::int64_t out_size() const { return out_size_; }
  D2L_HOST_DEVICE std::int64_t kernel() const { return kernel_; }

 private:
  std::int64_t size_, out_size_, kernel_, stride_, padding_;
  Splitter by_stride_;
};

struct SlidingWindow {
  struct PixelIndex {
    std::int64_t image, row, column;
  };

  SlidingWindow(const Window2d& w, std::int64_t images)
      : vertical(w.height, w.out_height, w.kernel_height, w.stride_height,
                 w.padding_height),
        horizontal(w.width, w.out_width, w.kernel_width, w.stride_width,
                   w.padding_width),
        inputs(images * w.height * w.width),
        outputs(images * w.out_height * w.out_width),
        by_height(w.height, inputs),
        by_width(w.width, inputs),
        by_out_height(w.out_height, outputs),
        by_out_width(w.out_width, outputs) {}

  D2L_HOST_DEVICE PixelIndex OfInput(std::int64_t e) const {
    return At(e, by_height, by_width);
  }
  D2L_HOST_DEVICE PixelIndex OfOutput(std::int64_t e) const {
    return At(e, by_out_height, by_out_width);
  }
  // The number of elements of an image.
  D2L_HOST_DEVICE std::int64_t image_size() const {
    return vertical.size() * horizontal.size();
  }
  D2L_HOST_DEVICE std::int64_t out_image_size() const {
    return vertical.out_size() * horizontal.out_size();
  }
  // The number of elements of a window.
  D2L_HOST_DEVICE std::int64_t area() const {
    return vertical.kernel() * horizontal.kernel();
  }

  SlidingAxis vertical, horizontal;
  std::int64_t inputs, outputs;  // of all images
  Splitter by_height, by_width, by_out_height, by_out_width;

 private:
  D2L_HOST_DEVICE static PixelIndex At(std::int64_t e, const Splitter& height,
                                       const Splitter& width) {
    PixelIndex pixel;
    pixel.image = height.Split(width.Split(e, &pixel.column), &pixel.row);
    return pixel;
  }
};

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_NN_SLIDING_WINDOW_H_
