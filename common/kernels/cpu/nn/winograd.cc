#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/types/span.h"
#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/matmul/gemm.h"
#include "common/kernels/cpu/nn/convolution.h"
#include "common/kernels/cpu/nn/winograd_planes.h"
#include "common/kernels/cpu/nn/winograd_tiles.h"

namespace d2l::kernels::cpu {
namespace {

using winograd::CeilDiv;
using winograd::InputRows;
using winograd::kLargest;
using winograd::kOut;
using winograd::OutputTile;
using winograd::Planes;
using winograd::Tiles;

// The tiles computed together: the columns of the products, which suit the
// tiles of gemm.h, and the depth of those of the weight's gradient.
constexpr std::int64_t kColumns = 48;
constexpr std::int64_t kDepth = 192;
// Of more kernels than these, the transformed ones leave the caches before they
// are multiplied. The inputs are read again for each block of kernels instead,
// which pays for up to so many channels x channels x tiles.
constexpr std::int64_t kKeptKernels = 1 << 14;
constexpr std::int64_t kReadAgain = 1 << 23;
// The tiles whose outputs are computed by their definition together.
constexpr std::int64_t kTilesByDefinition = 12;

Planes ForwardPlanes(const Conv2dArgs& args) {
  const Window2d& w = args.window;
  return {args.in_channels, w.height,          w.width,      w.padding_height,
          w.padding_width,  args.out_channels, w.out_height, w.out_width};
}

// The gradient of the input is a convolution of the gradient of the output.
Planes BackwardPlanes(const Conv2dArgs& args) {
  const Window2d& w = args.window;
  return {
      args.out_channels,   w.out_height,     w.out_width, 2 - w.padding_height,
      2 - w.padding_width, args.in_channels, w.height,    w.width};
}

// Whether to transform some kernels at a time and multiply them with all tiles
// at once, because there are few tiles for so many kernels.
bool FewTiles(const Planes& planes, std::int64_t tiles) {
  const std::int64_t in = planes.channels;
  return tiles > 0 && in * planes.out_channels > kKeptKernels &&
         in * in * tiles <= kReadAgain;
}

// The transformed kernels of output channels [first, last): 36 matrices
// (last - first, in), in blocks of rows that stay in the second cache: a block
// of each matrix, then the next.
class Kernels {
 public:
  Kernels(std::int64_t first, std::int64_t last, std::int64_t in, float* data)
      : first_(first),
        last_(last),
        in_(in),
        rows_(BlockRows(in)),
        data_(data) {}

  // A multiple of the rows of a tile of gemm.h.
  static std::int64_t BlockRows(std::int64_t in) {
    return std::max<std::int64_t>(1, 512 / in) * 8;
  }
  static std::int64_t Size(std::int64_t out, std::int64_t in) {
    const std::int64_t rows = BlockRows(in);
    return CeilDiv(out, rows) * kTileNumbers * (rows * in + kGap);
  }

  std::int64_t first() const { return first_; }
  std::int64_t last() const { return last_; }
  // The distance from an element of a matrix to that of the next matrix.
  std::int64_t step() const { return rows_ * in_ + kGap; }

  float* At(std::int64_t i, std::int64_t o, std::int64_t c) const {
    o -= first_;
    return data_ + (o / rows_ * kTileNumbers + i) * step() + o % rows_ * in_ +
           c;
  }

  // Calls f(o, rows, block) for the blocks of matrix i.
  template <typename F>
  void ForEachBlock(std::int64_t i, const F& f) const {
    for (std::int64_t o = first_; o < last_; o += rows_) {
      f(o, std::min(rows_, last_ - o), At(i, o, 0));
    }
  }

 private:
  // Keeps elements that are used together from competing for a cache line.
  static constexpr std::int64_t kGap = 16;

  const std::int64_t first_, last_, in_, rows_;
  float* const data_;
};

// Transforms the kernels of output channels [begin, end) of the weight or, for
// the gradient of the input, of its transpose, rotated by 180 degrees. Returns
// false if a number is too large.
bool TransformKernels(const float* weight, const Planes& planes, bool backward,
                      std::int64_t begin, std::int64_t end,
                      const Kernels& kernels) {
  const std::int64_t lane_step = backward ? planes.out_channels * 9 : 9;
  const std::int64_t row_step = backward ? 9 : planes.channels * 9;
  bool small = true;
  KernelTiles tiles;
  for (std::int64_t first = begin; first < end; first += 8) {
    for (std::int64_t c = 0; c < planes.channels; c += kTileLanes) {
      for (std::int64_t o = first; o < std::min(first + 8, end); ++o) {
        const float* const from = weight + o * row_step + c * lane_step;
        for (int l = 0; l < kTileLanes; ++l) {
          for (int k = 0; k < 9; ++k) {
            tiles.taps[k][l] = from[l * lane_step + (backward ? 8 - k : k)];
          }
        }
        small = AllBelow(kLargest, tiles.taps[0], 9 * kTileLanes) && small;
        TransformKernel(tiles, kernels.At(0, o, c), kernels.step());
      }
    }
  }
  return small;
}

// Computes the outputs of up to kTilesByDefinition tiles by their definition:
// as a product of the weight with the patches that the kernel sees.
void MultiplyTiles(const Planes& planes, absl::Span<const std::int64_t> tiles,
                   const float* x, const float* weight, bool backward,
                   const float* bias, float* y) {
  const std::int64_t in = planes.channels, out = planes.out_channels;
  const std::int64_t depth = in * 9;
  const auto columns = static_cast<std::int64_t>(tiles.size()) * kOut * kOut;
  const std::int64_t of_rows =
      InputRows(planes, {tiles[0], tiles[0] + 1}).size();
  float* const rows =
      Workspace<float>(Borrower::kPart, of_rows + (depth + out) * columns +
                                            (backward ? out * depth : 0));
  float* const patches = rows + of_rows;
  float* const product = patches + depth * columns;
  if (backward) {
    float* const turned = product + out * columns;
    for (std::int64_t o = 0; o < out; ++o) {
      for (std::int64_t c = 0; c < in; ++c) {
        std::reverse_copy(weight + (c * out + o) * 9,
                          weight + (c * out + o) * 9 + 9,
                          turned + (o * in + c) * 9);
      }
    }
    weight = turned;
  }
  for (std::size_t t = 0; t < tiles.size(); ++t) {
    const InputRows input(planes, {tiles[t], tiles[t] + 1});
    for (std::int64_t c = 0; c < in; ++c) {
      input.Copy(x, c, rows);
      input.TakePatches(rows, tiles[t],
                        patches + c * 9 * columns + t * kOut * kOut, columns);
    }
  }
  Gemm<float>({/*transpose_a=*/false, /*transpose_b=*/false, out, columns,
               depth, weight, depth, patches, columns, product, columns});
  OutputTiles tile;
  for (std::int64_t o = 0; o < out; ++o) {
    for (std::size_t t = 0; t < tiles.size(); ++t) {
      const float* from = product + o * columns + t * kOut * kOut;
      for (int i = 0; i < kOut; ++i) {
        for (int j = 0; j < kOut; ++j) {
          tile.quads[i][j] = *from++ + (bias == nullptr ? 0 : bias[o]);
        }
      }
      OutputTile(planes, tiles[t], o).Write(tile, /*lane=*/0, y);
    }
  }
}

// Computes the outputs of any number of tiles by their definition.
void MultiplyAllTiles(const Planes& planes,
                      absl::Span<const std::int64_t> tiles, const float* x,
                      const float* weight, bool backward, const float* bias,
                      float* y) {
  for (std::size_t t = 0; t < tiles.size(); t += kTilesByDefinition) {
    MultiplyTiles(planes, tiles.subspan(t, kTilesByDefinition), x, weight,
                  backward, bias, y);
  }
}

// The columns of `count` tiles: as many, and then the last one again.
std::int64_t Columns(std::int64_t count) {
  return CeilDiv(count, kTileLanes) * kTileLanes;
}

// Transforms the inputs of some tiles. v[i] is (channels, tiles), its rows are
// `step` apart. Returns the tiles that cannot be transformed.
std::vector<std::int64_t> TransformInputs(const Planes& planes, Tiles tiles,
                                          const float* x, float* v,
                                          std::int64_t step, float* memory) {
  const InputRows input(planes, tiles);
  float* const rows = memory;
  float* const largest = rows + input.size();
  std::fill_n(largest, input.size(), 0.0f);
  InputTiles in;
  for (std::int64_t c = 0; c < planes.channels; ++c) {
    input.Copy(x, c, rows);
    RaiseToMagnitudes(rows, input.size(), largest);
    for (std::int64_t j = 0; j < tiles.count(); j += kTileLanes) {
      for (int l = 0; l < kTileLanes; ++l) {
        input.Take(rows, std::min(tiles.first + j + l, tiles.last - 1), l, in);
      }
      TransformInput(in, v + c * step + j, planes.channels * step);
    }
  }
  std::vector<std::int64_t> left;
  for (std::int64_t t = tiles.first; t < tiles.last; ++t) {
    if (!input.CanTransform(largest, t)) left.push_back(t);
  }
  return left;
}

// Multiplies the transformed kernels and inputs, and transforms the products to
// outputs. m[i] is (channels of u, tiles).
void MultiplyKernels(const Planes& planes, Tiles tiles, const Kernels& u,
                     const float* v, float* m, const float* bias, float* y) {
  const std::int64_t in = planes.channels;
  const std::int64_t out = u.last() - u.first();
  const std::int64_t columns = Columns(tiles.count());
  for (std::int64_t i = 0; i < kTileNumbers; ++i) {
    u.ForEachBlock(
        i, [&](std::int64_t o, std::int64_t count, const float* block) {
          Gemm<float>({/*transpose_a=*/false, /*transpose_b=*/false, count,
                       columns, in, block, in, v + i * in * columns, columns,
                       m + (i * out + o - u.first()) * columns, columns});
        });
  }
  OutputTiles outputs;
  for (std::int64_t o = u.first(); o < u.last(); ++o, m += columns) {
    for (std::int64_t j = 0; j < columns; j += kTileLanes) {
      TransformOutput(m + j, out * columns, bias == nullptr ? 0 : bias[o],
                      outputs);
      const std::int64_t lanes =
          std::min<std::int64_t>(kTileLanes, tiles.count() - j);
      for (int l = 0; l < lanes; ++l) {
        OutputTile(planes, tiles.first + j + l, o).Write(outputs, l, y);
      }
    }
  }
}

// Few tiles: the kernels of some output channels are transformed, multiplied
// with all tiles while they are in the second cache, and forgotten.
bool ConvolveFew(const Planes& planes, bool backward, std::int64_t all,
                 const float* x, const float* weight, const float* bias,
                 float* y) {
  const std::int64_t in = planes.channels, out = planes.out_channels;
  const std::int64_t columns = Columns(all);
  float* const v =
      Workspace<float>(Borrower::kOperation, kTileNumbers * in * columns);
  std::vector<std::vector<std::int64_t>> left(columns / kTileLanes);
  ParallelFor(columns / kTileLanes, 1,
              [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t i = begin; i < end; ++i) {
                  const Tiles tiles = {i * kTileLanes,
                                       std::min((i + 1) * kTileLanes, all)};
                  left[i] = TransformInputs(
                      planes, tiles, x, v + tiles.first, columns,
                      Workspace<float>(Borrower::kPart,
                                       2 * InputRows(planes, tiles).size()));
                }
              });
  std::atomic<bool> small{true};
  const std::int64_t rows = Kernels::BlockRows(in);
  ParallelFor(CeilDiv(out, rows), 1, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t size = Kernels::Size(rows, in);
    float* const memory =
        Workspace<float>(Borrower::kPart, size + kTileNumbers * rows * columns);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i * rows, last = std::min(first + rows, out);
      const Kernels u(first, last, in, memory);
      if (!TransformKernels(weight, planes, backward, first, last, u)) {
        small = false;
      }
      MultiplyKernels(planes, {0, all}, u, v, memory + size, bias, y);
    }
  });
  if (!small) return false;
  ParallelFor(
      columns / kTileLanes, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          MultiplyAllTiles(planes, left[i], x, weight, backward, bias, y);
        }
      });
  return true;
}

// Many tiles: some tiles at a time are multiplied with all kernels.
bool ConvolveMany(const Planes& planes, bool backward, std::int64_t all,
                  const float* x, const float* weight, const float* bias,
                  float* y) {
  const std::int64_t in = planes.channels, out = planes.out_channels;
  const Kernels u(
      0, out, in,
      Workspace<float>(Borrower::kOperation, Kernels::Size(out, in)));
  std::atomic<bool> small{true};
  ParallelFor(out, 8, [&](std::int64_t begin, std::int64_t end) {
    if (!TransformKernels(weight, planes, backward, begin, end, u)) {
      small = false;
    }
  });
  if (!small) return false;
  ParallelFor(
      CeilDiv(all, kColumns), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const Tiles tiles = {i * kColumns, std::min((i + 1) * kColumns, all)};
          const std::int64_t columns = Columns(tiles.count());
          float* const v = Workspace<float>(
              Borrower::kPart, kTileNumbers * columns * (in + out) +
                                   2 * InputRows(planes, tiles).size());
          float* const m = v + kTileNumbers * columns * in;
          const std::vector<std::int64_t> left = TransformInputs(
              planes, tiles, x, v, columns, m + kTileNumbers * columns * out);
          MultiplyKernels(planes, tiles, u, v, m, bias, y);
          MultiplyAllTiles(planes, left, x, weight, backward, bias, y);
        }
      });
  return true;
}

bool Convolve(const Planes& planes, bool backward, std::int64_t batch,
              const float* x, const float* weight, const float* bias,
              float* y) {
  const std::int64_t all = batch * planes.tiles();
  return (FewTiles(planes, all) ? ConvolveFew : ConvolveMany)(
      planes, backward, all, x, weight, bias, y);
}

// The gradients of kernels [begin, end), from the rows of their sum.
void TransformGradients(const Kernels& sum, std::int64_t begin,
                        std::int64_t end, std::int64_t in, float* dw) {
  KernelTiles tiles;
  for (std::int64_t o = begin; o < end; ++o) {
    for (std::int64_t c = 0; c < in; c += kTileLanes) {
      TransformKernelGradient(sum.At(0, o, c), sum.step(), tiles);
      float* const to = dw + (o * in + c) * 9;
      for (int l = 0; l < kTileLanes; ++l) {
        for (int k = 0; k < 9; ++k) to[l * 9 + k] = tiles.taps[k][l];
      }
    }
  }
}

// Adds up the transformed gradient, some tiles at a time.
bool WeightGradient(const Planes& planes, std::int64_t batch, const float* dy,
                    const float* x, float* dw) {
  const std::int64_t in = planes.channels, out = planes.out_channels;
  const std::int64_t all = batch * planes.tiles();
  const std::int64_t depth =
      std::min(kDepth, CeilDiv(all, kTileLanes) * kTileLanes);
  const bool few = all <= depth && FewTiles(planes, all);
  const std::int64_t size = few ? 0 : Kernels::Size(out, in);
  float* const memory = Workspace<float>(
      Borrower::kOperation, size + kTileNumbers * depth * (in + out));
  const Kernels sum(0, out, in, memory);
  if (all == 0) std::fill_n(memory, size, 0.0f);
  float* const v = memory + size;
  float* const m = v + kTileNumbers * depth * in;
  // Adds the products of `count` tiles, the first of which is `first`.
  const auto multiply = [&](const Kernels& to, std::int64_t i,
                            std::int64_t first, std::int64_t count) {
    to.ForEachBlock(i, [&](std::int64_t o, std::int64_t rows, float* block) {
      Gemm<float>({/*transpose_a=*/false, /*transpose_b=*/false, rows, in,
                   count, m + (i * out + o) * depth, depth, v + i * depth * in,
                   in, block, in, /*accumulate=*/first > 0});
    });
  };
  std::atomic<bool> small{true};
  for (std::int64_t first = 0; first < all; first += depth) {
    const Tiles tiles = {first, std::min(first + depth, all)};
    // v[i] is (tiles, in), m[i] (out, tiles).
    ParallelFor(in / kTileLanes, 1, [&](std::int64_t begin, std::int64_t end) {
      const InputRows input(planes, tiles);
      float* const rows =
          Workspace<float>(Borrower::kPart, input.size() * kTileLanes);
      InputTiles taken;
      for (std::int64_t c = begin * kTileLanes; c < end * kTileLanes;
           c += kTileLanes) {
        for (int l = 0; l < kTileLanes; ++l) {
          input.Copy(x, c + l, rows + l * input.size());
        }
        if (!AllBelow(kLargest, rows, input.size() * kTileLanes)) small = false;
        for (std::int64_t t = 0; t < tiles.count(); ++t) {
          for (int l = 0; l < kTileLanes; ++l) {
            input.Take(rows + l * input.size(), first + t, l, taken);
          }
          TransformInput(taken, v + t * in + c, depth * in);
        }
      }
    });
    ParallelFor(out, kTileLanes, [&](std::int64_t begin, std::int64_t end) {
      OutputTiles taken;
      for (std::int64_t o = begin; o < end; ++o) {
        for (std::int64_t t = 0; t < tiles.count(); t += kTileLanes) {
          for (int l = 0; l < kTileLanes; ++l) {
            OutputTile(planes, std::min(first + t + l, tiles.last - 1), o)
                .Read(dy, l, taken);
          }
          if (!AllBelow(kLargest, taken.quads[0], 4 * 4 * kTileLanes)) {
            small = false;
          }
          TransformGradient(taken, m + o * depth + t, depth * out);
        }
      }
    });
    if (!small) return false;
    if (few) break;
    ParallelFor(kTileNumbers, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        multiply(sum, i, first, tiles.count());
      }
    });
  }
  if (!few) {
    ParallelFor(out, 1, [&](std::int64_t begin, std::int64_t end) {
      TransformGradients(sum, begin, end, in, dw);
    });
    return true;
  }
  // The sums of some output channels are transformed while they are in the
  // second cache.
  const std::int64_t rows = Kernels::BlockRows(in);
  ParallelFor(CeilDiv(out, rows), 1, [&](std::int64_t begin, std::int64_t end) {
    float* const data =
        Workspace<float>(Borrower::kPart, Kernels::Size(rows, in));
    for (std::int64_t b = begin; b < end; ++b) {
      const Kernels block(b * rows, std::min((b + 1) * rows, out), in, data);
      for (std::int64_t i = 0; i < kTileNumbers; ++i) {
        multiply(block, i, /*first=*/0, all);
      }
      TransformGradients(block, block.first(), block.last(), in, dw);
    }
  });
  return true;
}

}  // namespace

bool WinogradPays(const Conv2dArgs& args) {
  const Window2d& w = args.window;
  if (args.dtype != DType::kFloat32 || w.kernel_height != 3 ||
      w.kernel_width != 3 || w.stride_height != 1 || w.stride_width != 1 ||
      w.padding_height > 2 || w.padding_width > 2) {
    return false;
  }
  if (args.in_channels % kTileLanes != 0 || args.in_channels < 32 ||
      args.out_channels % kTileLanes != 0 || args.out_channels < 32) {
    return false;
  }
  // The tiles may extend beyond the outputs.
  const Planes planes = ForwardPlanes(args);
  return 9 * w.out_height * w.out_width >= 2 * kTileNumbers * planes.tiles();
}

bool WinogradConv2d(const Conv2dArgs& args) {
  const auto* const first = static_cast<const float*>(args.first);
  const auto* const second = static_cast<const float*>(args.second);
  auto* const out = static_cast<float*>(args.out);
  switch (args.pass) {
    case Conv2dPass::kForward:
      return Convolve(ForwardPlanes(args), /*backward=*/false, args.batch,
                      first, second, static_cast<const float*>(args.bias), out);
    case Conv2dPass::kInputGradient:
      return Convolve(BackwardPlanes(args), /*backward=*/true, args.batch,
                      first, second, nullptr, out);
    case Conv2dPass::kWeightGradient:
      return WeightGradient(ForwardPlanes(args), args.batch, first, second,
                            out);
  }
  return false;
}

}  // namespace d2l::kernels::cpu
