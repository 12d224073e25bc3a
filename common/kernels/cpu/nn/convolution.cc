#include "common/kernels/cpu/nn/convolution.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/gemm.h"
#include "common/kernels/cpu/nn/patches.h"
#include "common/kernels/cpu/nn/scratch.h"
#include "common/kernels/cpu/nn/winograd.h"

namespace d2l::kernels::cpu {
namespace {

// The columns of a matrix of patches: as many as a product needs to be fast,
// and few enough for its rows to stay in the second cache.
constexpr std::int64_t kColumns = 256;
// The elements of a matrix of patches of a gradient.
constexpr std::int64_t kPatchElements = 1 << 17;

constexpr std::int64_t CeilDiv(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

template <typename T>
class Convolution {
 public:
  explicit Convolution(const Conv2dArgs& args)
      : args_(args),
        first_(static_cast<const T*>(args.first)),
        second_(static_cast<const T*>(args.second)),
        out_(static_cast<T*>(args.out)),
        plane_(args.window.out_height * args.window.out_width),
        taps_(args.window.kernel_height * args.window.kernel_width),
        depth_(args.in_channels * taps_),
        images_(CeilDiv(kColumns, plane_)) {}

  // y = weight * patches, for some rows of an image, or for some images, at a
  // time.
  void Forward() const {
    const std::int64_t height = args_.window.out_height;
    const std::int64_t rows =
        images_ > 1
            ? images_ * height
            : std::min(height, CeilDiv(kColumns, args_.window.out_width));
    const std::int64_t pieces = images_ > 1 ? 1 : CeilDiv(height, rows);
    ParallelFor(pieces * CeilDiv(args_.batch, images_), 1,
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    const std::int64_t image = i / pieces * images_;
                    const std::int64_t row = i % pieces * rows;
                    const std::int64_t last =
                        images_ > 1
                            ? std::min(image + images_, args_.batch) * height
                            : image * height + std::min(row + rows, height);
                    ForwardRows(image * height + row, last);
                  }
                });
  }

  // The patches of the gradient are weight^T * dy, for some images and some
  // channels at a time.
  void InputGradient() const {
    const std::int64_t columns = images_ * plane_;
    const std::int64_t channels = std::clamp<std::int64_t>(
        kPatchElements / (taps_ * columns), 1, args_.in_channels);
    const std::int64_t pieces = CeilDiv(args_.in_channels, channels);
    ParallelFor(
        pieces * CeilDiv(args_.batch, images_), 1,
        [&](std::int64_t begin, std::int64_t end) {
          T* const patches =
              Scratch<T>(Borrower::kPart,
                         (channels * taps_ + args_.out_channels) * columns);
          T* const memory = patches + channels * taps_ * columns;
          Matrix dy;
          for (std::int64_t i = begin; i < end; ++i) {
            const Images images = Group(i / pieces);
            if (i == begin || i % pieces == 0)
              dy = Gather(images, first_, memory);
            const std::int64_t c = i % pieces * channels;
            const PatchRange range = {c,
                                      std::min(c + channels, args_.in_channels),
                                      images.first * args_.window.out_height,
                                      images.last * args_.window.out_height};
            const std::int64_t n = (images.last - images.first) * plane_;
            Gemm<T>({/*transpose_a=*/true, /*transpose_b=*/false,
                     (range.last_channel - c) * taps_, n, args_.out_channels,
                     second_ + c * taps_, depth_, dy.data, dy.step, patches,
                     n});
            AddPatches(args_, range, patches, out_);
          }
        });
  }

  // The transpose of the gradient is the sum of patches * dy^T, over groups of
  // images.
  void WeightGradient() const {
    ParallelFor(args_.in_channels, CeilDiv(64, taps_),
                [this](std::int64_t begin, std::int64_t end) {
                  WeightGradientOf(begin, end);
                });
  }

 private:
  // [first, last).
  struct Images {
    std::int64_t first, last;
  };
  // Its rows are `step` apart.
  struct Matrix {
    const T* data;
    std::int64_t step;
  };

  Images Group(std::int64_t i) const {
    return {i * images_, std::min((i + 1) * images_, args_.batch)};
  }

  // The outputs of some images, or their gradients, as a matrix with a row for
  // each channel: in `memory`, unless they lie so already.
  Matrix Gather(Images images, const T* y, T* memory) const {
    const std::int64_t channels = args_.out_channels;
    if (images.last - images.first == 1) {
      return {y + images.first * channels * plane_, plane_};
    }
    T* to = memory;
    for (std::int64_t o = 0; o < channels; ++o) {
      for (std::int64_t n = images.first; n < images.last; ++n) {
        to = std::copy_n(y + (n * channels + o) * plane_, plane_, to);
      }
    }
    return {memory, (images.last - images.first) * plane_};
  }

  // Rows [first, last) of all outputs.
  void ForwardRows(std::int64_t first, std::int64_t last) const {
    const std::int64_t columns = (last - first) * args_.window.out_width;
    const std::int64_t channels = args_.out_channels;
    T* const patches =
        Scratch<T>(Borrower::kPart, (depth_ + channels) * columns);
    CopyPatches(args_, {0, args_.in_channels, first, last}, first_, patches);
    const std::int64_t image = first / args_.window.out_height;
    const std::int64_t offset =
        (first % args_.window.out_height) * args_.window.out_width;
    T* y = out_ + image * channels * plane_ + offset;
    // Of several images, the rows of the product are put together from theirs.
    const bool several = columns > plane_;
    T* const product = several ? patches + depth_ * columns : y;
    const std::int64_t step = several ? columns : plane_;
    const T* const bias = static_cast<const T*>(args_.bias);
    if (bias != nullptr) {
      for (std::int64_t o = 0; o < channels; ++o) {
        std::fill_n(product + o * step, columns, bias[o]);
      }
    }
    Gemm<T>({/*transpose_a=*/false, /*transpose_b=*/false, channels, columns,
             depth_, second_, depth_, patches, columns, product, step,
             /*accumulate=*/bias != nullptr});
    if (!several) return;
    for (std::int64_t n = 0; n < columns / plane_; ++n) {
      for (std::int64_t o = 0; o < channels; ++o) {
        y = std::copy_n(product + o * step + n * plane_, plane_, y);
      }
    }
  }

  // For the kernels of input channels [begin, end).
  void WeightGradientOf(std::int64_t begin, std::int64_t end) const {
    const std::int64_t channels = args_.out_channels;
    const std::int64_t columns = images_ * plane_;
    const std::int64_t rows = (end - begin) * taps_;
    T* const patches = Scratch<T>(Borrower::kPart,
                                  rows * columns + channels * (columns + rows));
    T* const memory = patches + rows * columns;
    T* const sum = memory + channels * columns;
    if (args_.batch == 0) std::fill_n(sum, rows * channels, T{0});
    for (std::int64_t i = 0; i * images_ < args_.batch; ++i) {
      const Images images = Group(i);
      CopyPatches(args_,
                  {begin, end, images.first * args_.window.out_height,
                   images.last * args_.window.out_height},
                  second_, patches);
      const Matrix dy = Gather(images, first_, memory);
      const std::int64_t n = (images.last - images.first) * plane_;
      Gemm<T>({/*transpose_a=*/false, /*transpose_b=*/true, rows, channels, n,
               patches, n, dy.data, dy.step, sum, channels,
               /*accumulate=*/i > 0});
    }
    for (std::int64_t o = 0; o < channels; ++o) {
      T* const to = out_ + o * depth_ + begin * taps_;
      for (std::int64_t i = 0; i < rows; ++i) to[i] = sum[i * channels + o];
    }
  }

  const Conv2dArgs& args_;
  const T* const first_;
  const T* const second_;
  T* const out_;
  const std::int64_t plane_;   // elements of a channel of an output
  const std::int64_t taps_;    // elements of the window
  const std::int64_t depth_;   // rows of the patches of all channels
  const std::int64_t images_;  // in a group
};

}  // namespace

template <typename T>
void Conv2d(const Conv2dArgs& args) {
  if (WinogradPays(args)) return WinogradConv2d(args);
  const Convolution<T> convolution(args);
  switch (args.pass) {
    case Conv2dPass::kForward:
      return convolution.Forward();
    case Conv2dPass::kInputGradient:
      return convolution.InputGradient();
    case Conv2dPass::kWeightGradient:
      return convolution.WeightGradient();
  }
}

template void Conv2d<float>(const Conv2dArgs& args);
template void Conv2d<double>(const Conv2dArgs& args);

std::uint64_t EnqueueConv2d(CpuStream& stream, const OpLabel& label,
                            const Conv2dArgs& args) {
  // Too large for a task.
  return stream.Enqueue(label, [all = std::make_shared<Conv2dArgs>(args)] {
    if (all->dtype == DType::kFloat64) {
      Conv2d<double>(*all);
    } else {
      Conv2d<float>(*all);
    }
  });
}

}  // namespace d2l::kernels::cpu
