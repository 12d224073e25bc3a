#!/usr/bin/env python3
"""The doctor on machines with and without the requirements of a build: it must name each missing
part, and the command that installs it."""
import os
import pty
import re
import subprocess
import termios
import unittest
import unittest.mock

import doctor
import machine
from machine import Machine, course_texts
from testing import NOTHING, REPOSITORY, SUDO, DoctorTest, apt_get

DOCTOR = os.path.join(REPOSITORY, "tools/doctor.sh")


class Machines(DoctorTest):

    def test_healthy_without_a_gpu(self):
        r = self.expect(
            "compiler gcc 12.2.0 (/usr/bin/gcc) ok", "Bazel 4.2.3 (/usr/bin/bazel) ok",
            "glibc 2.36", "libraries all of third_party/debian-packages.txt ok",
            "CUDA toolkit no nvcc (looked at PATH, /usr/local/cuda) none",
            "driver no NVIDIA driver none", "devices no GPU cpu:0 (virtual, 8 cores)",
            "the two at a pace of 4 in cells about several devices (--pace)",
            "memory 8.0 of 16.0 GiB free", "cores 8, Abacus 9", "load 0.31 on 8 cores ok",
            "solo 1 device virtual: cpu:0 (8 cores)",
            "duet 2 devices virtual: cpu:0, cpu:1 (4 cores each)",
            "trio 3 devices virtual: cpu:0, cpu:1, cpu:2 (2 cores each)",
            "The lessons run without a GPU", lacks=["checkout"])
        self.assertIn("Nothing is missing. To run the course: bazel run //:course\n", r.output)

    def examine_in_chinese(self):
        with unittest.mock.patch.object(machine, "language", "zh"):
            m = Machine(self.path("repo"), self.env(), self.root)
            self.assertEqual(doctor.examine(m), 0)
        return m.lines

    def test_speaks_chinese(self):
        lines = self.examine_in_chinese()
        text = "\n".join(lines)
        for part in ("编译器        gcc 12.2.0 (/usr/bin/gcc)", "内存          8.0/16.0 GiB空闲",
                     "设备          没有GPU", "  duet                2个设备    虚拟：cpu:0, cpu:1（各4个核心）",
                     "什么都不缺。运行课程：bazel run //:course"):
            self.assertIn(part, text)
        for line in (line for line in lines if "\n" not in line):  # no command
            self.assertLessEqual(course_texts.columns(line), 80, line)
            if line.endswith("ok"):
                self.assertEqual(course_texts.columns(line), 80, line)

    def test_the_environment_decides_on_chinese(self):
        for env, wanted in (({}, "en"), ({"LANG": "zh_CN.UTF-8"}, "zh"), ({"LANG": "C"}, "en"),
                            ({"LC_ALL": "", "LC_MESSAGES": "zh"}, "zh"),
                            ({"LC_ALL": "C", "LANG": "zh_TW"}, "en")):
            with unittest.mock.patch.dict(os.environ, env, clear=True):
                self.assertEqual(course_texts.system_language(), wanted, env)

    def test_chinese_lines_end_where_they_may(self):
        self.assertEqual(course_texts.wrap("异步，计算 a b", 6, "- ", "  "), ["- 异", "  步，", "  计算", "  a b"])

    def test_what_the_machine_says_stays_as_it_is(self):
        self.toolkit("13.0")
        self.gpus("no GPU")
        self.assertIn("cuda:0（真实，no GPU），", "\n".join(self.examine_in_chinese()))

    def test_healthy_with_a_gpu(self):
        self.toolkit("13.0")
        self.gpus("NVIDIA H100")
        self.expect(NOTHING, "CUDA toolkit 13.0 (/usr/local/cuda), takes gcc up to 15 ok",
                    "driver CUDA 13.0 (580.65.06) ok",
                    "cuda:0 (real, NVIDIA H100), sm_90, 79.5 of 80.0 GiB", lacks=["without a GPU"])

    def test_path_with_a_space(self):
        os.rename(self.path("repo"), self.path("my repo"))
        self.expect("checkout /my repo wrong", "Bazel refuses a path with a space in it.",
                    "mv '/my repo' ~/my_repo && cd ~/my_repo", "before 1 is done", code=1,
                    repository="my repo")

    def test_path_with_chinese_letters(self):
        os.rename(self.path("repo"), self.path("下载"))
        self.expect("checkout /下载 wrong", "Bazel cannot work in a path with letters other than",
                    "mv '/下载' ~/d2l && cd ~/d2l", code=1, repository="下载")

    def test_home_with_chinese_letters(self):
        self.expect("home /home/学习 wrong", "Bazel cannot write below a home with letters",
                    "echo 'startup --output_user_root=/var/tmp/bazel' >> .bazelrc.user", code=1,
                    HOME="/home/学习")

    def test_no_compiler(self):
        self.remove("usr/bin/gcc")
        self.expect("compiler none for C++ (no gcc on PATH) missing",
                    apt_get("g++ && bazel shutdown"),
                    "The lessons cannot be built before 1 is done.", lacks=[NOTHING], code=1)

    def test_compiler_for_c_only(self):
        self.program("gcc", "case $1 in -x) exit 1 ;; *) echo 12 ;; esac")
        self.expect("none for C++ (/usr/bin/gcc) missing", apt_get("g++ "), code=1)

    def test_cc_names_no_program(self):
        self.expect("CC=clang-99 is no program here", "unset CC", code=1, CC="clang-99")

    def test_no_bazel(self):
        self.remove("usr/bin/bazel")
        self.expect("Bazel none on PATH missing", apt_get("bazel-bootstrap "), code=1)
        self.remove("usr/bin/gcc")
        self.expect(apt_get("g++ bazel-bootstrap "), code=1)
        self.system("ubuntu", "24.04")
        bazel = "/usr/local/bin/bazel"
        self.expect("There is no Bazel. %swget -O %s https://github.com/bazelbuild/bazel/releases/"
                    "download/7.7.1/bazel-7.7.1-linux-x86_64 && %schmod +x %s" % (
                        SUDO, bazel, SUDO, bazel), "cannot be built before 1 to 2 is done", code=1)
        self.expect("bazel-7.7.1-linux-arm64 && ", code=1, HOSTTYPE="aarch64")

    def test_wrong_bazel(self):
        self.program("bazel", "echo bazel 10.1.0")
        self.expect("Bazel 10.1.0 (/usr/bin/bazel) wrong", "Bazel 10.1.0 will not do.",
                    "wget -O /usr/local/bin/bazel https", code=1)
        self.program("bazel", "echo bazel 10.1.0  # github.com/bazelbuild/bazelisk")
        self.expect("export USE_BAZEL_VERSION=7.7.1", lacks=["wget -O"], code=1)
        # There are two of them: Debian's is right, but is not the first.
        self.program("bazel", "echo bazel no_version")
        self.program("other/bazel", "echo bazel 3.5.1")
        self.expect("Bazel 3.5.1 will not do.", "alias bazel=/usr/bin/bazel", code=1,
                    PATH=self.path("other") + ":" + self.path("usr/bin"))

    def test_bazel_that_does_not_say_its_version(self):
        self.program("dpkg-query", "exit 1")
        self.expect("Bazel of unknown version (/usr/bin/bazel): bazel no_version", code=1)
        # The output of Debian's launcher, including colours.
        self.program("bazel", r"printf '\033[31mERROR: requires Bazel 7.7.1\033[0m\n'")
        self.expect("(/usr/bin/bazel): ERROR: requires", "USE_BAZEL_VERSION asks for 7.7.1.",
                    "unset USE_BAZEL_VERSION", code=1, USE_BAZEL_VERSION="7.7.1")

    def test_bazel_7_to_9_need_fewer_libraries(self):
        for version in ("8.4.2", "9.1.0", "7.7.1"):
            self.program("bazel", "echo bazel " + version)
            self.expect("Bazel %s (/usr/bin/bazel) ok" % version)
        self.program("pkg-config", 'case $2 in openblas) ;; *) exit 1 ;; esac')
        self.expect("libraries libopenblas-dev pkg-config python3; Bazel downloads the "
                    "ok others")
        self.program("pkg-config", "exit 1")
        self.expect(apt_get("libopenblas-dev && bazel shutdown"), code=1)

    def test_missing_libraries(self):
        self.program("pkg-config", "case $2 in libhwy | openblas) exit 1 ;; esac")
        self.expect("libraries no libhwy-dev libopenblas-dev missing",
                    "Packages are missing: libhwy-dev libopenblas-dev.",
                    apt_get("libhwy-dev libopenblas-dev && bazel shutdown"), code=1)
        self.remove("usr/bin/pkg-config", "usr/bin/git")  # dpkg knows the libraries
        self.expect(apt_get("git pkg-config && bazel"), code=1)
        self.remove("usr/bin/apt-get")
        self.expect("Install what Debian calls git pkg-config;", code=1)

    def test_lessons_do_without_some_packages(self):
        self.program("pkg-config", "[ $2 != ompi-c ]")
        self.expect("libraries no libopenmpi-dev ok",
                    "The lessons run without libopenmpi-dev; drawings of graphs, the processes",
                    apt_get("libopenmpi-dev && bazel shutdown"))
        self.program("pkg-config", "case $2 in libhwy | ompi-c) exit 1 ;; esac")
        self.expect(apt_get("libhwy-dev libopenmpi-dev && bazel shutdown"), code=1)

    def test_bare_machine_is_told_every_package(self):
        self.remove(*("usr/bin/" + p for p in ("gcc", "bazel", "git", "pkg-config", "python3")))
        self.program("dpkg-query", "exit 1")
        command = self.expect(code=1).text.split("apt-get install -y ")[1].split()
        with open(self.path("repo/third_party/debian-packages.txt")) as file:
            packages = [line.strip() for line in file if not line.startswith("#")]
        self.assertGreater(len(packages), 5)
        self.assertLessEqual(set(packages), set(command))

    def test_asks_pkg_config_for_what_the_build_takes(self):
        self.program("pkg-config", "echo $2 >> " + self.path("asked"))
        self.run_doctor()
        with open(self.path("asked")) as file:
            asked = file.read().split()
        with open(os.path.join(REPOSITORY, "third_party/libraries.bzl")) as file:
            libraries = file.read()
        self.assertGreater(len(asked), 5)
        for module in asked:
            self.assertIn('"' + module, libraries)

    def test_limits_of_a_container(self):
        limited = ["8.0 of the machine's 16.0 GiB free; this container may limited have 4.0 GiB and "
                   "uses 1.0", "8, Abacus 9; this container has the time of 1.50 of limited them"]
        self.file("proc/self/cgroup", "0::/user.slice/run-1.scope\n")
        group = "sys/fs/cgroup/user.slice/"
        self.file(group + "cpu.max", "150000 100000\n")
        self.file(group + "memory.max", "4294967296\n")
        self.file(group + "memory.current", "1073741824\n")
        self.file(group + "run-1.scope/cpu.max", "max 100000\n")
        self.file(group + "run-1.scope/memory.max", "max\n")
        self.expect(*limited)
        # Version 1.
        self.remove("sys")
        self.file("proc/self/cgroup", "4:memory:/a/b\n3:cpu,cpuacct:/\n0::/\n")
        group = "sys/fs/cgroup/"
        self.file(group + "cpu/cpu.cfs_quota_us", "150000\n")
        self.file(group + "cpu/cpu.cfs_period_us", "100000\n")
        self.file(group + "memory/memory.limit_in_bytes", "9223372036854771712\n")
        self.file(group + "memory/a/memory.limit_in_bytes", "4294967296\n")
        self.file(group + "memory/a/memory.usage_in_bytes", "1073741824\n")
        self.expect(*limited)

    def test_load(self):
        self.file("proc/loadavg", "4.01 1.00 0.50 1/200 4242\n")
        self.expect("load 4.01 on 8 cores high", "figures will be noisy", "top -o %CPU")
        self.file("proc/loadavg", "4.00 1.00 0.50 1/200 4242\n")
        self.expect("load 4.00 on 8 cores ok", NOTHING)

    def test_machine_that_shows_nothing(self):
        self.remove("proc", "etc", "repo/chapters", "usr/bin/getconf")
        self.expect("load not known", "chapters/chapters.bzl is not there")

    def test_garbage_in_proc_and_sys(self):
        for garbage in ("", "\n", ":::\n", "-1 -1\n", "\x00\xff\n", "MemTotal: much\n", "9" * 40):
            for file in ("etc/os-release", "proc/meminfo", "proc/cpuinfo", "proc/loadavg",
                         "proc/self/cgroup", "proc/driver/nvidia/version",
                         "sys/fs/cgroup/memory.max", "sys/fs/cgroup/cpu.max"):
                self.file(file, garbage)
            self.run_doctor()


def on_a_terminal(command, env):
    """The output of a command whose stdout and stderr are a terminal; the terminal is unchanged
    except that it does not turn "\n" into "\r\n"."""
    terminal, side = pty.openpty()
    settings = termios.tcgetattr(side)
    settings[1] &= ~termios.OPOST
    termios.tcsetattr(side, termios.TCSANOW, settings)
    child = subprocess.Popen(command, env=env, stdout=side, stderr=side)
    os.close(side)
    output = b""
    while True:
        try:
            output += os.read(terminal, 4096)
        except OSError:  # the last writer has ended
            break
    os.close(terminal)
    child.wait()
    return output.decode()


class Program(DoctorTest):
    """Runs tools/doctor.sh on this machine, which has what tests need."""

    def run_program(self, *args, **kwargs):
        return subprocess.run([DOCTOR, *args], stderr=subprocess.PIPE, text=True, check=False,
                              **{"stdout": subprocess.PIPE, **kwargs})

    def test_this_machine(self):
        r = self.run_program()
        self.assertIn(r.returncode, (0, 1), r.stderr)
        self.assertRegex(r.stderr, "^(Waiting for .*\n)*$")
        self.expect_plain(r.stdout)
        with open(os.path.join(REPOSITORY, "chapters/chapters.bzl")) as file:
            chapters = re.findall(r'^    "(\w+)"', file.read(), re.M)
        for text in ("  glibc ", "  cores ", "  devices ") + tuple("  %s " % c for c in chapters):
            self.assertIn("\n" + text, r.stdout)

    def test_takes_a_language(self):
        env = dict(os.environ, D2L_DOCTOR_ROOT=self.root, LC_ALL="C.UTF-8")
        self.assertIn("\n  编译器  ", self.run_program("--lang=zh", env=env).stdout)
        env["LC_ALL"] = "zh_CN.UTF-8"
        self.assertIn("\n  compiler  ", self.run_program("--lang=en", env=env).stdout)
        self.assertIn("--lang {en,zh}", self.run_program("--help").stdout)
        for wrong in ("--fix", "--lang=fr", "gpu"):
            r = self.run_program(wrong)
            self.assertEqual((r.returncode, r.stdout), (2, ""))
            self.assertIn(wrong.split("=")[-1], r.stderr)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            r = self.run_program(stdout=full)
        self.assertEqual(r.returncode, 2)
        self.assertEqual(r.stderr,
                         "The doctor could not write its report: No space left on device.\n")
        r = self.run_program(stdout=None, preexec_fn=lambda: os.close(1))
        self.assertEqual(r.returncode, 2)
        self.assertIn("could not write its report", r.stderr)

    def test_no_python(self):
        for program in ("bash", "dirname", "readlink"):
            os.symlink("/bin/" + program, self.path("usr/bin/" + program))
        self.remove("usr/bin/python3")
        r = self.run_program(env=self.env())
        self.assertEqual(r.returncode, 1)
        self.assertIn("apt-get install -y python3\n", r.stdout)

    def test_says_the_same_on_a_terminal(self):
        try:
            for fd in pty.openpty():
                os.close(fd)
        except OSError as error:
            self.skipTest("no pseudo-terminal can be opened here: %s" % error)
        env = dict(os.environ, D2L_DOCTOR_ROOT=self.root)
        self.assertEqual(on_a_terminal([DOCTOR], env), self.run_program(env=env).stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
