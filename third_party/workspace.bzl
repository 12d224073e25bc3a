"""What WORKSPACE sets up."""

load(":bazel4.bzl", "bazel4_stand_ins")
load(":cuda_configure.bzl", "cuda_configure")
load(":libraries.bzl", "system_libraries")

def d2l_workspace():
    bazel4_stand_ins()
    system_libraries()
    cuda_configure(name = "local_cuda")
