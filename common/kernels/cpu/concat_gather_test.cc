#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/device/device.h"
#include "common/device/failure.h"
#include "common/device/op_label.h"
#include "common/kernels/enqueue.h"
#include "common/kernels/kernels.h"
#include "gtest/gtest.h"

namespace d2l::kernels {

static const char* Name(IndexOp op) {
  return op == IndexOp::kSelect ? "select" : "gather";
}
static void PrintTo(IndexOp op, std::ostream* out) { *out << Name(op); }

namespace cpu {
namespace {

const Device kDevice(DeviceType::kCpu, 0);

using Bytes = std::vector<unsigned char>;

Bytes RandomBytes(std::int64_t n, std::mt19937& random) {
  Bytes bytes(static_cast<std::size_t>(n));
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
  return bytes;
}

// Memory for an output: poisoned, between guards, and not aligned.
class Output {
 public:
  explicit Output(std::int64_t bytes)
      : memory_(static_cast<std::size_t>(bytes) + 2 * kGuards, kPoison) {}

  void* data() { return memory_.data() + kGuards; }
  // Returns what was written; checks that nothing else was.
  Bytes Read() const {
    for (std::size_t i = 0; i < kGuards; ++i) {
      EXPECT_EQ(memory_[i], kPoison);
      EXPECT_EQ(memory_[memory_.size() - 1 - i], kPoison);
    }
    return {memory_.begin() + kGuards, memory_.end() - kGuards};
  }

 private:
  static constexpr std::size_t kGuards = 72;
  static constexpr unsigned char kPoison = 0xA5;
  Bytes memory_;
};

// Runs what `enqueue` puts on a stream of a device with `cores` cores, and
// returns the error.
template <typename Enqueue>
std::string Run(int cores, Enqueue enqueue) {
  CpuStream stream(kDevice, 0, StreamOptions(),
                   std::make_shared<ThreadPool>(cores));
  enqueue(stream);
  try {
    stream.Synchronize();
  } catch (const AsyncError& error) {
    return error.failure().what;
  }
  return "";
}

// ---- Cat.

struct CatCase {
  std::int64_t outer;
  std::int64_t element_size;
  std::vector<std::int64_t> sizes;  // of the rows, in elements
};

void ExpectCat(const CatCase& c, int cores) {
  std::mt19937 random(static_cast<unsigned>(c.outer));
  std::vector<Bytes> data;
  std::vector<CatPiece> pieces;
  std::int64_t row_bytes = 0;
  for (const std::int64_t size : c.sizes) {
    const std::int64_t bytes = size * c.element_size;
    data.push_back(RandomBytes(c.outer * bytes, random));
    pieces.push_back({bytes == 0 ? nullptr : data.back().data(), bytes});
    row_bytes += bytes;
  }
  Bytes expected;
  for (std::int64_t row = 0; row < c.outer; ++row) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto from = data[i].begin() + row * pieces[i].bytes;
      expected.insert(expected.end(), from, from + pieces[i].bytes);
    }
  }
  Output out(c.outer * row_bytes);
  const std::string failure = Run(cores, [&](CpuStream& stream) {
    Enqueue(stream, OpLabel("cat"),
            CatArgs{c.outer, out.data(), c.element_size, pieces});
    // The operation has its own copy of the list.
    pieces.assign(pieces.size(), {nullptr, 1});
  });
  EXPECT_EQ(failure, "");
  EXPECT_TRUE(out.Read() == expected)
      << c.outer << " rows of " << c.sizes.size() << " pieces";
}

TEST(CatTest, JoinsPiecesOfAllSizes) {
  std::mt19937 random(5);
  for (const int cores : {1, 3}) {
    for (const std::int64_t element_size : {1, 4, 8}) {
      ExpectCat({1, element_size, {}}, cores);
      ExpectCat({0, element_size, {3, 4}}, cores);
      ExpectCat({5, element_size, {0}}, cores);
      ExpectCat({5, element_size, {0, 2, 0, 0}}, cores);
      ExpectCat({1, element_size, {7}}, cores);
      ExpectCat({1, element_size, {3, 1, 4}}, cores);
      ExpectCat({3, element_size, {3, 1, 4, 15}}, cores);
      // Large rows: cut in the middle of a piece.
      ExpectCat({1, element_size, {100'003, 1, 0, 200'001}}, cores);
      ExpectCat({3, element_size, {70'003, 5, 50'001}}, cores);
      // Many rows.
      ExpectCat({40'003, element_size, {1, 2, 1}}, cores);
      ExpectCat({20'003, element_size, {2, 0, 5, 1, 16}}, cores);
      for (int round = 0; round < 30; ++round) {
        CatCase c = {
            static_cast<std::int64_t>(random() % 40), element_size, {}};
        for (unsigned i = random() % 8; i > 0; --i) {
          c.sizes.push_back(random() % 40);
        }
        ExpectCat(c, cores);
      }
    }
  }
}

// Pieces of one element: a transposition.
TEST(CatTest, StacksColumns) {
  for (const int cores : {1, 3}) {
    for (const std::int64_t element_size : {1, 4, 8}) {
      for (const std::int64_t rows : {1, 7, 16, 17, 100, 203}) {
        for (const std::size_t columns : {1, 2, 3, 5, 100, 601}) {
          ExpectCat({rows, element_size, std::vector<std::int64_t>(columns, 1)},
                    cores);
        }
      }
    }
  }
}

// ---- Index.

struct IndexCase {
  IndexOp op;
  std::int64_t element_size;
  std::int64_t outer, size, count, inner;
};

std::int64_t IndexCount(const IndexCase& c) {
  return c.op == IndexOp::kSelect ? c.count : c.outer * c.count * c.inner;
}

// Returns the error, if there is one; else checks the result.
std::string RunIndex(const IndexCase& c, const std::vector<std::int64_t>& index,
                     int cores) {
  std::mt19937 random(7);
  const std::int64_t es = c.element_size;
  const Bytes in = RandomBytes(c.outer * c.size * c.inner * es, random);
  Output out(c.outer * c.count * c.inner * es);
  const IndexArgs args = {c.op,    es,     out.data(), in.data(), index.data(),
                          c.outer, c.size, c.count,    c.inner};
  const std::string failure = Run(cores, [&](CpuStream& stream) {
    Enqueue(stream, OpLabel("index"), args);
  });
  const Bytes actual = out.Read();
  if (!failure.empty()) return failure;
  Bytes expected;
  for (std::int64_t o = 0; o < c.outer; ++o) {
    for (std::int64_t i = 0; i < c.count; ++i) {
      for (std::int64_t j = 0; j < c.inner; ++j) {
        const std::int64_t at = c.op == IndexOp::kSelect
                                    ? index[i]
                                    : index[(o * c.count + i) * c.inner + j];
        const auto from = in.begin() + ((o * c.size + at) * c.inner + j) * es;
        expected.insert(expected.end(), from, from + es);
      }
    }
  }
  EXPECT_TRUE(actual == expected)
      << Name(c.op) << " " << c.outer << " " << c.size << " " << c.count << " "
      << c.inner << " of " << es;
  return "";
}

class IndexTest
    : public testing::TestWithParam<std::tuple<IndexOp, std::int64_t>> {
 protected:
  IndexCase Case(std::int64_t outer, std::int64_t size, std::int64_t count,
                 std::int64_t inner) const {
    return {std::get<0>(GetParam()),
            std::get<1>(GetParam()),
            outer,
            size,
            count,
            inner};
  }
  std::vector<std::int64_t> Indices(const IndexCase& c) {
    std::vector<std::int64_t> index(static_cast<std::size_t>(IndexCount(c)));
    for (std::int64_t& i : index) i = random_() % c.size;
    return index;
  }
  std::mt19937 random_{3};
};

INSTANTIATE_TEST_SUITE_P(All, IndexTest,
                         testing::Combine(testing::Values(IndexOp::kSelect,
                                                          IndexOp::kGather),
                                          testing::Values(1, 4, 8)));

TEST_P(IndexTest, PicksElements) {
  const IndexCase cases[] = {
      Case(1, 1, 1, 1),       Case(1, 5, 0, 1),       Case(0, 5, 3, 2),
      Case(3, 5, 4, 0),       Case(1, 9, 100'001, 1), Case(1, 70'001, 3, 1),
      Case(1, 50, 333, 127),  Case(1, 3, 7, 100'003), Case(4, 5, 6, 1),
      Case(500, 7, 301, 1),   Case(5, 6, 7, 8),       Case(300, 4, 3, 129),
      Case(100'003, 2, 1, 1), Case(100'003, 2, 1, 2)};
  for (const IndexCase& c : cases) {
    for (const int cores : {1, 3}) {
      EXPECT_EQ(RunIndex(c, Indices(c), cores), "");
    }
  }
  for (int round = 0; round < 100; ++round) {
    const IndexCase c =
        Case(random_() % 6, 1 + random_() % 9, random_() % 20, random_() % 20);
    EXPECT_EQ(RunIndex(c, Indices(c), 1 + round % 3), "");
  }
}

TEST_P(IndexTest, FailsForTheFirstIndexOutOfRange) {
  const IndexCase cases[] = {Case(1, 6, 20, 1), Case(1, 6, 200'003, 1),
                             Case(2, 6, 100'003, 1), Case(2, 6, 40, 3),
                             Case(3, 6, 33'333, 2)};
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const IndexCase& c : cases) {
    const std::int64_t n = IndexCount(c);
    for (const std::int64_t first :
         {std::int64_t{0}, std::int64_t{17}, n / 2, n - 1}) {
      for (const std::int64_t bad : {std::int64_t{6}, std::int64_t{7},
                                     std::int64_t{-1}, kLeast, kMost}) {
        std::vector<std::int64_t> index = Indices(c);
        index[static_cast<std::size_t>(first)] = bad;
        // Many indices behind the first bad one are bad, too.
        for (std::int64_t i = first + 1; i < n; i += 1 + random_() % 3) {
          index[static_cast<std::size_t>(i)] = 1000;
        }
        for (const int cores : {1, 3}) {
          EXPECT_EQ(RunIndex(c, index, cores),
                    "index " + std::to_string(bad) + " at position " +
                        std::to_string(first) +
                        " is out of range; valid are 0..5");
        }
      }
    }
  }
}

TEST_P(IndexTest, FailsWhereThereIsNothing) {
  EXPECT_EQ(RunIndex(Case(1, 0, 3, 1), {0, 0, 0}, 1),
            "index 0 at position 0 is out of range; there is nothing to index");
  EXPECT_EQ(RunIndex(Case(1, 0, 0, 1), {}, 1), "");
}

TEST(SelectTest, ChecksTheIndicesOfEmptyRows) {
  EXPECT_EQ(RunIndex({IndexOp::kSelect, 4, 1, 2, 3, 0}, {0, 2, 3}, 1),
            "index 2 at position 1 is out of range; valid are 0..1");
}

}  // namespace
}  // namespace cpu
}  // namespace d2l::kernels
