"""d2l_exercises: the targets of a chapter's exercises."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")

# What most exercises and judges include.
_DEPS = [
    "//common/base",
    "//common/device",
    "//common/device:device_table",
    "//common/exercise",
    "//common/exercise:probes",
    "//common/lesson:cell",
    "//common/ops",
    "//common/tensor",
    "@com_google_absl//absl/strings",
    "@com_google_absl//absl/strings:str_format",
]

# An exercise that is not done uses little of what it is given.
_COPTS = [
    "-Wno-unused-but-set-variable",
    "-Wno-unused-function",
    "-Wno-unused-parameter",
    "-Wno-unused-variable",
]

def d2l_exercises(name, exercises):
    """A chapter's exercises.

    For each exercise NAME there are NAME.cc, which learners change,
    judges/NAME.cc, solutions/NAME.cc, of which the untouched exercise is made,
    and mistakes/NAME.cc. Makes the program NAME, which judges the learner's
    answer, and the test NAME_test, which judges the rest. The program is
    tagged manual: half-done exercises must not break `bazel test //...`.

    Args:
      name: of the test, without "_test".
      exercises: a dictionary; for each exercise its deps besides the usual.
    """
    native.filegroup(
        name = "texts",
        srcs = native.glob(["*.md"]) + native.glob([
            "judges/*",
            "mistakes/*",
            "solutions/*",
        ], allow_empty = True),
        visibility = ["//:__subpackages__"],
    )

    for exercise, deps in exercises.items():
        native.genrule(
            name = exercise + "_untouched",
            srcs = ["solutions/%s.cc" % exercise],
            outs = ["untouched/%s.cc" % exercise],
            cmd = "python3 -B $(location //tools:untouched.py) $< > $@",
            tools = ["//tools:untouched.py"],
        )
        cc_library(
            name = exercise + "_judge",
            srcs = ["judges/%s.cc" % exercise],
            # The types that the function needs.
            hdrs = native.glob(["judges/%s.h" % exercise], allow_empty = True),
            deps = _DEPS + deps,
            # Nothing refers to it by name: it registers itself.
            alwayslink = True,
        )
        cc_binary(
            name = exercise,
            srcs = [exercise + ".cc"],
            copts = _COPTS,
            tags = ["manual"],
            deps = _DEPS + deps + [
                ":%s_judge" % exercise,
                "//common/exercise:exercise_main",
            ],
        )
        cc_library(
            name = exercise + "_answers",
            testonly = True,
            srcs = [
                "mistakes/%s.cc" % exercise,
                "solutions/%s.cc" % exercise,
                "untouched/%s.cc" % exercise,
            ],
            copts = _COPTS,
            deps = _DEPS + deps + [":%s_judge" % exercise],
            alwayslink = True,
        )
    cc_test(
        name = name + "_test",
        size = "medium",
        deps = ["//common/exercise:exercises_test_main"] +
               [":%s_answers" % exercise for exercise in exercises] +
               [":%s_judge" % exercise for exercise in exercises],
    )
