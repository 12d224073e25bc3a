// Which convolutions are computed as a product with patches that are never
// stored (implicit_conv.cu), decided by what both ways cost according to the
// sizes.
//
//   if (IsImplicit(args, AllowTf32())) LaunchImplicitConv(launch, args);
//
// The product has the output's channels as rows, the output's pixels, of all
// images, as columns, and sums over (channel, row, column) of a patch. So it
// computes y, and at stride 1 the gradient of x, which is a convolution of y's
// gradient with the kernels turned by half a turn. At a larger stride most
// terms of the latter would be zeros, and the weight's gradient has few outputs
// and long sums, which only many blocks for a sum would compute fast: both are
// products with stored patches. So are doubles, with which few networks are
// trained.
//
// Pure functions; thread-safe.

#ifndef D2L_COMMON_KERNELS_CUDA_INDEX_IMPLICIT_CONV_H_
#define D2L_COMMON_KERNELS_CUDA_INDEX_IMPLICIT_CONV_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "common/kernels/kernels.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {

// A block's threads, and the columns of its tile of the output.
inline constexpr int kConvThreads = 128;
inline constexpr int kConvColumns = 128;
// How much of the sum a block holds at once.
inline constexpr int kConvSlice = 8;

// The rows of a block's tile, which is also how many outputs a thread computes.
inline int ConvRows(std::int64_t rows) {
  return rows <= 16 ? 16 : rows <= 32 ? 32 : 64;
}

// The product's sizes, and the window that slides over its input: x, or y's
// gradient.
struct ConvSizes {
  explicit ConvSizes(const Conv2dArgs& args)
      : rows(args.out_channels), channels(args.in_channels), w(args.window) {
    if (args.pass != Conv2dPass::kForward) {
      std::swap(rows, channels);
      std::swap(w.height, w.out_height);
      std::swap(w.width, w.out_width);
      w.padding_height = w.kernel_height - 1 - w.padding_height;
      w.padding_width = w.kernel_width - 1 - w.padding_width;
    }
    taps = w.kernel_height * w.kernel_width;
    depth = channels * taps;
    pixels = w.out_height * w.out_width;
    columns = args.batch * pixels;
  }

  std::int64_t rows, channels;  // of the output, and of a patch
  Window2d w;                   // a negative padding begins inside of the image
  std::int64_t taps;            // elements of a patch's channel
  std::int64_t depth, pixels;   // of a patch, and of an image of the output
  std::int64_t columns;
};

// Whether a window's elements fit the bits of a number, and indices fit 32
// bits, also those that a tile or a slice has beyond the end.
inline bool FitsImplicit(const Conv2dArgs& args) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const ConvSizes s(args);
  const std::int64_t channels = s.channels + 2 * kConvSlice;
  return s.taps <= 32 && s.columns <= kMost - kConvColumns &&
         s.rows * std::max(channels * s.taps, s.columns) <= kMost &&
         args.batch * channels * s.w.height * s.w.width <= kMost;
}

// Counts both ways in the time that a GPU takes for a multiply-add, all its
// threads together. Nobody has measured them; these are the assumptions.
inline bool IsImplicit(const Conv2dArgs& args, bool tf32) {
  // A byte of memory traffic: 5 to 50 by the data sheets of GPUs from sm_75 on.
  constexpr double kPerByte = 10;
  constexpr double kPerLaunch = 1 << 26;
  constexpr double kMultiprocessors = 128;
  // What a thread issues for a step of its sums besides multiply-adds, to bring
  // operands to shared memory and take them from there. nvcc makes 22
  // instructions of PTX, and 27 of the largest tile.
  constexpr double kOther = 24;
  // The tensor cores' gain.
  constexpr double kTf32 = 8;
  const Window2d& w = args.window;
  const bool forward = args.pass == Conv2dPass::kForward;
  const bool gradient = args.pass == Conv2dPass::kInputGradient &&
                        w.stride_height == 1 && w.stride_width == 1;
  if (args.dtype != DType::kFloat32 || !(forward || gradient) ||
      !FitsImplicit(args)) {
    return false;
  }
  // A library's product, at full speed, of patches that are written and read,
  // as the output's rows are; two more launches.
  const double patch =
      static_cast<double>(args.in_channels * w.kernel_height * w.kernel_width);
  const double channels = static_cast<double>(args.out_channels);
  const double outputs =
      static_cast<double>(args.batch * w.out_height * w.out_width);
  const double stored =
      outputs * (patch * channels / (tf32 ? kTf32 : 1) +
                 kPerByte * 2 * sizeof(float) * (patch + channels)) +
      2 * kPerLaunch;
  // A block has a multiprocessor's threads to itself if there are fewer blocks.
  const ConvSizes s(args);
  const int tile_rows = ConvRows(s.rows);
  const auto tiles = [](std::int64_t size, int tile) {
    const std::int64_t count = (size + tile - 1) / tile;
    return static_cast<double>(count);
  };
  const double blocks =
      std::max(kMultiprocessors,
               tiles(s.rows, tile_rows) * tiles(s.columns, kConvColumns));
  const double implicit = blocks * kConvThreads * kConvSlice *
                          tiles(s.depth, kConvSlice) * (tile_rows + kOther);
  return implicit < stored;
}

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_INDEX_IMPLICIT_CONV_H_
