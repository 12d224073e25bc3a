#!/usr/bin/python3
"""Writes the chapters as Jupyter notebooks, CHAPTER.en.ipynb and CHAPTER.zh.ipynb.

  bazel run //:notebooks                  to notebooks/ in the checkout
  bazel run //:notebooks -- --out=DIR     relative to the directory in which you typed it

A notebook has the text of a lesson and the course's Python to read; its cells of code run the
lesson's cells in C++. They run in the checkout, with Bazel.
"""
import argparse
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import course_texts  # noqa: E402

LANGUAGES = ("en", "zh")

# The first cell. A cell of the lesson that fails ends in an exception, so "Run all" stops
# there; an answer that is wrong does not.
SETUP = '''import pathlib, subprocess, sys, tempfile
from IPython.core.magic import register_cell_magic
from IPython.display import SVG, display

started_in = pathlib.Path.cwd()
root = next((d for d in [started_in, *started_in.parents] if (d / "MODULE.bazel").exists()), None)
if root is None:
    raise SystemExit({lost!r})


def bazel(*arguments):
    done = subprocess.run(["bazel", "run", "--ui_event_filters=-info,-stdout,-stderr",
                           "--noshow_progress", *arguments], cwd=root, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    print(done.stdout)
    return done.returncode


def run(cell):
    with tempfile.TemporaryDirectory() as folder:
        code = bazel("//chapters/{name}:lesson", "--", "--cell=" + cell, "--no_predict",
                     "--lang={lang}", "--svg=" + folder)
        for file in sorted(pathlib.Path(folder).rglob("*.svg")):
            display(SVG(file.read_text(encoding="utf-8")))
    if code:
        raise RuntimeError(f"{{cell}}: exit code {{code}}")


def judge(exercise):
    bazel("//:exercises", "--", exercise, "--lang={lang}")


@register_cell_magic
def answer(path, text):
    """Writes an answer to its file. The unchanged exercise overwrites no earlier answer."""
    unchanged = subprocess.run(["git", "show", "HEAD:" + path], cwd=root, text=True,
                           capture_output=True).stdout
    if text.strip() == unchanged.strip():
        print({kept!r})
    else:
        (root / path).write_text(text, encoding="utf-8")


bazel("//:doctor")'''

WORDS = {
    "en": {
        "lost": "This notebook runs in a checkout of the course, and none is around the folder "
                "that it was started in. Clone the course, and start Jupyter in its folder.",
        "kept": "Nothing is written: change the function first.",
        "exercises": "Exercises", "hint": "For hints: `bazel run //:exercises -- {} --hint`",
    },
    "zh": {
        "lost": "本笔记本要在课程的代码仓库中运行，而启动目录不在仓库中。请先克隆仓库，再在其目录中启动Jupyter。",
        "kept": "没有写入：请先修改函数。",
        "exercises": "练习", "hint": "查看提示：`bazel run //:exercises -- {} --hint --lang=zh`",
    },
}


def markdown(text):
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def code(text):
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [],
            "source": text}


def labelled(section):
    """The parts of a section as Markdown, each with its label."""
    colon = "：" if any(ord(c) > 0x2e80 for c in section.title) else ":"
    return "\n\n".join(f"**{label}{colon}** {text}" if label else text
                       for label, text in section.parts.items() if text)


def notebook(root, name, lang):
    """The notebook, as the dictionary that is written as JSON."""
    words, folder = WORDS[lang], os.path.join(root, "chapters", name)
    with open(os.path.join(folder, "lesson.md" if lang == "en" else f"lesson.{lang}.md"),
              encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(folder, "lesson.md"), encoding="utf-8") as file:
        english = course_texts.sections(file.read())
    head = course_texts.head(text)
    cells = [markdown(f"# {head.title}\n\n{labelled(head)}"),
             code(SETUP.format(name=name, lang=lang, lost=words["lost"], kept=words["kept"]))]
    translated = course_texts.sections(text)
    for key, original in english.items():
        section = translated.get(key, original)
        text = labelled(section)
        # A translation leaves the Python of the course out, and what it printed, if it can.
        if not re.search("```(python|text)", text):
            text = "\n\n".join([text, *re.findall(r"(?ms)^```(?:python|text)\n.*?^```$",
                                                  labelled(original))])
        cells += [markdown(f"## {section.title}\n\n{text}"), code(f'run("{key}")')]
    exercises = course_texts.exercises(folder, lang)
    if exercises:
        cells.append(markdown(f"## {words['exercises']}"))
    for exercise in exercises:
        path = next((p for p in (f"chapters/{name}/exercises/{exercise.name}{end}"
                                 for end in (".cc", ".cu"))
                     if os.path.exists(os.path.join(root, p))), None)
        if path is None:
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            source = file.read().rstrip("\n")
        cells += [markdown(f"### {exercise.title}\n\n{exercise.parts.get('', '')}\n\n"
                           + words["hint"].format(exercise.name)),
                  code(f"%%answer {path}\n{source}"), code(f'judge("{exercise.name}")')]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    return {"nbformat": 4, "nbformat_minor": 5, "cells": cells, "metadata": {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"}}}


def main():
    root = os.environ.get("BUILD_WORKSPACE_DIRECTORY") or os.path.realpath(
        os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))
    parser = argparse.ArgumentParser(
        prog="bazel run //:notebooks --", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(root, "notebooks"), metavar="DIR",
                        help="where to write; notebooks/ in the checkout is the default")
    out = os.path.abspath(os.path.join(os.environ.get("BUILD_WORKING_DIRECTORY", ""),
                                       os.path.expanduser(parser.parse_args().out)))
    try:
        os.makedirs(out, exist_ok=True)
        for name in course_texts.chapters(root):
            for lang in LANGUAGES:
                path = os.path.join(out, f"{name}.{lang}.ipynb")
                with open(path, "x", encoding="utf-8") as file:
                    json.dump(notebook(root, name, lang), file, ensure_ascii=False, indent=1)
                    file.write("\n")
                print(path)
    except FileExistsError as error:
        sys.exit(f"{error.filename} is there, and may hold your work. It stays as it is; name "
                 "a new folder: --out=DIR")
    except (OSError, ValueError) as error:
        sys.exit(f"Error: {error}")


if __name__ == "__main__":
    main()
