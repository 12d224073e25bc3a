
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "common/base/files/fnv1a.h"
#include "common/data/dataset.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

TEST(GenerateImages, NamesItselfAndHasItsLabels) {
  const Dataset data = GenerateImages(23, 7, 5);
  EXPECT_EQ(data.name, "generated data, seed 7");
  EXPECT_EQ(data.size(), 23);
  ASSERT_EQ(data.images.size(), 23U * kImagePixels);
  for (int i = 0; i < 23; ++i) EXPECT_EQ(data.labels[i], (5 + i) % 10);
}

TEST(GenerateImages, IsAFunctionOfTheSeedAndTheIndex) {
  const Dataset all = GenerateImages(40, 3);
  const Dataset part = GenerateImages(9, 3, 21);
  EXPECT_TRUE(std::equal(part.images.begin(), part.images.end(),
                         all.images.begin() + 21 * kImagePixels));
  EXPECT_NE(GenerateImages(40, 4).images, all.images);
}

// A network trained on one machine is tested on another.
TEST(GenerateImages, HasTheSameBytesOnEveryMachine) {
  const Dataset data = GenerateImages(100, 1);
  Fnv1a hash;
  hash.Update(
      {reinterpret_cast<const char*>(data.images.data()), data.images.size()});
  EXPECT_EQ(hash.Hex(), "f5bba5f415dd20d3");
}

TEST(GenerateImages, ImagesDifferAndHaveInkOfAllShades) {
  const Dataset data = GenerateImages(200);
  std::vector<int> count(256);
  for (const std::uint8_t pixel : data.images) ++count[pixel];
  EXPECT_EQ(std::count(count.begin(), count.end(), 0), 0);
  for (std::size_t i = 0; i + 10 < 200; ++i) {
    const auto image = data.images.begin() + i * kImagePixels;
    EXPECT_FALSE(
        std::equal(image, image + kImagePixels, image + 10 * kImagePixels));
    const auto bright = std::count_if(image, image + kImagePixels,
                                      [](int pixel) { return pixel > 200; });
    EXPECT_GT(bright, 15);
    EXPECT_LT(bright, kImagePixels / 2);
  }
}

TEST(GenerateImages, EmptyAndNegative) {
  EXPECT_EQ(GenerateImages(0).size(), 0);
  EXPECT_THROW(GenerateImages(-1), std::invalid_argument);
  EXPECT_THROW(GenerateImages(1, 0, -1), std::invalid_argument);
}

}  // namespace
}  // namespace d2l
