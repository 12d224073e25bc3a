"""d2l_chapter: the targets of a chapter. d2l_lesson: those of one lesson.cc."""

load("//chapters:chapters.bzl", "CHAPTERS")
load("//third_party:cc.bzl", "cc_binary", "cc_library", "cc_test")

# The includes of most lessons.
_DEPS = [
    "//common:d2l",
    "//common/base",
    "//common/lesson:host_library",
    "@com_google_absl//absl/status",
    "@com_google_absl//absl/status:statusor",
    "@com_google_absl//absl/strings",
    "@com_google_absl//absl/strings:str_format",
]

def d2l_chapter(
        name,
        more_srcs = [],
        shown_srcs = [],
        deps = [],
        runs = ["--devices=cpu:0", "--devices=cpu:0,cpu:1,cpu:2"],
        differences = [],
        test_size = "medium"):
    """A chapter: its lesson, its benchmarks and the test of both.

    Makes what d2l_lesson makes of lesson.cc; benchmarks, the program that times
    what its sources register (cell/benchmark.h); and NAME_test, which has the
    tests of every chapter (testing/chapter_tests.cc) and those of
    lesson_test.cc, if there is one.

    Args:
      name: of the lesson's program; "lesson" in every chapter.
      more_srcs: as d2l_lesson's.
      shown_srcs: as d2l_lesson's.
      deps: of the lesson, besides the usual.
      runs: the flags of the test's runs, separated by spaces.
      differences: TestedLesson::differences.
      test_size: of the test.
    """
    chapter = native.package_name().split("/")[-1]
    chapters = CHAPTERS.keys()
    d2l_lesson(
        name = name,
        src = "lesson.cc",
        chapter = chapter,
        devices = CHAPTERS.get(chapter, 1),
        more_srcs = more_srcs,
        # A chapter that is not listed comes last.
        number = 1 + (chapters.index(chapter) if chapter in chapters else len(chapters)),
        shown_srcs = shown_srcs,
        visibility = [
            "//:__pkg__",
            "//tests:__pkg__",
        ],
        deps = deps + _DEPS,
    )
    cc_binary(
        name = "benchmarks",
        testonly = True,
        visibility = ["//chapters:__pkg__"],
        deps = [
            ":%s_cells" % name,
            "//common/lesson:benchmark_main",
        ],
    )
    cc_test(
        name = name + "_test",
        size = test_size,
        srcs = native.glob(["lesson_test.cc"]),
        data = ["lesson.cc"] + more_srcs + shown_srcs + [
            ":benchmarks",
            ":" + name,
            "//chapters:cells.json",
        ],
        # For common/lesson/testing/lesson_testing.h.
        env = {
            "D2L_CHAPTER": chapter,
            "D2L_RUNS": ";".join(runs),
            "D2L_DIFFERENCES": ";".join(differences),
        },
        deps = [
            "//common/base",
            "//common/lesson:chapter_tests",
            "//common/lesson:lesson_testing",
            "@com_google_absl//absl/strings",
            "@com_google_googletest//:gtest_main",
            "@nlohmann_json//:json",
        ],
    )

    # For the list of cells, in //chapters.
    native.exports_files(
        ["lesson.md"],
        visibility = ["//chapters:__pkg__"],
    )

def d2l_lesson(
        name,
        src,
        chapter,
        number,
        devices,
        more_srcs = [],
        shown_srcs = [],
        deps = [],
        visibility = None,
        **kwargs):
    """A lesson, to be run alone or with the others.

    Makes NAME, the program, and NAME_cells, a library that registers the
    lesson's cells in whatever program it is linked into; //:course is made of
    these.

    Args:
      name: of the program; "lesson" in every chapter.
      src: the lesson.cc. Its texts are beside it: lesson.md, lesson.zh.md.
      chapter: Lesson::name (text/lesson.h).
      number: in the course.
      devices: how many the lesson uses.
      more_srcs: more files of the lesson, which may hold cells.
      shown_srcs: files that --code shows and others compile.
      deps: of the lesson.cc, besides common/lesson:cell and :text.
      visibility: of both targets.
      **kwargs: for all targets: testonly, target_compatible_with, …
    """
    embedded = name + "_source"
    stem = src[:-len(".cc")]
    native.genrule(
        name = embedded,
        srcs = [src] + more_srcs + shown_srcs + native.glob([stem + ".md", stem + ".zh.md"]),
        outs = [embedded + ".cc"],
        cmd = "python3 -B $(location //common/lesson:text/embed_lesson.py) " +
              "%d %s %d $(SRCS) > $@" % (number, chapter, devices),
        tools = [
            "//common/lesson:text/embed_lesson.py",
            "//tools:course_texts",
        ],
        visibility = ["//visibility:private"],
        **kwargs
    )

    # For //chapters:texts_test.
    native.filegroup(
        name = name + "_texts",
        srcs = native.glob([
            "*.cc",
            "*.cu",
            "*.h",
            "*/*.cc",
            "*/*.cu",
            stem + ".md",
            "*.zh.md",
            "README.md",
        ]),
        visibility = ["//chapters:__pkg__"],
        **kwargs
    )
    cc_library(
        name = name + "_cells",
        srcs = [
            src,
            embedded + ".cc",
        ] + more_srcs,
        visibility = visibility,
        deps = deps + [
            "//common/lesson:cell",
            "//common/lesson:text",
        ],
        # No code refers to a lesson by name: it registers itself.
        alwayslink = True,
        **kwargs
    )
    cc_binary(
        name = name,
        visibility = visibility,
        deps = [
            ":" + name + "_cells",
            "//common/lesson:lesson_main",
        ],
        **kwargs
    )
