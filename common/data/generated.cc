#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/console/language.h"
#include "common/data/dataset.h"
#include "common/kernels/philox.h"

// The bits are the same everywhere: +, -, *, / and sqrt are rounded correctly,
// and the functions of philox.h consist of these.

namespace d2l {
namespace {

struct Point {
  float x, y;
};
struct Stroke {
  Point from, to;
};

// The glyphs lie in a square from -1 to 1, y downwards.
const std::array<std::vector<Stroke>, kClasses>& Glyphs() {
  static const auto& glyphs = *new std::array<std::vector<Stroke>, kClasses>{{
      // A square, a triangle, a cross, an upright cross,
      {{{-1, -1}, {1, -1}},
       {{1, -1}, {1, 1}},
       {{1, 1}, {-1, 1}},
       {{-1, 1}, {-1, -1}}},
      {{{0, -1}, {1, 1}}, {{1, 1}, {-1, 1}}, {{-1, 1}, {0, -1}}},
      {{{-1, -1}, {1, 1}}, {{1, -1}, {-1, 1}}},
      {{{0, -1}, {0, 1}}, {{-1, 0}, {1, 0}}},
      // the letters T, L, Z, H, V and an arrow upwards.
      {{{-1, -1}, {1, -1}}, {{0, -1}, {0, 1}}},
      {{{-1, -1}, {-1, 1}}, {{-1, 1}, {1, 1}}},
      {{{-1, -1}, {1, -1}}, {{1, -1}, {-1, 1}}, {{-1, 1}, {1, 1}}},
      {{{-1, -1}, {-1, 1}}, {{1, -1}, {1, 1}}, {{-1, 0}, {1, 0}}},
      {{{-1, -1}, {0, 1}}, {{0, 1}, {1, -1}}},
      {{{0, -1}, {0, 1}}, {{-1, 0}, {0, -1}}, {{0, -1}, {1, 0}}},
  }};
  return glyphs;
}

constexpr int kBlocksPerImage = 256;
constexpr int kNoiseBlock = 16;  // the first of noise; strokes use those before
static_assert(kNoiseBlock + kImagePixels / 4 <= kBlocksPerImage);

// The uniform numbers for drawing an image, one after the other.
class Uniform {
 public:
  Uniform(std::uint64_t seed, std::uint64_t block)
      : seed_(seed), block_(block) {}

  float operator()(float low, float high) {
    if (at_ == 4) {
      kernels::Uniforms(kernels::Philox(seed_, block_++), numbers_);
      at_ = 0;
    }
    return low + numbers_[at_++] * (high - low);
  }

 private:
  const std::uint64_t seed_;
  std::uint64_t block_;
  float numbers_[4] = {};
  int at_ = 4;
};

// The strokes in pixels.
std::vector<Stroke> Strokes(int label, Uniform uniform) {
  constexpr float kMiddle = (kImageSide - 1) / 2.0F;
  constexpr float kHalfPi = 1.57079633F;
  float sin, cos;
  kernels::SinCosHalfPi(uniform(-0.35F, 0.35F) / kHalfPi, &sin, &cos);
  const float scale_x = uniform(5.5F, 9), scale_y = uniform(5.5F, 9);
  const Point middle = {kMiddle + uniform(-4, 4), kMiddle + uniform(-4, 4)};
  const auto place = [&](Point p) {
    p = {p.x * scale_x, p.y * scale_y};
    return Point{middle.x + cos * p.x - sin * p.y,
                 middle.y + sin * p.x + cos * p.y};
  };
  std::vector<Stroke> strokes;
  for (const Stroke& stroke : Glyphs()[label]) {
    strokes.push_back({place(stroke.from), place(stroke.to)});
  }
  for (int i = 0; i < 2; ++i) {
    const Point from = {uniform(2, 25), uniform(2, 25)};
    strokes.push_back(
        {from, {from.x + uniform(-6, 6), from.y + uniform(-6, 6)}});
  }
  return strokes;
}

float SquaredDistance(Point p, const Stroke& stroke) {
  const Point along = {stroke.to.x - stroke.from.x,
                       stroke.to.y - stroke.from.y};
  const Point from_start = {p.x - stroke.from.x, p.y - stroke.from.y};
  const float length = along.x * along.x + along.y * along.y;
  const float part =
      std::clamp((from_start.x * along.x + from_start.y * along.y) /
                     std::max(length, 1e-6F),
                 0.0F, 1.0F);
  const Point off = {from_start.x - part * along.x,
                     from_start.y - part * along.y};
  return off.x * off.x + off.y * off.y;
}

void Draw(std::uint64_t seed, std::int64_t index, int label,
          std::uint8_t* image) {
  constexpr float kRadius = 1.4F;  // of a stroke, to the end of its soft edge
  constexpr float kNoise = 0.15F;
  const std::uint64_t block =
      static_cast<std::uint64_t>(index) * kBlocksPerImage;
  const std::vector<Stroke> strokes = Strokes(label, Uniform(seed, block));
  float noise[4];
  for (int i = 0; i < kImagePixels; ++i) {
    if (i % 4 == 0) {
      kernels::Normals(kernels::Philox(seed, block + kNoiseBlock + i / 4),
                       noise);
    }
    const int row = i / kImageSide;
    const int column = i % kImageSide;
    const Point pixel = {static_cast<float>(column), static_cast<float>(row)};
    float nearest = kRadius * kRadius;
    for (const Stroke& stroke : strokes) {
      nearest = std::min(nearest, SquaredDistance(pixel, stroke));
    }
    const float ink = std::min(kRadius - std::sqrt(nearest), 1.0F);
    const float value = std::clamp(ink + kNoise * noise[i % 4], 0.0F, 1.0F);
    image[i] = static_cast<std::uint8_t>(std::lround(value * 255));
  }
}

}  // namespace

Dataset GenerateImages(std::int64_t count, std::uint64_t seed,
                       std::int64_t first) {
  if (count < 0 || first < 0) {
    throw std::invalid_argument(absl::StrFormat(
        "GenerateImages: %d images from number %d on; neither may be negative",
        count, first));
  }
  Dataset data;
  data.name = Worded("generated data, seed %d", seed);
  data.images.resize(count * kImagePixels);
  data.labels.resize(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const int label = static_cast<int>((first + i) % kClasses);
    data.labels[i] = static_cast<std::uint8_t>(label);
    Draw(seed, first + i, label, &data.images[i * kImagePixels]);
  }
  return data;
}

}  // namespace d2l
