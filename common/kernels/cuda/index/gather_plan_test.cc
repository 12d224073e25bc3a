#include "common/kernels/cuda/index/gather_plan.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace d2l::kernels::cuda {
namespace {

TEST(WidestUnitTest, DividesSizesAndAddresses) {
  EXPECT_EQ(WidestUnit().bytes(), 16);
  for (std::int64_t bytes = 1; bytes < 100; ++bytes) {
    for (std::uintptr_t place = 64; place < 100; ++place) {
      WidestUnit unit;
      unit.Add(bytes);
      unit.Add(reinterpret_cast<const void*>(place));
      const int found = unit.bytes();
      EXPECT_EQ(bytes % found, 0);
      EXPECT_EQ(place % static_cast<std::uintptr_t>(found), 0u);
      EXPECT_TRUE(found == 16 || bytes % (2 * found) != 0 ||
                  place % static_cast<std::uintptr_t>(2 * found) != 0);
    }
  }
}

TEST(SplitterTest, FastOrNot) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 100000; ++i) {
    const std::int64_t size =
        1 + static_cast<std::int64_t>(random() >> (1 + random() % 62) >> 1);
    const std::int64_t end = size * static_cast<std::int64_t>(
                                        1 + random() % 1000 * (size < 1 << 30));
    const Splitter splitter(size, end);
    const std::int64_t n =
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
    std::int64_t rest;
    ASSERT_EQ(splitter.Split(n, &rest), n / size) << n << " / " << size;
    ASSERT_EQ(rest, n % size);
  }
}

TEST(CatPartTest, RowsSideBySide) {
  for (const std::int64_t outer : {1, 3, 10}) {
    const std::int64_t rows[] = {4, 1, 7};
    const std::int64_t out_row = 12;
    std::vector<int> out(static_cast<std::size_t>(outer * out_row), -1);
    std::int64_t begin = 0;
    for (int p = 0; p < 3; ++p) {
      const std::int64_t units = outer * rows[p];
      const CatPart part = {nullptr, units, begin, Splitter(rows[p], units)};
      for (std::int64_t e = 0; e < units; ++e) {
        int& to = out.at(static_cast<std::size_t>(part.Target(e, out_row)));
        EXPECT_EQ(to, -1);
        to = 1000 * p + static_cast<int>(e);
      }
      begin += rows[p];
    }
    std::size_t at = 0;
    for (std::int64_t o = 0; o < outer; ++o) {
      for (int p = 0; p < 3; ++p) {
        for (std::int64_t u = 0; u < rows[p]; ++u) {
          EXPECT_EQ(out[at++], 1000 * p + o * rows[p] + u);
        }
      }
    }
  }
}

TEST(IndexMapTest, AsTheLoopsOfKernelsH) {
  for (const bool gather : {false, true}) {
    for (const std::int64_t outer : {1, 3}) {
      for (const std::int64_t count : {1, 4, 5}) {
        for (const std::int64_t inner : {1, 2, 7}) {
          const std::int64_t size = 6;
          const IndexMap map = MakeIndexMap(gather, outer, size, count, inner);
          ASSERT_EQ(map.units, outer * count * inner);
          std::int64_t e = 0;
          for (std::int64_t o = 0; o < outer; ++o) {
            for (std::int64_t i = 0; i < count; ++i) {
              for (std::int64_t j = 0; j < inner; ++j, ++e) {
                const IndexMap::UnitSource source = map.At(e);
                EXPECT_EQ(source.position,
                          gather ? (o * count + i) * inner + j : i);
                EXPECT_EQ(map.Source(source, 5), (o * size + 5) * inner + j);
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace d2l::kernels::cuda
