#!/usr/bin/env python3
"""bazel run //:exercises: the course's exercises, and the judge of your answers.

An exercise is a file with one function to write, chapters/CHAPTER/exercises/NAME.cc,
or one kernel, NAME.cu.
Its texts are in exercises.md beside it, in Chinese in exercises.zh.md. What you have
done is remembered in .exercises.json, in the workspace, which git ignores.
"""

import argparse
import ctypes
import difflib
import hashlib
import json
import os
import pathlib
import re
import resource
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

import course_texts
from answers import untouched

ROOT = pathlib.Path(
    os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    or pathlib.Path(__file__).resolve().parent.parent)
PROGRESS = ".exercises.json"
SECONDS = 60  # for a judgement, which is then stopped
PATIENCE = 5  # seconds without a word about a build
MUCH = 10_000_000  # bytes of output, after which a program is stopped
PTX_FINDINGS = 66  # the exit code of tests/ptx/report.h
# The first words of common/exercise/exercise_main.cc, after \x1e and the run's key.
VERDICTS = {"RIGHT": "right", "RIGHT BUT SLOW": "slow", "WRONG": "wrong",
            "NOT DONE": "not done"}
MARKS = {"right": "+", "slow": "~", "wrong": "-", "not done": "."}

language = "en"


def say(text, *values):
    """The text in the run's language, which is also that of its commands."""
    text = course_texts.translator(language)(text)
    if values:
        text = text % tuple(course_texts.printable(value) if isinstance(value, str) else value
                            for value in values)
    if language != course_texts.system_language():
        text = re.sub(r"bazel run //:[a-z]+( -- [a-z_0-9-]+(?: --[a-z]+)?)?",
                      lambda command: command[0] + ("" if command[1] else " --")
                      + " --lang=" + language, text)
    return text


# ---- The exercises.


class Exercise:
    """A section of exercises.md; its text in the run's language."""

    def __init__(self, root, chapter, section):
        self.chapter, self.name, self.title = chapter, section.name, section.title
        self.book, self.teaches, self.takes = (section.facts.get(fact, "")
                                               for fact in ("Book", "Teaches", "Takes"))
        # Paragraphs, by "task", "hint 1", "notice", …
        self.parts = {PARTS.get(label, label.lower()): course_texts.paragraphs(text)
                      for label, text in section.parts.items()}
        self.hints = [self.parts[p] for p in sorted(self.parts) if p.startswith("hint")]
        self.is_question = "question" in self.parts
        self.folder = f"chapters/{chapter}/exercises"
        solutions = root / self.folder / "solutions"
        is_kernel = (solutions / f"{self.name}.cu").exists()
        self.file_name = self.name + (".cu" if is_kernel else ".cc")
        self.file = f"{self.folder}/{self.file_name}"
        self.solution = solutions / self.file_name
        self.target = f"//{self.folder}:{self.name}"

    def effort(self):
        """"15 **": the minutes that it takes, and how hard it is."""
        takes = re.fullmatch(r"(\d+) minutes, (\w+)", self.takes)
        return f"{takes[1]:>2} {DIFFICULTY[takes[2]]:3}" if takes else ""


DIFFICULTY = {"easy": "*", "medium": "**", "hard": "***"}
PARTS = {"": "task", "提示 1": "hint 1", "提示 2": "hint 2", "提示 3": "hint 3",
         "注意": "notice", "问题": "question", "答案": "answer"}


def all_exercises(root, lang="en"):
    return [Exercise(root, chapter, section) for chapter in course_texts.chapters(root)
            for section in course_texts.exercises(root / "chapters" / chapter, lang)]


def differing_stubs(root):
    """The exercises whose files differ from those that their solutions make."""
    return [e.file for e in all_exercises(root) if not e.is_question
            and (root / e.file).read_bytes() != untouched(
                e.solution.read_text(encoding="utf-8")).encode()]


# ---- Progress.


def load_progress(root):
    """The known state of each exercise: its verdict, the file's digest, hints shown. What
    is damaged is left out."""
    try:
        read = json.loads((root / PROGRESS).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    types = {"verdict": str, "file": str, "hints": int}
    return {name: {key: value for key, value in state.items()
                   if isinstance(value, types.get(key, ()))}
            for name, state in (read.items() if isinstance(read, dict) else ())
            if isinstance(state, dict)}


def save_progress(root, progress):
    new = root / f"{PROGRESS}.{os.getpid()}"  # others may save at the same time
    try:
        new.write_text(json.dumps(progress, indent=1) + "\n", encoding="utf-8")
        new.replace(root / PROGRESS)
    finally:
        new.unlink(missing_ok=True)


def note(root, name, **changes):
    progress = load_progress(root)
    progress.setdefault(name, {}).update(changes)
    save_progress(root, progress)
    return progress[name]


def remember(root, name, **changes):
    """As note; what cannot be written is said, and the rest goes on."""
    try:
        note(root, name, **changes)
    except OSError as error:
        print(say("This is not remembered, since %s cannot be written: %s", PROGRESS,
                  error.strerror), file=sys.stderr)


def digest(root, exercise):
    """The digest of the learner's file; "" if there is none."""
    path = root / exercise.file
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.exists() else ""


# ---- Building and judging.


def first_error(output, file):
    """The compiler's first error, at the learner's line if it names one."""
    lines = output.splitlines()
    for i, line in enumerate(lines):
        # A message of gcc, or of nvcc: file.cu(12): error: …
        found = re.match(r"(\S+?)[:(](\d+)(?::\d+|\))?: (?:fatal )?error: (.*)", line)
        if not found:
            continue
        shown = [f"{found[1]}:{found[2]}: {found[3]}"]
        shown += [l for l in lines[i + 1:i + 3] if re.match(r" +\d* \|", l)]
        if found[1] != file:  # in a header: also show the including line
            own = [l for l in lines[max(0, i - 12):i + 12]
                   if l.lstrip().startswith(file + ":")]
            shown += own[:1]
        return shown + instead(found[3])
    for line in lines:
        if "undefined reference to" in line:
            return [line[line.index("undefined reference"):]]
    return None


# What PyTorch and MXNet call by these names is called otherwise.
INSTEAD = {
    "Tensor": {
        "to": "To(x, device)", "as_in_ctx": "To(x, device)", "copyto": "CopyTo(x, y)",
        "cuda": "To(x, TryGpu())", "item": "Item(x)", "asscalar": "Item(x)",
        "numpy": "ToVector<float>(x)", "asnumpy": "ToVector<float>(x)",
        "tolist": "ToVector<float>(x)", "Wait": "WaitToRead(x)",
        "wait_to_read": "WaitToRead(x)", "clone": "Clone(x)", "sum": "Sum(x)",
        "mean": "Mean(x)", "reshape": "Reshape(x, shape)", "view": "Reshape(x, shape)",
        "backward": "tape.Backward(loss)"},
    "Event": {
        "Wait": "event.Synchronize(), or stream.Wait(event)",
        "wait": "event.Synchronize(), or stream.Wait(event)",
        "synchronize": "event.Synchronize()", "query": "event.Query()",
        "record": "stream.Record()", "Record": "stream.Record()"},
    "Stream": {
        "wait_event": "stream.Wait(event)", "wait_stream": "stream.Wait(other.Record())",
        "record_event": "stream.Record()", "synchronize": "stream.Synchronize()"},
}


def instead(error):
    """A line with the right name, if the compiler's error is about a wrong one."""
    quoted = "['‘]([^'’]+)['’]"
    found = re.search(rf"{quoted} has no member named {quoted}", error)
    clang = re.search(rf"no member named {quoted} in {quoted}", error)
    owner, name = found.groups() if found else clang.groups()[::-1] if clang else ("", "")
    name_here = INSTEAD.get(re.split(r"\W", owner)[-1], {}).get(name)
    return [say("Instead of .%s: %s", name, name_here)] if name_here else []


def build(root, exercise, options):
    """The output of bazel and the compiler if the build fails; else None. What takes long
    is said. `options` are bazel's."""
    if not shutil.which("bazel"):
        return say("There is no bazel. tools/doctor.sh says what to install.")
    lines, begin, show_steps = [], time.monotonic(), False
    with subprocess.Popen(
            ["bazel", "build", "--color=no", "--curses=no",
             "--show_progress_rate_limit=2", "--ui_event_filters=-info,-debug",
             *options, exercise.target],
            cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace") as bazel:
        for line in bazel.stdout:
            step = re.match(r"\[([\d,]+) / ([\d,]+)\]", line)
            done, all_steps = (int(n.replace(",", "")) for n in step.groups()) if step else (0, 0)
            # Steps that are cached are done before.
            if (not show_steps and all_steps > done + 10
                    and time.monotonic() - begin >= PATIENCE):
                show_steps = True
                print(say("Building the libraries, once; that takes minutes."), flush=True)
            if step and show_steps:
                print(end="\r" + say("Building: %s of %s steps", *step.groups()),
                      flush=True)
            elif not step and not line.startswith(("Loading:", "Analyzing:")):
                lines.append(line)
    if show_steps:
        print()
    return "".join(lines) if bazel.returncode else None


def children():
    """The numbers of this process's children."""
    found = set()
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text(errors="replace")
        except OSError:  # it has ended
            continue
        if int(text.rpartition(")")[2].split()[1]) == os.getpid():
            found.add(int(stat.parent.name))
    return found


def adopt_orphans(adopt):
    """Has the system make this process the parent of its descendants whose parents end."""
    set_child_subreaper = 36  # PR_SET_CHILD_SUBREAPER
    ctypes.CDLL(None).prctl(set_child_subreaper, int(adopt), 0, 0, 0)


def end_children(but):
    """Ends all children that are not in `but`, and those that they leave."""
    while found := children() - but:
        for number in found:
            os.kill(number, signal.SIGKILL)  # is there, if only as a zombie
            os.waitpid(number, 0)


def sentence(verdict, text):
    """The verdict, and a sentence below it."""
    return say(verdict) + "\n" + fill(text, "  ")


def with_findings(own, verdict, rest, found):
    """The verdict of a program in which tests/ptx has found something, and its text. The
    judge's verdict is "" if the program ended before it."""
    lacks = "the interpreter lacks "
    for line in found:
        if line.startswith(lacks):
            return "crashed", own + sentence("CRASHED", say(
                "--check_ptx does not know an instruction of the kernel: %s. Without "
                "--check_ptx the kernel is judged all the same.", line[len(lacks):]))
    if verdict.startswith("RIGHT"):
        text = sentence("WRONG", say(
            "The model of a GPU finds nothing wrong. The kernel has a fault all the same, "
            "which was found in what nvcc makes of it:"))
    else:
        judged = rest.rstrip() + "\n\n" if verdict == "WRONG" else ""
        text = say("WRONG") + "\n" + judged + fill(
            say("What was found in the kernel as nvcc compiles it:"), "  ")
    # The first is the cause of others; the last counts them.
    return "wrong", own + text + "\n" + "\n".join(fill(line, "    ") for line in found[:3]
                                                 if "findings, see above" not in line)


def run(program, arguments, seconds=SECONDS):
    """Runs a program. Its verdict, and what is to be printed.

    The judge says its verdict behind a key of this run, which it takes out of the
    environment before the answer begins. So no output of an answer passes for a
    verdict. An answer that is written to cheat can still find the key: it is in the
    judge's memory, and the judge runs in the answer's process."""
    key = secrets.token_hex(16)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as out, \
            tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as err:
        before_it = children()
        adopt_orphans(True)
        child = subprocess.Popen([str(program)] + arguments, stdout=out, stderr=err,
                                 stdin=subprocess.DEVNULL, start_new_session=True,
                                 env=dict(os.environ, D2L_VERDICT_KEY=key))

        def has_ended():  # but still has its number, which is its group's
            return os.waitid(os.P_PID, child.pid,
                             os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

        end = time.monotonic() + seconds
        try:
            while not has_ended() and time.monotonic() < end and max(
                    os.fstat(f.fileno()).st_size for f in (out, err)) < MUCH:
                time.sleep(0.02)
            ended = has_ended()
        finally:  # also after Ctrl-C; ends the answer's processes
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            end_children(but=before_it)  # also those with sessions of their own
            adopt_orphans(False)  # a server that bazel starts is to stay
        out.seek(0)
        err.seek(0)
        output, errors = out.read(MUCH), err.read(MUCH)
    printed, mark, judged = output.rpartition(f"\x1e{key}\n")
    # Also searches stderr, where C++ prints why it aborts.
    printed = (printed if mark else judged).splitlines()
    found = []  # by tests/ptx
    for line in errors.splitlines():
        if child.returncode == PTX_FINDINGS and line.startswith("PTX: "):
            found.append(line[len("PTX: "):])
        else:
            printed.append(line)
    own = [say("Your code printed:")] + ["  " + line[:200] for line in (
        printed if len(printed) < 40 else printed[:20] + ["…"] + printed[-10:])]
    own = "\n".join(own) + "\n\n" if printed else ""
    if not ended:
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        busy = after.ru_utime - before.ru_utime
        if time.monotonic() < end:
            why = say("It printed without end.")
        elif busy > seconds / 10:
            why = say("After %d s it still computed: a loop that does not end?",
                      seconds)
        else:
            why = say("After %d s it still waited, and computed nothing: a wait for "
                      "what nobody will do (a deadlock).", seconds)
        return "stopped", own + sentence("STOPPED", why)
    verdict, _, rest = judged.partition("\n")
    if mark and child.returncode == 0 and verdict in VERDICTS:
        return VERDICTS[verdict], own + (say(verdict) + "\n" + rest).rstrip()
    if found:
        return with_findings(own, verdict if mark else "", rest, found)
    number = -child.returncode
    if number == signal.SIGSEGV or number == signal.SIGBUS:
        why = say("it read or wrote memory that is not its own (an index, a "
                  "dangling pointer)")
    elif number == signal.SIGABRT:
        why = say("an exception that nothing catches, or abort")
    elif number == signal.SIGFPE:
        why = say("an arithmetic error, such as a division of an integer by zero")
    elif number > 0:
        why = say("signal %s", signal.strsignal(number))
    else:
        why = say("exit code %d", child.returncode)
    return "crashed", own + sentence(
        "CRASHED", say("Your code ended the program: %s.", why))


def judge(root, exercises, exercise, flags):
    """Builds and judges. Prints, stores and returns the verdict."""
    judged = digest(root, exercise)
    # This one is bazel's, and the others are the program's.
    ptx = "--check_ptx" in flags
    output = build(root, exercise, ["--config=ptx"] if ptx else [])
    if output is not None:
        error = first_error(output, exercise.file)
        verdict = "does not compile"
        if error:
            text = "\n  ".join([say("DOES NOT COMPILE")] + error)
        else:
            text = "\n".join([say("bazel could not build it:")]
                             + output.splitlines()[-15:])
    else:
        verdict, text = run(root / "bazel-bin" / exercise.folder / exercise.name,
                            ["--lang=" + language]
                            + [flag for flag in flags if flag != "--check_ptx"])
    print(text)
    if verdict == "not done":
        print("  " + say("Replace // YOUR CODE and the line below it."))
    if verdict == "right":
        print()
        show(exercise.parts.get("notice", []), first=say("Notice: "))
        print(say("A solution: bazel run //:exercises -- %s --solution", exercise.name))
    elif verdict == "slow":
        print("\n" + say("What to notice: bazel run //:exercises -- %s --solution",
                         exercise.name))
    else:
        print("\n" + say("A hint: bazel run //:exercises -- %s --hint", exercise.name))
    done = load_progress(root).get(exercise.name, {}).get("verdict")
    if done != "right" or verdict == "right":
        remember(root, exercise.name, verdict=verdict, file=judged)
    if verdict == "right":
        if exercise.name == exercises[-1].name:
            print(say("This was the last exercise."))
        show_next(root, exercises, exercise.name)
    return verdict


def watch(root, exercises, exercise, flags):
    print(say("Watching %s; Ctrl-C ends it.", exercise.file), flush=True)
    seen = None
    try:
        while True:
            # The time does not count: editors rename, and save unchanged files.
            now = digest(root, exercise)
            if now and now != seen:
                seen, begin = now, time.time()
                print(flush=True)
                judge(root, exercises, exercise, flags)
                print("  " + say("%.1f s from your save to the verdict",
                                 time.time() - begin), flush=True)
            time.sleep(0.2)
    except KeyboardInterrupt:
        print()


# ---- Output.


def fill(text, indent=""):
    return "\n".join(course_texts.wrap(text, first=indent, rest=indent))


def show(paragraph_list, first=""):
    for paragraph in paragraph_list:
        if paragraph.startswith("```"):
            print(textwrap.indent("\n".join(paragraph.splitlines()[1:-1]), "    "))
        else:
            print(fill(first + paragraph))
        first = ""
        print()


def show_next(root, exercises, name=None):
    """Shows the first exercise after `name` that is not right yet, else the first of all."""
    progress = load_progress(root)
    names = [e.name for e in exercises]
    behind = names.index(name) + 1 if name else 0
    todo = [n for n in names[behind:] + names[:behind]
            if progress.get(n, {}).get("verdict") != "right"]
    if todo:
        print(say("Next: bazel run //:exercises -- %s", todo[0]))


def show_list(root, exercises, every):
    """Lists every exercise, or the next one of each chapter."""
    progress = load_progress(root)
    runnable = [e for e in exercises if not e.is_question]

    def is_right(e):
        return progress.get(e.name, {}).get("verdict") == "right"

    for chapter in dict.fromkeys(e.chapter for e in runnable):
        of_chapter = [e for e in runnable if e.chapter == chapter]
        todo = [e for e in of_chapter if not is_right(e)]
        print(say("%s: %d of %d right", say(chapter), len(of_chapter) - len(todo),
                  len(of_chapter)))
        for e in of_chapter if every else todo[:1]:
            known = progress.get(e.name, {})
            verdict = known.get("verdict", "not done")
            changed = known.get("file", "") not in ("", digest(root, e))
            print(f"  {MARKS.get(verdict, '-')} {e.name:21} {e.effort():6} {e.title}"
                  + f" ({say('changed since')})" * changed)
        print()
    print(say("+ right   ~ right but slow   - wrong   . not done") + "\n"
          + say("Behind the name: the minutes that it takes; * easy, ** medium, *** hard"))
    if not every:
        print(say("All exercises: bazel run //:exercises -- --all"))
    if any(is_right(e) for e in runnable):
        show_next(root, runnable)
    elif runnable:
        print(say("Start here: bazel run //:exercises -- %s", runnable[0].name))
    if any(e.is_question for e in exercises):
        print(say("Questions to think about are in the book: bazel run //:book"))


def hint(root, exercise):
    shown = load_progress(root).get(exercise.name, {}).get("hints", 0)
    if shown >= len(exercise.hints):
        print(say("There are no more hints; --solution shows a solution.") + "\n")
    number = min(max(shown, 0) + 1, len(exercise.hints))
    for i, text in enumerate(exercise.hints[:number]):
        print(say("Hint %d of %d", i + 1, len(exercise.hints)))
        show(text)
    sys.stdout.flush()
    remember(root, exercise.name, hints=number)


def solution(root, exercise):
    text = exercise.solution.read_text(encoding="utf-8")
    body = re.search(r"^namespace \{\n(.*?)^D2L_ANSWER", text, re.M | re.S)[1]
    print(re.sub(r"^ *// (SOLUTION|END)\n", "", body, flags=re.M).strip() + "\n")
    show(exercise.parts.get("notice", []), first=say("Notice: "))


def reset(root, exercise):
    path, number = root / exercise.file, 1
    stub = untouched(exercise.solution.read_text(encoding="utf-8"))
    if path.exists() and path.read_bytes() != stub.encode():
        kept = root / f"{exercise.file}.kept"
        while kept.exists():  # from an earlier --reset
            number += 1
            kept = path.with_name(f"{path.stem}.{number}{path.suffix}.kept")
        path.replace(kept)
        print(say("Your answer is kept in %s", kept.relative_to(root)))
    path.write_text(stub, encoding="utf-8")
    print(say("Restored: %s", exercise.file), flush=True)
    remember(root, exercise.name, verdict="not done", hints=0, file="")


def main(arguments):
    global language
    parser = argparse.ArgumentParser(
        prog="bazel run //:exercises --",
        description="Lists the next exercises, or judges your answer to one.")
    parser.add_argument("name", nargs="?", help="the exercise; none: list")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--hint", action="store_true", help="the next of three hints")
    what.add_argument("--solution", action="store_true",
                      help="a solution, and what to notice in it")
    what.add_argument("--watch", action="store_true",
                      help="judge whenever the file is saved")
    what.add_argument("--reset", action="store_true",
                      help="restore the untouched file")
    what.add_argument("--all", action="store_true", help="list all, also those that are done")
    what.add_argument("--check", action="store_true",
                      help="do all untouched files agree with their solutions?")
    parser.add_argument("--check_races", action="store_true",
                        help="say which operations of two streams no event orders")
    parser.add_argument("--check_ptx", action="store_true",
                        help="run a kernel as nvcc compiles it, too, without a GPU")
    parser.add_argument("--lang", choices=["en", "zh"],
                        default=course_texts.system_language(),
                        help="English or Chinese; else as LANG says")
    options = parser.parse_args(arguments)
    language = options.lang
    try:
        return command(parser, options)
    except BrokenPipeError:  # as behind `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(course_texts.printable(f"{error.filename}: {error.strerror}"),
              file=sys.stderr)
        return 1


def command(parser, options):
    exercises = all_exercises(ROOT, language)
    if options.check:
        differing = differing_stubs(ROOT)
        for file in differing:
            print(f"{file} is not what its solution makes: "
                  f"tools/exercises.py {pathlib.Path(file).stem} --reset")
        return 1 if differing else 0
    runnable = {e.name: e for e in exercises if not e.is_question}
    if options.name is None:
        if options.hint or options.solution or options.watch or options.reset:
            parser.error("which exercise? For example: wait_for_less --hint")
        show_list(ROOT, exercises, options.all)
        return 0
    flags = [flag for flag, wanted in (("--check_races", options.check_races),
                                       ("--check_ptx", options.check_ptx)) if wanted]
    exercise = runnable.get(pathlib.Path(options.name).stem)
    if exercise is None:
        print(say("There is no exercise %s.", options.name))
        near = difflib.get_close_matches(options.name, runnable, 1)
        print(say("Did you mean %s?", near[0]) if near
              else say("bazel run //:exercises lists them all."))
        return 2
    print(f"{exercise.name}: {exercise.title}   [{exercise.book}]\n")
    if options.hint:
        hint(ROOT, exercise)
    elif options.solution:
        solution(ROOT, exercise)
    elif options.reset:
        reset(ROOT, exercise)
    elif options.watch:
        watch(ROOT, list(runnable.values()), exercise, flags)
    else:
        show(exercise.parts["task"])
        print(say("Your file: %s", exercise.file))
        types = f"{exercise.folder}/judges/{exercise.name}.h"
        if (ROOT / types).exists():
            print(say("Its types: %s", types))
        print(flush=True)
        verdict = judge(ROOT, list(runnable.values()), exercise, flags)
        return 0 if verdict == "right" else 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
