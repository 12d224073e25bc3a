#include "common/kernels/cuda/index/row_places.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace d2l::kernels::cuda {
namespace {

TEST(RowPlacesTest, EachStepIsWhatADivisionSays) {
  constexpr std::int64_t kRows = 37;
  constexpr std::int64_t kRowStride = 5003;
  for (const std::int64_t size : {1, 2, 3, 7, 32, 49, 64, 1000}) {
    for (const std::int64_t stride : {-2, 0, 1, 5}) {
      for (const std::int64_t step : {1, 2, 4, 32, 256}) {
        const std::int64_t n = kRows * size;
        const RowPlaces rows(size, n, kRowStride, stride, step);
        for (const std::int64_t first : {0, 1, 6, 31, 300}) {
          RowPlaces::Walk walk = rows.From(first);
          for (std::int64_t e = first; e < n; e += step) {
            ASSERT_EQ(walk.Next(), e / size * kRowStride + e % size * stride)
                << size << " " << stride << " " << step << " " << e;
          }
        }
      }
    }
  }
}

TEST(RowPlacesTest, OneRowBeyond32Bits) {
  constexpr std::int64_t kFar = std::int64_t{1} << 40;
  const RowPlaces rows(kFar, kFar, /*row_stride=*/3, /*stride=*/3, 256);
  RowPlaces::Walk walk = rows.From(kFar / 2);
  EXPECT_EQ(walk.Next(), 3 * (kFar / 2));
  EXPECT_EQ(walk.Next(), 3 * (kFar / 2 + 256));
}

TEST(RowPlacesTest, NoElements) {
  for (const std::int64_t size : {0, 4}) {
    const RowPlaces rows(size, /*n=*/0, /*row_stride=*/4, /*stride=*/1, 1);
    rows.From(0);
  }
}

}  // namespace
}  // namespace d2l::kernels::cuda
