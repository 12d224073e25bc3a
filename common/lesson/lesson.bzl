"""d2l_lesson: the targets of one lesson.cc."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")

def d2l_lesson(
        name,
        src,
        more_srcs = [],
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
      more_srcs: more files of the lesson, which may hold cells.
      deps: of the lesson.cc, besides common/lesson:lesson and :cell.
      visibility: of both targets.
      **kwargs: for all targets: testonly, target_compatible_with, …
    """
    embedded = name + "_source"
    stem = src[:-len(".cc")]
    native.genrule(
        name = embedded,
        srcs = [src] + more_srcs + native.glob([stem + ".md", stem + ".zh.md"]),
        outs = [embedded + ".cc"],
        cmd = "python3 -B $(location //common/lesson:embed_lesson.py) $(SRCS) > $@",
        tools = [
            "//common/lesson:embed_lesson.py",
            "//tools:course_texts",
        ],
        visibility = ["//visibility:private"],
        **kwargs
    )

    # For //chapters:texts_test.
    native.filegroup(
        name = name + "_texts",
        srcs = native.glob(["*.cc", "*.h", "train/*.cc", stem + ".md", "*.zh.md"]),
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
            "//common/lesson:lesson",
            "//common/lesson:source",
        ],
        # Nothing refers to a lesson by name: it registers itself.
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
