// Probes of the sample lesson, run from outside; and the error in a program
// that is no lesson.

#include "common/lesson/run/fresh_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/child_process.h"

namespace d2l {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// The cell that runs a probe: "PROBE|ARGUMENT|ARGUMENT".
ProgramResult Fresh(const std::string& probe,
                    const std::string& program = "common/lesson/sample") {
  return RunProgram(program, {"--cell=s/fresh", "--devices=cpu:0"},
                    {absl::StrCat("SAMPLE_PROBE=", probe)});
}

TEST(FreshProcess, ReturnsTheNumbersToTheLastDigit) {
  for (const char* program :
       {"common/lesson/sample", "common/lesson/sample_course"}) {
    const ProgramResult r = Fresh("sample/echo|0.1|-inf|nan", program);
    EXPECT_EQ(r.exit_code, 0) << r.output;
    EXPECT_THAT(
        r.output,
        HasSubstr("OK\n[0.33333333333333331]\n[-0]\n[1.0000000000000001e+300]\n"
                  "[4.9406564584124654e-324]\n"
                  "[0.10000000000000001]\n[-inf]\n[nan]\n"));
    EXPECT_THAT(r.output, Not(HasSubstr("this is lost")));
  }
}

TEST(FreshProcess, ArgumentsArriveAsTheyAre) {
  // An argument may look like a flag, and is not parsed.
  const ProgramResult r = Fresh("sample/echo|--help|");
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("INTERNAL: "));
  EXPECT_THAT(r.output, HasSubstr("stod"));
}

TEST(FreshProcess, IsStartedByALauncher) {
  const auto launched = [](const std::string& launcher) {
    return RunProgram("common/lesson/sample",
                      {"--cell=s/fresh", "--devices=cpu:0"},
                      {"SAMPLE_PROBE=sample/echo|0.5",
                       absl::StrCat("SAMPLE_LAUNCHER=", launcher)})
        .output;
  };
  EXPECT_THAT(launched("env|-u|HOME"), HasSubstr("\n[0.5]\n"));
  EXPECT_THAT(launched("/nowhere/mpirun"), HasSubstr("INTERNAL: "));
  // Both return numbers.
  EXPECT_THAT(launched("sh|-c|\"$@\"; \"$@\"|sh"), HasSubstr("INTERNAL: "));
  // A second process returns no numbers.
  EXPECT_THAT(launched("sh|-c|true; \"$@\"|sh"), HasSubstr("\n[0.5]\n"));
}

TEST(FreshProcess, TheProbeMakesItsOwnDeviceTable) {
  const ProgramResult r = Fresh("sample/product|cpu:0,cpu:1,cpu:2");
  EXPECT_EQ(r.exit_code, 0) << r.output;
  // The lesson has one device, the probe three; 2 x 2 values of 3.
  EXPECT_THAT(r.output, HasSubstr("OK\n[3]\n[12]\n"));
  EXPECT_THAT(Fresh("sample/product|tpu:0").output, HasSubstr("tpu:0"));
}

TEST(FreshProcess, SaysHowTheProcessEnded) {
  const std::string begin =
      "INTERNAL: the process of the probe \"sample/end\" ";
  const std::string printed = "; it printed:\non stdout\non stderr";
  EXPECT_THAT(Fresh("sample/end|throw").output,
              HasSubstr(begin + "ended with exit code 1" + printed +
                        "\nnothing works\n"));
  EXPECT_THAT(Fresh("sample/end|exit").output,
              HasSubstr(begin + "ended with exit code 7" + printed));
  EXPECT_THAT(
      Fresh("sample/end|early").output,
      HasSubstr(begin + "ended before it returned its numbers" + printed));
  EXPECT_THAT(Fresh("sample/end|signal").output,
              HasSubstr(begin + "was ended by signal 9 (Killed)" + printed));
}

TEST(FreshProcess, UnknownProbesAreNamed) {
  EXPECT_THAT(Fresh("sample/nothing").output,
              HasSubstr("NOT_FOUND: there is no probe \"sample/nothing\"; "
                        "there are: sample/echo, sample/end, sample/product, "
                        "sample/sleep\n"));
  // Sets the variable that RunInFreshProcess would set for LessonMain.
  const ProgramResult r =
      RunProgram("common/lesson/sample", {}, {"D2L_PROBE=sample/nothing"});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("there is no probe \"sample/nothing\""));
  EXPECT_THAT(r.output, HasSubstr("unset it to run the lesson"));
}

TEST(FreshProcess, AProbeCannotRunAProbe) {
  EXPECT_THAT(Fresh("sample/end|probe").output,
              HasSubstr("was requested by a probe, whose process is fresh"));
}

TEST(FreshProcess, HasNoInput) {
  EXPECT_THAT(Fresh("sample/end|stdin").output, HasSubstr("OK\n[-1]\n"));
}

TEST(FreshProcess, WhatAProbePrintsDoesNotStopIt) {
  EXPECT_THAT(Fresh("sample/end|long").output, HasSubstr("OK\n[8]\n"));
}

int ReadPid(const std::string& path) {
  // Bounded: a minute is far longer than a process takes to start.
  for (int i = 0; i < 6000 && !fs::exists(path); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  int pid = -1;
  std::ifstream(path) >> pid;
  return pid;
}

// Whether the process ends within a minute. A process that the kernel has ended
// may still exist, as a zombie, until init has collected it.
bool Ends(int pid) {
  for (int i = 0; i < 6000; ++i) {
    std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
    std::stringstream text;
    text << stat.rdbuf();
    if (!stat || text.str().find(") Z ") != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

std::string PidFile(const std::string& name) {
  const fs::path path = fs::path(::testing::TempDir()) / name;
  fs::remove(path);
  return path.string();
}

TEST(FreshProcess, IsStoppedAfterItsLimit) {
  const std::string path = PidFile("limit.pid");
  const ProgramResult r = Fresh(absl::StrCat("sample/sleep|limit|", path));
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output,
              HasSubstr("DEADLINE_EXCEEDED: the process of the probe "
                        "\"sample/sleep\" was stopped after its limit of 1 s; "
                        "it printed nothing\n"));
  // There is no file if the limit came before the first line of the probe.
  if (fs::exists(path)) {
    EXPECT_TRUE(Ends(ReadPid(path)));
  }
}

// The signal goes to the lesson alone, as with `kill`; from a terminal it would
// go to both.
void ExpectEndsWithTheLesson(const std::string& signal, int exit_code) {
  const std::string path = PidFile(signal + ".pid");
  const fs::path script =
      fs::path(::testing::TempDir()) / (signal + "_probe.sh");
  std::ofstream(script)
      << "SAMPLE_PROBE='sample/sleep|forever|" << path
      << "' env --default-signal=INT common/lesson/sample --cell=s/fresh "
         "--devices=cpu:0 & pid=$!\n"
         "for i in {1..600}; do [[ -e '"
      << path
      << "' ]] && break; sleep 0.1; done\n"
         "kill -"
      << signal << " $pid; wait $pid\n";
  const ProgramResult r = RunProgram("/bin/bash", {script.string()});
  EXPECT_EQ(r.exit_code, exit_code) << r.output;
  const int pid = ReadPid(path);
  ASSERT_GT(pid, 0) << r.output;
  EXPECT_TRUE(Ends(pid)) << pid;
  fs::remove(script);
}

TEST(FreshProcess, EndsWithTheLesson) {
  ExpectEndsWithTheLesson("INT", 130);
  ExpectEndsWithTheLesson("KILL", 137);
}

TEST(FreshProcess, ALessonThatIsGoneIsNotWaitedFor) {
  // No process with this number is a parent.
  const ProgramResult r =
      RunProgram("common/lesson/sample", {},
                 {"D2L_PROBE=sample/echo", "D2L_PROBE_PARENT=0"});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_EQ(r.output, "");
}

// This program's main is GoogleTest's.
TEST(FreshProcess, AnotherProgramStartsNothing) {
  EXPECT_TRUE(RegisterProbe("test/probe", [](const std::vector<std::string>&) {
    return std::vector<double>{};
  }));
  const absl::Status status = RunInFreshProcess("test/probe", {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "the probe \"test/probe\" can be run in a fresh process by a "
            "lesson only: this program's main is not LessonMain");
  EXPECT_THROW(RegisterProbe("test/probe", nullptr), std::logic_error);
}

}  // namespace
}  // namespace d2l
