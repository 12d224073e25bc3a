#include "common/kernels/cuda/fake/check.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/kernels/cuda/fake/check_kernels_testing.h"
#include "common/kernels/cuda/fake/checked_array.h"
#include "common/kernels/cuda/fake/grid.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::kernels::cuda {
namespace {

using ::testing::HasSubstr;

template <typename T>
using Array = CheckedArray<T>;

template <typename... P, typename... A>
CheckReport Check(void (*kernel)(P...), dim3 blocks, dim3 threads, A... args) {
  CheckedRun(reinterpret_cast<const void*>(kernel),
             {blocks, threads, [=] { kernel(args...); }}, FindCheckedArray);
  return TakeCheckReport();
}

// The loads or stores of global or shared memory, summed over all lines.
Requests Total(const CheckReport& report, bool shared, bool writes) {
  Requests total;
  for (const Requests& r : report.requests) {
    if (r.shared == shared && r.writes == writes) total.Add(r);
  }
  return total;
}

std::string Text(const CheckReport& report) {
  std::string text;
  for (const Finding& finding : report.findings) {
    text += finding.ToString() + "\n";
  }
  return text;
}

TEST(Check, CountsACopy) {
  // An odd number of elements: the last warp has 5 lanes, one sector.
  constexpr int n = 3 * 64 + 32 + 5;
  Array<float> out(n), in(n);
  const CheckReport report = Check(CopyKernel, 4, 64, out.data(), in.data(), n);
  EXPECT_EQ(Text(report), "");
  for (const bool writes : {false, true}) {
    const Requests r = Total(report, false, writes);
    EXPECT_EQ(r.requests, 8);
    EXPECT_EQ(r.lanes, n);
    EXPECT_EQ(r.sectors, 7 * 4 + 1);
    EXPECT_EQ(r.ideal_sectors, 7 * 4 + 1);
  }
  EXPECT_EQ(report.longest_thread, 2);
  EXPECT_TRUE(std::equal(in.data(), in.data() + n, out.data()));
  for (const Requests& r : report.requests) {
    EXPECT_EQ(r.kernel, "CopyKernel");
    EXPECT_THAT(r.at.file, HasSubstr("check_kernels_testing.cu"));
    EXPECT_GT(r.at.line, 0);
    EXPECT_EQ(r.first[31], 31 * 4);
  }
}

TEST(Check, CountsAnUnalignedCopy) {
  Array<float> out(65), in(65);
  const CheckReport report =
      Check(CopyKernel, 1, 64, out.data() + 1, in.data() + 1, 64);
  EXPECT_EQ(Total(report, false, false).sectors, 2 * 5);
  EXPECT_EQ(Total(report, false, true).sectors, 2 * 5);
  EXPECT_EQ(Total(report, false, true).ideal_sectors, 2 * 4);
}

// (64, 64): four blocks of 32 warps; each warp is a row of its tile.
TEST(Check, CountsThreeTransposes) {
  constexpr int n = 2 * kTile;
  const dim3 blocks(2, 2), threads(kTile, kTile);
  Array<float> out(n * n), in(n * n);
  const auto naive =
      Check(NaiveTranspose, blocks, threads, out.data(), in.data(), n);
  EXPECT_EQ(Text(naive), "");
  EXPECT_EQ(Total(naive, false, false).sectors, 4 * 32 * 4);
  EXPECT_EQ(Total(naive, false, true).sectors, 4 * 32 * 32);
  EXPECT_EQ(Total(naive, false, true).ideal_sectors, 4 * 32 * 4);
  const auto tiled =
      Check(TiledTranspose, blocks, threads, out.data(), in.data(), n);
  EXPECT_EQ(Text(tiled), "");
  EXPECT_EQ(Total(tiled, false, true).sectors, 4 * 32 * 4);
  EXPECT_EQ(Total(tiled, true, true).conflicts, 0);
  EXPECT_EQ(Total(tiled, true, false).conflicts, 4 * 32 * 31);
  const auto padded =
      Check(PaddedTranspose, blocks, threads, out.data(), in.data(), n);
  EXPECT_EQ(Text(padded), "");
  EXPECT_EQ(Total(padded, false, true).sectors, 4 * 32 * 4);
  EXPECT_EQ(Total(padded, true, false).conflicts, 0);
  for (int i = 0; i < n * n; ++i) {
    ASSERT_EQ(out.data()[i], in.data()[i % n * n + i / n]);
  }
}

TEST(Check, CountsColumnSumsAndATiledProduct) {
  constexpr int rows = 7, columns = 96;
  Array<float> sums(columns), in(rows * columns);
  const auto report =
      Check(ColumnSums, 3, 32, sums.data(), in.data(), rows, columns);
  EXPECT_EQ(Text(report), "");
  EXPECT_EQ(report.longest_thread, rows + 1);
  EXPECT_EQ(Total(report, false, false).requests, 3 * rows);
  EXPECT_EQ(Total(report, false, false).sectors, 3 * rows * 4);
  constexpr int n = 48;
  Array<float> a(n * n), b(n * n), c(n * n);
  const auto product = Check(TiledProduct, dim3(3, 3), dim3(16, 16), c.data(),
                             a.data(), b.data(), n);
  EXPECT_EQ(Text(product), "");
  // 9 blocks of 8 warps load two rows of 16 of each matrix, three times.
  EXPECT_EQ(Total(product, false, false).requests, 9 * 8 * 3 * 2);
  EXPECT_EQ(Total(product, false, false).sectors, 9 * 8 * 3 * 2 * 4);
  EXPECT_EQ(Total(product, true, false).requests, 9 * 8 * 3 * 16 * 2);
  // Two rows of `left`, 64 bytes apart, and a row of `right`.
  EXPECT_EQ(Total(product, true, false).conflicts, 0);
}

TEST(Check, RunsWarps) {
  Array<float> out(4), in(64);
  in.data()[3] = -4;
  const auto report = Check(WarpSum, 1, 64, out.data(), in.data());
  EXPECT_EQ(Text(report), "");
  EXPECT_EQ(out.data()[0], 32 * 33 / 2 - 8);
  EXPECT_EQ(out.data()[1], 0xff - 8);
  EXPECT_EQ(out.data()[2], 64 * 65 / 2 - 32 * 33 / 2);
}

TEST(Check, TakesAtomics) {
  Array<int> counts(8), in(1000);
  for (int i = 0; i < 1000; ++i) in.data()[i] = i * i % 8;
  std::vector<int> expected(counts.data(), counts.data() + 8);
  for (int i = 0; i < 1000; ++i) ++expected[in.data()[i]];
  const auto report = Check(Histogram, 8, 128, counts.data(), in.data(), 1000);
  EXPECT_EQ(Text(report), "");
  EXPECT_EQ(std::vector<int>(counts.data(), counts.data() + 8), expected);
}

// ---- Right, in a style of their own.

TEST(Check, KnowsTheOrderWithinAWarp) {
  Array<float> out(64), in(64);
  EXPECT_EQ(Text(Check(SumOfWarp, 1, 64, out.data(), in.data(), true)), "");
  EXPECT_EQ(out.data()[0], 32 * 33 / 2);
  EXPECT_THAT(Text(Check(SumOfWarp, 1, 64, out.data(), in.data(), false)),
              HasSubstr("a race in shared memory"));
  EXPECT_THAT(Text(Check(PartOfTheWarpSyncs, 1, 32, out.data())),
              HasSubstr("a race in shared memory"));
  EXPECT_EQ(Text(Check(SyncWithEndedLanes, 1, 32, out.data(), in.data())), "");
  EXPECT_EQ(out.data()[19], (1 << 20) - 1);
}

TEST(Check, TakesRightKernelsOfEveryStyle) {
  Array<float> out(32 * 32), in(32 * 32);
  EXPECT_EQ(Text(Check(TakeTurns, 1, 64, out.data(), in.data(), 5, true)), "");
  EXPECT_NE(Text(Check(TakeTurns, 1, 64, out.data(), in.data(), 5, false)), "");
  EXPECT_EQ(Text(Check(WholeBlocksReturn, 5, 64, out.data(), in.data(), 128)),
            "");
  EXPECT_EQ(
      Text(Check(SwizzledTranspose, 1, dim3(32, 32), out.data(), in.data())),
      "");
  EXPECT_EQ(out.data()[5 * 32 + 7], in.data()[7 * 32 + 5]);
}

TEST(Check, KnowsTheOrderOfAtomicsWithFences) {
  for (const bool fences : {true, false}) {
    Array<float> out(1), in(6 * 32), partial(6);
    Array<unsigned> arrived(1);
    arrived.data()[0] = 0;
    const std::string sum =
        Text(Check(SumByLastBlock, 6, 32, out.data(), in.data(), partial.data(),
                   arrived.data(), fences));
    EXPECT_EQ(out.data()[0], 192 * 193 / 2);
    Array<int> flag(1);
    flag.data()[0] = 0;
    const std::string word =
        Text(Check(FlagInABlock, 1, 64, out.data(), flag.data(), fences));
    EXPECT_EQ(out.data()[0], 5);
    for (const std::string& text : {sum, word}) {
      if (fences) {
        EXPECT_EQ(text, "");
      } else {
        EXPECT_THAT(text, HasSubstr("a race in"));
      }
    }
  }
}

// ---- Faults.

bool Found(const CheckReport& report, FindingKind kind) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const Finding& f) { return f.kind == kind; });
}

TEST(Check, FindsRaces) {
  Array<float> out(64), in(64);
  const auto report = Check(NoBarrier, 1, 64, out.data(), in.data());
  ASSERT_TRUE(Found(report, FindingKind::kRace)) << Text(report);
  const Finding& race = report.findings[0];
  EXPECT_TRUE(race.shared);
  // The finding has both lines.
  EXPECT_EQ(std::abs(race.at.line - race.before.line), 1);
  EXPECT_THAT(race.ToString(), HasSubstr("nothing orders the two"));
  EXPECT_TRUE(Found(Check(ShiftedIndex, 2, 33, out.data(), in.data(), 64),
                    FindingKind::kRace));
  // With blocks of one thread, only blocks race.
  EXPECT_TRUE(Found(Check(ShiftedIndex, 64, 1, out.data(), in.data(), 64),
                    FindingKind::kRace));
  Array<int> counts(8), values(64);
  for (int i = 0; i < 64; ++i) values.data()[i] = i % 8;
  EXPECT_TRUE(
      Found(Check(PlainHistogram, 1, 64, counts.data(), values.data(), 64),
            FindingKind::kRace));
}

TEST(Check, FindsTheRest) {
  Array<float> out(64), in(64);
  EXPECT_TRUE(Found(Check(ReachedByHalf, 1, 64, out.data(), in.data()),
                    FindingKind::kBarrier));
  EXPECT_TRUE(Found(Check(NeverWritten, 1, 64, out.data()),
                    FindingKind::kUninitialised));
  EXPECT_TRUE(Found(Check(BeyondTheTile, 1, 64, out.data(), in.data(), 64),
                    FindingKind::kOutOfBounds));
  EXPECT_TRUE(Found(Check(BeyondTheEnd, 1, 32, out.data(), in.data(), 64),
                    FindingKind::kOutOfBounds));
  EXPECT_TRUE(Found(Check(Misaligned, 1, 32, out.data(),
                          reinterpret_cast<const char*>(in.data())),
                    FindingKind::kMisaligned));
  Array<int> ints(32);
  const auto report = Check(LastOneWins, 1, 32, ints.data());
  EXPECT_TRUE(Found(report, FindingKind::kOrder));
  EXPECT_TRUE(Found(report, FindingKind::kRace));
  EXPECT_TRUE(Found(Check(StrandedLanes, 1, 32, ints.data()),
                    FindingKind::kStrandedLane));
}

TEST(Check, FindsUndefinedWordsOfWarpsAndBarriers) {
  Array<unsigned> out(32);
  Array<int> ints(32);
  Array<float> floats(64), in(64);
  EXPECT_TRUE(Found(Check(OutsideTheMask, 1, 32, out.data()),
                    FindingKind::kOutsideMask));
  EXPECT_TRUE(Found(Check(MasksThatDiffer, 1, 32, out.data()),
                    FindingKind::kDifferentMasks));
  EXPECT_TRUE(Found(Check(WordsThatDiffer, 1, 32, out.data()),
                    FindingKind::kDifferentMasks));
  EXPECT_TRUE(Found(Check(ReadsAnEndedLane, 1, 32, ints.data()),
                    FindingKind::kStrandedLane));
  const auto two = Check(TwoBarriers, 1, 64, floats.data(), in.data());
  ASSERT_TRUE(Found(two, FindingKind::kTwoBarriers)) << Text(two);
  EXPECT_EQ(std::abs(two.findings[0].at.line - two.findings[0].before.line), 3);
}

TEST(Check, SeesVariablesOfTheProgram) {
  Array<int> counts(8), values(64);
  for (int i = 0; i < 64; ++i) values.data()[i] = i % 8;
  const auto device =
      Check(DeviceHistogram, 1, 64, counts.data(), values.data(), 64);
  EXPECT_TRUE(Found(device, FindingKind::kRace));
  Array<float> out(128), in(128);
  const auto scratch = Check(StaticScratch, 2, 64, out.data(), in.data());
  ASSERT_TRUE(Found(scratch, FindingKind::kRace)) << Text(scratch);
  EXPECT_FALSE(scratch.findings[0].shared);
}

TEST(Check, EndsAThreadThatGoesBeyondAnArray) {
  Array<float> out(64), in(64);
  in.data()[0] = 1;
  out.data()[0] = 7;
  const CheckReport report =
      Check(BeyondTheTile, 2, 64, out.data(), in.data(), 64);
  ASSERT_EQ(report.findings.size(), 1u) << Text(report);
  EXPECT_EQ(report.findings[0].kind, FindingKind::kOutOfBounds);
  EXPECT_EQ(out.data()[0], 7);
  // Its fiber begins anew.
  Check(BeyondTheTile, 1, 64, out.data(), in.data(), 0);
  EXPECT_EQ(out.data()[0], 1);
}

TEST(Check, SeesTheEndOfDynamicSharedMemory) {
  Array<float> out(64);
  const auto run = [&](std::size_t words) {
    float* const scratch = reinterpret_cast<float*>(DynamicShared());
    CheckedRun(
        reinterpret_cast<const void*>(BeyondDynamicShared),
        {1, 64, [&] { BeyondDynamicShared(out.data(), scratch); }, 4 * words},
        FindCheckedArray);
    return TakeCheckReport();
  };
  EXPECT_EQ(Text(run(65)), "");
  EXPECT_TRUE(Found(run(64), FindingKind::kOutOfBounds));
}

TEST(CheckDeathTest, SaysWhatItFoundBeforeAFault) {
  Array<float> out(64), in(64);
  const auto run = [&] {
    ReportAtExit();
    Check(MisalignedVectors, 1, 8, out.data(), in.data());
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(66),
              "MisalignedVectors: thread 0 of block 0 uses global memory that "
              "is not aligned");
}

TEST(Check, ReportsOnceAndForgets) {
  Array<float> out(64), in(64);
  Check(NoBarrier, 1, 64, out.data(), in.data());
  EXPECT_TRUE(TakeCheckReport().findings.empty());
  EXPECT_TRUE(TakeCheckReport().requests.empty());
}

}  // namespace
}  // namespace d2l::kernels::cuda
