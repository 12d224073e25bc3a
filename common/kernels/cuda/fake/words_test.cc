// CUDA's words, compared with what the CUDA guide says of them.

#include <algorithm>
#include <random>
#include <vector>

#include "common/kernels/cuda/fake/check.h"
#include "common/kernels/cuda/fake/checked_array.h"
#include "common/kernels/cuda/fake/grid.h"
#include "common/kernels/cuda/fake/words_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::kernels::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

template <typename T>
using Array = CheckedArray<T>;

// Runs the kernel, expects no finding, and returns the requests.
template <typename... P, typename... A>
std::vector<Requests> RunRight(void (*kernel)(P...), dim3 blocks, dim3 threads,
                               A... args) {
  CheckedRun(reinterpret_cast<const void*>(kernel),
             {blocks, threads, [=] { kernel(args...); }, 8 * threads.x},
             FindCheckedArray);
  const CheckReport report = TakeCheckReport();
  for (const Finding& finding : report.findings) {
    ADD_FAILURE() << finding.ToString();
  }
  return report.requests;
}

template <typename T>
std::vector<T> Values(Array<T>& array) {
  return {array.begin(), array.end()};
}

void FillAtRandom(Array<int>& array, int below) {
  std::mt19937 random(1);
  for (int& number : array) number = static_cast<int>(random() % below);
}

TEST(Words, ShuffleWithinGroups) {
  Array<int> in(32), out(kShuffles * kWidths * 32);
  FillAtRandom(in, 1 << 20);
  RunRight(Shuffles, 1, 32, out.data(), in.data());
  for (int w = 0; w < kWidths; ++w) {
    const int width = 32 >> w;
    for (int lane = 0; lane < 32; ++lane) {
      const int first = lane / width * width, end = first + width;
      const int from[kShuffles] = {
          first + (lane * 7 + 3) % width, lane - 3 >= first ? lane - 3 : lane,
          lane + 3 < end ? lane + 3 : lane, (lane ^ 5) < end ? lane ^ 5 : lane,
          lane ^ 1};
      for (int s = 0; s < kShuffles; ++s) {
        EXPECT_EQ(out.data()[(s * kWidths + w) * 32 + lane], in.data()[from[s]])
            << "shuffle " << s << ", width " << width << ", lane " << lane;
      }
    }
  }
}

TEST(Words, Vote) {
  Array<int> in(32);
  Array<unsigned> out(kVotes * 32);
  FillAtRandom(in, 5);
  unsigned odd = 0, sum = 0, bits = 0;
  for (int lane = 0; lane < 32; ++lane) {
    const unsigned value = in.data()[lane];
    odd |= (value & 1) << lane;
    sum += value;
    bits ^= value;
  }
  RunRight(Votes, 1, 32, out.data(), in.data());
  for (int lane = 0; lane < 32; ++lane) {
    unsigned alike = 0;
    for (int l = 0; l < 32; ++l) {
      if (in.data()[l] == in.data()[lane]) alike |= 1u << l;
    }
    std::vector<unsigned> got;
    for (int v = 0; v < kVotes; ++v) got.push_back(out.data()[32 * v + lane]);
    EXPECT_THAT(got, ElementsAre(odd, 1, 0, 0, 1, alike, 0, 0, ~0u, 1, sum, 0,
                                 4, bits));
  }
}

TEST(Words, LetPartsOfAWarpMeet) {
  Array<int> in(32), out(32);
  RunRight(PartsOfAWarp, 1, 32, out.data(), in.data());
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out.data()[lane], lane < 12 ? 12 : 13);
  }
  Array<unsigned> active(32);
  RunRight(ActiveLanes, 1, 32, active.data());
  for (unsigned lane = 0; lane < 32; lane += 3) {
    EXPECT_EQ(active.data()[lane], 1u);
  }
}

TEST(Words, CountAtBarriers) {
  Array<int> in(70), out(4 * 70);
  RunRight(BarriersThatCount, 1, 70, out.data(), in.data());
  for (int t = 0; t < 70; ++t) {
    const int* const got = out.data() + 4 * t;
    EXPECT_THAT(std::vector<int>(got, got + 4), ElementsAre(35, 0, 1, 1));
  }
}

TEST(Words, ChangeAtomically) {
  Array<int> in(3 * 50), to(kIntegerAtomics);
  FillAtRandom(in, 1000);
  std::vector<int> expected(to.begin(), to.end());
  expected[2] = to.data()[2] = 500;
  expected[4] = to.data()[4] = -1;
  for (const int value : in) {
    expected[0] += value;
    expected[1] -= value;
    expected[2] = std::min(expected[2], value);
    expected[3] = std::max(expected[3], value);
    expected[4] &= ~(1 << value % 32);
    expected[5] |= 1 << value % 32;
    expected[6] ^= value;
    expected[7] = expected[7] >= 4 ? 0 : expected[7] + 1;
    expected[8] = expected[8] == 0 || expected[8] > 4 ? 4 : expected[8] - 1;
    expected[9] += value;
  }
  // The loop around atomicCAS begins with a plain read, which the check takes
  // for a race: so its findings are left out.
  CheckedRun(reinterpret_cast<const void*>(IntegerAtomics),
             {3, 50, [&] { IntegerAtomics(to.data(), in.data()); }},
             FindCheckedArray);
  for (const Finding& finding : TakeCheckReport().findings) {
    EXPECT_EQ(finding.kind, FindingKind::kRace) << finding.ToString();
  }
  EXPECT_THAT(Values(to), ElementsAreArray(expected));
}

TEST(Words, ChangeOtherTypesAtomically) {
  Array<float> floats(3);
  Array<double> doubles(1);
  Array<unsigned long long> longs(2);  // NOLINT(google-runtime-int)
  Array<unsigned> turns(3);
  RunRight(OtherAtomics, 1, 40, floats.data(), doubles.data(), longs.data(),
           turns.data());
  EXPECT_THAT(Values(floats), ElementsAre(41, 3, 2.5f));
  EXPECT_THAT(Values(doubles), ElementsAre(21));
  EXPECT_THAT(Values(longs), ElementsAre(1 + (40ull << 33), 46));
  EXPECT_THAT(Values(turns), ElementsAre(2, 9, 9));
}

TEST(Words, UseEveryKindOfMemory) {
  Array<float> in(4 * 50), out(4 * 50);
  RunRight(Reverse, 4, 50, out.data(), in.data());
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(out.data()[i], 3 * in.data()[i / 50 * 50 + 49 - i % 50]);
  }
  Array<float> sum(1), partial(5), numbers(5 * 32);
  for (int run = 0; run < 2; ++run) {
    sum.data()[0] = 0;
    RunRight(SumOfLastBlock, 5, 64, sum.data(), numbers.data(), partial.data());
    EXPECT_EQ(sum.data()[0], 160 * 161 / 4.f);
  }
}

TEST(Words, HaveVectors) {
  Array<float> in(4 * 9), out(2 * 9);
  const std::vector<Requests> requests =
      RunRight(AddPairs, 2, 8, reinterpret_cast<float2*>(out.data()),
               reinterpret_cast<const float4*>(in.data()), 9);
  for (int i = 0; i < 18; ++i) EXPECT_EQ(out.data()[i], 4 * i + 3);
  ASSERT_EQ(requests.size(), 2u);
  for (const Requests& r : requests) {
    EXPECT_EQ(r.bytes, r.writes ? 8 : 16);
    EXPECT_EQ(r.sectors, r.ideal_sectors);
  }
  EXPECT_EQ(alignof(float3), 4u);
  EXPECT_EQ(alignof(float4), 16u);
  EXPECT_EQ(alignof(uchar4), 4u);
  EXPECT_EQ(sizeof(double2), 16u);
}

TEST(Words, Compute) {
  Array<double> out(kMathResults);
  Array<int> count(1);
  RunRight(MathResults, 1, 1, out.data(), count.data());
  EXPECT_THAT(
      std::vector<double>(out.data(), out.data() + count.data()[0]),
      ElementsAre(3, 1, 7, 3, 3, 3.5, 0.25, 1, 0, 0.5, 5, 10.5, 1.25, 72, 45,
                  126, 1, 1, 3, -1, 1, -2.5, 3.25, 1, 0, 1, 16777216, 1, 1));
}

}  // namespace
}  // namespace d2l::kernels::cuda
