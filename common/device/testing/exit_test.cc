// Programs that end with work in flight end quickly and in order, and print an
// unreported failure. Each case is a program of its own, see exit_helper.cc.

#include <chrono>
#include <string>
#include <vector>

#include "common/base/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::HasSubstr;

constexpr int kSkipped = 77;  // as in exit_helper.cc

ProgramResult RunHelper(const std::string& how,
                        const std::vector<std::string>& environment = {}) {
  ProgramOptions options;
  options.time_limit = std::chrono::seconds(30);
  return RunProgram("common/device/exit_helper", {how}, environment, options);
}

// Under ASan, at its end, LeakSanitizer needs a thread of its own and the user
// that started the program, and does not find the threads of a forked child.
ProgramResult RunWithoutLeakCheck(const std::string& how) {
  return RunHelper(how, {"ASAN_OPTIONS=detect_leaks=0"});
}

class QuietEndTest : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Ways, QuietEndTest,
                         testing::Values("nothing", "start", "queued", "exit",
                                         "across", "leftovers", "producers",
                                         "waiter", "parallel", "exit_in_stall"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           return std::string(info.param);
                         });

TEST_P(QuietEndTest, EndsSoonAndSaysNothing) {
  for (int i = 0; i < 10; ++i) {
    const ProgramResult ended = RunHelper(GetParam());
    ASSERT_EQ(ended.exit_code, 0) << ended.output;
    EXPECT_EQ(ended.output, "");
  }
}

TEST(EndTest, AFailureNobodyHasSeenIsTold) {
  const ProgramResult ended = RunHelper("poisoned");
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.output,
              HasSubstr("Unreported asynchronous error: host_callback "
                        "(operation 0 of stream cpu:0"));
  EXPECT_THAT(ended.output, HasSubstr("alas"));
}

TEST(EndTest, AThreadThatCapturesMayEndTheProgram) {
  const ProgramResult ended = RunHelper("exit_in_capture");
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.output, HasSubstr("alas"));
}

TEST(EndTest, WorkMayEndTheProgram) {
  const ProgramResult ended = RunHelper("exit_in_work");
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(ended.output, "");
}

TEST(EndTest, PartOfAnOperationMayEndTheProgram) {
  const ProgramResult ended = RunHelper("exit_in_part");
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(ended.output, "");
}

TEST(StartTest, AnOperationMayUseAllCoresOfItsDevice) {
  EXPECT_EQ(RunHelper("parallel_cores").output, "all at once\n");
}

TEST(StartTest, TheFirstUseMakesTheTable) {
  const ProgramResult ended = RunHelper("automatic");
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.output, HasSubstr("devices, 10 ran"));
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(RunHelper("threads_start").output, "800 ran\n");
  }
}

TEST(StartTest, BoundsAreThoseAskedFor) {
  EXPECT_EQ(RunHelper("bound_of_one").output, "1000 ran\n");
  EXPECT_EQ(RunHelper("no_bound").output, "100000 ran\n");
}

TEST(ThreadLimitTest, AStreamSaysWhatIsMissing) {
  const ProgramResult ended = RunWithoutLeakCheck("no_thread_for_a_stream");
  if (ended.exit_code == kSkipped) GTEST_SKIP() << "the user cannot be changed";
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("RESOURCE_EXHAUSTED: [thread] cpu:0 "
                                      "needs a thread, and the system starts "
                                      "none"));
  EXPECT_THAT(ended.output, HasSubstr("0 for this user (ulimit -u)"));
  EXPECT_THAT(ended.output, HasSubstr("--devices=cpu:0"));
  EXPECT_THAT(ended.output, HasSubstr("threw [thread] cpu:0 needs a thread"));
}

TEST(ThreadLimitTest, AnOperationUsesTheCoresThereAre) {
  const ProgramResult ended = RunWithoutLeakCheck("no_thread_for_a_helper");
  if (ended.exit_code == kSkipped) GTEST_SKIP() << "the user cannot be changed";
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.output, HasSubstr("200 ran"));
  const std::string note = "Slower, on 1 of 4 cores: [thread] core 2 of 4";
  EXPECT_THAT(ended.output, HasSubstr(note));
  // The text is printed once.
  EXPECT_EQ(ended.output.find("Slower"), ended.output.rfind("Slower"));
}

TEST(ForkTest, AChildMayExit) {
  const ProgramResult ended = RunWithoutLeakCheck("fork_and_exit");
  EXPECT_EQ(ended.exit_code, 5) << ended.output;
  EXPECT_EQ(ended.output, "");
}

TEST(ForkTest, AChildIsToldThatItCannotUseStreams) {
  const ProgramResult ended = RunWithoutLeakCheck("fork_and_enqueue");
  EXPECT_EQ(ended.exit_code, 6);
  for (const char* call : {"HostCallback", "Synchronize", "Record"}) {
    EXPECT_THAT(ended.output,
                HasSubstr(std::string("[") + call +
                          "] called in a forked child, which has none of the "
                          "threads that work for the parent's streams"));
  }
}

TEST(ForkTest, AThreadOfAChildDoesNotWaitForEver) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked child";
#elif defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a thread of the parent may hold AddressSanitizer's memory "
                  "at the fork, for ever in the child";
#endif
  const ProgramResult ended = RunWithoutLeakCheck("fork_and_wait_in_a_thread");
  EXPECT_EQ(ended.exit_code, 7);
  EXPECT_THAT(ended.output, HasSubstr("called in a forked child"));
}

TEST(StartTest, AnUnknownCaseIsNoSuccess) {
  EXPECT_EQ(RunHelper("bogus").exit_code, 2);
}

}  // namespace
}  // namespace d2l
