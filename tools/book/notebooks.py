#!/usr/bin/python3
"""Writes the chapters as Jupyter notebooks, CHAPTER.en.ipynb and CHAPTER.zh.ipynb.

  bazel run //:notebooks                  to notebooks/ in the checkout
  bazel run //:notebooks -- --out=DIR     relative to the directory in which you typed it

A notebook has the text of a lesson and the course's Python to read; its cells of code run the
lesson's cells in C++. They run in a checkout, with Bazel, or beside a pack for GPU servers
(tests/run_on_gpu_host.sh), without it.
"""
import argparse
import base64
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import course_texts  # noqa: E402
import picture  # noqa: E402

LANGUAGES = ("en", "zh")

# The first cell. A cell of the lesson that fails ends in an exception, so "Run all" stops
# there; an answer that is wrong does not.
SETUP = '''import glob, os, pathlib, subprocess, sys, tempfile
from IPython.core.magic import register_cell_magic
from IPython.display import SVG, display

drawings = pathlib.Path(tempfile.mkdtemp())
started_in = pathlib.Path.cwd()
around = [started_in, *started_in.parents]
lesson = "bin/lesson_{name}"
root = next((d for d in around if (d / "MODULE.bazel").exists()), None)
pack = next((d for d in [started_in / "d2l", *around] if (d / lesson).exists()), None)
if not root and not pack:
    # What was uploaded: to Colab's folder, or to Kaggle as a data set.
    packed = [*started_in.glob("d2l*.tar.xz"), *pathlib.Path("/kaggle/input").rglob("d2l*.tar.xz")]
    if not packed:
        raise SystemExit({lost!r})
    subprocess.run(["tar", "-xJf", packed[0]], cwd=started_in, check=True)
    pack = started_in / "d2l"
# PyTorch's cuBLAS serves the pack, too.
libraries = [f"{{pack}}/lib", *(d for p in sys.path for d in glob.glob(p + "/nvidia/**/lib",
                                                                   recursive=True))]
environment = {{**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)}} if not root else None

def call(*command):
    with subprocess.Popen(command, cwd=root or pack, env=environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as process:
        for line in process.stdout:
            if str(drawings) not in line:
                print(line, end="")
    return process.returncode

def bazel(*arguments):
    return call("bazel", "run", "--ui_event_filters=-info,-stdout,-stderr", "--noshow_progress",
                *arguments)

def run(cell):
    arguments = ["--cell=" + cell, "--no_text", "--lang={lang}", f"--svg={{drawings}}", *flags]
    code = (bazel("//chapters/{name}:lesson", "--", *arguments) if root
            else call(pack / lesson, *arguments))
    for file in sorted(drawings.rglob("*.svg")):
        display(SVG(file.read_text(encoding="utf-8")))
        file.unlink()
    if code:
        raise RuntimeError(f"{{cell}}: exit code {{code}}")

def judge(exercise):
    if root:
        bazel("//:exercises", "--", exercise, "--lang={lang}")
    else:
        print({unjudged!r})

@register_cell_magic
def answer(path, text):
    """Writes an answer to its file. The unchanged exercise overwrites no earlier answer."""
    unchanged = subprocess.run(["git", "show", "HEAD:" + path], cwd=root, text=True,
                           capture_output=True).stdout if root else text
    if text.strip() == unchanged.strip():
        print({kept!r})
    else:
        (root / path).write_text(text, encoding="utf-8")

if root:
    bazel("//:doctor")
    print({first!r})
else:
    call("sh", "-c", "cat built.txt; nvidia-smi --list-gpus 2> /dev/null || echo no GPU")'''

WORDS = {
    "en": {
        "flags": 'of the lesson, such as "--size=small", "--devices=cpu:0,cpu:1", "--verbose"',
        "lost": "This notebook runs in a checkout of the course or beside a pack of it, and there "
                "is none around the folder that it was started in. Clone the course, and start "
                "Jupyter in its folder. On Colab and Kaggle, upload a pack, d2l.tar.xz, which "
                "tests/run_on_gpu_host.sh --pack=d2l.tar.xz makes in a checkout.",
        "kept": "Nothing is written: change the function first.",
        "unjudged": "Exercises are judged in a checkout: a pack has no compiler.",
        "first": "The first cell that runs compiles the lesson, which takes minutes.",
        "exercises": "Exercises", "hint": "For hints: `bazel run //:exercises -- {} --hint`",
    },
    "zh": {
        "flags": '课程程序的参数，例如"--size=small"、"--devices=cpu:0,cpu:1"、"--verbose"',
        "lost": "本笔记本要在课程的代码仓库中运行，或者放在程序包旁边，而启动目录附近两者都没有。请先克隆仓库，"
                "再在其目录中启动Jupyter。在Colab和Kaggle上，请上传程序包d2l.tar.xz，"
                "在仓库中用tests/run_on_gpu_host.sh --pack=d2l.tar.xz制作。",
        "kept": "没有写入：请先修改函数。",
        "unjudged": "练习要在代码仓库中评判：程序包里没有编译器。",
        "first": "第一个运行的单元会先编译课程程序，需要几分钟。",
        "exercises": "练习", "hint": "查看提示：`bazel run //:exercises -- {} --hint --lang=zh`",
    },
}


def drawn(match):
    """A picture of characters, which browsers' Chinese fonts would tear apart, as an image."""
    svg = base64.b64encode(picture.draw(match[1]).encode()).decode()
    return f"![](data:image/svg+xml;base64,{svg})"


def markdown(text):
    return {"cell_type": "markdown", "metadata": {},
            "source": re.sub(r"(?ms)^```picture\n(.*?)\n```$", drawn, text)}


def code(text, **metadata):
    return {"cell_type": "code", "execution_count": None, "metadata": metadata, "outputs": [],
            "source": text}


def labelled(section, parts):
    """Parts of a section as Markdown, each with its label. Which choice is right is left out."""
    colon = "：" if any(ord(c) > 0x2e80 for c in section.title) else ":"
    return re.sub(r"(?m)^- \[x\] ", "- ", "\n\n".join(
        f"**{label}{colon}** {text}" if label else text for label, text in parts if text))


def notebook(root, name, lang):
    """The notebook, as the dictionary that is written as JSON."""
    words, folder = WORDS[lang], os.path.join(root, "chapters", name)
    with open(os.path.join(folder, "lesson.md" if lang == "en" else f"lesson.{lang}.md"),
              encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(folder, "lesson.md"), encoding="utf-8") as file:
        english = course_texts.sections(file.read())
    head = course_texts.head(text)
    # JupyterLab and Colab fold the code of the first cell.
    cells = [markdown(f"# {head.title}\n\n{labelled(head, head.parts.items())}"),
             code(SETUP.format(name=name, lang=lang, **words), cellView="form",
                  jupyter={"source_hidden": True}),
             code(f"flags = []  # {words['flags']}")]
    translated = course_texts.sections(text)
    for key, original in english.items():
        section = translated.get(key, original)
        *before, learnt = section.parts.items()
        text = labelled(section, before)
        # A translation leaves the course's Python out, and its output if it can.
        if not re.search("```(python|text)", text):
            idea, *question = before
            python = re.findall(r"(?ms)^```(?:python|text)\n.*?^```$", original.parts[""])
            text = labelled(section, [("", "\n\n".join([idea[1], *python])), *question])
        cells += [markdown(f"## {section.title}\n\n{text}"), code(f'run("{key}")'),
                  markdown(labelled(section, [learnt]))]
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
