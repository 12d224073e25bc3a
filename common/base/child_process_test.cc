#include "common/base/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace d2l {
namespace {

using ::testing::HasSubstr;

ProgramResult Shell(const std::string& script,
                    const ProgramOptions& options = {}) {
  return RunProgram("sh", {"-c", script}, {}, options);
}

TEST(RunProgram, ArgumentsArriveAsTheyAre) {
  const ProgramResult r =
      RunProgram("printf", {"[%s]", "", "a b", "it's $HOME `x` \"\n*"});
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_EQ(r.failure, "");
  EXPECT_EQ(r.output, "[][a b][it's $HOME `x` \"\n*]");
}

TEST(RunProgram, StderrComesInBetweenOrApart) {
  const std::string script = "echo a; echo b >&2; echo c; echo d >&2";
  const ProgramResult together = Shell(script);
  EXPECT_EQ(together.output, "a\nb\nc\nd\n");
  EXPECT_EQ(together.error_output, "");
  ProgramOptions options;
  options.separate_stderr = true;
  const ProgramResult apart = Shell(script, options);
  EXPECT_EQ(apart.output, "a\nc\n");
  EXPECT_EQ(apart.error_output, "b\nd\n");
}

TEST(RunProgram, LongOutputsAreTakenWhole) {
  ProgramOptions options;
  options.separate_stderr = true;
  const ProgramResult r = Shell(
      "head -c 1000000 /dev/zero >&2; head -c 2000000 /dev/zero", options);
  EXPECT_EQ(r.output.size(), 2'000'000u);
  EXPECT_EQ(r.error_output.size(), 1'000'000u);
}

TEST(RunProgram, ReadsItsInput) {
  ProgramOptions options;
  EXPECT_EQ(Shell("cat", options).output, "");
  options.input = std::string("a\0b\n", 4) + std::string(3'000'000, 'x');
  EXPECT_TRUE(Shell("cat", options).output == options.input);
  // Who does not read it all is not waited for.
  EXPECT_EQ(Shell("head -c 1", options).output, "a");
}

TEST(RunProgram, SaysHowTheProgramEnded) {
  ProgramResult r = Shell("echo part; exit 9");
  EXPECT_EQ(r.exit_code, 9);
  EXPECT_EQ(r.output, "part\n");
  EXPECT_EQ(r.failure, "ended with exit code 9");
  r = Shell("kill -KILL $$");
  EXPECT_EQ(r.exit_code, 137);
  EXPECT_EQ(r.failure, "was ended by signal 9 (Killed)");
  for (const char* missing : {"d2l-no-such-program", "/nowhere/program"}) {
    r = RunProgram(missing, {});
    EXPECT_EQ(r.exit_code, 127);
    EXPECT_EQ(r.failure, "cannot be run: No such file or directory");
  }
  EXPECT_EQ(RunProgram("/dev/null", {}).failure,
            "cannot be run: Permission denied");
}

TEST(RunProgram, TheEnvironmentIsChangedForTheChildOnly) {
  ASSERT_EQ(setenv("D2L_OLD", "1", 1), 0);
  ASSERT_EQ(setenv("D2L_GONE", "1", 1), 0);
  ASSERT_EQ(setenv("D2L_SAME", "1", 1), 0);
  const ProgramResult r = RunProgram(
      "sh", {"-c", "echo $D2L_OLD ${D2L_GONE-none} $D2L_SAME $D2L_NEW"},
      {"D2L_OLD=2", "D2L_GONE", "D2L_NEW=a=b c"});
  EXPECT_EQ(r.output, "2 none 1 a=b c\n");
  EXPECT_STREQ(getenv("D2L_OLD"), "1");
  EXPECT_EQ(getenv("D2L_NEW"), nullptr);
}

TEST(RunProgram, TheChildHasNoInput) {
  EXPECT_EQ(Shell("cat; echo end").output, "end\n");
}

// Whether the process ends within a minute.
bool Ends(pid_t pid) {
  for (int i = 0; i < 6000; ++i) {
    std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
    std::string text;
    std::getline(stat, text);
    // A zombie stays until init has taken note.
    if (text.empty() || text.find(") Z ") != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(RunProgram, StopsTheProgramAndItsChildrenAfterTheLimit) {
  ProgramOptions options;
  options.time_limit = std::chrono::milliseconds(200);
  for (const char* script :
       {// The script and its child hold the pipe open.
        "sleep 1000 & echo $!; sleep 1000",
        // The script has closed its output, and goes on.
        "sleep 1000 >&- 2>&- & echo $!; exec >&- 2>&-; exec sleep 1000"}) {
    // On a crowded machine the shell may not get to its first line in time.
    for (; options.time_limit < std::chrono::minutes(1);
         *options.time_limit *= 2) {
      const ProgramResult r = Shell(script, options);
      EXPECT_TRUE(r.timed_out);
      EXPECT_EQ(r.exit_code, 137);
      EXPECT_THAT(r.failure, HasSubstr("was stopped after its limit of "));
      int child = 0;
      if (!absl::SimpleAtoi(r.output, &child)) continue;
      EXPECT_TRUE(Ends(child));
      break;
    }
  }
}

TEST(RunProgram, ALimitThatIsNotReachedChangesNothing) {
  ProgramOptions options;
  options.time_limit = std::chrono::hours(1000);
  const ProgramResult r = Shell("echo done", options);
  EXPECT_FALSE(r.timed_out);
  EXPECT_EQ(r.output, "done\n");
}

// A descriptor that leaked into the child of another thread would keep a pipe
// open until that child ends.
TEST(RunProgram, ThreadsMayRunProgramsAtTheSameTime) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([i] {
      for (int j = 0; j < 10; ++j) {
        EXPECT_EQ(RunProgram("echo", {absl::StrCat(i, " ", j)}).output,
                  absl::StrCat(i, " ", j, "\n"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace d2l
