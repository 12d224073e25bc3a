#!/usr/bin/env python3
"""Writes compile_commands.json, for clangd and clang-tidy.

Usage: tools/compile_commands.py [flags for bazel, e.g. --config=cuda]

Asks `bazel aquery` how each C++ source is compiled; builds nothing.
"""
import json
import os
import shutil
import subprocess
import sys

# What Bazel gives to gcc and clang does not know.
GCC_ONLY = {
    "-fno-canonical-system-headers",
    "-Wno-free-nonheap-object",
    "-Wunused-but-set-parameter",
}


def bazel(*args):
    return subprocess.run(("bazel",) + args, check=True, stdout=subprocess.PIPE, text=True).stdout


def main():
    if not shutil.which("bazel"):
        sys.exit("bazel is not on PATH.")
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    root = os.getcwd()
    external = bazel("info", "output_base").strip() + "/external/"
    graph = json.loads(bazel(
        "aquery", "--output=jsonproto", "--include_artifacts=false", *sys.argv[1:],
        'mnemonic("CppCompile", //...)'))

    commands = {}
    for action in graph.get("actions", []):
        arguments = [a for a in action["arguments"] if a not in GCC_ONLY]
        if "-c" not in arguments:
            continue
        source = arguments[arguments.index("-c") + 1]
        # Paths are relative to a folder that Bazel makes for the build.  In the
        # repository, bazel-out is a link to the same place; external/ is not there.
        arguments = [
            external + a[len("external/"):] if a.startswith("external/") else a
            for a in arguments
        ]
        # A library may be compiled twice, with and without -fPIC; one is enough.
        if os.path.exists(source):
            commands[source] = {"directory": root, "file": source, "arguments": arguments}

    with open("compile_commands.json", "w", encoding="utf-8") as f:
        json.dump([commands[source] for source in sorted(commands)], f, indent=1)
    print("compile_commands.json: %d files" % len(commands))


if __name__ == "__main__":
    main()
