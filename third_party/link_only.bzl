"""link_only: a library that is linked in, but gives its users no headers."""

load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

def _impl(ctx):
    merged = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps])
    return [
        DefaultInfo(),
        CcInfo(linking_context = merged.linking_context),
    ]

# Bazel compiles a file again when the headers that it could include change. If
# link_only wraps the implementations of a header, choosing another one only
# links again.
link_only = rule(
    implementation = _impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
    provides = [CcInfo],
)
