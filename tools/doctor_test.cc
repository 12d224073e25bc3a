// tools/doctor.sh on machines with and without what a build needs: it must name
// what is missing, and say the command that mends it.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/atomic_file.h"
#include "common/base/child_process.h"
#include "tools/doctor_testing.h"

namespace d2l {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Doctor, HealthyMachineWithoutAGpu) {
  const Machine machine;
  const DoctorResult r = machine.Run();
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(r.output, HasSubstr("Nothing is missing. To run the course: "
                                  "bazel run //:course\n"));
  for (const char* line :
       {"compiler gcc 12.2.0 (/usr/bin/gcc) ok",
        "Bazel 4.2.3 (/usr/bin/bazel) ok", "glibc 2.36",
        "libraries all of third_party/debian-packages.txt ok",
        "CUDA toolkit no nvcc (looked at PATH, /usr/local/cuda) none",
        "driver no NVIDIA driver none",
        "devices no GPU cpu:0 (virtual, 8 cores)",
        "memory 8.0 of 16.0 GiB free", "cores 8, Abacus 9",
        "load 0.31 on 8 cores ok", "solo 1 device virtual: cpu:0 (8 cores)",
        "duet 2 devices virtual: cpu:0, cpu:1 (4 cores each)",
        "trio 3 devices virtual: cpu:0, cpu:1, cpu:2 (2 cores each)",
        "later 1 device not there yet", "The lessons run without a GPU"}) {
    EXPECT_THAT(r.text, HasSubstr(line));
  }
}

TEST(Doctor, HealthyMachineWithAGpu) {
  Machine machine;
  machine.Toolkit("13.0");
  machine.Gpus({"NVIDIA H100"});
  const DoctorResult r = machine.Run();
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(r.output, HasSubstr(kNothing));
  EXPECT_THAT(
      r.text,
      AllOf(HasSubstr(
                "CUDA toolkit 13.0 (/usr/local/cuda), takes gcc up to 15 ok"),
            HasSubstr("driver CUDA 13.0 (580.65.06) ok"),
            HasSubstr("cuda:0 (real, NVIDIA H100), sm_90, 79.5 of 80.0 GiB"),
            Not(HasSubstr("without a GPU"))));
}

TEST(Doctor, NoCompiler) {
  Machine machine;
  machine.Remove("usr/bin/gcc");
  const DoctorResult r = machine.Run();
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.text,
              AllOf(HasSubstr("compiler none for C++ (no gcc on PATH) missing"),
                    HasSubstr(AptGet("g++ && bazel shutdown")),
                    HasSubstr("The lessons cannot be built before 1 is done."),
                    Not(HasSubstr(kNothing))));
}

TEST(Doctor, CompilerForCOnly) {
  Machine machine;
  machine.Program("usr/bin/gcc", "case $1 in -x) exit 1 ;; *) echo 12 ;; esac");
  const DoctorResult r = machine.Run();
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.text, AllOf(HasSubstr("none for C++ (/usr/bin/gcc) missing"),
                            HasSubstr(AptGet("g++ "))));
}

TEST(Doctor, CcNamesNoProgram) {
  const Machine machine;
  const DoctorResult r = machine.Run({"CC=clang-99"});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.text, AllOf(HasSubstr("CC=clang-99 is no program here"),
                            HasSubstr("unset CC")));
}

TEST(Doctor, NoBazel) {
  Machine machine;
  machine.Remove("usr/bin/bazel");
  DoctorResult r = machine.Run();
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.text, AllOf(HasSubstr("Bazel none on PATH missing"),
                            HasSubstr(AptGet("bazel-bootstrap "))));
  machine.Remove("usr/bin/gcc");
  EXPECT_THAT(machine.Run().text, HasSubstr(AptGet("g++ bazel-bootstrap ")))
      << "one command for all packages";

  machine.File("etc/os-release", "ID=ubuntu\nVERSION_ID=\"24.04\"\n");
  r = machine.Run();
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.text,
              AllOf(HasSubstr("There is no Bazel. " + Sudo() +
                              "wget -O /usr/local/bin/bazel https://github.com/"
                              "bazelbuild/bazel/releases/download/7.7.1/"
                              "bazel-7.7.1-linux-x86_64 && " +
                              Sudo() + "chmod +x /usr/local/bin/bazel"),
                    HasSubstr("cannot be built before 1 to 2 is done")));
  EXPECT_THAT(machine.Run({"HOSTTYPE=aarch64"}).text,
              HasSubstr("bazel-7.7.1-linux-arm64 && "));
}

TEST(Doctor, WrongBazel) {
  Machine machine;
  machine.Program("usr/bin/bazel", "echo bazel 9.1.0");
  DoctorResult r = machine.Run();
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.text, AllOf(HasSubstr("Bazel 9.1.0 (/usr/bin/bazel) wrong"),
                            HasSubstr("Bazel 9.1.0 will not do."),
                            HasSubstr("wget -O /usr/local/bin/bazel https")));

  machine.Program("usr/bin/bazel",
                  "echo bazel 9.1.0  # github.com/bazelbuild/bazelisk");
  r = machine.Run();
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.text, AllOf(HasSubstr("export USE_BAZEL_VERSION=7.7.1"),
                            Not(HasSubstr("wget -O"))));

  // Two of them: Debian's is right, but not the first.
  machine.Program("usr/bin/bazel", "echo bazel no_version");
  machine.Program("real/bazel", "echo bazel 3.5.1");
  r = machine.Run({absl::StrCat("PATH=", machine.Path("real"), ":",
                                machine.Path("usr/bin"))});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.text, AllOf(HasSubstr("Bazel 3.5.1 will not do."),
                            HasSubstr("alias bazel=/usr/bin/bazel")));
}

TEST(Doctor, BazelThatDoesNotSayItsVersion) {
  Machine machine;
  machine.Program("usr/bin/dpkg-query", "exit 1");
  EXPECT_THAT(machine.Run().text, HasSubstr("Bazel of unknown version "
                                            "(/usr/bin/bazel): bazel "
                                            "no_version"));
  // What Debian's launcher says, colours and all.
  machine.Program("usr/bin/bazel",
                  "printf '\\033[31mERROR: requires Bazel 7.7.1\\033[0m\\n'");
  const DoctorResult r = machine.Run({"USE_BAZEL_VERSION=7.7.1"});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.text, AllOf(HasSubstr("(/usr/bin/bazel): ERROR: requires"),
                            HasSubstr("USE_BAZEL_VERSION asks for 7.7.1."),
                            HasSubstr("unset USE_BAZEL_VERSION")));
}

TEST(Doctor, Bazel7NeedsFewerLibraries) {
  Machine machine;
  machine.Program("usr/bin/bazel", "echo bazel 7.7.1");
  machine.Program("usr/bin/pkg-config", "[ \"$2\" = openblas ]");
  DoctorResult r = machine.Run();
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(r.text, HasSubstr("libraries libopenblas-dev pkg-config python3; "
                                "Bazel 7 downloads ok the others"));
  machine.Program("usr/bin/pkg-config", "exit 1");
  r = machine.Run();
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.text, HasSubstr(AptGet("libopenblas-dev && bazel shutdown")));
}

TEST(Doctor, MissingLibraries) {
  Machine machine;
  machine.Program("usr/bin/pkg-config",
                  "case $2 in libhwy | openblas) exit 1 ;; esac");
  DoctorResult r = machine.Run();
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(
      r.text,
      AllOf(HasSubstr("libraries no libhwy-dev libopenblas-dev missing"),
            HasSubstr("Packages are missing: libhwy-dev libopenblas-dev."),
            HasSubstr(AptGet("libhwy-dev libopenblas-dev && bazel shutdown"))));

  machine.Remove("usr/bin/pkg-config");
  machine.Remove("usr/bin/git");
  EXPECT_THAT(machine.Run().text, HasSubstr(AptGet("git pkg-config && bazel")))
      << "dpkg knows the libraries";

  machine.Remove("usr/bin/apt-get");
  r = machine.Run();
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.text, HasSubstr("Install what Debian calls git pkg-config;"));
}

TEST(Doctor, BareMachineIsToldEveryPackage) {
  Machine machine;
  for (const char* name : {"gcc", "bazel", "git", "pkg-config", "python3"}) {
    machine.Remove(absl::StrCat("usr/bin/", name));
  }
  machine.Program("usr/bin/dpkg-query", "exit 1");
  const DoctorResult r = machine.Run();
  EXPECT_EQ(r.exit_code, 1);
  const std::size_t command = r.text.find("apt-get install -y ");
  ASSERT_NE(command, std::string::npos) << r.output;
  std::ifstream list("third_party/debian-packages.txt");
  int packages = 0;
  for (std::string line; std::getline(list, line);) {
    if (line.empty() || line[0] == '#') continue;
    ++packages;
    EXPECT_THAT(r.text.substr(command),
                HasSubstr(absl::StrCat(" ", line, " ")));
  }
  EXPECT_GT(packages, 5);
}

TEST(Doctor, AsksPkgConfigForWhatTheBuildTakes) {
  Machine machine;
  machine.Program("usr/bin/pkg-config",
                  absl::StrCat("echo $2 >> ", machine.Path("asked")));
  machine.Run();
  std::istringstream asked(ReadFile(machine.Path("asked")));
  const std::string libraries = ReadFile("third_party/libraries.bzl");
  int modules = 0;
  for (std::string module; asked >> module; ++modules) {
    EXPECT_THAT(libraries, HasSubstr(absl::StrCat("\"", module))) << module;
  }
  EXPECT_GT(modules, 5);
}

TEST(Doctor, LimitsOfAContainer) {
  Machine machine;
  machine.File("proc/self/cgroup", "0::/user.slice/run-1.scope\n");
  const std::string group = "sys/fs/cgroup/user.slice/";
  machine.File(group + "cpu.max", "150000 100000\n");
  machine.File(group + "memory.max", "4294967296\n");
  machine.File(group + "memory.current", "1073741824\n");
  machine.File(group + "run-1.scope/cpu.max", "max 100000\n");
  machine.File(group + "run-1.scope/memory.max", "max\n");
  const auto limited =
      AllOf(HasSubstr("8.0 of the machine's 16.0 GiB free; this container may "
                      "limited have 4.0 GiB and uses 1.0"),
            HasSubstr("8, Abacus 9; this container has the time of 1.50 of "
                      "limited them"));
  EXPECT_THAT(machine.Run().text, limited);

  machine.Remove("sys");
  machine.File("proc/self/cgroup", "4:memory:/a/b\n3:cpu,cpuacct:/\n0::/\n");
  machine.File("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
  machine.File("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  machine.File("sys/fs/cgroup/memory/memory.limit_in_bytes",
               "9223372036854771712\n");
  machine.File("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4294967296\n");
  machine.File("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1073741824\n");
  EXPECT_THAT(machine.Run().text, limited) << "cgroups, version 1";
}

TEST(Doctor, HighLoad) {
  Machine machine;
  machine.File("proc/loadavg", "4.01 1.00 0.50 1/200 4242\n");
  const DoctorResult r = machine.Run();
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(r.text, AllOf(HasSubstr("load 4.01 on 8 cores high"),
                            HasSubstr("figures will be noisy"),
                            HasSubstr("top -o %CPU")));
  machine.File("proc/loadavg", "4.00 1.00 0.50 1/200 4242\n");
  EXPECT_THAT(machine.Run().text,
              AllOf(HasSubstr("load 4.00 on 8 cores ok"), HasSubstr(kNothing)));
}

TEST(Doctor, MachineThatShowsNothing) {
  Machine machine;
  for (const char* folder :
       {"proc", "etc", "repo/chapters", "usr/bin/getconf"}) {
    machine.Remove(folder);
  }
  const DoctorResult r = machine.Run();
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(r.text, AllOf(HasSubstr("load not known"),
                            HasSubstr("chapters/cells.json is not there")));
}

TEST(Doctor, TakesNoArguments) {
  const ProgramResult r = RunProgram("tools/doctor.sh", {"--fix"});
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.output, HasSubstr("takes no arguments"));
}

// The output of a command whose stdout and stderr are a terminal, which is left
// as it was made but for "\n", which it would turn into "\r\n".
std::string OnATerminal(const std::vector<std::string>& words) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  EXPECT_EQ(grantpt(terminal) + unlockpt(terminal), 0);
  const int side = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  termios settings;
  EXPECT_EQ(tcgetattr(side, &settings), 0);
  settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  EXPECT_EQ(tcsetattr(side, TCSANOW, &settings), 0);

  std::vector<char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(side, STDOUT_FILENO);
    dup2(side, STDERR_FILENO);
    close(side);
    close(terminal);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(side);
  std::string output;
  std::array<char, 4096> buffer;
  // Ends with an error once the last writer is gone.
  for (ssize_t n; (n = read(terminal, buffer.data(), buffer.size())) > 0;) {
    output.append(buffer.data(), static_cast<std::size_t>(n));
  }
  close(terminal);
  waitpid(child, nullptr, 0);
  return output;
}

TEST(Doctor, SaysTheSameOnATerminal) {
  Machine machine;
  machine.Toolkit("13.0");
  machine.Gpus({"NVIDIA H100"}, "Driver Version: 535.1   CUDA Version: 12.2");
  EXPECT_EQ(OnATerminal(machine.Command({})), machine.Run().output);
}

// Whatever this one is: it has what has built this test.
TEST(Doctor, ThisMachine) {
  const ProgramResult r = RunProgram("tools/doctor.sh", {});
  ExpectPlain(r.output);
  EXPECT_THAT(r.output, AllOf(HasSubstr("\n  glibc "), HasSubstr("\n  cores "),
                              HasSubstr("\n  devices ")));
  EXPECT_TRUE(r.exit_code == 0 || r.exit_code == 1) << r.output;
}

}  // namespace
}  // namespace d2l
