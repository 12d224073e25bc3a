"""Invented machines for the doctor's tests: a folder with the files that it reads and the
programs that it runs."""
import collections
import os
import re
import shutil
import tempfile
import unittest

import doctor
from machine import Machine

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
NOTHING = "Nothing is missing."
SUDO = "" if os.geteuid() == 0 else "sudo "

Result = collections.namedtuple("Result", "code output text")


def apt_get(packages):
    return "{0}apt-get update && {0}apt-get install -y {1}".format(SUDO, packages)


def from_nvidia(repository, package):
    return ("wget -P /tmp https://developer.download.nvidia.com/compute/cuda/repos/%s/"
            "cuda-keyring_1.1-1_all.deb && %sdpkg -i /tmp/cuda-keyring_1.1-1_all.deb && %s" % (
                repository, SUDO, apt_get(package)))


class DoctorTest(unittest.TestCase):
    """Each test starts with Debian 12, 8 cores, everything a build needs, and no GPU."""

    def setUp(self):
        self.root = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        packages = os.path.join(REPOSITORY, "third_party/debian-packages.txt")
        with open(packages) as file:
            self.file("repo/third_party/debian-packages.txt", file.read())
        self.file("repo/chapters/chapters.bzl",
                  'CHAPTERS = {\n    "solo": 1,\n    "duet": 2,\n    "trio": 3,\n}\n')
        self.system("debian", "12")
        self.file("proc/meminfo", "MemTotal: 16777216 kB\nMemFree: 1 kB\nMemAvailable: 8388608 kB\n")
        self.file("proc/cpuinfo", "processor : 0\nmodel name\t: Abacus 9\n")
        self.file("proc/loadavg", "0.31 0.10 0.05 1/200 4242\n")
        self.file("proc/self/status", "Name: doctor\nCpus_allowed_list:\t0-5,8,9\n")
        self.file("proc/self/cgroup", "0::/\n")
        self.file("proc/sys/kernel/osrelease", "6.1.0-13-amd64\n")
        self.gcc("12.2.0")
        self.program("bazel", "echo bazel no_version")
        self.program("dpkg-query", 'case "$*" in *Version*bazel-bootstrap) printf 4.2.3+ds-9 ;; '
                     "*cuda-keyring) exit 1 ;; *) printf installed ;; esac")
        self.program("getconf", "echo glibc 2.36")
        for name in ("apt-get", "git", "pkg-config", "python3"):
            self.program(name, "exit 0")

    def path(self, file):
        return os.path.join(self.root, file)

    def file(self, file, text):
        os.makedirs(os.path.dirname(self.path(file)), exist_ok=True)
        with open(self.path(file), "w") as out:
            out.write(text)

    def program(self, name, commands):
        """Installs it in usr/bin, unless the name has a folder."""
        name = name if "/" in name else "usr/bin/" + name
        self.file(name, "#!/bin/sh\n%s\n" % commands)
        os.chmod(self.path(name), 0o755)

    def remove(self, *files):
        for file in files:
            if os.path.isdir(self.path(file)):
                shutil.rmtree(self.path(file))
            else:
                os.remove(self.path(file))

    def system(self, name, version):
        self.file("etc/os-release", 'NAME="A"\nVERSION_ID="%s"\nID=%s\n' % (version, name))

    def gcc(self, version):
        self.program("gcc", "case $1 in -dumpfullversion) echo %s ;; -dumpversion) echo %s ;; esac"
                     % (version, version.split(".")[0]))

    def toolkit(self, version):
        """Installs it in usr/local/cuda; it accepts gcc up to 15."""
        folder = "usr/local/cuda/"
        self.program(folder + "bin/nvcc", "echo nvcc: NVIDIA compiler driver\n"
                     "echo Build cuda_%s.r%s/compiler.1_0" % (version, version))
        self.file(folder + "lib64/libcudart_static.a", "")
        self.file(folder + "include/crt/host_config.h",
                  "#if defined(__GNUC__)\n#if __GNUC__ > 15\n#error too new\n#if __GNUC__ > 99\n")

    def gpus(self, *names, versions="Driver Version: 580.65.06   CUDA Version: 13.0"):
        """GPUs of compute capability 9.0, with 79.5 of 80 GiB free; GPU i is GPU-ibeef."""
        csv = "\n".join("%s, 81920, 81408, 9.0, GPU-%dbeef" % (name, i)
                        for i, name in enumerate(names))
        self.program("nvidia-smi", "if [ $# = 0 ]; then /bin/cat << 'X'\nSat Nov 21 16:00:00 2026\n"
                     "| NVIDIA-SMI   %s   |\nX\nelse /bin/cat << 'X'\n%s\nX\nfi" % (versions, csv))

    def env(self, **settings):
        return {"PATH": self.path("usr/bin"), "HOSTTYPE": "x86_64", **settings}

    def run_doctor(self, repository="repo", **settings):
        machine = Machine(self.path(repository), self.env(**settings), self.root)
        code = doctor.examine(machine)
        output = "\n".join(machine.lines) + "\n"
        names = [repository] + list(settings.values())  # of the machine, in any letters
        self.expect_plain(output.translate({ord(c): "x" for c in "".join(names) if ord(c) > 127}))
        # Joins the lines: single spaces, commands as if they had not been broken.
        text = " ".join(output.replace(" \\\n", " ").split()) + " "
        return Result(code, output, text)

    def expect(self, *texts, lacks=(), code=0, **settings):
        """Runs the doctor and checks texts that its output must, or must not, contain."""
        result = self.run_doctor(**settings)
        self.assertEqual(result.code, code, result.output)
        for text in texts:
            self.assertIn(text, result.text)
        for text in lacks:
            self.assertNotIn(text, result.text)
        return result

    def expect_plain(self, output):
        """Plain text of 80 columns. Only a single word may be longer, such as a path."""
        self.assertNotRegex(output, "[^\n -~]")
        for line in output.split("\n"):
            if len(re.sub(r" \\$", "", line).split()) > 1:
                self.assertLessEqual(len(line), 80, line)
