#include "chapters/profiling/machine_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/files/atomic_file.h"
#include "common/lesson/cell/other_load.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

// A folder in place of "/", and a script in place of nvidia-smi.
class FakeMachine {
 public:
  FakeMachine() {
    options.root = root();
    options.window = [] { return OtherLoad{0, 4}; };
    SetGpuScript("exit 0\n");
  }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void Remove(const std::string& path) {
    std::filesystem::remove_all(root() + path);
  }
  void WriteProcess(int pid, const std::string& name, int user, int kernel) {
    Write(absl::StrCat("/proc/", pid, "/stat"),
          absl::StrCat(pid, " (", name, ") S 1 1 1 0 -1 4194560 9 8 7 6 ", user,
                       " ", kernel, " 500 600 20 0 1 0 3 4 5\n"));
  }
  void SetGpuScript(const std::string& text) {
    options.nvidia_smi = root() + "/nvidia-smi";
    Write("/nvidia-smi", absl::StrCat("#!/bin/sh\n", text));
    chmod(options.nvidia_smi.c_str(), 0755);
  }

  LookOptions options;

 private:
  const std::string& root() const { return directory_.path(); }

  const TemporaryDirectory directory_;
};

// The window has 20 ticks.
TEST(LookAtMachine, TellsWhoUsedWhatInTheWindow) {
  FakeMachine machine;
  const int own = static_cast<int>(getpid());
  machine.Write("/proc/loadavg", "2.72 1.52 1.56 3/227 12591\n");
  machine.WriteProcess(own, "this", 10, 10);
  machine.WriteProcess(own + 1, "clang", 100, 100);
  machine.WriteProcess(own + 2, "a) b (c", 50, 0);
  machine.WriteProcess(own + 3, "idle", 5, 5);
  machine.WriteProcess(own + 4, "ended", 1, 1);
  machine.options.window = [&] {
    machine.WriteProcess(own, "this", 12, 10);
    machine.WriteProcess(own + 1, "clang", 108, 102);
    machine.WriteProcess(own + 2, "a) b (c", 50, 2);
    machine.WriteProcess(own + 5, "new\x1b[1m", 3, 1);
    machine.Remove(absl::StrCat("/proc/", own + 4));
    return OtherLoad{1.4, 2};
  };
  const MachineLoad load = LookAtMachine(machine.options);
  EXPECT_DOUBLE_EQ(load.visible, 16.0 / 20);
  EXPECT_EQ(
      load.ToText(),
      absl::StrCat(
          "Other programs used 1.4 of 2 cores. The load average of the last "
          "minute is 2.72.\n",
          "  0.5  clang (pid ", own + 1, ")\n", "  0.2  new\\x1b[1m (pid ",
          own + 5, ")\n", "  0.1  a) b (c (pid ", own + 2, ")\n",
          "- Other programs used 1.4 of 2 cores. Times will be too long.\n"
          "- 0.6 of it are not visible here: other containers, other virtual "
          "machines,\n"
          "  interrupts, or processes that have ended.\n"));
}

TEST(LookAtMachine, NamesAtMostThreeTheBusiestFirst) {
  FakeMachine machine;
  const int own = static_cast<int>(getpid());
  machine.options.window = [&] {
    for (int i = 1; i <= 8; ++i) machine.WriteProcess(own + i, "p", i, 0);
    return OtherLoad{1.8, 4};
  };
  const MachineLoad load = LookAtMachine(machine.options);
  std::vector<int> pids;
  for (const ProcessLoad& process : load.processes) pids.push_back(process.pid);
  EXPECT_THAT(pids, ElementsAre(own + 8, own + 7, own + 6));
  EXPECT_DOUBLE_EQ(load.visible, 1.8);
  EXPECT_THAT(load.warnings, SizeIs(1)) << "nothing is hidden";
}

TEST(LookAtMachine, AQuietMachineGivesNoWarnings) {
  FakeMachine machine;
  machine.Write("/proc/loadavg", "0.10 0.20 0.30 1/100 5\n");
  machine.options.window = [] { return OtherLoad{0.1, 4}; };
  EXPECT_EQ(LookAtMachine(machine.options).ToText(),
            "Other programs used 0.1 of 4 cores. The load average of the last "
            "minute is 0.10.\n"
            "Nothing was seen that would spoil the figures.\n");
}

TEST(LookAtMachine, WhatIsNotKnownIsNotQuiet) {
  FakeMachine machine;  // without any file
  machine.options.nvidia_smi = "d2l-no-nvidia-smi";
  machine.options.window = [] { return std::nullopt; };
  const MachineLoad load = LookAtMachine(machine.options);
  EXPECT_FALSE(load.other);
  EXPECT_THAT(load.ToText(),
              StartsWith("What other programs used is not known.\n"));
  ASSERT_THAT(load.warnings, SizeIs(1));
  EXPECT_THAT(load.warnings[0], HasSubstr("is not known"));
  EXPECT_THAT(load.gpu_note, StartsWith("d2l-no-nvidia-smi cannot be run"));
}

// None of this may crash or overflow.
TEST(LookAtMachine, GarbageInProcIsNoProcess) {
  const std::string huge = "18446744073709551615";
  FakeMachine machine;
  machine.Write("/proc/loadavg", "many 1 2\n");
  machine.Write("/proc/99999999999999999999/stat", "1 (a) S");
  machine.Write("/proc/-3/stat", "x");
  machine.Write("/proc/7/stat/folder", "");
  machine.Write("/proc/8/stat", "8 ) a ( S 1 1 1 0 -1 41 9 8 7 6 30 12");
  machine.Write("/proc/9/stat", "9 (a) S 1 1 1 0 -1 41 9 8 7 6 30 twelve");
  machine.Write("/proc/10/stat",
                absl::StrCat("10 (\xff) S 1 1 1 0 -1 41 9 8 7 6 ", huge, " ",
                             huge, " 0\n"));
  const MachineLoad load = LookAtMachine(machine.options);
  EXPECT_FALSE(load.load_average);
  EXPECT_THAT(load.processes, IsEmpty());
}

TEST(LookAtMachine, WarnsOfProcessesThatUseAGpu) {
  FakeMachine machine;
  machine.SetGpuScript(
      absl::StrCat("echo '77, /opt/a, b/train, 900 MiB'\necho '", getpid(),
                   ", this program, 1 MiB'\necho\necho 'No devices, found'\n"));
  const MachineLoad load = LookAtMachine(machine.options);
  EXPECT_THAT(load.warnings,
              ElementsAre("Another process uses a GPU: /opt/a, b/train (pid "
                          "77), 900 MiB."));

  machine.SetGpuScript("echo '77, train, 9 MiB'\nexit 9\n");
  const MachineLoad failed = LookAtMachine(machine.options);
  EXPECT_THAT(failed.gpu_processes, IsEmpty());
  EXPECT_THAT(failed.gpu_note, HasSubstr("exit code 9."));
}

// A process that spins is found on this machine, beside whatever else runs.
TEST(LookAtMachine, FindsABusyProcess) {
  const pid_t busy = fork();
  ASSERT_GE(busy, 0);
  if (busy == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (volatile unsigned i = 0;; i = i + 1) {
    }
  }
  LookOptions options;
  options.nvidia_smi = "/none";
  bool found = false;
  std::string text;
  // On a crowded machine it may not get a turn in one window.
  for (int look = 0; look < 50 && !found; ++look) {
    const MachineLoad load = LookAtMachine(options);
    text = load.ToText();
    for (const ProcessLoad& process : load.processes) {
      found = found || process.pid == busy;
    }
  }
  kill(busy, SIGKILL);
  waitpid(busy, nullptr, 0);
  EXPECT_TRUE(found) << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

}  // namespace
}  // namespace d2l
