"""The requirements of every build: a place, a compiler, Bazel and libraries."""
import os
import re

from machine import _

BAZEL = "/usr/local/bin/bazel"
BAZEL_7 = "https://github.com/bazelbuild/bazel/releases/download/7.7.1/bazel-7.7.1-linux-"
PACKAGES = "third_party/debian-packages.txt"
# Libraries that Bazel 7 and later take from the system; they download the others.
PACKAGES_7 = ["libopenblas-dev", "pkg-config", "python3"]
# The build asks pkg-config for these (third_party/libraries.bzl), since a library need
# not be Debian's.
MODULES = {"libabsl-dev": "absl_strings", "libbenchmark-dev": "benchmark",
           "libgmock-dev": "gmock", "libgtest-dev": "gmock", "libhwy-dev": "libhwy",
           "libopenblas-dev": "openblas", "nlohmann-json3-dev": "nlohmann_json",
           "zlib1g-dev": "zlib", "libopenmpi-dev": "ompi-c"}
# Not needed to build lessons: for drawings of graphs, for the processes of cell 4.18, and
# for //:book.
OPTIONAL = {"graphviz", "libopenmpi-dev", "openmpi-bin", "python3-jinja2",
            "python3-markdown", "python3-pygments"}


def check_place(m):
    path = m.shown(m.repository)
    why = ""
    if " " in path:
        why = _("Bazel refuses a path with a space in it. Move the checkout, for example:")
    elif not path.isascii():
        why = _("Bazel cannot work in a path with letters other than English ones. Move the "
                "checkout, for example:")
    if why:
        name = re.sub(r"[^\w.-]", "_", os.path.basename(path), flags=re.ASCII).strip("_") or "d2l"
        to = "/var/tmp/" + name if not m.env.get("HOME", "").isascii() else "~/" + name
        m.fact("checkout", "wrong", path, why, "mv '%s' %s && cd %s" % (path, to, to), gpu=False)
    home = m.env.get("HOME", "")
    if not home.isascii():  # Bazel's outputs are in ~/.cache
        rc = ".bazelrc.user"
        m.fact("home", "wrong", home, _(
            "Bazel cannot write below a home with letters other than English ones. Let it write "
            "elsewhere:"), "echo 'startup --output_user_root=/var/tmp/bazel' >> " + rc, gpu=False)


def check_compiler(m):
    """Returns the packages that are missing."""
    name = m.env.get("CC") or "gcc"
    path = m.which(name)
    if not path and m.env.get("CC"):
        m.fact("compiler", "missing", _("CC={} is no program here").format(name),
               _("There is no compiler {}, which CC asks for.").format(name), "unset CC", gpu=False)
        return []
    # Bazel calls it for C++, too. Without the package g++ it only compiles C.
    if not path or m.ask(path, "-x", "c++", "-fsyntax-only", "-include", "vector",
                         "/dev/null")[0] != 0:
        m.fact("compiler", "missing", _("none for C++ ({})").format(m.shown(path)) if path else
               _("none for C++ (no gcc on PATH)"))
        return ["g++"]
    version = m.ask(path, "-dumpfullversion")[1] or m.ask(path, "-dumpversion")[1]
    m.fact("compiler", "ok", "%s %s (%s)" % (name, version, m.shown(path)))
    return []


def check_bazel(m):
    """Returns the packages that are missing, and whether Bazel downloads libraries."""
    install = "{0}wget -O {1} {2}{3} && {0}chmod +x {1}".format(
        m.sudo, BAZEL, BAZEL_7, "arm64" if m.arm else "x86_64")
    path = m.which("bazel")
    if not path:
        m.fact("Bazel", "missing", _("none on PATH"))
        if m.os_id == "debian":
            return ["bazel-bootstrap"], False
        m.add(_("There is no Bazel."), install)
        return [], True
    said = m.ask(path, "--version")[1].split("\n")[0]
    version = re.sub("^bazel ", "", said)
    if version == "no_version":  # the answer of Debian's build
        code, version = m.ask("dpkg-query", "--show", "--showformat=${Version}", "bazel-bootstrap")
        version = re.split("[+-]", version)[0] if code == 0 else ""
    if re.match(r"(4\.2|[789])\.", version):
        m.fact("Bazel", "ok", "%s (%s)" % (version, m.shown(path)))
        return [], not version.startswith("4.")
    known = version[:1].isdigit()
    m.fact("Bazel", "wrong", "%s (%s)" % (version, m.shown(path)) if known else
           _("of unknown version ({}): {}").format(m.shown(path), said or _("it says nothing")))
    why = _("Bazel {} will not do. The course is built with Bazel 4.2.3, which Debian 12 has, "
            "or 7 to 9.").format(version) if known else _(
                "Bazel does not say its version. The course is built with Bazel 4.2.3, which "
                "Debian 12 has, or 7 to 9.")
    asked = m.env.get("USE_BAZEL_VERSION")
    hidden = m.has_package("bazel-bootstrap") and m.shown(path) != "/usr/bin/bazel"
    with open(path, "rb") as program:
        bazelisk = b"bazelbuild/bazelisk" in program.read()
    if bazelisk:
        m.add(why, "export USE_BAZEL_VERSION=7.7.1")
    elif asked:
        m.add(_("{} USE_BAZEL_VERSION asks for {}.").format(why, asked), "unset USE_BAZEL_VERSION")
    elif hidden:
        m.add(_("{} Debian's is there, but comes later on PATH.").format(why),
              "alias bazel=/usr/bin/bazel")
    else:
        m.add(why, install)
    return [], bazelisk or not (asked or hidden)


def has_library(m, package):
    if package in ("git", "pkg-config", "python3"):
        return m.which(package)
    if package in MODULES and m.which("pkg-config"):
        return m.ask("pkg-config", "--exists", MODULES[package])[0] == 0
    return m.has_package(package)


def check(m):
    """Prints what a build needs, and adds what is missing to what is to be done.

    Returns the optional packages that are missing, if they are all that is.
    """
    check_place(m)
    missing = check_compiler(m)
    more, downloaded = check_bazel(m)
    m.fact("glibc", "", m.ask("getconf", "GNU_LIBC_VERSION")[1].replace("glibc ", ""))
    packages = PACKAGES_7
    text = _("{}; Bazel downloads the others").format(" ".join(packages))
    if not downloaded:
        with open(os.path.join(m.repository, PACKAGES)) as file:
            packages = [line.strip() for line in file if not line.startswith("#")]
        text = _("all of {}").format(PACKAGES)
    absent = [p for p in packages
              if p not in ("g++", "bazel-bootstrap") and not has_library(m, p)]
    needed = [p for p in absent if p not in OPTIONAL]
    m.fact("libraries", "missing" if needed else "ok",
           _("no {}").format(" ".join(absent)) if absent else text)
    missing += more + needed
    if not missing:
        return absent
    missing += [p for p in absent if p in OPTIONAL]
    if m.which("apt-get"):
        m.add(_("Packages are missing: {}.").format(" ".join(missing)),
              m.apt_get(*missing) + m.shutdown)
    else:
        m.add(_("Install what Debian calls {}; this system has its own names.").format(
            " ".join(missing)))
    return []


def add_optional(m, packages):
    m.add(_("The lessons run without {}; drawings of graphs, the processes of cell 4.18 and "
            "//:book need them.").format(" ".join(packages)), m.apt_get(*packages) + m.shutdown)
