#!/usr/bin/env python3
"""Tests of //:exercises: texts, progress, compilers' messages, ends of programs; and of the
repository's own exercises: do they have all that a learner reads?"""

import contextlib
import io
import json
import os
import pathlib
import re
import select
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import answers  # noqa: E402
import exercises  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "chapters"))
import book_test  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent

MARKDOWN = """# Exercises

## half: Half of it

- Book: d2l 13.2
- Teaches: to
  divide
- Takes: 5 minutes, easy

One line,
and another.

```cpp
# a

b
```

**Hint 1:** First.

**Hint 2:** Second,
longer.

**Notice:** It is a factor.

## why: Why?

**Question:** Why?

**Answer:** Because.
"""

CHINESE = """## half: 一半

第一行，
第二行 x
y。

**提示 1：** 一。

**注意：** 系数。
"""

# The mark before a verdict.
MARK = "printf '\\x1e%s\\n' $D2L_VERDICT_KEY; "

SOLUTION = """float Half(float x) {
  // SOLUTION
  return x / 2;
  // END
}
"""

STUB = """float Half(float x) {
  // YOUR CODE
  throw NotDone();
}
"""


class Workspace(unittest.TestCase):
    """A workspace with one exercise and one question."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        folder = self.root / "chapters/tiny/exercises"
        (folder / "solutions").mkdir(parents=True)
        (self.root / "chapters/chapters.bzl").write_text('C = {\n    "tiny": 1,\n}\n')
        (folder / "exercises.md").write_text(MARKDOWN)
        (folder / "exercises.zh.md").write_text(CHINESE, encoding="utf-8")
        (folder / "solutions/half.cc").write_text(
            "namespace {\n\n" + SOLUTION + '\nD2L_ANSWER("half", Half);\n')
        self.file = folder / "half.cc"
        self.file.write_text(STUB)
        self.addCleanup(setattr, exercises, "ROOT", exercises.ROOT)
        self.addCleanup(setattr, exercises, "language", "en")
        exercises.ROOT = self.root

    def run_main(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            code = exercises.main(list(arguments) + ["--lang=en"] * (
                not any("lang" in a for a in arguments)))
        return code, output.getvalue()


class Texts(Workspace):
    def test_sections_are_read(self):
        half, why = exercises.all_exercises(self.root)
        self.assertEqual((half.name, half.title, half.book, half.teaches),
                         ("half", "Half of it", "d2l 13.2", "to divide"))
        self.assertEqual(half.parts["task"],
                         ["One line, and another.", "```cpp\n# a\n\nb\n```"])
        self.assertEqual(half.hints, [["First."], ["Second, longer."]])
        self.assertFalse(half.is_question)
        self.assertTrue(why.is_question)

    def test_chinese_texts_replace_the_english(self):
        half, why = exercises.all_exercises(self.root, "zh")
        self.assertEqual((half.title, half.book), ("一半", "d2l 13.2"))
        self.assertEqual(half.parts["task"], ["第一行，第二行 x y。"])
        self.assertEqual(half.hints, [["一。"]])
        self.assertEqual(why.title, "Why?")

    def test_lines_have_eighty_columns(self):
        self.assertEqual(exercises.fill("ab " * 30, "  "),
                         "  " + " ".join(["ab"] * 26) + "\n  ab ab ab ab")
        self.assertEqual(exercises.fill("好" * 38 + "，a 好。"),
                         "好" * 38 + "，a\n好。")
        self.assertEqual(exercises.fill("好" * 40 + "。"), "好" * 39 + "\n好。")

    def test_answers_in_one_file_keep_their_names_and_lines(self):
        text = ("// A comment.\n\n#include <cmath>\n\nnamespace d2l {\nnamespace {\n"
                "int F() { return 1; }\n}  // namespace\n}  // namespace d2l\n")
        made = answers.together([("a.cc", text), ("b.cc", text)])
        self.assertEqual(made.count("#include <cmath>"), 1)
        self.assertIn('namespace file1 {\n#line 7 "b.cc"\nint F()', made)
        for wrong in ["#define X\n" + text, text + "int x;\n", "int x;\n"]:
            with self.assertRaisesRegex(ValueError, "a.cc: an answer is in"):
                answers.together([("a.cc", wrong)])

    def test_the_untouched_file_is_made_of_the_solution(self):
        self.assertEqual(exercises.untouched(SOLUTION), STUB)

    def test_every_solution_has_its_marks(self):
        for file in sorted((ROOT / "chapters").glob("*/exercises/solutions/*.c[cu]")):
            made = exercises.untouched(file.read_text())
            self.assertEqual(made.count("// YOUR CODE"), 1, file)


class Commands(Workspace):
    def test_lists_with_progress(self):
        exercises.note(self.root, "half", verdict="right")
        _, output = self.run_main("--all")
        self.assertIn("tiny: 1 of 1 right\n  + half                   5 *   Half of it\n",
                      output)
        self.assertNotIn("why", output)
        self.assertNotIn("changed", output)

    def test_lists_the_next_of_each_chapter_and_where_to_start(self):
        (self.root / "chapters/chapters.bzl").write_text(
            'C = {\n    "tiny": 1,\n    "large": 1,\n}\n')
        folder = self.root / "chapters/large/exercises"
        folder.mkdir(parents=True)
        (folder / "exercises.md").write_text(
            "".join(f"## {name}: A part\n\nTask.\n\n" for name in ("whole", "third")))
        _, output = self.run_main()
        for text in ("tiny: 0 of 1 right\n  . half ", "large: 0 of 2 right\n  . whole ",
                     "All exercises: bazel run //:exercises -- --all\n",
                     "Start here: bazel run //:exercises -- half\n"):
            self.assertIn(text, output)
        self.assertNotIn("third", output)
        exercises.note(self.root, "whole", verdict="right")
        exercises.note(self.root, "third", verdict="wrong")
        _, output = self.run_main()
        self.assertIn("large: 1 of 2 right\n  - third ", output)
        self.assertIn("Next: bazel run //:exercises -- half\n", output)
        self.assertNotIn("Start here", output)
        exercises.note(self.root, "third", verdict="right")
        _, output = self.run_main()
        self.assertIn("large: 2 of 2 right\n\n", output)
        self.assertIn("  + whole ", self.run_main("--all")[1])

    def test_says_what_has_changed_since_it_was_judged(self):
        exercises.note(self.root, "half", verdict="right", file=exercises.digest(
            self.root, exercises.all_exercises(self.root)[0]))
        self.assertNotIn("changed", self.run_main("--all")[1])
        self.file.write_text("mine")
        self.assertIn("+ half                   5 *   Half of it (changed since)",
                      self.run_main("--all")[1])
        self.run_main("half", "--reset")
        self.assertNotIn("changed", self.run_main("--all")[1])

    def test_speaks_chinese(self):
        _, output = self.run_main("--lang=zh")
        self.assertIn("一半", output)
        self.assertIn("tiny：0道做对，共1道\n", output)

    def test_an_unknown_name(self):
        code, output = self.run_main("hafl")
        self.assertEqual(code, 2)
        self.assertIn("Did you mean half?", output)

    def test_hints_come_one_by_one(self):
        self.assertNotIn("Second", self.run_main("half", "--hint")[1])
        self.assertIn("Second, longer.", self.run_main("half", "--hint")[1])
        self.assertIn("no more hints", self.run_main("half", "--hint")[1])

    def test_the_solution_is_shown_without_marks(self):
        _, output = self.run_main("half", "--solution")
        self.assertIn("{\n  return x / 2;\n}\n", output)
        self.assertIn("Notice: It is a factor.", output)

    def test_reset_keeps_the_answer(self):
        self.file.write_text("mine")
        self.run_main("half", "--reset")
        self.assertEqual(self.file.with_suffix(".cc.kept").read_text(), "mine")
        self.assertIn("// YOUR CODE", self.file.read_text())
        self.assertEqual(self.run_main("--check")[0], 0)

    def test_a_second_reset_keeps_both_answers(self):
        for text in ("first", "second", "third"):
            self.file.write_text(text)
            self.run_main("half", "--reset")
        self.assertEqual(
            {path.name: path.read_text() for path in self.file.parent.glob("*.kept")},
            {"half.cc.kept": "first", "half.2.cc.kept": "second",
             "half.3.cc.kept": "third"})

    def test_hints_start_again_after_a_reset(self):
        self.run_main("half", "--hint")
        self.run_main("half", "--reset")
        self.assertNotIn("Second", self.run_main("half", "--hint")[1])

    def test_commands_answer_in_the_language_of_the_run(self):
        with unittest.mock.patch.dict(os.environ, {"LC_ALL": "C.UTF-8"}):
            output = self.run_main("--lang=zh")[1]
            self.assertIn("bazel run //:exercises -- half --lang=zh\n", output)
            self.assertIn("bazel run //:book -- --lang=zh\n", output)
            self.assertIn("bazel run //:exercises -- --lang=zh\n",
                          self.run_main("nothing", "--lang=zh")[1])
            self.assertNotIn("--lang", self.run_main("--lang=en")[1])
        with unittest.mock.patch.dict(os.environ, {"LC_ALL": "zh_CN.UTF-8"}):
            self.assertNotIn("--lang", self.run_main("--lang=zh")[1])

    def test_check_finds_a_file_that_was_changed(self):
        code, output = self.run_main("--check")  # the header is missing
        self.assertEqual(code, 1)
        self.assertIn("half.cc", output)

    def test_broken_progress_is_none(self):
        for text in ("", "{", "\x00", "3", "[]", '["half"]', '"half"', '{"half": 3}',
                     "[" * 100_000, '{"half": {"hints": "1"}}', '{"half": {"hints": 1e999}}',
                     '{"half": {"hints": -9}}', '{"half": {"hints": null, "verdict": []}}',
                     '{"half": {"verdict": {}, "file": 3}}', '{"half": {"else": {}}}'):
            with self.subTest(text[:30]):
                (self.root / exercises.PROGRESS).write_text(text)
                self.assertEqual(self.run_main()[0], 0)
                self.assertIn("First.", self.run_main("half", "--hint")[1])
                exercises.note(self.root, "half", verdict="slow")
                self.assertEqual(
                    json.loads((self.root / exercises.PROGRESS).read_text()),
                    {"half": {"verdict": "slow", "hints": 1}})

    def test_what_cannot_be_read_or_written_is_said(self):
        def said(*arguments):
            with contextlib.redirect_stderr(io.StringIO()) as errors:
                self.assertEqual(self.run_main(*arguments)[0], 1)
            return errors.getvalue()
        (self.root / exercises.PROGRESS).mkdir()
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            code, output = self.run_main("half", "--hint")
        self.assertEqual(code, 0)
        self.assertIn("First.", output)
        self.assertEqual(errors.getvalue(), "This is not remembered, since .exercises.json "
                         "cannot be written: Is a directory\n")
        self.assertEqual([p.name for p in self.root.iterdir()].count(exercises.PROGRESS),
                         len([p for p in self.root.iterdir() if "exercises." in p.name]))
        self.file.unlink()
        self.assertIn("half.cc: No such file or directory", said("--check"))
        self.file.mkdir()
        for arguments in (("half",), ("half", "--reset"), ("half", "--watch"), ("--check",)):
            self.assertIn("half.cc: Is a directory", said(*arguments))

    def test_names_are_shown_without_control_characters(self):
        name = os.fsdecode(b"a\x1b[2J\nError: \xff\xc2\x9b")
        code, output = self.run_main(name)
        self.assertEqual(code, 2)
        self.assertIn("There is no exercise a\\x1b[2J\\nError: \\xff\\xc2\\x9b.\n", output)
        with contextlib.redirect_stderr(io.StringIO()) as errors, \
                unittest.mock.patch.object(exercises, "ROOT", self.root / name):
            self.assertEqual(self.run_main()[0], 1)
        self.assertRegex(errors.getvalue(), r"^/.*/a\\x1b\[2J\\nError: \\xff\\xc2\\x9b/.*: "
                         "No such file or directory\n$")

    def test_an_answer_in_another_encoding(self):
        self.file.write_bytes("// 一半\n".encode("gb18030"))
        self.assertEqual(self.run_main("--check")[0], 1)
        self.run_main("half", "--reset")
        self.assertEqual(self.file.with_suffix(".cc.kept").read_bytes(),
                         "// 一半\n".encode("gb18030"))

    def test_many_save_at_once(self):
        program = ("import pathlib, sys; sys.path.insert(0, sys.argv[1]); import exercises\n"
                   "for i in range(200): exercises.note(pathlib.Path(sys.argv[2]), 'a', hints=i)")
        running = [subprocess.Popen(
            [sys.executable, "-c", program, exercises.__file__.rpartition("/")[0],
             str(self.root)], stderr=subprocess.PIPE) for _ in range(4)]
        self.assertEqual([one.communicate(timeout=60)[1] for one in running], [b""] * 4)
        self.assertEqual(exercises.load_progress(self.root), {"a": {"hints": 199}})


class Judging(Workspace):
    """Uses a bazel and programs that the test writes."""

    def judge(self, bazel, program, *arguments, exercise="tiny/exercises/half"):
        for path, text in (("bin/bazel", bazel),
                           (f"bazel-bin/chapters/{exercise}", program)):
            path = self.root / path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("#!/bin/bash\n" + text)
            path.chmod(0o755)
        before = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", before)
        os.environ["PATH"] = f"{self.root}/bin:{before}"
        return self.run_main(pathlib.Path(exercise).name, *arguments)

    def test_the_next_exercise_is_named(self):
        (self.root / "chapters/chapters.bzl").write_text(
            'C = {\n    "tiny": 1,\n    "large": 1,\n}\n')
        for chapter, names in (("tiny", ("half", "third")), ("large", ("whole",))):
            folder = self.root / "chapters" / chapter / "exercises"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "exercises.md").write_text(
                "".join(f"## {name}: A part\n\nTask.\n\n" for name in names))
        next_is, all_done = "Next: bazel run //:exercises -- ", "This was the last exercise.\n"

        def said(exercise, program="echo RIGHT", *arguments):
            return self.judge("exit 0", MARK + program, *arguments, exercise=exercise)[1]

        self.assertNotIn("Next", said("tiny/exercises/third", "echo WRONG"))
        self.assertNotIn("Next", said("tiny/exercises/third", "echo RIGHT BUT SLOW"))
        self.assertIn(next_is + "whole\n", said("tiny/exercises/third"))
        self.assertIn(next_is + "whole\n", said("tiny/exercises/half"))  # third is right
        exercises.note(self.root, "half", verdict="wrong")
        self.assertIn(all_done + next_is + "half\n", said("large/exercises/whole"))
        self.assertIn("这是最后一道练习。\n下一步：bazel run //:exercises -- half",
                      said("large/exercises/whole", "echo RIGHT", "--lang=zh"))
        self.assertNotIn("Next", said("tiny/exercises/half"))  # all are right
        self.assertTrue(said("large/exercises/whole").endswith(all_done))

    def test_a_right_answer_is_remembered(self):
        code, output = self.judge("exit 0", MARK + "echo RIGHT; echo '  yours 1 ms'")
        self.assertEqual(code, 0)
        self.assertIn("One line, and another.", output)
        self.assertIn("RIGHT\n  yours 1 ms\n\nNotice: It is a factor.\n\n"
                      "A solution: bazel run //:exercises -- half --solution\n", output)
        self.assertNotIn("factor", self.judge("exit 0", MARK + "echo RIGHT BUT SLOW")[1])
        self.judge("exit 0", MARK + "echo WRONG")
        self.assertEqual(exercises.load_progress(self.root)["half"]["verdict"],
                         "right")

    def test_races_are_checked_if_asked_for(self):
        program = MARK + 'echo WRONG; echo "${@: -1}"'
        self.assertIn("--check_races", self.judge("exit 0", program, "--check_races")[1])
        self.assertNotIn("--check_races", self.judge("exit 0", program)[1])

    def test_ptx_is_run_if_asked_for(self):
        # bazel's option, which the program does not know.
        bazel, program = 'echo "$@" > options', MARK + 'echo WRONG; echo "${@: -1}"'
        self.assertNotIn("ptx", self.judge(bazel, program, "--check_ptx")[1])
        self.assertIn("--config=ptx", (self.root / "options").read_text())
        self.judge(bazel, program)
        self.assertNotIn("ptx", (self.root / "options").read_text())

    def test_findings_in_ptx(self):
        # tests/ptx ends the program with 66, whatever the judge says.
        def said(judged, *found):
            lines = "".join(f"echo 'PTX: {line}' >&2; " for line in found)
            return self.judge("exit 0", f"{judged} {lines} exit 66", "--check_ptx")[1]

        output = said(MARK + "echo RIGHT;", "a race at half.cu:12", "1 findings, see above.")
        self.assertIn("\nWRONG\n  The model of a GPU finds nothing wrong. The kernel has a", output)
        self.assertIn("    a race at half.cu:12\n\nA hint: ", output)
        self.assertNotIn("RIGHT", output)
        self.assertEqual(exercises.load_progress(self.root)["half"]["verdict"], "wrong")
        output = said(MARK + "echo WRONG; echo '  misaligned address';",
                      *(f"fault {i}" for i in range(9)))
        self.assertIn("WRONG\n  misaligned address\n\n  What was found in the kernel as nvcc "
                      "compiles it:\n    fault 0\n    fault 1\n    fault 2\n\n", output)
        output = said("", "a race at half.cu:12")
        self.assertIn("WRONG\n  What was found in the kernel as nvcc compiles it:\n    a race",
                      output)
        output = said("", "the interpreter lacks clock64")
        self.assertIn("CRASHED\n  --check_ptx does not know an instruction of the kernel: "
                      "clock64.", output)
        # Another exit code is not of tests/ptx.
        output = self.judge("exit 0", "echo 'PTX: own' >&2; exit 3", "--check_ptx")[1]
        self.assertIn("PTX: own\n\nCRASHED\n  Your code ended the program: exit code 3.", output)

    def test_verdicts(self):
        for said, verdict in exercises.VERDICTS.items():
            (self.root / exercises.PROGRESS).unlink(missing_ok=True)
            self.judge("exit 0", MARK + f"echo {said}")
            self.assertEqual(
                exercises.load_progress(self.root)["half"]["verdict"], verdict)

    def test_the_first_error_of_the_compiler(self):
        messages = """ERROR: chapters/tiny/exercises/BUILD:5:14: Compiling failed
chapters/tiny/exercises/half.cc: In function 'float Half(float)':
chapters/tiny/exercises/half.cc:2:10: error: 'y' was not declared in this scope
    2 |   return y;
      |          ^
chapters/tiny/exercises/half.cc:3:1: error: the next one
"""
        code, output = self.judge(f"cat << 'END'\n{messages}END\nexit 1", "")
        self.assertEqual(code, 1)
        self.assertIn("half.cc:2: 'y' was not declared in this scope\n"
                      "      2 |   return y;", output)
        self.assertNotIn("the next one", output)
        self.assertNotIn("BUILD", output)

    def test_an_error_within_a_header_names_the_learners_line(self):
        messages = """In file included from chapters/tiny/exercises/half.cc:1:
common/ops/ops.h:7:2: error: no match
   7 |  x
chapters/tiny/exercises/half.cc:9:3: note: required from here
"""
        self.assertEqual(
            exercises.first_error(messages, "chapters/tiny/exercises/half.cc"),
            ["common/ops/ops.h:7: no match", "   7 |  x",
             "chapters/tiny/exercises/half.cc:9:3: note: required from here"])

    def test_a_name_of_pytorch_gets_the_right_one(self):
        for owner, name, right in (
                ("class d2l::Tensor", "item", "Item(x)"),
                ("const class d2l::Tensor", "to", "To(x, device)"),
                ("d2l::Event", "Wait", "event.Synchronize(), or stream.Wait(event)"),
                ("class d2l::Stream", "wait_stream", "stream.Wait(other.Record())")):
            for message in (f"'{owner}' has no member named '{name}'",
                            f"‘{owner}’ has no member named ‘{name}’",
                            f"no member named '{name}' in '{owner}'"):
                self.assertEqual(
                    exercises.first_error(f"a.cc:1:2: error: {message}\n    1 |  x\n", "a.cc"),
                    [f"a.cc:1: {message}", "    1 |  x", f"Instead of .{name}: {right}"])
        for message in ("'class d2l::Tensor' has no member named 'other'",
                        "'struct Own' has no member named 'item'",
                        "'class std::vector<d2l::Tensor>' has no member named 'item'",
                        "'y' was not declared in this scope"):
            self.assertEqual(len(exercises.first_error(f"a.cc:1:2: error: {message}", "a.cc")), 1)

    def test_an_error_of_nvcc(self):
        self.assertEqual(
            exercises.first_error('a/map.cu(12): error: identifier "y" is undefined\n'
                                  "    y = 2;\n    ^\n", "a/map.cu"),
            ['a/map.cu:12: identifier "y" is undefined'])

    def test_what_bazel_says_otherwise(self):
        _, output = self.judge("echo no such package; exit 1", "")
        self.assertIn("no such package", output)

    def test_without_bazel(self):
        with unittest.mock.patch.dict(os.environ, {"PATH": str(self.root)}):
            code, output = self.run_main("half")
        self.assertEqual(code, 1)
        self.assertIn("There is no bazel.", output)

    def test_a_build_that_takes_long_shows_its_steps(self):
        long = ("echo Loading: 3 packages; echo '[1 / 1,204] Compiling a.cc';"
                "echo '[1,200 / 1,204] Linking a'")
        with unittest.mock.patch.object(exercises, "PATIENCE", 0):
            _, output = self.judge(long, "true")
            self.assertIn("Building the libraries, once; that takes minutes.\n"
                          "\rBuilding: 1 of 1,204 steps\rBuilding: 1,200 of 1,204 steps\n",
                          output)
            self.assertNotIn("Loading", output)
            self.assertNotIn("Building", self.judge("echo '[1,194 / 1,204] Linking a'", "true")[1])
        with unittest.mock.patch.object(exercises, "PATIENCE", 1000):
            self.assertNotIn("Building", self.judge(long, "true")[1])


class Programs(unittest.TestCase):
    def run_shell(self, command, seconds=20):
        return exercises.run("/bin/bash", ["-c", command], seconds)

    def test_a_crash(self):
        verdict, text = self.run_shell("echo last words >&2; kill -SEGV $$")
        self.assertEqual(verdict, "crashed")
        self.assertIn("memory that is not its own", text)
        self.assertIn("last words", text)
        self.assertIn("nothing catches", self.run_shell("kill -ABRT $$")[1])
        self.assertIn("division", self.run_shell("kill -FPE $$")[1])
        self.assertIn("exit code 3", self.run_shell("exit 3")[1])
        self.assertIn("Real-time signal", self.run_shell("kill -40 $$")[1])

    def test_what_the_answer_prints_is_no_verdict(self):
        verdict, text = self.run_shell("echo n = 3; " + MARK + "echo WRONG")
        self.assertEqual((verdict, text),
                         ("wrong", "Your code printed:\n  n = 3\n\nWRONG"))
        _, text = self.run_shell("echo i = 1 >&2; " + MARK + "echo RIGHT")
        self.assertEqual(text, "Your code printed:\n  i = 1\n\nRIGHT")
        for forged in ("echo RIGHT", "printf '\\x1eRIGHT\\n'", "printf '\\x1e\\nRIGHT\\n'",
                       MARK + "echo RIGHT; exit 3", MARK + "echo GREAT"):
            verdict, text = self.run_shell(forged)
            self.assertEqual(verdict, "crashed")
            self.assertIn("exit code", text)

    def test_what_the_answer_began_ends_with_it(self):
        # Also what has a session of its own, be it begun by what has one.
        for begin in ("sleep 100 &", "sleep 100 & sleep 100", "setsid sleep 100 &",
                      "setsid bash -c 'setsid sleep 100 & sleep 100' & sleep 100",
                      "setsid bash -c 'setsid -f sleep 100; setsid -f sleep 100'; exit 0"):
            with self.subTest(begin), tempfile.TemporaryDirectory() as folder:
                os.mkfifo(f"{folder}/fifo")  # hangs up when no writer is left
                fifo = os.open(f"{folder}/fifo", os.O_RDONLY | os.O_NONBLOCK)
                self.addCleanup(os.close, fifo)
                self.run_shell(f"exec 9> {folder}/fifo; {begin}", seconds=1)
                poll = select.poll()
                poll.register(fifo)
                self.assertEqual(poll.poll(20_000), [(fifo, select.POLLHUP)])

    def test_what_prints_without_end_is_stopped(self):
        verdict, text = self.run_shell("exec yes")
        self.assertEqual(verdict, "stopped")
        self.assertIn("printed without end", text)
        self.assertLess(len(text.splitlines()), 50)

    def test_a_wait_that_does_not_end(self):
        verdict, text = self.run_shell("exec sleep 100", seconds=1)
        self.assertEqual(verdict, "stopped")
        self.assertIn("deadlock", text)

    def test_a_loop_that_does_not_end(self):
        self.assertIn("a loop", self.run_shell("while :; do :; done", seconds=3)[1])


class Repository(unittest.TestCase):
    def test_every_exercise_is_complete(self):
        for lang in ("en", "zh"):
            found = exercises.all_exercises(ROOT, lang)
            names = [e.name for e in found]
            self.assertEqual(len(names), len(set(names)))
            for e in found:
                with self.subTest(lang=lang, exercise=e.name):
                    if e.is_question:
                        self.assertTrue(e.parts["answer"])
                        continue
                    self.assertEqual(len(e.hints), 3)
                    self.assertTrue(e.parts["task"] and e.parts["notice"])
                    self.assertTrue(e.book and e.teaches and e.effort())
                    for file in (f"judges/{e.name}.cc", "solutions/" + e.file_name,
                                 "mistakes/" + e.file_name):
                        self.assertTrue((ROOT / e.folder / file).exists())
                    text = "".join(sum(e.parts.values(), []))
                    self.assertEqual(lang == "zh", bool(re.search("[\u4e00-\u9fff]",
                                                                  text)))

    def test_exercises_and_the_map_of_the_book_agree(self):
        text = (ROOT / "chapters/book.json").read_text(encoding="utf-8")
        cited = {e.name: book_test.cited(e.book)
                 for e in exercises.all_exercises(ROOT)}
        named = book_test.named(book_test.parsed(text), are_exercises=True)
        self.assertEqual(book_test.disagreements(named, cited), [],
                         "type tools/course_lists.py --write")


if __name__ == "__main__":
    unittest.main()
