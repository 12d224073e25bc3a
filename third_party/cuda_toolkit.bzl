"""What @local_cuda//:toolkit tells cuda_library."""

CudaToolkitInfo = provider(
    doc = "The CUDA toolkit of this machine.",
    fields = {
        "host_problem": "why nvcc rejects the system's gcc; empty if it does not",
        "nvcc": "absolute path",
        "problem": "why there is no usable toolkit; empty if there is one",
        "version": "what nvcc says of itself",
    },
)

def _cuda_toolkit_impl(ctx):
    return CudaToolkitInfo(
        host_problem = ctx.attr.host_problem,
        nvcc = ctx.attr.nvcc,
        problem = ctx.attr.problem,
        version = ctx.attr.version,
    )

cuda_toolkit = rule(
    implementation = _cuda_toolkit_impl,
    attrs = {
        "host_problem": attr.string(),
        "nvcc": attr.string(),
        "problem": attr.string(),
        "version": attr.string(),
    },
)
