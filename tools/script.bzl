"""script, script_test: programs that are not built, for `bazel run` and `bazel test`.

Unlike sh_binary and py_test they need no C++ compiler (Bazel 4's sh_binary depends
on a launcher for Windows, in C++, everywhere), and no rules_shell or rules_python
in Bazel 9.
"""

def _script_impl(ctx):
    program = ctx.actions.declare_file(ctx.label.name)

    # A link to the file in the checkout, where the script finds the files beside it.
    ctx.actions.symlink(output = program, target_file = ctx.file.src, is_executable = True)
    runfiles = ctx.runfiles(files = [ctx.file.src] + ctx.files.data)
    for data in ctx.attr.data:
        if data[DefaultInfo].default_runfiles:  # a file has none
            runfiles = runfiles.merge(data[DefaultInfo].default_runfiles)
    return [DefaultInfo(executable = program, runfiles = runfiles)]

_ATTRS = {
    "src": attr.label(allow_single_file = True, mandatory = True),
    "data": attr.label_list(allow_files = True),
}

script = rule(
    implementation = _script_impl,
    attrs = _ATTRS,
    executable = True,
)

# For Python's unittest; tools/count_tests.py counts its cases.
script_test = rule(
    implementation = _script_impl,
    attrs = _ATTRS,
    test = True,
)
