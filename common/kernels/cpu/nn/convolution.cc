#include "common/kernels/cpu/nn/convolution.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/matmul/gemm.h"
#include "common/kernels/enqueue.h"

namespace d2l::kernels::cpu {
namespace {

// The columns of a matrix of patches: enough for a fast product, and few enough
// for its rows to stay in the second cache.
constexpr std::int64_t kColumns = 256;
// The number of elements of a gradient's matrix of patches.
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
        height_(args.window.out_height),
        plane_(height_ * args.window.out_width),
        taps_(args.window.kernel_height * args.window.kernel_width),
        depth_(args.in_channels * taps_),
        images_(CeilDiv(kColumns, plane_)),
        rows_(std::min(height_, CeilDiv(kColumns, args.window.out_width))),
        pieces_(images_ > 1 ? 1 : CeilDiv(height_, rows_)) {}

  // y = weight * patches.
  void Forward() const {
    ParallelFor(pieces_ * Groups(), 1,
                [this](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    ForwardRows(Piece(i));
                  }
                });
  }

  // The patches of the gradient are weight^T * dy, for some images and some
  // channels at a time.
  void InputGradient() const {
    const std::int64_t columns = images_ * plane_;
    const std::int64_t channels = std::clamp<std::int64_t>(
        kPatchElements / (taps_ * columns), 1, args_.in_channels);
    const std::int64_t blocks = CeilDiv(args_.in_channels, channels);
    ParallelFor(
        blocks * Groups(), 1, [&](std::int64_t begin, std::int64_t end) {
          T* const patches =
              Workspace<T>(Borrower::kPart,
                           (channels * taps_ + args_.out_channels) * columns);
          T* const memory = patches + channels * taps_ * columns;
          Matrix dy = {};
          for (std::int64_t i = begin; i < end; ++i) {
            const Rows rows = Group(i / blocks);
            if (i == begin || i % blocks == 0) {
              dy = Gather(rows, first_, memory);
            }
            const std::int64_t c = i % blocks * channels;
            const Im2colRange range = {
                c, std::min(c + channels, args_.in_channels), rows.first,
                rows.last};
            Gemm<T>({/*transpose_a=*/true, /*transpose_b=*/false,
                     (range.last_channel - c) * taps_, dy.columns,
                     args_.out_channels, second_ + c * taps_, depth_, dy.data,
                     dy.step, patches, dy.columns});
            Col2im(args_, range, patches, out_);
          }
        });
  }

  void WeightGradient() const {
    ParallelFor(args_.in_channels, CeilDiv(64, taps_),
                [this](std::int64_t begin, std::int64_t end) {
                  WeightGradientOf(begin, end);
                });
  }

 private:
  // Rows [first, last) of all outputs: a part of an image, or whole images.
  struct Rows {
    std::int64_t first, last;
  };
  // The rows of the matrix, one for each output channel, are `step` apart.
  struct Matrix {
    const T* data;
    std::int64_t step, columns;
  };

  // Groups of whole images, with about kColumns columns of patches.
  std::int64_t Groups() const { return CeilDiv(args_.batch, images_); }
  Rows Group(std::int64_t i) const {
    return {i * images_ * height_,
            std::min((i + 1) * images_, args_.batch) * height_};
  }
  // A group, or a part of a large image.
  Rows Piece(std::int64_t i) const {
    Rows rows = Group(i / pieces_);
    rows.first += i % pieces_ * rows_;
    if (pieces_ > 1) rows.last = std::min(rows.first + rows_, rows.last);
    return rows;
  }

  std::int64_t Columns(Rows rows) const {
    return (rows.last - rows.first) * args_.window.out_width;
  }
  // The offset of the rows' outputs, or of their gradients.
  std::int64_t Offset(Rows rows) const {
    return rows.first / height_ * args_.out_channels * plane_ +
           rows.first % height_ * args_.window.out_width;
  }

  // The outputs as a matrix: copied to `memory`, unless they already are one.
  Matrix Gather(Rows rows, const T* y, T* memory) const {
    const std::int64_t columns = Columns(rows);
    const T* const from = y + Offset(rows);
    if (columns <= plane_) return {from, plane_, columns};
    T* to = memory;
    for (std::int64_t o = 0; o < args_.out_channels; ++o) {
      for (std::int64_t n = 0; n < columns / plane_; ++n) {
        to = std::copy_n(from + (n * args_.out_channels + o) * plane_, plane_,
                         to);
      }
    }
    return {memory, columns, columns};
  }

  void ForwardRows(Rows rows) const {
    const std::int64_t columns = Columns(rows);
    const std::int64_t channels = args_.out_channels;
    T* const patches =
        Workspace<T>(Borrower::kPart, (depth_ + channels) * columns);
    Im2col(args_, {0, args_.in_channels, rows.first, rows.last}, first_,
           patches);
    T* y = out_ + Offset(rows);
    // The product's rows join the rows of several images.
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

  // For the kernels of input channels [begin, end): the sum of dy * patches^T.
  void WeightGradientOf(std::int64_t begin, std::int64_t end) const {
    const std::int64_t channels = args_.out_channels;
    const std::int64_t columns =
        images_ > 1 ? images_ * plane_ : rows_ * args_.window.out_width;
    T* const panel =
        Workspace<T>(Borrower::kPart,
                     columns * kPatchPanel + kBehindPanel + channels * columns);
    T* const memory = panel + columns * kPatchPanel + kBehindPanel;
    const std::int64_t last = end * taps_;
    for (std::int64_t o = 0; o < channels; ++o) {
      std::fill(out_ + o * depth_ + begin * taps_, out_ + o * depth_ + last,
                T{0});
    }
    for (std::int64_t i = 0; i < pieces_ * Groups(); ++i) {
      const Rows piece = Piece(i);
      const Matrix dy = Gather(piece, first_, memory);
      for (std::int64_t tap = begin * taps_; tap < last; tap += kPatchPanel) {
        const std::int64_t count = std::min(kPatchPanel, last - tap);
        Im2row(args_, piece.first, piece.last, tap, count, second_, panel);
        Gemm<T>({/*transpose_a=*/false, /*transpose_b=*/false, channels, count,
                 dy.columns, dy.data, dy.step, panel, kPatchPanel, out_ + tap,
                 depth_, /*accumulate=*/true});
      }
    }
  }

  const Conv2dArgs& args_;
  const T* const first_;
  const T* const second_;
  T* const out_;
  const std::int64_t height_;  // of an output
  const std::int64_t plane_;   // elements of a channel of an output
  const std::int64_t taps_;    // elements of the window
  const std::int64_t depth_;   // rows of the patches of all channels
  const std::int64_t images_;  // in a group
  const std::int64_t rows_;    // in a piece of a large image
  const std::int64_t pieces_;  // of a large image
};

}  // namespace

template <typename T>
void Conv2d(const Conv2dArgs& args) {
  if (args.batch == 0) {
    if (args.pass != Conv2dPass::kWeightGradient) return;
    const Window2d& window = args.window;
    std::fill_n(static_cast<T*>(args.out),
                args.out_channels * args.in_channels * window.kernel_height *
                    window.kernel_width,
                T{0});
    return;
  }
  if (WinogradPays(args) && WinogradConv2d(args)) return;
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

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const Conv2dArgs& args) {
  // The arguments are too large for a task.
  return stream.Enqueue(label, [all = std::make_shared<Conv2dArgs>(args)] {
    if (all->dtype == DType::kFloat64) {
      Conv2d<double>(*all);
    } else {
      Conv2d<float>(*all);
    }
  });
}

}  // namespace d2l::kernels::cpu
