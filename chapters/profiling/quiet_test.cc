#include "chapters/profiling/quiet.h"

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
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chapters/profiling/machine_files.h"
#include "chapters/profiling/quiet_command.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A folder that stands for "/", and the tools in it.
class FakeMachine {
 public:
  FakeMachine() {
    const char* const base = std::getenv("TEST_TMPDIR");
    root_ = absl::StrCat(base != nullptr ? base : "/tmp", "/machine_XXXXXX");
    EXPECT_NE(mkdtemp(&root_[0]), nullptr);
  }
  ~FakeMachine() { std::filesystem::remove_all(root_); }

  const std::string& root() const { return root_; }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void WriteProcess(int pid, const std::string& name, int user, int kernel) {
    Write(absl::StrCat("/proc/", pid, "/stat"),
          absl::StrCat(pid, " (", name, ") S 1 1 1 0 -1 4194560 9 8 7 6 ", user,
                       " ", kernel, " 500 600 20 0 1 0 3 4 5\n"));
  }
  // The same counters for one CPU and for all.
  void WriteCpu(int cpus, int user, int system, int idle, int steal) {
    const std::string counters =
        absl::StrCat(user, " 0 ", system, " ", idle, " 0 0 0 ", steal, " 0 0");
    std::string text = absl::StrCat("cpu  ", counters, "\n");
    for (int cpu = 0; cpu < cpus; ++cpu) {
      absl::StrAppend(&text, "cpu", cpu, " ", counters, "\n");
    }
    Write("/proc/stat", absl::StrCat(text, "intr 12 3\nctxt 5\n"));
  }
  std::string WriteScript(const std::string& text) {
    Write("/script", absl::StrCat("#!/bin/sh\n", text));
    chmod((root_ + "/script").c_str(), 0755);
    return root_ + "/script";
  }
  LookOptions Options() {
    LookOptions options;
    options.root = root_;
    options.window = [] {};
    options.nvidia_smi = "d2l-no-nvidia-smi";
    return options;
  }

 private:
  std::string root_;
};

TEST(ParseProcessStat, TakesTheNameToTheLastParenthesis) {
  const char* const rest = " S 1 1 1 0 -1 41 9 8 7 6 30 12 500 600 20 0 1";
  for (const std::string name :
       {"clang", "(sd-pam)", "a) b (c", ") R 1", "", "two\nlines"}) {
    const auto process =
        ParseProcessStat(absl::StrCat("123 (", name, ")", rest));
    ASSERT_TRUE(process) << name;
    EXPECT_EQ(process->pid, 123);
    EXPECT_EQ(process->name, name);
    EXPECT_EQ(process->ticks, 42);
  }
}

TEST(ParseProcessStat, RefusesWhatIsNoSuchFile) {
  for (const std::string text :
       {"", "123", "123 (a", "a) (1", "x (a) S 1 1 1 0 -1 41 9 8 7 6 30 12",
        "123 (a) S 1 1 1 0 -1 41 9 8 7 6 30",
        "123 (a) S 1 1 1 0 -1 41 9 8 7 6 thirty 12"}) {
    EXPECT_FALSE(ParseProcessStat(text)) << text;
  }
}

TEST(ParseCpuTicks, AddsWhatIsBusyAndCountsCpus) {
  const auto ticks = ParseCpuTicks(
      "cpu  1 2 4 8 16 32 64 128 999 999\n"
      "cpu0 1 2 4 8 16 32 64 128 0 0\ncpu7 0 0 0 0 0 0 0 0 0 0\nintr 5\n");
  ASSERT_TRUE(ticks);
  EXPECT_EQ(ticks->cpus, 2);
  EXPECT_EQ(ticks->busy, 1 + 2 + 4 + 32 + 64);
  EXPECT_EQ(ticks->idle, 8 + 16);
  EXPECT_EQ(ticks->steal, 128);
}

TEST(ParseCpuTicks, RefusesWhatSaysTooLittle) {
  EXPECT_FALSE(ParseCpuTicks(""));
  EXPECT_FALSE(ParseCpuTicks("cpu  1 2 3 4 5 6 7 8 9 10\n"));
  EXPECT_FALSE(ParseCpuTicks("cpu  1 2 3\ncpu0 1 2 3\n"));
  EXPECT_FALSE(ParseCpuTicks("cpu0 1 2 3 4 5 6 7 8 9 10\n"));
}

TEST(ParseCpuMax, IsTheQuotaByThePeriod) {
  EXPECT_EQ(ParseCpuMax("50000 100000\n"), 0.5);
  EXPECT_EQ(ParseCpuMax("250000 100000"), 2.5);
  for (const std::string text : {"max 100000", "-1 100000", "", "1", "1 0"}) {
    EXPECT_FALSE(ParseCpuMax(text)) << text;
  }
}

TEST(ParseGpuProcesses, KeepsCommasInNames) {
  const std::vector<GpuProcess> processes = ParseGpuProcesses(
      "12, python, 512 MiB\n7, /opt/a, b/train, [N/A]\n\nNo devices found\n");
  ASSERT_THAT(processes, SizeIs(2));
  EXPECT_EQ(processes[0].pid, 12);
  EXPECT_EQ(processes[0].name, "python");
  EXPECT_EQ(processes[0].memory, "512 MiB");
  EXPECT_EQ(processes[1].pid, 7);
  EXPECT_EQ(processes[1].name, "/opt/a, b/train");
  EXPECT_EQ(processes[1].memory, "[N/A]");
}

TEST(MachineFiles, ReadsFieldsAndLimits) {
  FakeMachine machine;
  EXPECT_FALSE(AvailableMemoryBytes(machine.root()));
  machine.Write("/proc/meminfo", "MemTotal: 900 kB\nMemAvailable:\t 800 kB\n");
  EXPECT_EQ(AvailableMemoryBytes(machine.root()), 800 * 1024);
  machine.Write("/sys/fs/cgroup/memory.max", "max\n");
  machine.Write("/sys/fs/cgroup/memory.current", "1000\n");
  EXPECT_EQ(AvailableMemoryBytes(machine.root()), 800 * 1024);
  machine.Write("/sys/fs/cgroup/memory.max", "5000\n");
  EXPECT_EQ(AvailableMemoryBytes(machine.root()), 4000);
  machine.Write("/sys/fs/cgroup/memory.current", "6000\n");
  EXPECT_EQ(AvailableMemoryBytes(machine.root()), 0);
  EXPECT_FALSE(ReadTextFile(machine.root()));
  EXPECT_FALSE(ReadTextFile(machine.root() + "/none"));
}

// In the window: 40 ticks of two CPUs, of which 25 busy and 4 stolen.
TEST(LookAtMachine, TellsWhoUsedWhatInTheWindow) {
  FakeMachine machine;
  const int own = static_cast<int>(getpid());
  machine.WriteCpu(2, 1000, 500, 9000, 70);
  machine.Write("/proc/loadavg", "2.72 1.52 1.56 3/227 12591\n");
  machine.Write("/proc/self/stat", "not a number, so not a process");
  machine.WriteProcess(own, "quiet_test", 10, 10);
  machine.WriteProcess(own + 1, "clang", 100, 100);
  machine.WriteProcess(own + 2, "a) b (c", 50, 0);
  machine.WriteProcess(own + 3, "(sd-pam)", 5, 5);
  machine.WriteProcess(own + 4, "ended", 1, 1);
  LookOptions options = machine.Options();
  options.window = [&] {
    machine.WriteCpu(2, 1020, 505, 9011, 74);
    machine.WriteProcess(own, "quiet_test", 12, 10);
    machine.WriteProcess(own + 1, "clang", 108, 102);
    machine.WriteProcess(own + 2, "a) b (c", 50, 1);
    machine.WriteProcess(own + 5, "new\x1b[1m", 3, 1);
    std::filesystem::remove_all(
        absl::StrCat(machine.root(), "/proc/", own + 4));
  };
  const MachineLoad load = LookAtMachine(options);

  EXPECT_EQ(load.cpus, 2);
  ASSERT_TRUE(load.window_seconds);
  EXPECT_DOUBLE_EQ(*load.window_seconds, 20.0 / sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(load.busy, 25.0 / 20);
  EXPECT_DOUBLE_EQ(load.stolen, 4.0 / 20);
  EXPECT_DOUBLE_EQ(load.own, 2.0 / 20);
  EXPECT_DOUBLE_EQ(load.visible, 15.0 / 20);
  ASSERT_THAT(load.top, SizeIs(3));
  EXPECT_EQ(load.top[0].pid, own + 1);
  EXPECT_EQ(load.top[0].name, "clang");
  EXPECT_DOUBLE_EQ(load.top[0].cores, 10.0 / 20);
  EXPECT_EQ(load.top[1].pid, own + 5);
  EXPECT_DOUBLE_EQ(load.top[1].cores, 4.0 / 20);
  EXPECT_EQ(load.top[2].name, "a) b (c");
  EXPECT_DOUBLE_EQ(load.top[2].cores, 1.0 / 20);

  ASSERT_THAT(load.warnings, SizeIs(4));
  EXPECT_EQ(load.warnings[0],
            absl::StrCat("Other processes use 50 % of a core: clang (pid ",
                         own + 1, "), 20 % of a core: new?[1m (pid ", own + 5,
                         "). Figures will be too large."));
  EXPECT_THAT(load.warnings[1],
              HasSubstr("40 % of a core went to what is not"));
  EXPECT_THAT(load.warnings[2], HasSubstr("gave 20 % of a core"));
  EXPECT_THAT(load.warnings[3], HasSubstr("2.72, is above the 2 cores"));
}

TEST(LookAtMachine, NamesAtMostFiveTheBusiestFirst) {
  FakeMachine machine;
  const int own = static_cast<int>(getpid());
  machine.WriteCpu(1, 0, 0, 0, 0);
  LookOptions options = machine.Options();
  options.window = [&] {
    machine.WriteCpu(1, 100, 0, 0, 0);
    for (int i = 1; i <= 8; ++i) machine.WriteProcess(own + i, "p", i, 0);
  };
  const MachineLoad load = LookAtMachine(options);
  std::vector<int> pids;
  for (const ProcessUse& process : load.top) pids.push_back(process.pid);
  EXPECT_THAT(pids, ElementsAre(own + 8, own + 7, own + 6, own + 5, own + 4));
  EXPECT_DOUBLE_EQ(load.visible, 0.36);
  EXPECT_THAT(load.warnings[0],
              HasSubstr("Other processes together use 36 % of a core"));
}

TEST(LookAtMachine, AQuietMachineGivesNoWarnings) {
  FakeMachine machine;
  machine.WriteCpu(4, 10, 10, 1000, 0);
  machine.Write("/proc/loadavg", "0.10 0.20 0.30 1/100 5\n");
  machine.Write("/proc/vmstat", "pswpin 7\npswpout 9\n");
  machine.Write("/proc/meminfo",
                "MemTotal: 4096 kB\nMemAvailable: 2048 kB\n"
                "SwapTotal: 1024 kB\nSwapFree: 1024 kB\n");
  for (const char* cpu : {"cpu0", "cpu3"}) {
    const std::string folder =
        absl::StrCat("/sys/devices/system/cpu/", cpu, "/cpufreq/scaling_");
    machine.Write(folder + "governor", "performance\n");
    machine.Write(folder + "cur_freq",
                  cpu[3] == '0' ? "3400000\n" : "2600000\n");
  }
  LookOptions options = machine.Options();
  options.nvidia_smi = machine.WriteScript("exit 0\n");
  options.window = [&] { machine.WriteCpu(4, 11, 10, 1079, 0); };
  const MachineLoad load = LookAtMachine(options);
  EXPECT_THAT(load.warnings, IsEmpty()) << absl::StrJoin(load.warnings, "\n");
  EXPECT_EQ(load.ToText(),
            "CPU           4 cores\n"
            "clock         2600 to 3400 MHz, governor performance\n"
            "load average  0.10, 0.20, 0.30 in 1, 5, 15 minutes\n"
            "others use    in 0.20 s, of a core: 5 %; this program 0 %; the "
            "host took 0 %\n"
            "memory        2.0 MiB available of 4.0 MiB; swap: 0 B of 1.0 MiB, "
            "0 pages moved\n"
            "              just now\n"
            "GPU processes no others\n"
            "Nothing was seen that would spoil the figures.\n");
}

TEST(LookAtMachine, WhatIsNotKnownIsNotQuiet) {
  FakeMachine machine;  // no file at all
  const MachineLoad load = LookAtMachine(machine.Options());
  ASSERT_THAT(load.warnings, SizeIs(1));
  EXPECT_THAT(load.warnings[0], HasSubstr("is not known"));
  EXPECT_EQ(load.ToText(),
            "CPU           number not known\n"
            "clock         not known: /sys has no cpufreq here, as in most "
            "virtual machines\n"
            "load average  not known\n"
            "others use    not known: /proc/stat does not say\n"
            "memory        not known\n"
            "GPU processes not known. There is no d2l-no-nvidia-smi in PATH.\n"
            "- What other processes use is not known: /proc/stat does not say "
            "it. Figures may\n"
            "  be too large.\n");
}

TEST(LookAtMachine, CountersThatStandStillAreNotKnown) {
  FakeMachine machine;
  machine.WriteCpu(2, 5, 5, 5, 5);
  const MachineLoad load = LookAtMachine(machine.Options());
  EXPECT_EQ(load.cpus, 2);
  EXPECT_FALSE(load.window_seconds);
  EXPECT_THAT(load.warnings, SizeIs(1));
}

TEST(LookAtMachine, WarnsOfLimitsGovernorMemorySwapAndGpus) {
  FakeMachine machine;
  machine.WriteCpu(2, 0, 0, 0, 0);
  machine.Write("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  machine.Write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                "powersave\n");
  machine.Write("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 99 kB\n");
  machine.Write("/proc/vmstat", "pswpin 10\npswpout 100\n");
  LookOptions options = machine.Options();
  options.nvidia_smi =
      machine.WriteScript(absl::StrCat("echo '77, trainer, 900 MiB'\necho '",
                                       getpid(), ", this program, 1 MiB'\n"));
  options.window = [&] {
    machine.WriteCpu(2, 0, 0, 40, 0);
    machine.Write("/proc/vmstat", "pswpin 12\npswpout 101\n");
  };
  const MachineLoad load = LookAtMachine(options);
  ASSERT_THAT(load.warnings, SizeIs(5));
  EXPECT_THAT(load.warnings[0], HasSubstr("may use 0.5 of 2 cores"));
  EXPECT_THAT(load.warnings[1], HasSubstr("governor powersave"));
  EXPECT_THAT(load.warnings[2], HasSubstr("Only 99.0 KiB"));
  EXPECT_THAT(load.warnings[3], HasSubstr("3 pages"));
  EXPECT_EQ(load.warnings[4],
            "Another process uses a GPU: trainer (pid 77), 900 MiB of its "
            "memory.");
  EXPECT_THAT(load.ToText(), HasSubstr("GPU process   trainer (pid 77): 900"));
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
    for (const ProcessUse& process : load.top) {
      if (process.pid == busy && process.cores > 0) found = true;
    }
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 80u) << line;
    }
  }
  kill(busy, SIGKILL);
  waitpid(busy, nullptr, 0);
  EXPECT_TRUE(found) << text;
}

TEST(RunCommand, TakesOutputAndTellsFailures) {
  FakeMachine machine;
  EXPECT_EQ(RunCommand({"echo", "a", "b c"}, 60).output, "a b c\n");
  EXPECT_EQ(RunCommand({"echo", "a"}, 60).failure, "");
  EXPECT_THAT(RunCommand({"d2l-no-such-program"}, 60).failure,
              HasSubstr("There is no d2l-no-such-program in PATH"));
  const std::string script = machine.WriteScript("echo part\nexit 9\n");
  EXPECT_THAT(RunCommand({script}, 60).failure, HasSubstr("exit code 9"));
  machine.WriteScript("kill -KILL $$\n");
  EXPECT_THAT(RunCommand({script}, 60).failure, HasSubstr("signal 9"));
}

TEST(RunCommand, EndsWhatDoesNotAnswer) {
  FakeMachine machine;
  // It and a child of it hold the pipe open.
  const std::string script = machine.WriteScript("sleep 1000 & sleep 1000\n");
  const CommandOutput result = RunCommand({script}, 0.2);
  EXPECT_THAT(result.failure, HasSubstr("did not answer in 0.2 seconds"));
  // One that has closed its output, but goes on.
  machine.WriteScript("exec >&-\nexec sleep 1000\n");
  EXPECT_THAT(RunCommand({script}, 0.2).failure, HasSubstr("did not answer"));
}

}  // namespace
}  // namespace d2l
