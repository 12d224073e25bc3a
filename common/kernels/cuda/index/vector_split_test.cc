#include "common/kernels/cuda/index/vector_split.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace d2l::kernels::cuda {
namespace {

// Counts how often the kernel's loops visit each element.
std::vector<int> Visits(std::int64_t n, const VectorSplit& split) {
  std::vector<int> visits(static_cast<std::size_t>(n));
  for (std::int64_t v = 0; v < split.vectors; ++v) {
    for (int j = 0; j < split.vector; ++j) {
      ++visits.at(static_cast<std::size_t>(split.VectorBegin(v) + j));
    }
  }
  for (std::int64_t e = 0; e < split.head + split.tail; ++e) {
    ++visits.at(static_cast<std::size_t>(split.SingleElement(e)));
  }
  return visits;
}

// The address is never read: only its value counts.
const void* Address(std::size_t bytes) {
  return reinterpret_cast<const void*>(std::uintptr_t{4096} + bytes);
}

TEST(VectorSplitTest, EveryElementOnceAndVectorsAligned) {
  for (const int vector : {1, 2, 4, 16}) {
    for (int place = 0; place < vector; ++place) {
      for (std::int64_t n = 0; n < 70; ++n) {
        // Side by side: eight-byte elements, four-byte elements, bytes.
        Alignment alignment(vector);
        for (const std::size_t size : {8, 4, 1}) {
          alignment.Add(Address(static_cast<std::size_t>(place) * size), size);
        }
        const VectorSplit split = SplitVectors(n, alignment);
        ASSERT_EQ(Visits(n, split),
                  std::vector<int>(static_cast<std::size_t>(n), 1))
            << vector << " " << place << " " << n;
        if (split.vectors > 0) {
          EXPECT_EQ((place + split.VectorBegin(0)) % vector, 0);
          EXPECT_LT(split.tail, vector);
          EXPECT_LT(split.head, vector);
        } else {
          EXPECT_LT(n, 2 * vector);
        }
      }
    }
  }
}

TEST(VectorSplitTest, AddressesThatDoNotFitEachOtherGoOneByOne) {
  Alignment alignment(4);
  alignment.Add(Address(0), 4);
  alignment.Add(Address(4), 4);
  const VectorSplit split = SplitVectors(1000, alignment);
  EXPECT_EQ(split.vectors, 0);
  EXPECT_EQ(Visits(1000, split), std::vector<int>(1000, 1));
  // A third array that fits the second does not make it better.
  alignment.Add(Address(4), 4);
  EXPECT_EQ(SplitVectors(1000, alignment).vectors, 0);
}

TEST(VectorSplitTest, WithoutArraysNothingIsInTheWay) {
  const VectorSplit split = SplitVectors(10, Alignment(4));
  EXPECT_EQ(split.head, 0);
  EXPECT_EQ(split.vectors, 2);
  EXPECT_EQ(split.tail, 2);
}

}  // namespace
}  // namespace d2l::kernels::cuda
