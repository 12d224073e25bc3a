"""Libraries of the system, under the labels that their own projects use.

system_library asks pkg-config for the flags of each target and writes one
cc_library for it.  Headers in /usr/include are on the compiler's own path, so
they need no -I, and Bazel takes them for part of the compiler.  It does not see
them change: `bazel clean` after an upgrade of such a package.  Other folders
that pkg-config names are linked into the repository.
"""

# The beginning of a BUILD file.
HEADER = """load("@rules_cc//cc:defs.bzl", "cc_library")
load("@d2l//third_party:missing.bzl", "missing_library")

package(default_visibility = ["//visibility:public"])
"""

_LIBRARY = """
cc_library(
    name = {name},
    hdrs = glob({hdrs}),
    defines = {defines},
    includes = {includes},
    linkopts = {linkopts},
)
"""

def missing_text(name, message):
    """A missing_library (missing.bzl), as text."""
    return "\nmissing_library(\n    name = %s,\n    message = %s,\n)\n" % (repr(name), repr(message))

# `bazel shutdown`, because Bazel looks at the system once per server.
_NO_MODULE = "{label} is made of pkg-config's {module}, which this machine lacks: run `sudo apt-get install {package} && bazel shutdown`, then build again."
_NO_MODULE_BUT_OTHERS = "{label} is made of pkg-config's {module}, which this machine's {package} does not have: it is too old or too new for it."
_NO_PKG_CONFIG = "pkg-config is missing: run `sudo apt-get install pkg-config {package} && bazel shutdown`, then build again."

def _flags(ctx, pkg_config, module):
    """The flags that pkg-config has for a module; None if it does not know it."""
    if _static(ctx) and ctx.attr.shared_only:
        return None
    static = ["--static"] if _static(ctx) else []
    result = ctx.execute([pkg_config, "--cflags", "--libs"] + static + [module])
    if result.return_code != 0:
        return None
    return [f for f in result.stdout.strip().split(" ") if f]

def _includes(ctx, flags):
    """The folders of headers, linked into the repository."""
    paths = [f[2:] for f in flags if f.startswith("-I") and not f.startswith("-I/usr/include")]
    for i, path in enumerate(paths):
        if not ctx.path("include%d" % i).exists:
            ctx.symlink(path, "include%d" % i)
    return ["include%d" % i for i in range(len(paths))]

def _static(ctx):
    return ctx.os.environ.get("D2L_STATIC_LIBS", "0") == "1"

def _archive(ctx, flag):
    """-lfoo as -l:libfoo.a, if there is such an archive and it is not the compiler's own."""
    name = flag[2:]
    if not flag.startswith("-l") or name in ["atomic", "dl", "gfortran", "m", "pthread", "quadmath", "rt"]:
        return flag
    archive = "lib%s.a" % name
    found = ctx.execute(["gcc", "-print-file-name=" + archive]).stdout.strip()
    return "-l:" + archive if found.startswith("/") else flag

def _system_library_impl(ctx):
    # Bzlmod calls @openblas something like _main~system~openblas.
    name_in_labels = ctx.name.replace("+", "~").split("~")[-1]
    pkg_config = ctx.which("pkg-config")
    found = {}
    for label, module in ctx.attr.targets.items():
        # "benchmark -lbenchmark_main": a module, then flags before its own.
        words = module.split(" ")
        flags = _flags(ctx, pkg_config, words[0]) if pkg_config else None
        if flags != None:
            found[label] = words[1:] + flags

    # For BUILD files with an alternative: load("@openmpi//:found.bzl", "FOUND").
    ctx.file("found.bzl", "FOUND = %s\n" % (len(found) == len(ctx.attr.targets)))
    files = {}
    for label, module in ctx.attr.targets.items():
        package, name = label.split(":")
        if label in found:
            links = [f for f in found[label] if f[:2] in ["-l", "-L"] or f.startswith("-Wl,")]
            if _static(ctx):
                links = [_archive(ctx, f) for f in links]
            includes = _includes(ctx, found[label])
            text = _LIBRARY.format(
                hdrs = repr([i + "/**" for i in includes]),
                includes = repr(includes),
                # NOMINMAX is for Windows, and noise in every command line.
                defines = repr([f[2:] for f in found[label] if f.startswith("-D") and f != "-DNOMINMAX"]),
                linkopts = repr(links),
                name = repr(name),
            )
        else:
            message = _NO_MODULE
            if not pkg_config:
                message = _NO_PKG_CONFIG
            elif found:
                message = _NO_MODULE_BUT_OTHERS
            text = missing_text(name, message.format(
                label = "@%s//%s" % (name_in_labels, label),
                module = module.split(" ")[0],
                package = ctx.attr.debian_package,
            ))
        files.setdefault(package, [HEADER]).append(text)

    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    for package, texts in files.items():
        ctx.file((package + "/" if package else "") + "BUILD", "".join(texts))

system_library = repository_rule(
    implementation = _system_library_impl,
    attrs = {
        "debian_package": attr.string(mandatory = True, doc = "what to install"),
        "shared_only": attr.bool(doc = "whether it counts as missing with --config=static"),
        "targets": attr.string_dict(mandatory = True, doc = "package:target -> pkg-config module"),
    },
    configure = True,
    environ = ["D2L_STATIC_LIBS", "PATH", "PKG_CONFIG_PATH"],
    local = True,
)
