// Programs that end with work in flight end quickly and in order; a failure
// nobody asked about is told on the way. Each case is a program of its own,
// see exit_helper.cc.

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "common/base/timer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::HasSubstr;

struct Ended {
  int code = -1;  // 124 if it had to be ended
  std::string output;
  double seconds = 0;
};

Ended RunHelper(const std::string& how) {
  const Timer timer;
  Ended ended;
  std::FILE* pipe = popen(
      ("timeout 60 common/device/exit_helper " + how + " 2>&1").c_str(), "r");
  if (pipe == nullptr) {
    ADD_FAILURE() << "the program cannot be started";
    return ended;
  }
  std::array<char, 4096> buffer;
  while (const std::size_t n =
             std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    ended.output.append(buffer.data(), n);
  }
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  ended.seconds = timer.Seconds();
  return ended;
}

class QuietEndTest : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Ways, QuietEndTest,
                         testing::Values("nothing", "start", "queued", "exit",
                                         "across", "leftovers", "producers",
                                         "waiter", "parallel"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           return std::string(info.param);
                         });

TEST_P(QuietEndTest, EndsSoonAndSaysNothing) {
  for (int i = 0; i < 10; ++i) {
    const Ended ended = RunHelper(GetParam());
    ASSERT_EQ(ended.code, 0) << ended.output;
    EXPECT_EQ(ended.output, "");
    EXPECT_LT(ended.seconds, 30);
  }
}

TEST(EndTest, AFailureNobodyHasSeenIsTold) {
  const Ended ended = RunHelper("poisoned");
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.output, HasSubstr("Nobody noticed that host_callback "
                                      "(operation 0 of stream cpu:0"));
  EXPECT_THAT(ended.output, HasSubstr("alas"));
}

TEST(EndTest, WorkMayEndTheProgram) {
  const Ended ended = RunHelper("exit_in_work");
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(ended.output, "");
}

TEST(EndTest, PartOfAnOperationMayEndTheProgram) {
  const Ended ended = RunHelper("exit_in_part");
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(ended.output, "");
}

TEST(StartTest, AnOperationMayUseAllCoresOfItsDevice) {
  EXPECT_EQ(RunHelper("parallel_cores").output, "all at once\n");
}

TEST(StartTest, TheFirstUseMakesTheTable) {
  const Ended ended = RunHelper("automatic");
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.output, HasSubstr("devices, 10 ran"));
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(RunHelper("threads_start").output, "800 ran\n");
  }
}

TEST(StartTest, BoundsAreThoseAskedFor) {
  EXPECT_EQ(RunHelper("bound_of_one").output, "1000 ran\n");
  EXPECT_EQ(RunHelper("no_bound").output, "100000 ran\n");
}

TEST(StartTest, AnUnknownCaseIsNoSuccess) {
  EXPECT_EQ(RunHelper("bogus").code, 2);
}

}  // namespace
}  // namespace d2l
