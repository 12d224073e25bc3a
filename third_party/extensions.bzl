"""What MODULE.bazel takes from the system: the registry does not have it."""

load(":cuda_configure.bzl", "cuda_configure")
load(":libraries.bzl", "openblas")

def _system_impl(_ctx):
    openblas()
    cuda_configure(name = "local_cuda")

system = module_extension(implementation = _system_impl)
