"""fuzz_test: a libFuzzer target, built with --config=fuzz only."""

load("@rules_cc//cc:defs.bzl", "cc_test")

_FUZZ_ONLY = select({
    "//:use_fuzz": [],
    "//conditions:default": ["//third_party:never"],
})

def fuzz_test(name, tags = [], args = [], **kwargs):
    """A cc_test whose source defines LLVMFuzzerTestOneInput.

    `bazel test --config=fuzz //...` fuzzes each for 30 seconds; to go on
    longer, and to keep what is found:
    `bazel run --config=fuzz //pkg:name -- -max_total_time=3600 /tmp/corpus`.

    Args:
      name: of the target.
      tags: besides "fuzz".
      args: more flags for libFuzzer.
      **kwargs: for cc_test.
    """
    cc_test(
        name = name,
        args = ["-max_total_time=30"] + args,
        linkopts = ["-fsanitize=fuzzer"],
        linkstatic = True,
        tags = tags + ["fuzz"],
        target_compatible_with = _FUZZ_ONLY,
        **kwargs
    )
