#include "common/device/cuda/cuda_launch.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace d2l {
namespace {

// How often each element is visited by the grid-stride loop of the header.
std::vector<int> Visits(std::int64_t n, LaunchGeometry shape) {
  std::vector<int> visits(n);
  const std::int64_t stride = std::int64_t{shape.blocks} * shape.threads;
  for (std::int64_t block = 0; block < shape.blocks; ++block) {
    for (std::int64_t thread = 0; thread < shape.threads; ++thread) {
      for (std::int64_t i = block * shape.threads + thread; i < n;
           i += stride) {
        ++visits[i];
      }
    }
  }
  return visits;
}

TEST(LaunchGeometryTest, VisitsEveryElementOnce) {
  for (const int multiprocessors : {1, 3, 132}) {
    for (const std::int64_t n :
         {0, 1, 31, 32, 33, 255, 256, 257, 4095, 4097, 100'003}) {
      EXPECT_EQ(Visits(n, GeometryFor(n, multiprocessors)),
                std::vector<int>(n, 1))
          << n << " elements on " << multiprocessors;
    }
  }
}

TEST(LaunchGeometryTest, StartsNoThreadsThatHaveNothingToDo) {
  for (const std::int64_t n : {1, 32, 33, 256, 257, 1000}) {
    const LaunchGeometry shape = GeometryFor(n, 1000);
    EXPECT_LT((shape.blocks - 1) * shape.threads, n) << n;
    EXPECT_EQ(shape.threads % 32, 0u) << n;
    EXPECT_LE(shape.threads, kThreadsPerBlock) << n;
  }
  EXPECT_EQ(GeometryFor(0, 80).blocks, 1u);
  EXPECT_EQ(GeometryFor(0, 80).threads, 32u);
  EXPECT_EQ(GeometryFor(33, 80).threads, 64u);
  EXPECT_EQ(GeometryFor(1025, 80, /*per_thread=*/4).blocks, 2u);
  EXPECT_EQ(GeometryFor(1024, 80, /*per_thread=*/4).blocks, 1u);
}

TEST(LaunchGeometryTest, FillsTheGpuAndNotMore) {
  for (const std::int64_t n :
       {std::int64_t{1} << 30, std::numeric_limits<std::int64_t>::max()}) {
    for (const int per_thread : {1, 4}) {
      const LaunchGeometry shape = GeometryFor(n, 132, per_thread);
      EXPECT_EQ(shape.blocks, 132 * kBlocksPerMultiprocessor);
      EXPECT_EQ(shape.threads, kThreadsPerBlock);
    }
  }
}

}  // namespace
}  // namespace d2l
