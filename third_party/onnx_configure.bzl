"""@local_onnx: whether python3 finds what the ONNX export is compared with.

PATH decides which python3 that is, for this repository and, with --test_env=PATH, for
the tests.
"""

def _onnx_configure_impl(ctx):
    found = ctx.execute(["python3", "-c", "import numpy, onnx, onnxruntime, safetensors"])
    ctx.file("BUILD")
    ctx.file("found.bzl", "FOUND = %s\n" % (found.return_code == 0))

onnx_configure = repository_rule(
    implementation = _onnx_configure_impl,
    environ = ["PATH"],
)
