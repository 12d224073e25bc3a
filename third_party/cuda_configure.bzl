"""@local_cuda: the CUDA toolkit of this machine.

Looked for in this order: $CUDA_PATH, $CUDA_HOME, the nvcc on PATH,
/usr/local/cuda; the first that is complete is used.  Debian's and Ubuntu's own
package is complete in /usr.  --repo_env=CUDA_PATH=none pretends that there is none.

Without a toolkit the same targets exist, and say so when something that is
built needs one of them.
"""

load(":system_library.bzl", "HEADER", "missing_text")

_TOOLKIT = """
# The toolkit's C headers: cuda_runtime.h, cublas_v2.h, cuda.h, ... There are none in
# this folder if they are in /usr/include, where the compiler finds them by itself.
cc_library(
    name = "headers",
    hdrs = glob(
        ["include/**"],
        allow_empty = True,
        exclude = ["include/cccl/**", "include/nvtx3/**"],
    ),
    includes = ["include"],
)

# The runtime; with --config=ptx, what stands in for it.
cc_library(
    name = "cudart",
    linkopts = select({{
        "{use_ptx}": [],
        "//conditions:default": ["-L{lib}", "-lcudart_static", "-ldl", "-lrt", "-lpthread"],
    }}),
    deps = [":headers"] + select({{
        "{use_ptx}": ["{ptx_cudart}"],
        "//conditions:default": [],
    }}),
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
    hdrs = glob(["include/nvtx3/**"], allow_empty = True),
    linkopts = ["-ldl"],
    deps = [":headers"],
)
"""

# `bazel shutdown`, because Bazel looks at the system once per server.
_NOT_FOUND = "--config=cuda needs the CUDA toolkit, and no nvcc was found ({looked}): install it, or set CUDA_PATH to its folder, run `bazel shutdown` and build again; or build without --config=cuda."
_NO_CUDART = "The CUDA toolkit in {root} has no libcudart_static.a in {dirs}: install the rest of it, run `bazel shutdown` and build again; or build without --config=cuda."
_TOO_OLD = "The CUDA toolkit in {root} is {version}, and this needs CUDA 12.0 or newer: install that, run `bazel shutdown` and build again; or build without --config=cuda."
_NO_PART = "The CUDA toolkit in {root} has no {part}: install it, run `bazel shutdown` and build again."

def _find_root(ctx):
    """Returns the toolkit's folder, or None, and a text on where it was looked for.

    A folder without libcudart_static.a is returned only if no other has it.
    """
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
    looked, found = [], []
    for where, root in candidates:
        if root and ctx.path(root + "/bin/nvcc").exists:
            found.append(root.rstrip("/"))
        looked.append("%s=%s" % (where, root) if root and root != where else where)
    complete = [root for root in found if _library_dir(ctx, _library_dirs(root))]
    if found:
        return (complete + found)[0], None
    return None, "looked at " + ", ".join(looked)

def _library_dirs(root):
    return [root + d for d in [
        "/lib64",
        "/lib",
        "/targets/x86_64-linux/lib",
        "/targets/sbsa-linux/lib",
        "/lib/x86_64-linux-gnu",
        "/lib/aarch64-linux-gnu",
    ]]

def _library_dir(ctx, dirs):
    found = [d for d in dirs if ctx.path(d + "/libcudart_static.a").exists]
    return found[0] if found else None

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
    dirs = _library_dirs(root) if root else []
    lib = _library_dir(ctx, dirs)
    nvcc = root + "/bin/nvcc" if root else ""

    # Build cuda_13.0.r13.0/...
    version = "".join(ctx.execute([nvcc, "--version"]).stdout.strip().split("\n")[-1:]) if lib else ""
    number = version.replace("Build cuda_", "").split(".r")[0]
    problem = ""
    if not root:
        problem = _NOT_FOUND.format(looked = looked)
    elif not lib:
        problem = _NO_CUDART.format(root = root, dirs = ", ".join(dirs))
    elif number.split(".")[0].isdigit() and int(number.split(".")[0]) < 12:
        problem = _TOO_OLD.format(root = root, version = number)
    if problem:
        _describe(ctx, problem = problem)
        ctx.file("BUILD", HEADER + "".join([
            missing_text(name, problem)
            for name in ["headers", "cudart", "cublas", "nvtx"]
        ]))
        return

    if root != "/usr":
        ctx.symlink(root + "/include", "include")
    _describe(
        ctx,
        host_problem = _host_problem(ctx, root, number),
        nvcc = nvcc,
        version = version,
    )
    text = HEADER + _TOOLKIT.format(
        lib = lib,
        # In the main repository, also when this text is in another.
        ptx_cudart = "@//tests/ptx:linked_cudart",
        use_ptx = "@//:use_ptx",
    )
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
