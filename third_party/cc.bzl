"""cc_library, cc_binary and cc_test, with the headers of libraries compiled beforehand.

Most of the time that a file takes to parse goes to headers of the C++ library and of
Abseil. GCC compiles them once for all files ("Using Precompiled Headers" of its manual),
which spares a quarter of the time that a file takes. Files compiled with flags of their
own read the text, since GCC takes compiled headers only with the flags of their making.

A file still includes what it uses: clang, clang-tidy and check_arm.sh read it alone.
GCC does not list the headers inside the compiled ones as what a file depends on, so
`bazel clean` after another version of Abseil, as after one of a system's library.
"""

load("@rules_cc//cc:defs.bzl", _cc_binary = "cc_binary", _cc_library = "cc_library", _cc_test = "cc_test")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

_ACTION = "c++-compile"

# A compiler that cannot read what it wrote gets an empty file, and reads the text: GCC
# needs a fixed address for these headers, which some systems may not give it.
_PRECOMPILE = """
header="$1" compiled="$2"; shift 2
"$@" -x c++-header -c "$header" -o "$compiled" || exit
"$@" -x c++ -fsyntax-only -include "$header" /dev/null 2> /dev/null || : > "$compiled"
"""

def _precompiled_header_impl(ctx):
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    ctx.actions.write(header, "".join([
        "#include %s\n" % ("\"%s\"" % h if "/" in h else "<%s>" % h)
        for h in ctx.attr.headers
    ]))
    context = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps]).compilation_context
    headers = [header]
    toolchain = find_cc_toolchain(ctx)
    features = cc_common.configure_features(
        cc_toolchain = toolchain,
        ctx = ctx,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    compiler = cc_common.get_tool_for_action(action_name = _ACTION, feature_configuration = features)

    # Clang, which refuses headers compiled with other flags, always reads the text.
    if "clang" not in compiler:
        compiled = ctx.actions.declare_file(ctx.label.name + ".h.gch")
        headers.append(compiled)
        variables = cc_common.create_compile_variables(
            cc_toolchain = toolchain,
            feature_configuration = features,
            include_directories = context.includes,
            preprocessor_defines = context.defines,
            quote_include_directories = context.quote_includes,
            system_include_directories = context.system_includes,
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts,
        )
        flags = cc_common.get_memory_inefficient_command_line(
            action_name = _ACTION,
            feature_configuration = features,
            variables = variables,
        )
        ctx.actions.run_shell(
            # Without Bazel's __DATE__, __TIME__ and __TIMESTAMP__: GCC 12 crashes where
            # it reads headers that were compiled with other values of them.
            arguments = [header.path, compiled.path, compiler] +
                        [f for f in flags if not f.startswith("-D__")],
            command = _PRECOMPILE,
            env = cc_common.get_environment_variables(
                action_name = _ACTION,
                feature_configuration = features,
                variables = variables,
            ),
            inputs = depset([header], transitive = [context.headers, toolchain.all_files]),
            mnemonic = "CppPrecompile",
            outputs = [compiled],
            progress_message = "Compiling the headers of libraries",
        )

    # Nothing to link: a target names the libraries that it uses.
    merged = cc_common.merge_cc_infos(cc_infos = [
        CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset(headers))),
        CcInfo(compilation_context = context),
    ])
    return [DefaultInfo(files = depset(headers)), merged]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "headers": attr.string_list(mandatory = True),
        # Bazel 4 finds the C++ toolchain through this attribute.
        "_cc_toolchain": attr.label(default = "@rules_cc//cc:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    provides = [CcInfo],
    toolchains = use_cc_toolchain(),
)

def _precompiled(cc_rule, copts = [], deps = [], **kwargs):
    if not copts:
        copts = ["--include=third_party/precompiled.h"]
        deps = ["//third_party:precompiled"] + deps
    cc_rule(copts = copts, deps = deps, **kwargs)

def cc_binary(**kwargs):
    _precompiled(_cc_binary, **kwargs)

def cc_library(**kwargs):
    _precompiled(_cc_library, **kwargs)

def cc_test(**kwargs):
    _precompiled(_cc_test, **kwargs)
