#include "tools/doctor_testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/atomic_file.h"
#include "common/base/child_process.h"

namespace d2l {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Unwrapped(const std::string& text) {
  std::istringstream words(absl::StrReplaceAll(text, {{" \\\n", " "}}));
  std::string result;
  for (std::string word; words >> word;) absl::StrAppend(&result, word, " ");
  return result;
}

}  // namespace

std::string Sudo() { return geteuid() == 0 ? "" : "sudo "; }

std::string AptGet(const std::string& packages) {
  return absl::StrCat(Sudo(), "apt-get update && ", Sudo(),
                      "apt-get install -y ", packages);
}

std::string FromNvidia(const std::string& repository,
                       const std::string& package) {
  return absl::StrCat(
      "wget -P /tmp https://developer.download.nvidia.com/compute/cuda/repos/",
      repository, "/cuda-keyring_1.1-1_all.deb && ", Sudo(),
      "dpkg -i /tmp/cuda-keyring_1.1-1_all.deb && ", AptGet(package));
}

void ExpectPlain(const std::string& text) {
  for (const char c : text) {
    EXPECT_TRUE(c == '\n' || std::isprint(static_cast<unsigned char>(c)))
        << "character " << static_cast<int>(c);
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    int count = 0;
    for (std::string word; words >> word;) {
      if (word != "\\") ++count;
    }
    if (count > 1) {
      EXPECT_LE(line.size(), 80u) << line;
    }
  }
}

Machine::Machine() {
  std::string folder = ::testing::TempDir() + "/machineXXXXXX";
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  root_ = fs::canonical(folder);
  for (const char* file :
       {"tools/doctor.sh", "tools/doctor/build_tools.sh",
        "tools/doctor/cuda.sh", "tools/doctor/devices.sh",
        "tools/doctor/host.sh", "tools/doctor/lessons.sh",
        "tools/doctor/text.sh", "third_party/debian-packages.txt"}) {
    File(absl::StrCat("repo/", file), ReadFile(file));
  }
  fs::permissions(root_ / "repo/tools/doctor.sh", fs::perms::owner_all);
  // As chapters/cells.json: name, title and devices on one line.
  File("repo/chapters/cells.json",
       "{\"chapters\": [\n"
       "{\"name\": \"solo\", \"title\": \"Alone\", \"devices\": 1,\n"
       " \"cells\": [{\"id\": \"1\"}]},\n"
       "{\"name\": \"duet\", \"title\": \"Two, \\\"2\\\"\", \"devices\": 2,\n"
       " \"cells\": []},\n"
       "{\"name\": \"trio\", \"title\": \"Three\", \"devices\": 3,\n"
       " \"cells\": []},\n"
       "{\"name\": \"later\", \"title\": \"Later\", \"devices\": 1,\n"
       " \"cells\": []}]}\n");
  for (const char* chapter : {"solo", "duet", "trio"}) {
    File(absl::StrCat("repo/chapters/", chapter, "/BUILD"), "");
  }

  File("etc/os-release", "NAME=\"Debian\"\nVERSION_ID=\"12\"\nID=debian\n");
  File("proc/meminfo",
       "MemTotal: 16777216 kB\nMemFree: 1 kB\nMemAvailable: 8388608 kB\n");
  File("proc/cpuinfo", "processor : 0\nmodel name\t: Abacus 9\n");
  File("proc/loadavg", "0.31 0.10 0.05 1/200 4242\n");
  File("proc/self/status", "Name: doctor\nCpus_allowed_list:\t0-5,8,9\n");
  File("proc/self/cgroup", "0::/\n");
  File("proc/sys/kernel/osrelease", "6.1.0-13-amd64\n");

  // The few real programs that the script may use.
  fs::create_directories(root_ / "real");
  for (const char* name : {"bash", "dirname", "grep", "readlink", "timeout"}) {
    const fs::path usr = fs::path("/usr/bin") / name;
    fs::create_symlink(fs::exists(usr) ? usr : fs::path("/bin") / name,
                       root_ / "real" / name);
  }
  Gcc("12.2.0");
  Program("usr/bin/bazel", "echo bazel no_version");
  Program("usr/bin/dpkg-query", R"(
case "$*" in
*Version*bazel-bootstrap) printf 4.2.3+ds-9 ;;
*cuda-keyring) exit 1 ;;
*) printf installed ;;
esac)");
  Program("usr/bin/getconf", "echo glibc 2.36");
  for (const char* name : {"apt-get", "git", "pkg-config", "python3"}) {
    Program(absl::StrCat("usr/bin/", name), "exit 0");
  }
}

Machine::~Machine() { fs::remove_all(root_); }

std::string Machine::Path(const std::string& file) const {
  return (root_ / file).string();
}

void Machine::File(const std::string& file, const std::string& text) {
  fs::create_directories((root_ / file).parent_path());
  std::ofstream(root_ / file) << text;
}

void Machine::Program(const std::string& file, const std::string& commands) {
  File(file, absl::StrCat("#!/bin/sh\n", commands, "\n"));
  fs::permissions(root_ / file, fs::perms::owner_all);
}

void Machine::Remove(const std::string& file) { fs::remove_all(root_ / file); }

void Machine::Gcc(const std::string& version) {
  Program("usr/bin/gcc",
          absl::StrCat("case $1 in -dumpfullversion) echo ", version,
                       " ;; -dumpversion) echo ",
                       version.substr(0, version.find('.')), " ;; esac"));
}

void Machine::Toolkit(const std::string& version) {
  const std::string folder = "usr/local/cuda/";
  Program(folder + "bin/nvcc",
          absl::StrCat("echo nvcc: NVIDIA compiler driver\necho Build cuda_",
                       version, ".r", version, "/compiler.1_0"));
  File(folder + "lib64/libcudart_static.a", "");
  File(folder + "include/crt/host_config.h",
       "#if defined(__GNUC__)\n#if __GNUC__ > 15\n#error too new\n"
       "#if __GNUC__ > 99\n");
}

void Machine::Gpus(const std::vector<std::string>& names,
                   const std::string& versions) {
  std::string csv;
  for (std::size_t i = 0; i < names.size(); ++i) {
    absl::StrAppend(&csv, names[i], ", 81920, 81408, 9.0, GPU-", i, "beef\n");
  }
  File("smi.csv", csv);
  File("smi.txt", absl::StrCat("Sat Nov 21 16:00:00 2026\n| NVIDIA-SMI   ",
                               versions, "   |\n"));
  const std::string print = "while read -r l; do echo \"$l\"; done < ";
  Program("usr/bin/nvidia-smi",
          absl::StrCat("if [ $# = 0 ]; then\n  ", print, Path("smi.txt"),
                       "\nelse\n  ", print, Path("smi.csv"), "\nfi"));
}

void Machine::PciGpu() {
  File("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  File("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
}

std::vector<std::string> Machine::Command(
    const std::vector<std::string>& environment) const {
  std::vector<std::string> words = {
      "/usr/bin/env", "-i", "D2L_DOCTOR_ROOT=" + root_.string(),
      absl::StrCat("PATH=", Path("usr/bin"), ":", Path("real")),
      "HOSTTYPE=x86_64"};
  words.insert(words.end(), environment.begin(), environment.end());
  words.push_back(Path("repo/tools/doctor.sh"));
  return words;
}

DoctorResult Machine::Run(const std::vector<std::string>& environment) const {
  const std::vector<std::string> words = Command(environment);
  const ProgramResult r =
      RunProgram(words[0], {words.begin() + 1, words.end()});
  ExpectPlain(r.output);
  EXPECT_THAT(r.output, Not(HasSubstr("doctor/"))) << "a message of bash";
  return {r.exit_code, r.output, Unwrapped(r.output)};
}

void Machine::RunToDo(const std::string& output) {
  Program("usr/bin/sudo", "exec \"$@\"");
  std::string commands = absl::StrCat("cd ", Path("repo"), "\n");
  std::istringstream lines(output);
  bool below = false;
  for (std::string line; std::getline(lines, line);) {
    // Below the heading, what is indented by more than the sentences.
    below = below || line.find("To do") == 0;
    if (below && line.find("       ") == 0) {
      absl::StrAppend(&commands, line, "\n");
    }
  }
  const ProgramResult r = RunProgram(Path("real/bash"), {"-c", commands},
                                     {absl::StrCat("PATH=", Path("usr/bin"))});
  EXPECT_EQ(r.exit_code, 0) << commands << r.output;
}

}  // namespace d2l
