#!/usr/bin/python3
"""Runs the lessons and writes the course as a book: a folder of pages.

  bazel run //:book                                      both languages, to book/
  bazel run //:book -- --lang=en --size=course
  bazel run //:book -- --python=~/peers/bin/python       the course's own cells too
  bazel run //:book -- --against=last/results.json       and what has changed since
  bazel run //:book -- --compare=laptop.json,server.json machines beside each other

The pages need no network; book/results.json holds all that was measured. Names are
relative to the directory in which you typed the command.
"""
import argparse
import datetime
import fcntl
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import results
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import course_texts  # noqa: E402

LANGUAGES = ("en", "zh")
SIZES = ("small", "course", "large")
LONGEST = 1800  # seconds that a lesson may take


def say(text):
    print(text, flush=True)


def user_path(path):
    """Relative to the user's working directory, which `bazel run` leaves."""
    return os.path.join(os.environ.get("BUILD_WORKING_DIRECTORY", ""),
                        os.path.expanduser(path))


def workspace():
    return os.environ.get("BUILD_WORKSPACE_DIRECTORY") or os.path.realpath(
        os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))


def machine():
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            name = re.search(r"model name\s*: (.*)", file.read())[1]
    except (OSError, TypeError):
        pass
    parts = [name, f"{len(os.sched_getaffinity(0))} cores", platform.node()]
    if shutil.which("nvidia-smi"):
        found = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
                               capture_output=True, text=True, timeout=60, check=False)
        parts += found.stdout.split("\n")[:-1] if found.returncode == 0 else []
    return ", ".join(parts)


def take_folder(out):
    """Locks the folder for this run, as long as the returned file is open."""
    os.makedirs(out, exist_ok=True)
    mark = os.path.join(out, "book.js")
    if os.listdir(out) and not os.path.exists(mark):
        raise ValueError(f"{out} has files in it that are no book's. They stay as they are; "
                         "name a new folder: --out=DIR")
    lock = open(mark, "a", encoding="utf-8")  # pylint: disable=consider-using-with
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise ValueError(f"another run writes to {out}. Wait for its end, or name another "
                         "folder: --out=DIR") from error
    return lock


def run_program(command, limit, stdout=subprocess.DEVNULL):
    """The reason of its failure, or ""."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=stdout,
                              stderr=subprocess.PIPE, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"It was stopped after {limit} s."
    except OSError as error:
        return str(error)
    if done.returncode == 0:
        return ""
    errors = done.stderr.decode(errors="replace").strip()[-4000:]
    code = (f"signal {-done.returncode}" if done.returncode < 0
            else f"exit code {done.returncode}")
    return f"{os.path.basename(command[0])} ended with {code}.\n{errors}"


def run_lesson(name, lang, options, out):
    """The lesson's results; if it wrote none, only the reason."""
    file = os.path.join(out, f"{name}.{lang}.json")
    if os.path.exists(file):
        os.remove(file)
    failure = run_program(
        [os.path.join(options.programs, name, "lesson"), f"--size={options.size}",
         f"--lang={lang}", f"--json={file}",
         f"--svg={os.path.join(out, 'drawings', lang)}", *options.lesson_flags], LONGEST)
    try:
        lesson = results.read_run(file)["lessons"][0]
        os.remove(file)
    except (OSError, ValueError):
        lesson = {**results.MADE_HERE, **course_texts.chapter(workspace(), name, lang),
                  "lesson": name, "size": options.size, "section": "", "notes": [],
                  "devices": [], "cells": []}
        failure = failure or "It wrote no results."
    lesson.update(lang=lang, failure=failure)
    return lesson


def run_timelines(lesson, options, out):
    """A page for each cell, from a separate run: recording costs time."""
    folder = os.path.join(out, "timelines")
    os.makedirs(folder, exist_ok=True)
    lesson["timelines"] = []
    for cell in lesson["cells"]:
        file = re.sub(r"[^\w-]+", "-",
                      f"{lesson['lesson']}-{cell['id']}-{lesson['lang']}") + ".html"
        failure = run_program(
            [os.path.join(options.programs, lesson["lesson"], "lesson"),
             f"--size={options.size}", f"--cell={cell['id']}",
             f"--lang={lesson['lang']}", f"--html={os.path.join(folder, file)}",
             *options.lesson_flags], LONGEST)
        if not failure and os.path.exists(os.path.join(folder, file)):
            lesson["timelines"].append({"id": cell["id"], "file": file})


def run_python(lesson, options):
    """The output of the course's own cells in that interpreter."""
    cells = [{"id": cell["id"], "python": cell["python"]}
             for cell in lesson["cells"] if cell["python"]]
    script = os.path.join(os.path.dirname(os.path.realpath(__file__)), "run_cells.py")
    found = {"version": "", "cells": []}
    while cells:
        with tempfile.TemporaryDirectory() as folder:  # some cells write files
            path = os.path.join(folder, "order")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"cells": cells, "limit": options.limit}, file)
            error = run_program([options.python, script, path],
                                (options.limit + 60) * (len(cells) + 1), stdout=None)
            with open(path, encoding="utf-8") as file:
                answers = [json.loads(line) for line in file if line.endswith("}\n")]
        found.update(*answers[:1])
        found["cells"] += answers[1:]
        done = len(answers[1:])
        if done < len(cells) and (error or not done):  # it ended in this cell, or earlier
            lines = error.strip().splitlines() or ["It ended."]
            error = " ".join(dict.fromkeys([lines[0], lines[-1]]))
            say(error)
            found["cells"].append({"id": cells[done]["id"], "printed": "", "error": error,
                                   "note": "", "stopped": 0})
            done += 1
        cells = cells[done:] if answers else []
    lesson["pytorch"] = found


def counts(lesson):
    claims = [claim["verdict"] for cell in lesson["cells"] for claim in cell["claims"]]
    return ", ".join(f"{claims.count(verdict)} {verdict}" for verdict in results.VERDICTS)


def run_all(options, out, run):
    """Adds the lessons to `run`, each as soon as it has ended."""
    names = course_texts.chapters(workspace())
    steps = len(names) * (len(options.languages) * (2 - options.no_timelines) +
                          bool(options.python))
    step = 0

    def begin(what):
        nonlocal step
        step += 1
        print(f"[{step:2}/{steps}] {what} ...", end=" ", flush=True)
        return time.monotonic()

    for name in names:
        first = None
        for lang in options.languages:
            started = begin(f"{name}, {lang}")
            lesson = run_lesson(name, lang, options, out)
            run["lessons"].append(lesson)
            say(f"{time.monotonic() - started:.0f} s: {counts(lesson)}")
            if lesson["failure"]:
                say("  " + lesson["failure"].replace("\n", "\n  "))
            if not options.no_timelines:
                started = begin(f"{name}, {lang}, timelines")
                run_timelines(lesson, options, out)
                say(f"{time.monotonic() - started:.0f} s: {len(lesson['timelines'])}")
            if first is not None:  # the same for all languages
                continue
            first = lesson
            if options.python:
                begin(f"{name}, PyTorch")
                say("")
                run_python(lesson, options)
        for lesson in run["lessons"]:
            if lesson["lesson"] == name:
                lesson.update(pytorch=first["pytorch"])


def write_results(run, path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(run, file, ensure_ascii=False, indent=1)


def read_options():
    parser = argparse.ArgumentParser(
        prog="bazel run //:book --", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lang", default=",".join(LANGUAGES),
                        help="en, zh, or both (the default): en,zh")
    parser.add_argument("--size", default="small", choices=SIZES,
                        help="of the lessons; small is the default")
    parser.add_argument("--out", default=os.path.join(workspace(), "book"), metavar="DIR",
                        help="where to write; book/ in the checkout is the default")
    parser.add_argument("--python", metavar="PROGRAM",
                        help="an interpreter with PyTorch, to run the course's own cells")
    parser.add_argument("--limit", type=float, default=60, metavar="SECONDS",
                        help="for each of these cells; 60 is the default, and for a CPU "
                        "some of them need 600")
    parser.add_argument("--devices", help="for the lessons, as cpu:0,cpu:1")
    parser.add_argument("--no_timelines", action="store_true",
                        help="leave out the recordings, half of the time")
    parser.add_argument("--results", metavar="FILE",
                        help="write the pages of this results.json again; run nothing")
    parser.add_argument("--against", metavar="FILE",
                        help="say what changed since these results")
    parser.add_argument("--compare", metavar="FILE,FILE",
                        help="compare the results of several machines; run nothing")
    parser.add_argument("--programs", default="chapters", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.languages = list(dict.fromkeys(options.lang.split(",")))
    for lang in options.languages:
        if lang not in LANGUAGES:
            parser.error(f"--lang={lang} asked for; there are en and zh. Say --lang=en.")
    options.lesson_flags = [f"--devices={options.devices}"] if options.devices else []
    options.programs = os.path.abspath(options.programs)
    if options.python:
        path = user_path(options.python)
        options.python = path if os.path.exists(path) else shutil.which(options.python)
        if not options.python:
            parser.error(f"--python={path} asked for; there is no such program. Make it: "
                         "python3 -m venv ~/peers && ~/peers/bin/pip install torch numpy")
        why = run_program([options.python, "-c", "import torch"], 300)
        if why:
            parser.error(f"--python={options.python} asked for; it cannot import torch: "
                         f"{why.splitlines()[-1]}\nTry: {options.python} -m pip install "
                         "torch numpy")
    return options


def main():
    options = read_options()
    try:
        import pages  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        sys.exit(f"{sys.executable} has no module {error.name}. On Debian: sudo apt-get "
                 "install python3-jinja2 python3-markdown python3-pygments")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what it started
    out = os.path.abspath(user_path(options.out))
    started = time.monotonic()
    book = pages.Book(workspace(), out)
    try:
        lock = take_folder(out)
        if options.compare:
            names = options.compare.split(",")
            runs = [results.read_run(user_path(name)) for name in names]
            short = [os.path.basename(name).removesuffix(".json") for name in names]
            # laptop/results.json and server/results.json keep their folders' names.
            names = short if len(set(short)) == len(names) else names
            book.write_comparison(runs, names, options.languages)
            results_path = os.path.join(out, "results.json")
            if os.path.exists(results_path):  # a book, whose index now names the comparison
                book.write_all(results.read_run(results_path), options.languages,
                               os.path.join(out, "drawings"))
            first = "compare"
        else:
            # Fails before anything runs.
            before = options.against and results.read_run(user_path(options.against))
            drawings = os.path.join(out, "drawings")
            if options.results:
                file = user_path(options.results)
                run = results.read_run(file)
                drawings = os.path.join(os.path.dirname(file), "drawings")
            else:
                run = {"machine": machine(), "lessons": [],
                       "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M")}
                file = os.path.join(out, "results.json")
                try:
                    run_all(options, out, run)
                except KeyboardInterrupt:
                    say("\nStopped.")
                    if run["lessons"]:
                        write_results(run, file)
                        say(f"The pages of what ended: bazel run //:book -- "
                            f"--results={file} --out={out}")
                    return 130
                write_results(run, file)
            book.write_all(run, options.languages, drawings, before)
            if before:
                claims, figures, unlike = results.changes(before, run, "en")
                say(f"Since {options.against}: {len(claims)} other verdicts, {len(figures)} "
                    f"figures whose intervals are apart, {len(unlike)} lessons of another "
                    "size or on other devices.")
            first = "index"
    except (OSError, ValueError) as error:
        sys.exit(f"Error: {error}")
    lock.close()
    lang = course_texts.system_language()
    lang = lang if lang in options.languages else options.languages[0]
    page = os.path.join(out, pages.page_name(first, lang))
    say(f"Written in {time.monotonic() - started:.0f} s. Open file://{page}")
    failed = not options.compare and any(lesson["failure"] for lesson in run["lessons"])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
