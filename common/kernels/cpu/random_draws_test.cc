// 2^30 draws of each kind: no uniform is 1, no normal is infinite or NaN.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "common/kernels/cpu/random.h"
#include "common/kernels/philox.h"
#include "common/tensor/dtype.h"
#include "gtest/gtest.h"

namespace d2l::kernels::cpu {
namespace {

constexpr std::int64_t kDraws = std::int64_t{1} << 30;
constexpr std::int64_t kPart = 1 << 15;

// The bits of the largest |x| of kDraws floats. They are ordered as the
// magnitudes are, with infinity and NaN above every number.
float LargestMagnitude(RandomOp op) {
  std::vector<float> out(kPart);
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < kDraws; i += kPart) {
    FillRandom({op,
                DType::kFloat32,
                kPart,
                out.data(),
                {2024, RandomBlocks<float>(i)},
                0,
                1},
               0, kPart);
    std::uint32_t part[8] = {};  // eight chains of maxima, not one
    for (std::size_t j = 0; j < out.size(); j += 8) {
      std::uint32_t bits[8];
      std::memcpy(bits, &out[j], sizeof(bits));
      for (int k = 0; k < 8; ++k) {
        part[k] = std::max(part[k], bits[k] & 0x7FFFFFFFu);
      }
    }
    largest = std::max(largest, *std::max_element(part, part + 8));
  }
  float result;
  std::memcpy(&result, &largest, sizeof(result));
  return result;
}

TEST(RandomDrawsTest, NoUniformIsOne) {
  const float largest = LargestMagnitude(RandomOp::kUniform);
  // The largest possible; 64 of the draws reach it, on average.
  EXPECT_EQ(largest, 1.0f - 0x1p-24f);
}

TEST(RandomDrawsTest, NoNormalIsInfinite) {
  const float largest = LargestMagnitude(RandomOp::kNormal);
  EXPECT_LE(largest, 6.661f);
  // Of 2^30 true normals, the largest is below 5.6 once in 10^10 times.
  EXPECT_GE(largest, 5.6f);
}

}  // namespace
}  // namespace d2l::kernels::cpu
