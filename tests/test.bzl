"""d2l_test: a test whose cases other programs can hold, too."""

load("//third_party:cc.bzl", "cc_library", "cc_test")

def _cases(name, **kwargs):
    cc_library(
        name = name + "_cases",
        testonly = True,
        # Nothing refers to the cases by name, so a linker would leave out a
        # shared library of them, or the unneeded parts of an archive.
        linkstatic = True,
        visibility = ["//tests:__pkg__"],
        alwayslink = True,
        **kwargs
    )

def d2l_test(
        name,
        srcs,
        deps = [],
        copts = [],
        main = "@com_google_googletest//:gtest_main",
        target_compatible_with = [],
        **kwargs):
    """A cc_test whose cases are also a part of //tests:all_tests.

    Makes NAME, the test, and NAME_cases, a library that registers its cases in
    whatever program it is linked into. A machine without Bazel runs all of
    them as one program, which is as large as one test.

    Args:
      name: of the test.
      srcs: of the cases, without main.
      deps: of the cases.
      copts: of the cases.
      main: a library with the main function.
      target_compatible_with: of both.
      **kwargs: of the test: size, data, …
    """
    _cases(
        name = name,
        srcs = srcs,
        copts = copts,
        target_compatible_with = target_compatible_with,
        deps = deps,
    )
    cc_test(
        name = name,
        target_compatible_with = target_compatible_with,
        deps = [
            ":" + name + "_cases",
            main,
        ],
        **kwargs
    )
