"""Stand-ins for the three repositories Bazel 4 would download on its own.

`bazel build` of any C++ target makes Bazel 4 load @rules_cc and @rules_java,
`bazel test` also @remote_coverage_tools.  The rules themselves are built into
Bazel 4, so a few re-exports are all that is needed.
"""

_FILES = {
    "rules_cc": {
        "cc/defs.bzl": """
cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
""",
        "cc/builtins.bzl": "builtins = struct(cc_common = cc_common, CcInfo = CcInfo)\n",
        "cc/common/cc_common.bzl": "load(\"//cc:builtins.bzl\", \"builtins\")\ncc_common = builtins.cc_common\n",
        "cc/common/cc_info.bzl": "load(\"//cc:builtins.bzl\", \"builtins\")\nCcInfo = builtins.CcInfo\n",
        "cc/find_cc_toolchain.bzl": """
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def find_cc_toolchain(ctx):
    return find_cpp_toolchain(ctx)

def use_cc_toolchain(mandatory = False):
    return ["@bazel_tools//tools/cpp:toolchain_type"]
""",
        "cc/BUILD": """
alias(
    name = "current_cc_toolchain",
    actual = "@bazel_tools//tools/cpp:current_cc_toolchain",
    visibility = ["//visibility:public"],
)
""",
        "cc/common/BUILD": "",
    },
    "rules_java": {
        "java/defs.bzl": """
java_binary = native.java_binary
java_import = native.java_import
java_library = native.java_library
java_runtime = native.java_runtime
java_test = native.java_test
java_toolchain = native.java_toolchain
""",
        "java/BUILD": "",
    },
    "remote_coverage_tools": {
        "BUILD": """
package(default_visibility = ["//visibility:public"])

filegroup(name = "coverage_report_generator")

filegroup(name = "lcov_merger")
""",
    },
}

def _stand_in_impl(ctx):
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    for path, text in _FILES[ctx.name].items():
        ctx.file(path, text)

_stand_in = repository_rule(implementation = _stand_in_impl)

def bazel4_stand_ins():
    # native.bazel_version is empty in Debian's builds; look for an API that
    # came after Bazel 4 instead.
    if hasattr(config_common, "toolchain_type"):
        return
    for name in _FILES:
        _stand_in(name = name)
