"""d2l_exercises: the targets of a chapter's exercises."""

load("//common/kernels/cuda:check.bzl", "CHECKABLE", "COUNT_COPTS", "EMULATION_COPTS", "emulated_source")
load("//third_party:cc.bzl", "cc_binary", "cc_library", "cc_test")
load("//third_party:cuda.bzl", "cuda_library", "if_cuda")

# The includes of most exercises and judges.
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

# An unfinished exercise does not use most of its arguments. A function that
# forgets its result is an error: it could return anything.
_COPTS = [
    "-Werror=return-type",
    "-Wno-unused-but-set-variable",
    "-Wno-unused-function",
    "-Wno-unused-parameter",
    "-Wno-unused-variable",
]

# A learner's assert holds in every build.
_KERNEL_COPTS = _COPTS + EMULATION_COPTS + COUNT_COPTS + ["-UNDEBUG"]

_KERNEL_DEPS = [
    "//common/exercise:kernels",
    "//common/kernels/cuda:check_hooks",
]

# Compiles the kernel for a GPU; returns deps for the linking target.
def _for_gpu(name, src):
    cuda_library(
        name = name,
        srcs = [src],
        # Half-done answers leave arguments unused, here as above.
        copts = ["-diag-suppress=177"] + ["-Xcompiler=" + copt for copt in _COPTS],
        tags = ["manual"],
        deps = _KERNEL_DEPS[:1] + ["//common/exercise/cuda:gpu_run"],
        alwayslink = True,
    )
    return if_cuda([":" + name])

def _exercise(name, suffix, deps, copts, compatible_with):
    own_on_gpu, solution_on_gpu = [], []
    src, quoted = name + suffix, []
    in_one_file = [folder + "/" + name + suffix for folder in ["solutions", "mistakes"]]

    # The types that the function needs.
    types = native.glob(["judges/%s.h" % name], allow_empty = True)
    if suffix == ".cc":
        # The test has a judge of its own: compiled with the answers, it costs little.
        in_one_file.append("judges/%s.cc" % name)
        answers_srcs, answers_deps = types, []
    else:
        answers_srcs, answers_deps = [], [":%s_judge" % name]
        src = "emulated/" + src
        emulated_source(name + "_emulated", name + suffix, src)
        cc_library(
            name = name + "_source",
            # The compiler quotes lines of it.
            textual_hdrs = [name + suffix],
        )
        quoted = [":%s_source" % name]
        own_on_gpu = _for_gpu(name + "_for_gpu", name + suffix)
        solution_on_gpu = _for_gpu(name + "_solution_for_gpu", "solutions/" + name + suffix)
    native.genrule(
        name = name + "_in_one_file",
        srcs = in_one_file,
        outs = ["answers/" + name + suffix],
        cmd = "python3 -B $(location //tools:answers.py) $(SRCS) > $@",
        tools = ["//tools:answers.py"],
    )
    cc_library(
        name = name + "_judge",
        srcs = ["judges/%s.cc" % name],
        hdrs = types,
        deps = deps,
        # No code refers to it by name: it registers itself.
        alwayslink = True,
    )
    cc_binary(
        name = name,
        srcs = [src],
        copts = copts,
        tags = ["manual"],
        target_compatible_with = compatible_with,
        deps = deps + quoted + [
            ":%s_judge" % name,
            "//common/exercise:exercise_main",
        ] + own_on_gpu,
    )
    cc_library(
        name = name + "_answers",
        testonly = True,
        srcs = ["answers/" + name + suffix] + answers_srcs,
        copts = copts,
        target_compatible_with = compatible_with,
        deps = deps + answers_deps + solution_on_gpu,
        alwayslink = True,
    )

# For tools/mutants.py, which writes the file: a program of the solution's mutants.
def _mutants(name, suffix, deps, copts):
    src = "mutants/" + name + suffix
    if not native.glob([src], allow_empty = True):
        return
    if suffix == ".cu":
        emulated_source(name + "_mutants_emulated", src, "emulated/" + src)
        src = "emulated/" + src
    cc_binary(
        name = name + "_mutants",
        testonly = True,
        srcs = [src],
        copts = copts,
        tags = ["manual"],
        deps = deps + [":%s_judge" % name, "//common/exercise:mutants_main"],
    )

def _exercises_test(name, exercises, compatible_with = []):
    cc_test(
        name = name,
        size = "medium",
        target_compatible_with = compatible_with,
        deps = ["//common/exercise:exercises_test_main"] +
               [":%s_answers" % exercise for exercise in exercises],
    )

def d2l_exercises(name, exercises, kernels = []):
    """A chapter's exercises.

    For each exercise NAME there are NAME.cc, which learners change,
    judges/NAME.cc, solutions/NAME.cc, of which the untouched exercise is made,
    and mistakes/NAME.cc. Makes the program NAME, which judges the learner's
    answer, and a test that judges the rest. The program is
    tagged manual: half-done exercises must not break `bazel test //...`.

    Args:
      name: of the test, without "_test"; the kernels' is kernels_test.
      exercises: a dictionary; for each exercise its deps besides the usual.
      kernels: exercises that are CUDA kernels: all but the judge is NAME.cu,
        compiled for the check of kernels, and with --config=cuda for a GPU.
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
        _exercise(exercise, ".cc", _DEPS + deps, _COPTS, [])
        _mutants(exercise, ".cc", _DEPS + deps, _COPTS)
    _exercises_test(name + "_test", exercises)
    for exercise in kernels:
        _exercise(exercise, ".cu", _DEPS + _KERNEL_DEPS, _KERNEL_COPTS, CHECKABLE)
        _mutants(exercise, ".cu", _DEPS + _KERNEL_DEPS, _KERNEL_COPTS)
    if kernels:
        _exercises_test("kernels_test", kernels, CHECKABLE)
