"""read_by_tests: the files of a package that tests of other packages read."""

def read_by_tests(examples_but = []):
    """Defines :headers and :texts.

    Args:
      examples_but: headers whose examples nothing compiles.
    """

    # //common:examples_test has their examples.
    native.filegroup(
        name = "headers",
        srcs = native.glob(
            ["**/*.h"],
            exclude = examples_but,
        ),
        visibility = ["//common:__pkg__"],
    )

    # //chapters:texts_test looks for what they say, and its translation.
    native.filegroup(
        name = "texts",
        srcs = native.glob([
            "**/*.cc",
            "**/*.h",
        ]),
        visibility = ["//chapters:__pkg__"],
    )
