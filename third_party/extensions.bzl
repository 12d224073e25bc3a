"""What MODULE.bazel takes from the system: the libraries that the registry does not
have, and OpenSSL, which takes minutes to compile."""

load(":cuda_configure.bzl", "cuda_configure")
load(":libraries.bzl", "system_libraries")
load(":onnx_configure.bzl", "onnx_configure")

def _system_impl(_ctx):
    system_libraries(["openblas", "openmpi", "openssl"])
    cuda_configure(name = "local_cuda")
    onnx_configure(name = "local_onnx")

system = module_extension(implementation = _system_impl)
