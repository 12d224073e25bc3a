#!/usr/bin/env python3
"""The doctor on machines with faults in CUDA's toolkit, driver or devices: it must name the
fault, and the command that repairs it."""
import contextlib
import io
import os
import subprocess
import unittest
import unittest.mock

import cuda
from testing import NOTHING, SUDO, DoctorTest, apt_get, from_nvidia


class Toolkit(DoctorTest):

    def test_none(self):
        self.gpus("NVIDIA H100", versions="Driver Version: 550.54   CUDA Version: 12.4")
        # A missing toolkit is no failure.
        self.expect("There is no CUDA toolkit", lacks=[NOTHING], code=0)
        self.expect(from_nvidia("debian12/x86_64", "cuda-toolkit-12 && bazel shutdown"))
        self.system("ubuntu", "24.04")
        self.program("bazel", "echo bazel 7.7.1")
        self.expect(from_nvidia("ubuntu2404/x86_64", "cuda-toolkit-12 "))
        self.program("dpkg-query", "printf installed")  # NVIDIA's repository is known already
        self.expect(apt_get("cuda-toolkit-12 "), lacks=["dpkg -i"])
        self.system("nixos", "")
        self.expect("looked at CUDA_HOME=/opt/cuda, PATH, none /usr/local/cuda",
                    "https://developer.nvidia.com/cuda-downloads for cuda-toolkit-12.",
                    CUDA_HOME="/opt/cuda")

    def test_none_where_there_is_no_gpu(self):
        self.expect(NOTHING, "There is no CUDA toolkit",
                    from_nvidia("debian12/x86_64", "cuda-toolkit && "))
        self.expect(from_nvidia("debian12/sbsa", "cuda-toolkit && "), HOSTTYPE="aarch64")

    def test_is_found_where_the_build_finds_it(self):
        self.toolkit("13.0")
        self.expect("CUDA_PATH=none hides it hidden", "unset CUDA_PATH", CUDA_PATH="none")
        os.rename(self.path("usr/local/cuda"), self.path("opt"))
        found = "CUDA toolkit 13.0 (/opt), takes gcc up to 15 ok"
        self.expect(lacks=[found])
        self.expect(found, CUDA_HOME=self.path("opt/"))
        self.expect(found, CUDA_HOME="/nowhere", CUDA_PATH=self.path("opt"))
        os.symlink(self.path("opt/bin/nvcc"), self.path("usr/bin/nvcc"))
        self.expect(found)

    def test_without_its_library(self):
        self.toolkit("13.0")
        self.gpus("NVIDIA H100")
        self.remove("usr/local/cuda/lib64")
        self.expect("without libcudart_static.a partial",
                    from_nvidia("debian12/x86_64", "cuda-toolkit-13-0 "))

    def test_of_the_distribution(self):
        self.toolkit("12.4")
        os.makedirs(self.path("usr/lib/x86_64-linux-gnu"))
        os.rename(self.path("usr/local/cuda/lib64/libcudart_static.a"),
                  self.path("usr/lib/x86_64-linux-gnu/libcudart_static.a"))
        os.rename(self.path("usr/local/cuda/bin/nvcc"), self.path("usr/bin/nvcc"))
        self.expect("CUDA toolkit 12.4 (/usr) ok")

    def test_an_incomplete_one_is_passed_over(self):
        self.toolkit("13.0")
        self.program("usr/bin/nvcc", "echo Build cuda_12.4.r12.4/compiler")
        self.expect("CUDA toolkit 13.0 (/usr/local/cuda), takes gcc up to 15 ok")

    def test_too_old(self):
        self.toolkit("11.8")
        self.gpus("NVIDIA T4")
        self.expect("CUDA toolkit 11.8 (/usr/local/cuda); it needs 12.0 or newer too old",
                    "CUDA 11.8 is too old: the course needs CUDA 12.0 or newer.",
                    from_nvidia("debian12/x86_64", "cuda-toolkit-13 "))

    def test_compiler_too_new(self):
        self.toolkit("13.0")
        self.gpus("NVIDIA H100")
        self.gcc("16.1.0")
        flag = "echo 'build --//:cuda_ccbin=/usr/bin/g++-15' >> .bazelrc.user"
        r = self.expect("takes gcc up to 15; found 16 wrong",
                        "CUDA 13.0 takes gcc up to 15; found 16.", apt_get("g++-15 && " + flag))
        self.program("g++-15", "exit 0")
        self.expect(flag, lacks=["apt-get"])

        # Runs the longer command, copied as it was printed; then all is well.
        self.program("sudo", 'exec "$@"')
        commands = [line for line in r.output.split("To do")[1].split("\n")
                    if line.startswith("       ")]
        subprocess.run(["/bin/sh", "-e", "-c", "\n".join(commands)], cwd=self.path("repo"),
                       env=self.env(), check=True)
        with open(self.path("repo/.bazelrc.user")) as file:
            self.assertEqual(file.read(), "build --//:cuda_ccbin=/usr/bin/g++-15\n")
        self.expect(".bazelrc.user gives it /usr/bin/g++-15", NOTHING)
        self.remove("usr/bin/g++-15")
        self.expect("names no program", "sed -i /cuda_ccbin/d .bazelrc.user")


class Driver(DoctorTest):

    def setUp(self):
        super().setUp()
        self.toolkit("13.0")

    def test_none(self):
        install = from_nvidia("debian12/x86_64", "cuda-drivers")
        self.expect(NOTHING, "no NVIDIA driver, or no NVIDIA GPU", install)
        self.file("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
        self.file("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n")
        self.expect("devices 1 NVIDIA GPU without a driver unusable",
                    "There is an NVIDIA GPU, but no driver.", install, lacks=[NOTHING])
        self.file(".dockerenv", "")
        self.expect("start the container with --gpus=all", "docker run --gpus=all",
                    lacks=["cuda-drivers"])

    def test_within_windows(self):
        self.file("proc/sys/kernel/osrelease", "5.15.0-microsoft-standard-WSL2\n")
        self.expect("/usr/lib/wsl/lib has no libcuda.so.1", "never within WSL", "wsl --shutdown",
                    lacks=["cuda-drivers"])
        self.file("usr/lib/wsl/lib/libcuda.so.1", "")
        self.expect(SUDO + "ldconfig /usr/lib/wsl/lib")
        self.gpus("NVIDIA RTX", versions="Driver Version: 536.1   CUDA Version: 12.2")
        self.system("ubuntu", "24.04")
        self.expect("Update the driver in Windows",
                    from_nvidia("wsl-ubuntu/x86_64",
                                "cuda-toolkit-12 && export CUDA_PATH=/usr/local/cuda-12"))

    def test_older_than_the_toolkit(self):
        self.gpus("NVIDIA H100", versions="Driver Version: 535.1   CUDA Version: 12.2")
        self.expect("driver CUDA 12.2 (535.1); the toolkit needs 13.0 too old",
                    "nvidia-smi's \"CUDA Version\" is the driver's maximum, not your toolkit's "
                    "version.", "or build with a toolkit of CUDA 12.2 or older",
                    from_nvidia("debian12/x86_64", "cuda-drivers"))
        self.file("run/.containerenv", "")
        self.expect("Update the driver outside of this container",
                    "export CUDA_PATH=/usr/local/cuda-12 && bazel shutdown")

    def test_that_will_do(self):
        self.toolkit("12.8")
        # The form of drivers from 610 on.
        self.gpus("NVIDIA B200", versions="KMD Version: 610.4   CUDA UMD Version: 13.3")
        self.expect("driver CUDA 13.3 (610.4) ok", NOTHING)
        self.gpus("NVIDIA H100", versions="Driver Version: 550.1   CUDA Version: 12.4")
        self.expect("CUDA 12.4 (550.1), older than the", "--//:cuda_archs",
                    "the driver's maximum", NOTHING)
        self.toolkit("12.10")  # comes after 12.4
        self.expect("older than the toolkit")

    def test_without_its_library_or_its_tool(self):
        self.file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for "
                  "x86_64  570.86.15  Release Build\nGCC version: gcc 12.2.0\n")
        self.file("proc/driver/nvidia/gpus/0000:01:00.0/information",
                  "Model: \t NVIDIA L4\nGPU UUID: \t GPU-77\n")
        self.expect("driver 570.86.15, without its library", apt_get("libcuda1"))
        self.program("usr/sbin/ldconfig", "echo 'libcuda.so.1 => /usr/lib/x'")
        self.expect("driver CUDA 12.8 (570.86.15); the toolkit needs 13.0 too old")
        self.toolkit("12.8")
        self.expect("driver CUDA 12.8 (570.86.15) ok", "cuda:0 (real, NVIDIA L4)", NOTHING)
        self.expect("cuda:0 (real, NVIDIA L4)", CUDA_VISIBLE_DEVICES="GPU-7")
        self.program("nvidia-smi", "echo Failed to initialize NVML: version mismatch; exit 18")
        self.expect("nvidia-smi says: Failed to initialize NVML", SUDO + "reboot")

    def test_that_does_not_answer(self):
        # Its child keeps its output open, as a hanging driver keeps the program.
        self.program("nvidia-smi", "echo >> %s; /bin/sleep 100 & wait" % self.path("asked"))
        with unittest.mock.patch.object(cuda, "PATIENCE", 1), contextlib.redirect_stderr(
                io.StringIO()) as stderr:
            self.expect("no NVIDIA driver; nvidia-smi says: nothing, for 1 s none")
            self.file("proc/driver/nvidia/version", "NVRM  x86_64  570.86.15  Release\n")
            self.file("asked", "")
            self.expect("570.86.15; nvidia-smi says: nothing, for 1 s broken", SUDO + "reboot")
        self.assertEqual(stderr.getvalue(), 2 * "Waiting for nvidia-smi, 1 s at most.\n")
        with open(self.path("asked")) as file:
            self.assertEqual(file.read(), "\n")  # once

    def test_that_finds_no_gpu(self):
        self.program("nvidia-smi", "echo No devices were found; exit 6")
        self.expect("the NVIDIA driver finds no GPU none", SUDO + "dmesg | grep -i nvrm")


class Devices(DoctorTest):

    def setUp(self):
        super().setUp()
        self.toolkit("13.0")

    def test_hidden(self):
        self.gpus("NVIDIA H100", "NVIDIA H100")
        for value in ("", "-1", "7", "-1,0", "GPU-cafe"):
            self.expect("CUDA_VISIBLE_DEVICES=%s hides the 2 GPUs of this machine" % (value or '""'),
                        "unset CUDA_VISIBLE_DEVICES", "duet 2 devices virtual: cpu:0, cpu:1",
                        lacks=["cuda:0", NOTHING], CUDA_VISIBLE_DEVICES=value)
        self.gpus("NVIDIA H100")
        self.expect("hides the 1 GPU of this machine", CUDA_VISIBLE_DEVICES="1")

    def test_renumbered(self):
        self.gpus("G0", "G0", "G0", "G0", "G4", "G5")
        self.expect("cuda:0 (real, G4)", "cuda:1 (real, G5)", NOTHING,
                    "CUDA_VISIBLE_DEVICES=4,5 renumbers them: cuda:0 is GPU 4, cuda:1 is GPU 5",
                    "duet 2 devices real: cuda:0, cuda:1", lacks=["cuda:2 (real"],
                    CUDA_VISIBLE_DEVICES="4,5")
        self.expect("cuda:0 (real, G5)", CUDA_VISIBLE_DEVICES="GPU-5")
        self.expect("CUDA_VISIBLE_DEVICES=0,1 leaves 2 of 6 GPUs", lacks=["renumbers"],
                    CUDA_VISIBLE_DEVICES="0,1")
        self.expect("there is no GPU 9, and CUDA ignores what", "unset CUDA_VISIBLE_DEVICES",
                    lacks=["cuda:1 (real"], CUDA_VISIBLE_DEVICES="0,9,1")
        self.expect("cuda:0 (real, MIG-12), part of a GPU", lacks=["hides", "renumbers"],
                    CUDA_VISIBLE_DEVICES="MIG-12")
        self.expect("CUDA_DEVICE_ORDER=PCI_BUS_ID")
        self.expect(lacks=["CUDA_DEVICE_ORDER"], CUDA_DEVICE_ORDER="PCI_BUS_ID")

    def test_what_the_lessons_run_on(self):
        self.gpus("G")
        self.expect("run on, built with --config=cuda",
                    "course: bazel run --config=cuda --//:cuda_archs=sm_90 //:course", "solo 1 device real: cuda:0 duet",
                    "duet 2 devices logical: cuda:0 on GPU 0, cuda:1 on GPU 0 trio")
        self.gpus("G", "G")
        self.expect("solo 1 device real: cuda:0, cuda:1 duet",
                    "duet 2 devices real: cuda:0, cuda:1 trio", "trio 3 devices real: cuda:1; "
                    "logical: cuda:0 on GPU 0, cuda:2 on GPU 0 ")
        self.remove("usr/local/cuda")
        self.expect("duet 2 devices virtual: cpu:0, cpu:1", "The 2 GPUs cannot be used before",
                    lacks=["--config=cuda trio"])
        self.file("proc/self/status", "Cpus_allowed_list: 3\n")
        self.expect("duet 2 devices virtual: cpu:0, cpu:1 (1 core each)")


if __name__ == "__main__":
    unittest.main(verbosity=2)
