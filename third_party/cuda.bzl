"""CUDA in BUILD files: cuda_library, CUDA_ONLY, if_cuda."""

load("@local_cuda//:toolkit.bzl", "TOOLKIT")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load(":build_settings.bzl", "BuildSettingInfo")
load(":missing.bzl", "fail_when_built")

def if_cuda(then, otherwise = []):
    """One list with --config=cuda, another without: deps = if_cuda([":cuda"], [":no_cuda"])."""
    return select({
        "//:use_cuda": then,
        "//conditions:default": otherwise,
    })

# target_compatible_with = CUDA_ONLY: `bazel build //...` leaves the target out
# without --config=cuda.
CUDA_ONLY = if_cuda([], ["//third_party:never"])

def _default_archs(version):
    """For nvcc's version, "Build cuda_13.0.r13.0/compiler..."."""
    archs = "sm_75,sm_80,sm_86,sm_89,sm_90"
    number = version.replace("Build cuda_", "").split(".r")[0].split(".")
    if len(number) >= 2 and number[0].isdigit() and number[1].isdigit():
        if [int(number[0]), int(number[1])] >= [12, 8]:
            archs += ",sm_100,sm_120"  # Blackwell
    return archs

def _gencode(archs):
    """nvcc's -gencode flags: machine code for each, and PTX of the newest."""
    flags = []
    newest = ""
    for arch in [a.strip() for a in archs.split(",") if a.strip()]:
        name = arch[len("sm_"):]
        number = name.rstrip("af")  # sm_90a, sm_100f
        if not arch.startswith("sm_") or not number.isdigit():
            fail("--//:cuda_archs takes a list like sm_80,sm_90; got '%s'." % archs)
        flags.append("-gencode=arch=compute_%s,code=sm_%s" % (name, name))
        if not newest or int(number) >= int(newest.rstrip("af")):
            newest = name
    return flags + ["-gencode=arch=compute_%s,code=compute_%s" % (newest, newest)]

def _nvcc_flags(ctx, context):
    """The flags for all sources of a cuda_library."""
    args = ctx.actions.args()
    args.add_all(["-c", "-std=c++17", "-Xcompiler=-fPIC"])

    # As in .bazelrc: no fused multiply-add unless the code asks for one.
    args.add_all(["-fmad=false", "-Xcompiler=-ffp-contract=off"])
    if ctx.var["COMPILATION_MODE"] == "dbg":
        args.add_all(["-g", "-G"])
    else:
        args.add_all(["-O3", "-lineinfo"])
        if ctx.var["COMPILATION_MODE"] == "opt":
            args.add("-DNDEBUG")
    if ctx.attr._ptx[BuildSettingInfo].value:
        # tests/ptx reads PTX, of the oldest GPU that all toolkits know.
        args.add_all(["-gencode=arch=compute_75,code=compute_75", "--no-compress"])
    else:
        args.add_all(_gencode(ctx.attr._archs[BuildSettingInfo].value or _default_archs(TOOLKIT.version)))
    args.add("-ccbin", ctx.attr._ccbin[BuildSettingInfo].value or "gcc")

    # --copt, so that warnings and sanitizers reach the host code.
    args.add_all(
        [f for f in ctx.fragments.cpp.copts if not f.startswith("-O")],
        format_each = "-Xcompiler=%s",
    )
    args.add_all(ctx.attr.copts)
    args.add_all(context.defines, format_each = "-D%s")
    args.add("-I.")
    args.add_all(context.quote_includes, format_each = "-I%s")
    args.add_all(context.includes, format_each = "-I%s")

    # Without the toolkit's own headers: nvcc adds them, in another order.
    args.add_all(
        [i for i in context.system_includes.to_list() if "local_cuda" not in i],
        before_each = "-isystem",
    )
    return args

def _cuda_library_impl(ctx):
    problem = TOOLKIT.problem
    if not problem and not ctx.attr._ccbin[BuildSettingInfo].value:
        problem = TOOLKIT.host_problem

    deps = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps])
    context = deps.compilation_context
    inputs = depset(ctx.files.hdrs, transitive = [context.headers])
    flags = _nvcc_flags(ctx, context)

    objects = []
    for src in ctx.files.srcs:
        obj = ctx.actions.declare_file("_nvcc/%s/%s.o" % (ctx.label.name, src.basename))
        objects.append(obj)
        if problem:
            fail_when_built(ctx, obj, problem, inputs = inputs)
            continue
        files = ctx.actions.args()
        files.add("-o", obj)
        files.add(src)
        ctx.actions.run(
            arguments = [flags, files],
            env = {
                "D2L_CUDA_VERSION": TOOLKIT.version,  # a new toolkit makes a new action
                "PATH": "/usr/local/bin:/usr/bin:/bin",
            },
            executable = TOOLKIT.nvcc,
            inputs = depset([src], transitive = [inputs]),
            mnemonic = "CudaCompile",
            outputs = [obj],
            progress_message = "Compiling %s" % src.short_path,
        )

    cc_toolchain = find_cc_toolchain(ctx)
    linking, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        alwayslink = ctx.attr.alwayslink,
        cc_toolchain = cc_toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = depset(objects),
            pic_objects = depset(objects),
        ),
        disallow_dynamic_library = True,
        feature_configuration = cc_common.configure_features(
            cc_toolchain = cc_toolchain,
            ctx = ctx,
            requested_features = ctx.features,
            unsupported_features = ctx.disabled_features,
        ),
        linking_contexts = [deps.linking_context],
        name = ctx.label.name,
    )
    own = CcInfo(
        compilation_context = cc_common.create_compilation_context(headers = depset(ctx.files.hdrs)),
        linking_context = linking,
    )
    return [
        DefaultInfo(files = depset(objects)),
        cc_common.merge_cc_infos(cc_infos = [own] + [d[CcInfo] for d in ctx.attr.deps]),
    ]

_cuda_library = rule(
    implementation = _cuda_library_impl,
    attrs = {
        "alwayslink": attr.bool(),
        "copts": attr.string_list(doc = "flags for nvcc"),
        "deps": attr.label_list(providers = [CcInfo]),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
        "srcs": attr.label_list(allow_files = [".cu"]),
        "_archs": attr.label(default = "//:cuda_archs"),
        # Bazel 4 finds the C++ toolchain through this attribute.
        "_cc_toolchain": attr.label(default = "@rules_cc//cc:current_cc_toolchain"),
        "_ccbin": attr.label(default = "//:cuda_ccbin"),
        "_ptx": attr.label(default = "//:ptx"),
    },
    fragments = ["cpp"],
    provides = [CcInfo],
    toolchains = use_cc_toolchain(),
)

def cuda_library(name, deps = [], **kwargs):
    """Compiles .cu files with nvcc; other targets use it like a cc_library.

    Left out by `bazel build //...` without --config=cuda.

    Args:
      name: of the target.
      deps: cc_library and cuda_library targets; the CUDA runtime is implied.
      **kwargs: srcs (.cu), hdrs (.h, .cuh), copts (for nvcc), alwayslink, and
        the attributes of every rule.
    """
    _cuda_library(
        name = name,
        target_compatible_with = CUDA_ONLY,
        deps = deps + ["@local_cuda//:cudart"],
        **kwargs
    )
