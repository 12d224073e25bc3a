// tools/doctor.sh on machines with faults in CUDA's toolkit, driver or devices:
// it must name the fault, and say the command that mends it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/atomic_file.h"
#include "tools/doctor_testing.h"

namespace d2l {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(DoctorCuda, NoToolkit) {
  Machine machine;
  machine.Gpus({"NVIDIA H100"}, "Driver Version: 550.54   CUDA Version: 12.4");
  DoctorResult r = machine.Run();
  EXPECT_EQ(r.exit_code, 0) << "a missing toolkit is no failure";
  EXPECT_THAT(r.text, AllOf(HasSubstr("There is no CUDA toolkit"),
                            HasSubstr(FromNvidia("debian12/x86_64",
                                                 "cuda-toolkit-12 && "
                                                 "bazel shutdown")),
                            Not(HasSubstr(kNothing))));

  machine.File("etc/os-release", "ID=ubuntu\nVERSION_ID=\"24.04\"\n");
  machine.Program("usr/bin/bazel", "echo bazel 7.7.1");
  EXPECT_THAT(machine.Run().text,
              HasSubstr(FromNvidia("ubuntu2404/x86_64", "cuda-toolkit-12 ")));
  machine.Program("usr/bin/dpkg-query", "printf installed");
  EXPECT_THAT(machine.Run().text, AllOf(HasSubstr(AptGet("cuda-toolkit-12 ")),
                                        Not(HasSubstr("dpkg -i"))))
      << "NVIDIA's repository is known already";

  machine.File("etc/os-release", "ID=nixos\n");
  r = machine.Run({"CUDA_HOME=/opt/cuda"});
  EXPECT_THAT(
      r.text,
      AllOf(HasSubstr(
                "looked at CUDA_HOME=/opt/cuda, PATH, none /usr/local/cuda"),
            HasSubstr("https://developer.nvidia.com/cuda-downloads for "
                      "cuda-toolkit-12.")));
}

TEST(DoctorCuda, NoToolkitWhereThereIsNoGpu) {
  const Machine machine;
  const DoctorResult r = machine.Run();
  EXPECT_THAT(
      r.text,
      AllOf(HasSubstr(kNothing), HasSubstr("There is no CUDA toolkit"),
            HasSubstr(FromNvidia("debian12/x86_64", "cuda-toolkit && "))));
  EXPECT_THAT(machine.Run({"HOSTTYPE=aarch64"}).text,
              HasSubstr(FromNvidia("debian12/sbsa", "cuda-toolkit && ")));
}

TEST(DoctorCuda, FindsTheToolkitThatTheBuildFinds) {
  Machine machine;
  machine.Toolkit("13.0");
  EXPECT_THAT(machine.Run({"CUDA_PATH=none"}).text,
              AllOf(HasSubstr("CUDA_PATH=none hides it hidden"),
                    HasSubstr("unset CUDA_PATH")));
  fs::rename(machine.Path("usr/local/cuda"), machine.Path("opt"));
  const std::string found = "CUDA toolkit 13.0 (/opt), takes gcc up to 15 ok";
  EXPECT_THAT(machine.Run().text, Not(HasSubstr(found)));
  EXPECT_THAT(machine.Run({"CUDA_HOME=" + machine.Path("opt/")}).text,
              HasSubstr(found));
  EXPECT_THAT(
      machine.Run({"CUDA_HOME=/nowhere", "CUDA_PATH=" + machine.Path("opt")})
          .text,
      HasSubstr(found));
  fs::create_symlink(machine.Path("opt/bin/nvcc"), machine.Path("real/nvcc"));
  EXPECT_THAT(machine.Run().text, HasSubstr(found)) << "on PATH";
}

TEST(DoctorCuda, ToolkitWithoutItsLibrary) {
  Machine machine;
  machine.Toolkit("13.0");
  machine.Gpus({"NVIDIA H100"});
  machine.Remove("usr/local/cuda/lib64");
  EXPECT_THAT(
      machine.Run().text,
      AllOf(HasSubstr("without libcudart_static.a partial"),
            HasSubstr(FromNvidia("debian12/x86_64", "cuda-toolkit-13-0 "))));
}

TEST(DoctorCuda, CompilerTooNewForTheToolkit) {
  Machine machine;
  machine.Toolkit("13.0");
  machine.Gpus({"NVIDIA H100"});
  machine.Gcc("16.1.0");
  const std::string flag =
      "echo 'build --//:cuda_ccbin=/usr/bin/g++-15' >> .bazelrc.user";
  DoctorResult r = machine.Run();
  const std::string to_do = r.output;
  EXPECT_EQ(r.exit_code, 0) << "the lessons run on CPU devices";
  EXPECT_THAT(r.text,
              AllOf(HasSubstr("takes gcc up to 15; found 16 wrong"),
                    HasSubstr("CUDA 13.0 takes gcc up to 15; found 16."),
                    HasSubstr(AptGet("g++-15 && " + flag))));

  machine.Program("usr/bin/g++-15", "exit 0");
  r = machine.Run();
  EXPECT_THAT(r.text, AllOf(HasSubstr(flag), Not(HasSubstr("apt-get"))));

  // The longer command, copied as it was printed; then all is well.
  machine.RunToDo(to_do);
  EXPECT_EQ(ReadFile(machine.Path("repo/.bazelrc.user")),
            "build --//:cuda_ccbin=/usr/bin/g++-15\n");
  r = machine.Run();
  EXPECT_THAT(r.text, AllOf(HasSubstr(".bazelrc.user gives it /usr/bin/g++-15"),
                            HasSubstr(kNothing)));

  machine.Remove("usr/bin/g++-15");
  EXPECT_THAT(machine.Run().text,
              AllOf(HasSubstr("names no program"),
                    HasSubstr("sed -i /cuda_ccbin/d .bazelrc.user")));
}

TEST(DoctorCuda, ToolkitWithoutDriver) {
  Machine machine;
  machine.Toolkit("13.0");
  DoctorResult r = machine.Run();
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(r.text,
              AllOf(HasSubstr(kNothing),
                    HasSubstr("no NVIDIA driver, or no NVIDIA GPU"),
                    HasSubstr(FromNvidia("debian12/x86_64", "cuda-drivers"))));
  machine.PciGpu();
  r = machine.Run();
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(r.text,
              AllOf(Not(HasSubstr(kNothing)),
                    HasSubstr("devices 1 NVIDIA GPU without a driver unusable"),
                    HasSubstr("There is an NVIDIA GPU, but no driver."),
                    HasSubstr(FromNvidia("debian12/x86_64", "cuda-drivers"))));
  machine.File(".dockerenv", "");
  EXPECT_THAT(machine.Run().text,
              AllOf(HasSubstr("start the container with --gpus=all"),
                    HasSubstr("docker run --gpus=all"),
                    Not(HasSubstr("cuda-drivers"))));
}

TEST(DoctorCuda, WithinWindows) {
  Machine machine;
  machine.Toolkit("13.0");
  machine.File("proc/sys/kernel/osrelease", "5.15.0-microsoft-standard-WSL2\n");
  EXPECT_THAT(machine.Run().text,
              AllOf(HasSubstr("/usr/lib/wsl/lib has no libcuda.so.1"),
                    HasSubstr("never within WSL"), HasSubstr("wsl --shutdown"),
                    Not(HasSubstr("cuda-drivers"))));
  machine.File("usr/lib/wsl/lib/libcuda.so.1", "");
  EXPECT_THAT(machine.Run().text,
              HasSubstr(Sudo() + "ldconfig /usr/lib/wsl/lib"));

  machine.Gpus({"NVIDIA RTX"}, "Driver Version: 536.1   CUDA Version: 12.2");
  machine.File("etc/os-release", "ID=ubuntu\nVERSION_ID=\"24.04\"\n");
  EXPECT_THAT(machine.Run().text,
              AllOf(HasSubstr("Update the driver in Windows"),
                    HasSubstr(FromNvidia("wsl-ubuntu/x86_64",
                                         "cuda-toolkit-12 && export "
                                         "CUDA_PATH=/usr/local/cuda-12"))));
}

TEST(DoctorCuda, DriverOlderThanTheToolkit) {
  Machine machine;
  machine.Toolkit("13.0");
  machine.Gpus({"NVIDIA H100"}, "Driver Version: 535.1   CUDA Version: 12.2");
  DoctorResult r = machine.Run();
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(
      r.text,
      AllOf(HasSubstr("driver CUDA 12.2 (535.1); the toolkit needs 13.0 too "
                      "old"),
            HasSubstr("nvidia-smi's \"CUDA Version\" is the driver's maximum, "
                      "not your toolkit's version."),
            HasSubstr("or build with a toolkit of CUDA 12.2 or older"),
            HasSubstr(FromNvidia("debian12/x86_64", "cuda-drivers"))));
  machine.File("run/.containerenv", "");
  EXPECT_THAT(machine.Run().text,
              AllOf(HasSubstr("Update the driver outside of this container"),
                    HasSubstr("export CUDA_PATH=/usr/local/cuda-12 && bazel "
                              "shutdown")));
}

TEST(DoctorCuda, DriverThatWillDo) {
  Machine machine;
  machine.Toolkit("12.8");
  // As drivers from 610 on write it.
  machine.Gpus({"NVIDIA B200"}, "KMD Version: 610.4   CUDA UMD Version: 13.3");
  DoctorResult r = machine.Run();
  EXPECT_THAT(r.text, AllOf(HasSubstr("driver CUDA 13.3 (610.4) ok"),
                            HasSubstr(kNothing)));
  machine.Gpus({"NVIDIA H100"}, "Driver Version: 550.1   CUDA Version: 12.4");
  r = machine.Run();
  EXPECT_THAT(r.text,
              AllOf(HasSubstr("CUDA 12.4 (550.1), older than the"),
                    HasSubstr("--//:cuda_archs"),
                    HasSubstr("the driver's maximum"), HasSubstr(kNothing)));
  machine.Toolkit("12.10");
  EXPECT_THAT(machine.Run().text, HasSubstr("older than the toolkit"))
      << "12.10 comes after 12.4";
}

TEST(DoctorCuda, DriverWithoutItsLibraryOrItsTool) {
  Machine machine;
  machine.Toolkit("13.0");
  machine.File("proc/driver/nvidia/version",
               "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
               "570.86.15  Release Build\nGCC version: gcc 12.2.0\n");
  machine.File("proc/driver/nvidia/gpus/0000:01:00.0/information",
               "Model: \t NVIDIA L4\nGPU UUID: \t GPU-77\n");
  DoctorResult r = machine.Run();
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(r.text, AllOf(HasSubstr("driver 570.86.15, without its library"),
                            HasSubstr(AptGet("libcuda1"))));
  machine.Program("usr/sbin/ldconfig", "echo 'libcuda.so.1 => /usr/lib/x'");
  r = machine.Run();
  EXPECT_THAT(r.text, AllOf(HasSubstr("cuda:0 (real, NVIDIA L4)"),
                            HasSubstr(kNothing)));
  EXPECT_THAT(machine.Run({"CUDA_VISIBLE_DEVICES=GPU-7"}).text,
              HasSubstr("cuda:0 (real, NVIDIA L4)"));
  machine.Program("usr/bin/nvidia-smi",
                  "echo Failed to initialize NVML: version mismatch; exit 18");
  EXPECT_THAT(machine.Run().text,
              AllOf(HasSubstr("nvidia-smi says: Failed to initialize NVML"),
                    HasSubstr(Sudo() + "reboot")));
}

TEST(DoctorCuda, DriverThatFindsNoGpu) {
  Machine machine;
  machine.Toolkit("13.0");
  machine.Program("usr/bin/nvidia-smi", "echo No devices were found; exit 6");
  EXPECT_THAT(machine.Run().text,
              AllOf(HasSubstr("the NVIDIA driver finds no GPU none"),
                    HasSubstr(Sudo() + "dmesg | grep -i nvrm")));
}

TEST(DoctorCuda, HiddenDevices) {
  Machine machine;
  machine.Toolkit("13.0");
  machine.Gpus({"NVIDIA H100", "NVIDIA H100"});
  for (const char* value : {"", "-1", "7", "-1,0", "GPU-cafe"}) {
    SCOPED_TRACE(value);
    const DoctorResult r =
        machine.Run({absl::StrCat("CUDA_VISIBLE_DEVICES=", value)});
    EXPECT_EQ(r.exit_code, 0);
    EXPECT_THAT(
        r.text,
        AllOf(HasSubstr(absl::StrCat(
                  "CUDA_VISIBLE_DEVICES=", *value == '\0' ? "\"\"" : value,
                  " hides the 2 GPUs of this machine")),
              HasSubstr("unset CUDA_VISIBLE_DEVICES"),
              HasSubstr("duet 2 devices virtual: cpu:0, cpu:1"),
              Not(HasSubstr("cuda:0")), Not(HasSubstr(kNothing))));
  }
  machine.Gpus({"NVIDIA H100"});
  EXPECT_THAT(machine.Run({"CUDA_VISIBLE_DEVICES=1"}).text,
              HasSubstr("hides the 1 GPU of this machine"));
}

TEST(DoctorCuda, RenumberedDevices) {
  Machine machine;
  machine.Toolkit("13.0");
  machine.Gpus({"G0", "G0", "G0", "G0", "G4", "G5"});
  DoctorResult r = machine.Run({"CUDA_VISIBLE_DEVICES=4,5"});
  EXPECT_THAT(
      r.text,
      AllOf(HasSubstr("cuda:0 (real, G4)"), HasSubstr("cuda:1 (real, G5)"),
            Not(HasSubstr("cuda:2 (real")),
            HasSubstr("CUDA_VISIBLE_DEVICES=4,5 renumbers them: cuda:0 is GPU "
                      "4, cuda:1 is GPU 5"),
            HasSubstr("duet 2 devices real: cuda:0, cuda:1"),
            HasSubstr(kNothing)));
  EXPECT_THAT(machine.Run({"CUDA_VISIBLE_DEVICES=GPU-5"}).text,
              HasSubstr("cuda:0 (real, G5)"));
  EXPECT_THAT(machine.Run({"CUDA_VISIBLE_DEVICES=0,1"}).text,
              AllOf(HasSubstr("CUDA_VISIBLE_DEVICES=0,1 leaves 2 of 6 GPUs"),
                    Not(HasSubstr("renumbers"))));
  EXPECT_THAT(machine.Run({"CUDA_VISIBLE_DEVICES=0,9,1"}).text,
              AllOf(HasSubstr("there is no GPU 9, and CUDA ignores what"),
                    HasSubstr("unset CUDA_VISIBLE_DEVICES"),
                    Not(HasSubstr("cuda:1 (real"))));
  EXPECT_THAT(machine.Run({"CUDA_VISIBLE_DEVICES=MIG-12"}).text,
              AllOf(HasSubstr("cuda:0 (real, MIG-12), part of a GPU"),
                    Not(HasSubstr("hides")), Not(HasSubstr("renumbers"))));
  EXPECT_THAT(machine.Run().text, HasSubstr("CUDA_DEVICE_ORDER=PCI_BUS_ID"));
  EXPECT_THAT(machine.Run({"CUDA_DEVICE_ORDER=PCI_BUS_ID"}).text,
              Not(HasSubstr("CUDA_DEVICE_ORDER")));
}

TEST(DoctorCuda, WhatTheLessonsRunOn) {
  Machine machine;
  machine.Toolkit("13.0");
  machine.Gpus({"G"});
  EXPECT_THAT(
      machine.Run().text,
      AllOf(HasSubstr("run on, built with --config=cuda"),
            HasSubstr("course: bazel run --config=cuda //:course"),
            HasSubstr("solo 1 device real: cuda:0 duet"),
            HasSubstr("duet 2 devices logical: cuda:0 on GPU 0, cuda:1 on GPU "
                      "0 trio")));
  machine.Gpus({"G", "G"});
  EXPECT_THAT(machine.Run().text,
              AllOf(HasSubstr("solo 1 device real: cuda:0, cuda:1 duet"),
                    HasSubstr("duet 2 devices real: cuda:0, cuda:1 trio"),
                    HasSubstr("trio 3 devices real: cuda:1; logical: cuda:0 on "
                              "GPU 0, cuda:2 on GPU 0 later")));
  machine.Remove("usr/local/cuda");
  EXPECT_THAT(machine.Run().text,
              AllOf(HasSubstr("duet 2 devices virtual: cpu:0, cpu:1"),
                    HasSubstr("The 2 GPUs cannot be used before"),
                    Not(HasSubstr("--config=cuda trio"))));
  machine.File("proc/self/status", "Cpus_allowed_list: 3\n");
  EXPECT_THAT(machine.Run().text,
              HasSubstr("duet 2 devices virtual: cpu:0, cpu:1 (1 core each)"));
}

}  // namespace
}  // namespace d2l
