"""@local_cuda: the CUDA toolkit of this machine.

Looked for in this order: $CUDA_PATH, $CUDA_HOME, the nvcc on PATH,
/usr/local/cuda.  --repo_env=CUDA_PATH=none pretends that there is none.

Without a toolkit the same targets exist, and say so when something that is
built needs one of them.
"""

load(":system_library.bzl", "HEADER", "missing_text")

_TOOLKIT = """
# The toolkit's C headers: cuda_runtime.h, cublas_v2.h, cuda.h, ...
cc_library(
    name = "headers",
    hdrs = glob(
        ["include/**"],
        exclude = ["include/cccl/**", "include/nvtx3/**"],
    ),
    includes = ["include"],
)

cc_library(
    name = "cudart",
    linkopts = ["-L{lib}", "-lcudart_static", "-ldl", "-lrt", "-lpthread"],
    deps = [":headers"],
)

# Its headers. The library, too large to be carried along, is loaded when it is
# first used: common/device/cuda/blas/blas_library.h.
cc_library(
    name = "cublas",
    defines = ['D2L_CUDA_LIBRARY_FOLDER=\\\\"{lib}\\\\"'],
    linkopts = ["-ldl"],
    deps = [":headers"],
)
"""

_NVTX = """
cc_library(
    name = "nvtx",
    hdrs = glob(["include/nvtx3/**"]),
    linkopts = ["-ldl"],
    deps = [":headers"],
)
"""

# `bazel shutdown`, because Bazel looks at the system once per server.
_NOT_FOUND = "--config=cuda needs the CUDA toolkit, and no nvcc was found ({looked}): install it, or set CUDA_PATH to its folder, run `bazel shutdown` and build again; or build without --config=cuda."
_NO_CUDART = "The CUDA toolkit in {root} has no libcudart_static.a in {dirs}: install the rest of it, run `bazel shutdown` and build again; or build without --config=cuda."
_NO_PART = "The CUDA toolkit in {root} has no {part}: install it, run `bazel shutdown` and build again."

def _find_root(ctx):
    """Returns the toolkit's folder, or None, and a text on where it was looked for."""
    env = ctx.os.environ
    if env.get("CUDA_PATH") == "none":
        return None, "CUDA_PATH=none"
    nvcc = ctx.which("nvcc")
    candidates = [
        ("CUDA_PATH", env.get("CUDA_PATH")),
        ("CUDA_HOME", env.get("CUDA_HOME")),
        ("PATH", str(nvcc.realpath.dirname.dirname) if nvcc else None),
        ("/usr/local/cuda", "/usr/local/cuda"),
    ]
    looked = []
    for where, root in candidates:
        if root and ctx.path(root + "/bin/nvcc").exists:
            return root.rstrip("/"), None
        looked.append("%s=%s" % (where, root) if root and root != where else where)
    return None, "looked at " + ", ".join(looked)

def _host_problem(ctx, root, version):
    """Whether nvcc takes the gcc that it would call, from the check in its own header."""
    header = root + "/include/crt/host_config.h"
    if not ctx.path(header).exists:
        return ""
    marker = "#if __GNUC__ > "
    newest = [line[len(marker):].strip() for line in ctx.read(header).split("\n") if line.startswith(marker)]
    gcc = ctx.execute(["gcc", "-dumpversion"], environment = {"PATH": "/usr/local/bin:/usr/bin:/bin"})
    if gcc.return_code != 0 or not newest or not newest[0].isdigit():
        return ""
    newest = int(newest[0])
    have = gcc.stdout.strip().split(".")[0]
    if not have.isdigit() or int(have) <= newest:
        return ""

    # Names an installed one, or else the newest that nvcc takes.
    installed = [n for n in range(newest, 8, -1) if ctx.path("/usr/bin/g++-%d" % n).exists]
    use = installed[0] if installed else newest
    return "CUDA {version} takes gcc up to {newest}; found {have}. {install}et --//:cuda_ccbin=/usr/bin/g++-{use}.".format(
        have = have,
        install = "S" if installed else "Install g++-%d and s" % use,
        newest = newest,
        use = use,
        version = version,
    )

def _library_dir(ctx, dirs, file):
    found = [d for d in dirs if ctx.path(d + "/" + file).exists]
    return found[0] if found else None

def _describe(ctx, problem = "", host_problem = "", nvcc = "", version = ""):
    """Writes toolkit.bzl, which cuda.bzl loads."""
    ctx.file("toolkit.bzl", "TOOLKIT = struct(\n%s)\n" % "".join(["    %s = %s,  # %s\n" % (name, repr(value), what) for name, value, what in [
        ("problem", problem, "why there is no usable toolkit; empty if there is one"),
        ("host_problem", host_problem, "why nvcc rejects the system's gcc; empty if it does not"),
        ("nvcc", nvcc, "absolute path"),
        ("version", version, "what nvcc says of itself"),
    ]]))

def _cuda_configure_impl(ctx):
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)

    root, looked = _find_root(ctx)
    dirs = [root + d for d in ["/lib64", "/lib", "/targets/x86_64-linux/lib", "/targets/sbsa-linux/lib"]] if root else []
    lib = _library_dir(ctx, dirs, "libcudart_static.a")
    if not lib:
        problem = _NO_CUDART.format(root = root, dirs = ", ".join(dirs)) if root else _NOT_FOUND.format(looked = looked)
        _describe(ctx, problem = problem)
        ctx.file("BUILD", HEADER + "".join([
            missing_text(name, problem)
            for name in ["headers", "cudart", "cublas", "nvtx"]
        ]))
        return

    nvcc = root + "/bin/nvcc"
    version = "".join(ctx.execute([nvcc, "--version"]).stdout.strip().split("\n")[-1:])  # Build cuda_13.0.r13.0/...
    ctx.symlink(root + "/include", "include")
    _describe(
        ctx,
        host_problem = _host_problem(ctx, root, version.replace("Build cuda_", "").split(".r")[0]),
        nvcc = nvcc,
        version = version,
    )
    text = HEADER + _TOOLKIT.format(lib = lib)
    if ctx.path(root + "/include/nvtx3/nvToolsExt.h").exists:
        text += _NVTX
    else:
        text += missing_text("nvtx", _NO_PART.format(part = "NVTX", root = root))
    ctx.file("BUILD", text)

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    configure = True,
    environ = ["CUDA_HOME", "CUDA_PATH", "PATH"],
    local = True,
)
