"""script: a program that is not built, for `bazel run`.

Unlike sh_binary it needs no C++ compiler (Bazel 4's sh_binary depends on a
launcher for Windows, in C++, everywhere), and no rules_shell in Bazel 9.
"""

def _script_impl(ctx):
    program = ctx.actions.declare_file(ctx.label.name)

    # A link to the file in the checkout, beside which the script finds others.
    ctx.actions.symlink(output = program, target_file = ctx.file.src, is_executable = True)
    return [DefaultInfo(executable = program)]

script = rule(
    implementation = _script_impl,
    attrs = {"src": attr.label(allow_single_file = True, mandatory = True)},
    executable = True,
)
