"""What MODULE.bazel takes from the system: the libraries that the registry does not
have, and OpenBLAS with its kernels for each processor."""

load(":cuda_configure.bzl", "cuda_configure")
load(":libraries.bzl", "system_libraries")
load(":onnx_configure.bzl", "onnx_configure")

def _system_impl(_ctx):
    system_libraries(["openblas", "openmpi"])
    cuda_configure(name = "local_cuda")
    onnx_configure(name = "local_onnx")

system = module_extension(implementation = _system_impl)
