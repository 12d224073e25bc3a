// What a grid does with memory, barriers, and lanes that diverge, and what is
// found wrong with it.

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ptx/interpreter_testing.h"
#include "tests/ptx/kernel.h"
#include "tests/ptx/report.h"

namespace d2l::ptx {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kShared[] = ".shared .align 8 .b8 buffer[256];\n";
// %x1 = data + 4 * thread
constexpr char kOwnElement[] =
    "shl.b64 %x0, %t, 2;\nadd.s64 %x1, %data, %x0;\n";

class GridTest : public testing::Test {
 protected:
  void SetUp() override { TakeFindings(); }
  // What is found is the test's concern, and not the program's.
  void TearDown() override {
    TakeFindings();
    SetSettings(before_);
  }

  // The error of the fault; 0 if there is none.
  int FaultOf(const std::string& body, unsigned threads = 32,
              const std::string& globals = "") {
    std::vector<std::uint32_t> data(64);
    try {
      RunKernel(body, &data, threads, 1, globals);
    } catch (const Fault& fault) {
      text_ = fault.what();
      return fault.error;
    }
    return 0;
  }

  std::string text_;
  const Settings before_ = TheSettings();
};

TEST_F(GridTest, RefusesMisalignedAccesses) {
  EXPECT_EQ(FaultOf("ld.global.v2.u32 {%r0, %r1}, [%data+4];\n"), 716);
  EXPECT_THAT(text_,
              AllOf(HasSubstr("reads 8 bytes at the misaligned address"),
                    HasSubstr("ld.global.v2.u32"),
                    HasSubstr("block (0, 0, 0) of (1, 1, 1), thread 0")));
  EXPECT_EQ(FaultOf("st.shared.u32 [buffer+2], 1;\n", 32, kShared), 716);
}

TEST_F(GridTest, RefusesAccessesBeyondAllocations) {
  EXPECT_EQ(FaultOf("st.global.u32 [%data+256], 1;\n"), 700);
  EXPECT_THAT(text_, HasSubstr("byte 256 of an allocation of 256"));
  EXPECT_EQ(FaultOf("ld.global.u32 %r0, [%data+-4];\n"), 700);
  EXPECT_EQ(FaultOf("mov.u64 %x0, 0;\nld.u32 %r0, [%x0];\n"), 700);
  EXPECT_EQ(FaultOf("@%p0 st.global.u32 [%data+256], 1;\n"), 0);
}

TEST_F(GridTest, RefusesAccessesBeyondSharedMemory) {
  EXPECT_EQ(FaultOf("st.shared.u32 [buffer+256], 1;\n", 32, kShared), 700);
  EXPECT_THAT(text_, HasSubstr("shared memory, which has 256"));
  // By an address that could be of any memory.
  EXPECT_EQ(FaultOf("mov.u64 %x0, buffer;\ncvta.shared.u64 %x1, %x0;\n"
                    "st.u32 [%x1+256], 1;\n",
                    32, kShared),
            700);
}

TEST_F(GridTest, RefusesWritesToConstants) {
  const char* const constants = ".const .align 4 .u32 seven = 7;\n";
  EXPECT_EQ(FaultOf("ld.const.u32 %r0, [seven];\n", 32, constants), 0);
  EXPECT_EQ(
      FaultOf("mov.u64 %x0, seven;\nst.global.u32 [%x0], 1;\n", 32, constants),
      700);
}

TEST_F(GridTest, EndsLoopsThatDoNot) {
  Settings settings = before_;
  settings.most_steps = 1000;
  SetSettings(settings);
  EXPECT_EQ(FaultOf("again:\nbra again;\n"), 702);
}

TEST_F(GridTest, FindsReadsOfSharedMemoryThatNobodyWrote) {
  EXPECT_EQ(
      FaultOf("st.shared.u32 [buffer], 1;\nld.shared.u32 %r0, [buffer];\n", 1,
              kShared),
      0);
  EXPECT_THAT(TakeFindings(), IsEmpty());
  EXPECT_EQ(FaultOf("ld.shared.u32 %r0, [buffer+8];\n", 32, kShared), 0);
  EXPECT_THAT(TakeFindings(), Contains(HasSubstr("that nobody wrote")));
}

TEST_F(GridTest, FindsAtomicsOnSharedMemoryThatNobodyWrote) {
  EXPECT_EQ(FaultOf("atom.shared.exch.b32 %r0, [buffer], 1;\n"
                    "atom.shared.add.u32 %r0, [buffer], 1;\n",
                    32, kShared),
            0);
  EXPECT_THAT(TakeFindings(), IsEmpty());
  EXPECT_EQ(FaultOf("red.shared.add.u32 [buffer], 1;\n", 32, kShared), 0);
  EXPECT_THAT(TakeFindings(), Contains(HasSubstr("that nobody wrote")));
}

TEST_F(GridTest, FindsRacesInSharedMemory) {
  // Each thread writes its word, and reads that of thread t ^ `other`.
  const auto exchange = [this](int other, const std::string& between) {
    EXPECT_EQ(
        FaultOf("mov.u32 %r0, buffer;\nshl.b32 %r1, %t32, 2;\n"
                "add.u32 %r2, %r0, %r1;\nst.shared.u32 [%r2], %t32;\n" +
                    between + "xor.b32 %r3, %t32, " + std::to_string(other) +
                    ";\nshl.b32 %r3, %r3, 2;\nadd.u32 %r3, %r0, %r3;\n"
                    "ld.shared.u32 %r4, [%r3];\n",
                64, kShared),
        0);
    return TakeFindings();
  };
  const auto race = Contains(HasSubstr(
      "a race in shared memory: reads what another thread writes at"));
  EXPECT_THAT(exchange(1, ""), race);
  EXPECT_THAT(exchange(1, "bar.warp.sync -1;\n"), IsEmpty());
  EXPECT_THAT(exchange(1, "bar.sync 0;\n"), IsEmpty());
  EXPECT_THAT(exchange(0, ""), IsEmpty());
  EXPECT_THAT(exchange(32, "bar.warp.sync -1;\n"), race);
  EXPECT_THAT(exchange(32, "bar.sync 0;\n"), IsEmpty());
  // The second warp writes what the first has read.
  EXPECT_THAT(exchange(32,
                       "bar.sync 0;\nld.shared.u32 %r4, [buffer+128];\n"
                       "st.shared.u32 [%r2], 1;\n"),
              Contains(HasSubstr("writes what another thread reads at")));
}

TEST_F(GridTest, FindsNoRaceWhereBytesOrAtomicsDiffer) {
  EXPECT_EQ(FaultOf("mov.u32 %r0, buffer;\nadd.u32 %r1, %r0, %t32;\n"
                    "st.shared.u8 [%r1], %t32;\nbar.sync 0;\n"
                    "red.shared.add.u32 [buffer], 1;\n",
                    64, kShared),
            0);
  EXPECT_THAT(TakeFindings(), IsEmpty());
  EXPECT_EQ(FaultOf("setp.eq.u32 %p0, %t32, 0;\n"
                    "@%p0 st.shared.u32 [buffer], 0;\nbar.sync 0;\n"
                    "red.shared.add.u32 [buffer], 1;\n"
                    "ld.shared.u32 %r1, [buffer];\n",
                    64, kShared),
            0);
  EXPECT_THAT(TakeFindings(),
              Contains(HasSubstr("reads what another thread writes")));
}

TEST_F(GridTest, FindsDifferentBarriers) {
  const std::string body =
      "setp.lt.u32 %p0, %t32, 40;\n@%p0 bra low;\nbar.sync 0;\nbra end;\n"
      "low:\nbar.sync 0;\nend:\n";
  EXPECT_EQ(FaultOf(body, 64), 0);
  EXPECT_THAT(TakeFindings(),
              Contains(HasSubstr("wait at different barriers")));
}

TEST_F(GridTest, FindsWrongMasks) {
  const std::string even = "and.b32 %r0, %t32, 1;\nsetp.eq.u32 %p0, %r0, 0;\n";
  // All lanes are asked for, and only the even ones come.
  EXPECT_EQ(FaultOf(even + "@%p0 shfl.sync.down.b32 %r1, %t32, 2, 31, -1;\n"),
            0);
  EXPECT_THAT(TakeFindings(), Contains(HasSubstr("lanes that do not come")));
  // The even lanes read the odd ones.
  EXPECT_EQ(FaultOf(even + "@%p0 shfl.sync.bfly.b32 %r1, %t32, 1, 31, "
                           "0x55555555;\n"),
            0);
  EXPECT_THAT(TakeFindings(), Contains(HasSubstr("a lane that takes no part")));
  EXPECT_EQ(FaultOf(even + "vote.sync.any.pred %p1, %p0, 1;\n"), 0);
  EXPECT_THAT(TakeFindings(), Contains(HasSubstr("does not name its lane")));
}

TEST_F(GridTest, ShufflesAndVotes) {
  const std::string store =
      std::string(kOwnElement) + "st.global.u32 [%x1], %r1;\n";
  const auto results = [&](const std::string& instruction) {
    std::vector<std::uint32_t> data(64);
    RunKernel(instruction + store, &data, 64);
    return data;
  };
  std::vector<std::uint32_t> up(64), xored(64), ballot(64, 0x55555555);
  for (std::uint32_t t = 0; t < 64; ++t) {
    up[t] = t % 8 >= 3 ? t - 3 : t;
    xored[t] = t ^ 5;
  }
  // Within segments of eight lanes.
  EXPECT_EQ(results("shfl.sync.up.b32 %r1|%p0, %t32, 3, 0x1800, -1;\n"), up);
  EXPECT_EQ(results("shfl.sync.bfly.b32 %r1|%p0, %t32, 5, 31, -1;\n"), xored);
  EXPECT_THAT(results("shfl.sync.idx.b32 %r1, 9, 3, 31, -1;\n"), Each(9));
  EXPECT_EQ(results("and.b32 %r0, %t32, 1;\nsetp.eq.u32 %p0, %r0, 0;\n"
                    "vote.sync.ballot.b32 %r1, %p0, -1;\n"),
            ballot);
  EXPECT_THAT(results("activemask.b32 %r1;\n"), Each(0xffffffffu));
  EXPECT_THAT(TakeFindings(), IsEmpty());
}

TEST_F(GridTest, AddsAtomically) {
  std::vector<std::uint32_t> data = {0, 100, 7, 0};
  RunKernel(
      "atom.global.add.u32 %r0, [%data], 2;\n"
      "red.global.min.u32 [%data+4], %t32;\n"
      "atom.global.cas.b32 %r1, [%data+8], 7, 9;\n"
      "red.global.add.f32 [%data+12], 0f3F000000;\n",
      &data, 64, /*blocks=*/2);
  EXPECT_THAT(data, testing::ElementsAre(256, 0, 9, 0x42800000u));  // 64.0f
}

TEST_F(GridTest, LoadsAndStoresVectorsAndNarrowTypes) {
  std::vector<std::uint8_t> data(64);
  std::iota(data.begin(), data.end(), std::uint8_t{250});
  RunKernel(
      "ld.global.v4.u8 {%r0, %r1, %r2, %r3}, [%data+4];\n"
      "st.global.v2.u8 [%data+8], {%r3, %r0};\n"
      "ld.global.s8 %r4, [%data];\nst.global.u32 [%data+12], %r4;\n",
      &data, 1);
  EXPECT_EQ(data[8], 1);
  EXPECT_EQ(data[9], 254);
  EXPECT_EQ(data[12], 250);
  EXPECT_EQ(data[15], 255);
}

TEST_F(GridTest, CallsFunctions) {
  const char* const twice =
      ".func (.param .b32 result) twice(.param .b32 x)\n{\n.reg .b32 %a<2>;\n"
      "ld.param.u32 %a0, [x];\nadd.u32 %a1, %a0, %a0;\n"
      "st.param.b32 [result], %a1;\nret;\n}\n";
  std::vector<std::uint32_t> data(64);
  RunKernel(std::string("{\n.param .b32 p0;\nst.param.b32 [p0], %t32;\n"
                        ".param .b32 r0;\ncall.uni (r0), twice, (p0);\n"
                        "ld.param.b32 %r1, [r0];\n}\n") +
                kOwnElement + "st.global.u32 [%x1], %r1;\n",
            &data, 64, 1, twice);
  EXPECT_EQ(data[0], 0);
  EXPECT_EQ(data[63], 126);
}

TEST_F(GridTest, PrintsNothing) {
  std::vector<std::uint32_t> data(64);
  RunKernel(std::string("{\n.param .b64 p0;\nst.param.b64 [p0], %data;\n"
                        ".param .b64 p1;\nst.param.b64 [p1], %data;\n"
                        ".param .b32 r0;\ncall.uni (r0), vprintf, (p0, p1);\n"
                        "ld.param.b32 %r1, [r0];\n}\n") +
                kOwnElement + "st.global.u32 [%x1], 3;\n",
            &data, 64);
  EXPECT_THAT(data, Each(3));
}

// A sum in shared memory, which must not depend on the order of anything.
TEST_F(GridTest, OrdersChangeNoResult) {
  const std::string body =
      "mov.u32 %r0, buffer;\nshl.b32 %r1, %t32, 2;\nadd.u32 %r2, %r0, %r1;\n"
      "st.shared.u32 [%r2], %t32;\nmov.u32 %r3, 32;\n"
      "again:\nbar.sync 0;\nsetp.ge.u32 %p0, %t32, %r3;\n@%p0 bra skip;\n"
      "shl.b32 %r4, %r3, 2;\nadd.u32 %r4, %r4, %r2;\n"
      "ld.shared.u32 %r5, [%r4];\nld.shared.u32 %r6, [%r2];\n"
      "add.u32 %r6, %r6, %r5;\nst.shared.u32 [%r2], %r6;\n"
      "skip:\nshr.u32 %r3, %r3, 1;\nsetp.ne.u32 %p1, %r3, 0;\n"
      "@%p1 bra again;\nbar.sync 0;\nld.shared.u32 %r7, [buffer];\n" +
      std::string(kOwnElement) + "st.global.u32 [%x1], %r7;\n";
  for (int seed = 0; seed < 10; ++seed) {
    Settings settings = before_;
    settings.seed = seed;
    settings.slice = seed % 5;
    settings.diverge = seed % 2 == 1;
    SetSettings(settings);
    std::vector<std::uint32_t> data(64);
    RunKernel(body, &data, 64, /*blocks=*/3, kShared);
    EXPECT_THAT(data, Each(64 * 63 / 2)) << seed;
  }
  EXPECT_THAT(TakeFindings(), IsEmpty());
}

TEST_F(GridTest, SaysWhatItLacks) {
  EXPECT_THROW(FaultOf("wgmma.fence.sync.aligned;\n"), Unsupported);
  EXPECT_THROW(FaultOf("add.u32 %r0, %r1, %x1;\n"), Unsupported);
  EXPECT_THROW(FaultOf("bra nowhere;\n"), Unsupported);
}

}  // namespace
}  // namespace d2l::ptx
