// Where the tiles of winograd.cc lie in images: their inputs with the padding,
// and their outputs.
//
//   const InputRows input(planes, {first, last});
//   input.Copy(x, channel, rows);
//   input.Take(rows, tile, lane, tiles);
//   …  // winograd_tiles.h
//   OutputTile(planes, tile, out_channel).Write(outputs, lane, y);
//
// Values for one thread; `planes` must live as long.

#ifndef D2L_COMMON_KERNELS_CPU_NN_WINOGRAD_PLANES_H_
#define D2L_COMMON_KERNELS_CPU_NN_WINOGRAD_PLANES_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "common/kernels/cpu/nn/winograd_tiles.h"

namespace d2l::kernels::cpu::winograd {

// The sides of an output tile and of an input tile.
inline constexpr std::int64_t kOut = 4;
inline constexpr std::int64_t kIn = 6;

// Each number of a tile rounds like the tile's largest. Where that is too much
// for an output, because its window's largest number is less than this part of
// the tile's, and where sums could overflow, because a number is not less than
// kLargest, the outputs are computed by their definition.
inline constexpr float kLeastPart = 1e-3f;
inline constexpr float kLargest = 1e15f;

constexpr std::int64_t CeilDiv(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Images, and the outputs that a kernel of 3 x 3 makes of them.
struct Planes {
  std::int64_t channels, height, width, padding_height, padding_width;
  std::int64_t out_channels, out_height, out_width;

  std::int64_t tile_columns() const { return CeilDiv(out_width, kOut); }
  std::int64_t tile_rows() const { return CeilDiv(out_height, kOut); }
  // The number of tiles of an image.
  std::int64_t tiles() const { return tile_rows() * tile_columns(); }
};

// Tiles [first, last), counted over all images.
struct Tiles {
  std::int64_t first, last;
  std::int64_t count() const { return last - first; }
};

// The inputs of some tiles: the images' rows with their padding, six rows for
// each row of tiles.
class InputRows {
 public:
  InputRows(const Planes& planes, Tiles tiles)
      : planes_(planes),
        first_(tiles.first / planes.tile_columns()),
        last_((tiles.last - 1) / planes.tile_columns() + 1),
        width_(planes.tile_columns() * kOut + kIn - kOut) {}

  std::int64_t size() const { return (last_ - first_) * kIn * width_; }

  // Copies the inputs of channel c to `to`, size() elements.
  void Copy(const float* x, std::int64_t c, float* to) const {
    for (std::int64_t row = first_; row < last_; ++row) {
      const std::int64_t n = row / planes_.tile_rows();
      const std::int64_t top =
          row % planes_.tile_rows() * kOut - planes_.padding_height;
      const float* const image =
          x + (n * planes_.channels + c) * planes_.height * planes_.width;
      for (std::int64_t h = top; h < top + kIn; ++h, to += width_) {
        std::fill_n(to, width_, 0.0f);
        if (h < 0 || h >= planes_.height) continue;
        std::copy_n(image + h * planes_.width,
                    std::min(planes_.width, width_ - planes_.padding_width),
                    to + planes_.padding_width);
      }
    }
  }

  // Puts a tile of `rows`, which Copy wrote, into a lane.
  void Take(const float* rows, std::int64_t tile, int lane,
            InputTiles& to) const {
    const float* from = At(rows, tile);
    for (int i = 0; i < kIn; ++i, from += width_) {
      std::memcpy(to.quads[i] + 4 * lane, from, 4 * sizeof(float));
      std::memcpy(to.pairs[i] + 2 * lane, from + 4, 2 * sizeof(float));
    }
  }

  // Whether the tile can be transformed. `largest` has the form of `rows`, for
  // the magnitudes of all channels.
  bool CanTransform(const float* largest, std::int64_t tile) const {
    const float* from = At(largest, tile);
    float most = 0;
    bool small = true;
    float across[kIn][kOut];  // of three neighbours in a row
    for (int i = 0; i < kIn; ++i, from += width_) {
      for (int j = 0; j < kIn; ++j) {
        most = std::max(most, from[j]);
        small &= from[j] < kLargest;
      }
      for (int j = 0; j < kOut; ++j) {
        across[i][j] = std::max(std::max(from[j], from[j + 1]), from[j + 2]);
      }
    }
    if (!small) return false;
    const std::int64_t h =
        tile % planes_.tiles() / planes_.tile_columns() * kOut;
    const std::int64_t w = tile % planes_.tile_columns() * kOut;
    for (int i = 0; i < std::min(kOut, planes_.out_height - h); ++i) {
      for (int j = 0; j < std::min(kOut, planes_.out_width - w); ++j) {
        const float window = std::max(std::max(across[i][j], across[i + 1][j]),
                                      across[i + 2][j]);
        if (window < kLeastPart * most) return false;
      }
    }
    return true;
  }

  // Writes the tile's 9 x 16 patches: row (kh, kw), column (i, j) is element
  // (i + kh, j + kw) of the tile. Rows are `step` apart.
  void TakePatches(const float* rows, std::int64_t tile, float* to,
                   std::int64_t step) const {
    const float* const from = At(rows, tile);
    for (int k = 0; k < 9; ++k, to += step) {
      for (int i = 0; i < kOut; ++i) {
        std::copy_n(from + (i + k / 3) * width_ + k % 3, kOut, to + i * kOut);
      }
    }
  }

 private:
  const float* At(const float* rows, std::int64_t tile) const {
    return rows + (tile / planes_.tile_columns() - first_) * kIn * width_ +
           tile % planes_.tile_columns() * kOut;
  }

  const Planes& planes_;
  const std::int64_t first_, last_;  // rows of tiles
  const std::int64_t width_;
};

// The outputs of a tile of channel o.
class OutputTile {
 public:
  OutputTile(const Planes& planes, std::int64_t tile, std::int64_t o) {
    const std::int64_t n = tile / planes.tiles();
    const std::int64_t h = tile % planes.tiles() / planes.tile_columns() * kOut;
    const std::int64_t w = tile % planes.tile_columns() * kOut;
    step_ = planes.out_width;
    offset_ =
        ((n * planes.out_channels + o) * planes.out_height + h) * step_ + w;
    rows_ = std::min(kOut, planes.out_height - h);
    columns_ = std::min(kOut, planes.out_width - w);
  }

  void Write(const OutputTiles& from, int lane, float* y) const {
    for (std::int64_t i = 0; i < rows_; ++i) {
      float* const to = y + offset_ + i * step_;
      if (columns_ == kOut) {
        std::memcpy(to, from.quads[i] + kOut * lane, kOut * sizeof(float));
      } else {
        std::copy_n(from.quads[i] + kOut * lane, columns_, to);
      }
    }
  }

  void Read(const float* y, int lane, OutputTiles& to) const {
    for (std::int64_t i = 0; i < kOut; ++i) {
      float* const quad = to.quads[i] + kOut * lane;
      if (i < rows_ && columns_ == kOut) {
        std::memcpy(quad, y + offset_ + i * step_, kOut * sizeof(float));
      } else {
        std::fill_n(quad, kOut, 0.0f);
        if (i < rows_) std::copy_n(y + offset_ + i * step_, columns_, quad);
      }
    }
  }

 private:
  std::int64_t offset_, step_, rows_, columns_;
};

}  // namespace d2l::kernels::cpu::winograd

#endif  // D2L_COMMON_KERNELS_CPU_NN_WINOGRAD_PLANES_H_
