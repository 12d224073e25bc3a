// Images to learn from where there are no files: ten glyphs made of strokes.
//
//   Dataset training = GenerateImages(12'000);
//   Dataset test = GenerateImages(2'000, /*seed=*/0, /*first=*/12'000);
//
// A glyph is turned by up to 0.35 radians, scaled, and moved by up to 4 pixels
// each way; two strokes that mean nothing and noise are added. So a linear
// model, which cannot follow a glyph that moves, stays far behind a
// convolutional network. Image i of a seed is a function of the two, with the
// same bits on every machine, and its label is i mod 10.
//
// Thread-safe. Throws std::invalid_argument for negative numbers.

#ifndef D2L_COMMON_DATA_GENERATED_H_
#define D2L_COMMON_DATA_GENERATED_H_

#include <cstdint>

#include "common/data/dataset.h"

namespace d2l {

// Images first, first + 1, ... of a seed, `count` of them.
Dataset GenerateImages(std::int64_t count, std::uint64_t seed = 0,
                       std::int64_t first = 0);

}  // namespace d2l

#endif  // D2L_COMMON_DATA_GENERATED_H_
