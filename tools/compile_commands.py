#!/usr/bin/env python3
"""Writes compile_commands.json, for clangd and clang-tidy.

Usage: tools/compile_commands.py [flags for bazel, e.g. --config=cuda]

Asks `bazel aquery` how each C++ source is compiled; builds nothing.
"""
import json
import os
import re
import shutil
import subprocess
import sys

# Flags that Bazel passes to gcc and that clang does not know, or does without.
GCC_ONLY = {
    "--include=third_party/precompiled.h",
    "-fno-canonical-system-headers",
    "-Wno-free-nonheap-object",
    "-Wunused-but-set-parameter",
}


def bazel(*args):
    """Bazel's output. If it fails, it has printed the reason on stderr."""
    done = subprocess.run(("bazel",) + args, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit("compile_commands.py: `bazel %s` failed; nothing is written." % " ".join(args))
    return done.stdout


def commands(graph, root, external):
    """The compilation database of aquery's answer: one entry for each source."""
    found = {}
    for action in graph.get("actions", []):
        arguments = [a for a in action["arguments"] if a not in GCC_ONLY]
        if "-c" not in arguments:
            continue
        source = arguments[arguments.index("-c") + 1]
        # Kernels of exercises are compiled from a copy: check.bzl, emulated_source.
        edited = re.sub(r"^bazel-out/[^/]+/bin/(.*/)emulated/", r"\1", source)
        arguments = [edited if a == source else a for a in arguments]
        source = edited
        # Paths are relative to a folder that Bazel makes for the build.  In the
        # repository, bazel-out is a link to the same place; external/ is not there.
        arguments = [
            external + a[len("external/"):] if a.startswith("external/") else a
            for a in arguments
        ]
        # A library may be compiled twice, with and without -fPIC; one is enough.
        if os.path.exists(os.path.join(root, source)):
            found[source] = {"directory": root, "file": source, "arguments": arguments}
    return [found[source] for source in sorted(found)]


def main():
    flags = sys.argv[1:]
    if "-h" in flags or "--help" in flags:
        print(__doc__.strip())
        return
    for flag in flags:
        if not flag.startswith("-"):
            sys.exit("compile_commands.py: %s is not a flag for bazel; see --help." % flag)
    if not shutil.which("bazel"):
        sys.exit("compile_commands.py: bazel is not on PATH.")
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    graph = json.loads(bazel(
        "aquery", "--output=jsonproto", "--include_artifacts=false", *flags,
        'mnemonic("CppCompile", //...)'))
    entries = commands(graph, os.getcwd(), bazel("info", "output_base").strip() + "/external/")
    with open("compile_commands.json", "w", encoding="utf-8") as f:
        json.dump(entries, f, indent=1)
    print("compile_commands.json: %d files" % len(entries))


if __name__ == "__main__":
    main()
