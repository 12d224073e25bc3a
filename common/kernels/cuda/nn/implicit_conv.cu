// Convolution as a product with a matrix of patches that is never stored: a
// block of threads gathers the slice that it multiplies next from the images
// (implicit_conv.h). An output's products are added up from the first tap of
// the first channel to the last, each with one rounding, then the bias: this
// kernel's bits are the same on every GPU and in every batch, but whether it is
// taken depends on the batch (IsImplicit). Padding is zeros, which times an
// infinite weight are NaN, as on the CPU.

#include <cstdint>

#include "common/device/cuda/cuda_api.h"
#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/index/divider.h"
#include "common/kernels/cuda/index/implicit_conv.h"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/kernels/kernels.h"
#include "common/kernels/math.h"

namespace d2l::kernels::cuda {
namespace {

using Quad = Vector<float, 4>;

// out = weights patches. In the summed dimension, l = channel * taps + tap; the
// taps are the elements of the window, in reading order.
struct ConvProduct {
  float* out;
  const float* bias;     // of a row; or null
  const float* weights;  // of row 0, channel 0, tap 0
  const float* in;
  ConvSizes sizes;
  int weight_row, weight_channel, weight_tap;  // steps
  Divider by_taps, by_kernel_width;
  Divider by_pixels, by_width;  // of `out`
};

// Returns n / d, and makes n the rest.
__device__ int Split(int* n, const Divider& d) {
  const unsigned quotient = d.Quotient(static_cast<unsigned>(*n));
  *n -= static_cast<int>(quotient * d.divisor());
  return static_cast<int>(quotient);
}

// Where a block finds place l of the summed dimension in the images.
struct alignas(8) Place {
  int in;        // from the corner of a window
  unsigned tap;  // a bit; 0 beyond the depth
};

// What is read outside of the operands. With this the loads have no branches,
// and nothing waits for them before they are stored.
__device__ const float kZero = 0;

// The window of a pixel of the output.
struct ConvWindow {
  int corner = 0;     // in `in`; beside the image if that is padded
  unsigned seen = 0;  // the bits of the taps that are inside of the image

  __device__ ConvWindow(const ConvProduct& p, int pixel) {
    if (pixel >= p.sizes.columns) return;
    const Window2d& w = p.sizes.w;
    const int n = Split(&pixel, p.by_pixels);
    const int y = Split(&pixel, p.by_width);
    const std::int64_t top = y * w.stride_height - w.padding_height;
    const std::int64_t left = pixel * w.stride_width - w.padding_width;
    corner = static_cast<int>(
        (n * p.sizes.channels * w.height + top) * w.width + left);
    unsigned of_row = 0;
    for (int j = 0; j < w.kernel_width; ++j) {
      if (left + j >= 0 && left + j < w.width) of_row |= 1u << j;
    }
    for (int i = 0; i < w.kernel_height; ++i) {
      if (top + i < 0 || top + i >= w.height) continue;
      seen |= of_row << (i * static_cast<int>(w.kernel_width));
    }
  }
};

// A thread computes kDown quads of rows by kAcross quads of columns. While it
// multiplies a slice in shared memory, its loads of the next are under way.
template <int kDown, int kAcross>
__global__ void __launch_bounds__(kConvThreads, kDown == 2 ? 3 : 5)
    ImplicitConvKernel(ConvProduct p) {
  constexpr int kColumnGroups = kConvColumns / (4 * kAcross);
  constexpr int kRowGroups = kConvThreads / kColumnGroups;
  constexpr int kTileRows = kRowGroups * 4 * kDown;
  // Threads load a slice of weights side by side, so many rows at a time.
  constexpr int kRowsAtOnce = kConvThreads / kConvSlice;
  constexpr int kLoads = kTileRows / kRowsAtOnce;
  // One more, so that a warp stores weights to different banks.
  __shared__ Quad weights[2][kConvSlice][kTileRows / 4 + 1];
  __shared__ Quad patches[2][kConvSlice][kConvColumns / 4];
  __shared__ Place places[2][kConvSlice];
  __shared__ int weight_places[2][kConvSlice];
  const int thread = static_cast<int>(threadIdx.x);
  const int row_group = thread / kColumnGroups;
  const int column_group = thread % kColumnGroups;
  // Blocks that need the same patches run at the same time.
  const int rows = static_cast<int>(p.sizes.rows);
  const int depth = static_cast<int>(p.sizes.depth);
  const int row_tiles = (rows + kTileRows - 1) / kTileRows;
  const int tile = static_cast<int>(blockIdx.x);
  const int first_row = tile % row_tiles * kTileRows;
  const int first_column = tile / row_tiles * kConvColumns;

  const ConvWindow window(p, first_column + thread);
  const int weight_l = thread % kConvSlice;
  const int weight_row = thread / kConvSlice;
  float from_in[kConvSlice];
  float from_weights[kLoads];
  const auto load = [&](int begin) {
    const int buffer = begin / kConvSlice % 2;
#pragma unroll
    for (int l = 0; l < kConvSlice; ++l) {
      const Place place = places[buffer][l];
      const bool inside = (place.tap & window.seen) != 0;
      from_in[l] = *(inside ? p.in + (window.corner + place.in) : &kZero);
    }
    const int weight = weight_places[buffer][weight_l];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int row = first_row + weight_row + i * kRowsAtOnce;
      const bool inside = begin + weight_l < depth && row < rows;
      from_weights[i] =
          *(inside ? p.weights + (row * p.weight_row + weight) : &kZero);
    }
  };
  // The first threads compute the places, one slice ahead of the loads.
  const auto find_places = [&](int begin) {
    if (thread >= kConvSlice) return;
    const int l = begin + thread;
    int tap = l;
    const int channel = Split(&tap, p.by_taps);
    int column = tap;
    const int row = Split(&column, p.by_kernel_width);
    const int buffer = begin / kConvSlice % 2;
    const int height = static_cast<int>(p.sizes.w.height);
    const int width = static_cast<int>(p.sizes.w.width);
    places[buffer][thread] = {(channel * height + row) * width + column,
                              l < depth ? 1u << tap : 0};
    weight_places[buffer][thread] =
        channel * p.weight_channel + tap * p.weight_tap;
  };

  float sums[4 * kDown][4 * kAcross] = {};
  find_places(0);
  __syncthreads();
  load(0);
  for (int begin = 0; begin < depth; begin += kConvSlice) {
    // What was here two slices ago has been used: all threads have since been
    // at the barrier.
    const int here = begin / kConvSlice % 2;
#pragma unroll
    for (int l = 0; l < kConvSlice; ++l) {
      patches[here][l][thread / 4].at[thread % 4] = from_in[l];
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int row = weight_row + i * kRowsAtOnce;
      weights[here][weight_l][row / 4].at[row % 4] = from_weights[i];
    }
    find_places(begin + kConvSlice);
    __syncthreads();
    load(begin + kConvSlice);
#pragma unroll
    for (int l = 0; l < kConvSlice; ++l) {
      Quad a[kDown], b[kAcross];
#pragma unroll
      for (int i = 0; i < kDown; ++i) {
        a[i] = weights[here][l][row_group + i * kRowGroups];
      }
#pragma unroll
      for (int i = 0; i < kAcross; ++i) {
        b[i] = patches[here][l][column_group + i * kColumnGroups];
      }
#pragma unroll
      for (int e = 0; e < 16 * kDown * kAcross; ++e) {
        const int r = e / (4 * kAcross), c = e % (4 * kAcross);
        sums[r][c] =
            math::Fma(a[r / 4].at[r % 4], b[c / 4].at[c % 4], sums[r][c]);
      }
    }
  }

  // A quad of columns is stored at once where images consist of quads.
  const int columns = static_cast<int>(p.sizes.columns);
  const int pixels = static_cast<int>(p.sizes.pixels);
  const bool whole =
      pixels % 4 == 0 &&
      reinterpret_cast<std::uintptr_t>(p.out) % sizeof(Quad) == 0;
  const auto place = [&](int row, int column) {
    const int n = Split(&column, p.by_pixels);
    return p.out + ((n * rows + row) * pixels + column);
  };
#pragma unroll
  for (int e = 0; e < 4 * kDown * kAcross; ++e) {
    const int r = e % (4 * kDown), c = e / (4 * kDown);
    const int row = first_row + (row_group + r / 4 * kRowGroups) * 4 + r % 4;
    const int column = first_column + (column_group + c * kColumnGroups) * 4;
    if (row >= rows || column >= columns) continue;
    const float bias = p.bias == nullptr ? 0.0f : p.bias[row];
    Quad quad;
#pragma unroll
    for (int i = 0; i < 4; ++i) quad.at[i] = sums[r][4 * c + i] + bias;
    if (whole) {
      *reinterpret_cast<Quad*>(place(row, column)) = quad;
      continue;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (column + i < columns) *place(row, column + i) = quad.at[i];
    }
  }
}

}  // namespace

void LaunchImplicitConv(const CudaLaunch& launch, const Conv2dArgs& args) {
  const ConvSizes s(args);
  if (s.rows * s.columns == 0) return;
  const auto by = [](std::int64_t size) {
    return Divider(static_cast<std::uint32_t>(size));
  };
  const int taps = static_cast<int>(s.taps);
  const int of_image = taps * static_cast<int>(args.in_channels);
  const bool forward = args.pass == Conv2dPass::kForward;
  const float* const weights = static_cast<const float*>(args.second);
  // In the gradient the channels change places, and the kernels are turned.
  const ConvProduct product = {static_cast<float*>(args.out),
                               static_cast<const float*>(args.bias),
                               forward ? weights : weights + taps - 1,
                               static_cast<const float*>(args.first),
                               s,
                               forward ? of_image : taps,
                               forward ? taps : of_image,
                               forward ? 1 : -1,
                               by(taps),
                               by(s.w.kernel_width),
                               by(s.pixels),
                               by(s.w.out_width)};
  const int tile_rows = ConvRows(s.rows);
  const std::int64_t blocks = (s.rows + tile_rows - 1) / tile_rows *
                              ((s.columns + kConvColumns - 1) / kConvColumns);
  // Few threads may have long sums.
  d2l::internal::long_kernel_launched = true;
  StartKernel(tile_rows == 16   ? ImplicitConvKernel<1, 1>
              : tile_rows == 32 ? ImplicitConvKernel<1, 2>
                                : ImplicitConvKernel<2, 2>,
              static_cast<unsigned>(blocks), kConvThreads, launch.stream,
              product);
}

}  // namespace d2l::kernels::cuda
