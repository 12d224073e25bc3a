// Threads that compute while the program ends do not disturb its end: the exit
// code is the program's, and nothing is printed.

#include <chrono>
#include <string>

#include "common/base/child_process.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

// The output, followed by the exit code. What the threads hold at the end is no
// leak.
std::string RunHelper(const std::string& how) {
  ProgramOptions options;
  options.time_limit = std::chrono::seconds(60);
  const ProgramResult ended =
      RunProgram("common/ops/exit_helper", {how},
                 {"ASAN_OPTIONS=detect_leaks=0"}, options);
  return ended.output + std::to_string(ended.exit_code);
}

TEST(ExitTest, MainReturnsWhileThreadsCompute) {
  for (int i = 0; i < 16; ++i) ASSERT_EQ(RunHelper("return"), "7");
}

TEST(ExitTest, ExitIsCalledWhileThreadsCompute) {
  for (int i = 0; i < 16; ++i) ASSERT_EQ(RunHelper("exit"), "18");
}

}  // namespace
}  // namespace d2l
