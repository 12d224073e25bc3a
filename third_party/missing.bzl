"""Targets in place of libraries that this machine lacks.

They load and are analysed like any other, so `bazel build //...` works on a
machine that lacks libraries it does not use.  Building something that needs one
fails with a sentence that says what to install.
"""

load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

def fail_when_built(ctx, output, message, inputs = depset()):
    """Declares an action that makes `output` by failing with `message`."""
    ctx.actions.run_shell(
        arguments = [message],
        command = "echo \"$1\" >&2; exit 1",
        execution_requirements = {"no-sandbox": "1"},  # prints no advice on the sandbox
        inputs = inputs,
        mnemonic = "Missing",
        outputs = [output],
        progress_message = "Looking for what %s needs" % ctx.label,
    )

def _missing_library_impl(ctx):
    # A header, because every user of a library needs it before it compiles.
    header = ctx.actions.declare_file(ctx.label.name + ".missing.h")
    fail_when_built(ctx, header, ctx.attr.message)
    headers = depset([header])
    return [
        DefaultInfo(files = headers),
        CcInfo(compilation_context = cc_common.create_compilation_context(headers = headers)),
    ]

missing_library = rule(
    implementation = _missing_library_impl,
    attrs = {"message": attr.string(mandatory = True)},
    provides = [CcInfo],
)
