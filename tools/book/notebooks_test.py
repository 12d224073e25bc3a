#!/usr/bin/env python3
"""Tests notebooks.py."""
import ast
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

FOLDER = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, FOLDER)
import notebooks  # noqa: E402

ROOT = os.path.realpath(os.path.join(FOLDER, "../.."))


def sources(book, kind):
    return [cell["source"] for cell in book["cells"] if cell["cell_type"] == kind]


class Notebooks(unittest.TestCase):

    def test_every_cell_of_each_lesson_runs(self):
        for name in notebooks.course_texts.chapters(ROOT):
            ids = list(notebooks.course_texts.read_sections(ROOT, "chapters", name, "lesson.md"))
            for lang in notebooks.LANGUAGES:
                book = notebooks.notebook(ROOT, name, lang)
                runs = [text for text in sources(book, "code") if text.startswith("run(")]
                self.assertEqual(runs, [f'run("{key}")' for key in ids])
                ast.parse(sources(book, "code")[0])

    def test_each_language_shows_the_course_s_python_and_the_pictures(self):
        for name in notebooks.course_texts.chapters(ROOT):
            both = ["\n".join(sources(notebooks.notebook(ROOT, name, lang), "markdown"))
                    for lang in notebooks.LANGUAGES]
            for shown in "```python", "![](data:image/svg+xml;base64,":
                self.assertGreater(both[0].count(shown), 0)
                self.assertEqual(both[0].count(shown), both[1].count(shown))
            self.assertNotIn("```picture", both[0] + both[1])

    def test_a_folder_with_notebooks_stays_as_it_is(self):
        program = [sys.executable, os.path.join(FOLDER, "notebooks.py")]
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([*program, f"--out={folder}"], check=True, stdout=subprocess.DEVNULL)
            again = subprocess.run([*program, f"--out={folder}"], check=False,
                                   capture_output=True, text=True)
            self.assertEqual(again.returncode, 1)
            self.assertIn("--out=DIR", again.stderr)

    def start(self, folder, lang="en"):
        """The names of the first cell, run in a folder; what is shown is in self.shown."""
        magic, display = types.ModuleType("magic"), types.ModuleType("display")
        magic.register_cell_magic = lambda function: function
        self.shown = []
        display.SVG, display.display = str, self.shown.append
        modules = {"IPython": types.ModuleType("IPython"), "IPython.core": types.ModuleType("core"),
                   "IPython.core.magic": magic, "IPython.display": display}
        names = {"print": lambda *words, **_: self.shown.append(words[0])}
        with mock.patch.dict(sys.modules, modules), mock.patch(
                "pathlib.Path.cwd", return_value=pathlib.Path(folder)):
            exec(notebooks.SETUP.format(  # pylint: disable=exec-used
                name="a", lang=lang, **notebooks.WORDS[lang]), names)
        return names

    def test_an_unchanged_exercise_overwrites_no_answer(self):
        done = types.SimpleNamespace(stdout="// to do\n", returncode=0)
        with tempfile.TemporaryDirectory() as folder, mock.patch(
                "subprocess.run", return_value=done), mock.patch("subprocess.Popen"):
            file = pathlib.Path(folder, "answer.cc")
            pathlib.Path(folder, "MODULE.bazel").touch()
            file.write_text("my answer\n", encoding="utf-8")
            names = self.start(folder)
            names["answer"]("answer.cc", "// to do\n")
            self.assertEqual(file.read_text(encoding="utf-8"), "my answer\n")
            names["answer"]("answer.cc", "better\n")
            self.assertEqual(file.read_text(encoding="utf-8"), "better\n")

    def test_a_pack_needs_no_bazel(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(SystemExit, "upload a pack, d2l.tar.xz"):
                self.start(folder)
            program = pathlib.Path(folder, "d2l/bin/lesson_a")
            program.parent.mkdir(parents=True)
            program.write_text("#!/bin/sh\necho $1 $3 $5\necho '<svg/>' > ${4#--svg=}/a.svg\n"
                               "echo Written: ${4#--svg=}/a.svg\n"
                               "case $LD_LIBRARY_PATH in */d2l/lib*) ;; *) exit 1 ;; esac\n",
                               encoding="utf-8")
            program.chmod(0o755)
            pathlib.Path(folder, "d2l/built.txt").write_text("commit 1\n", encoding="utf-8")
            archive = ["tar", "-C", folder, "-cJf", folder + "/d2l.tar.xz", "d2l"]
            subprocess.run([*archive, "--remove-files"], check=True)
            names = self.start(folder, "zh")
            self.assertIn("commit 1\n", self.shown)
            names["flags"] = ["--size=small"]
            names["run"]("1.1")
            self.assertEqual(self.shown[-2:],
                             ["--cell=1.1 --lang=zh --size=small\n", "<svg/>\n"])
            names["answer"]("a.cc", "other")
            names["judge"]("wait_for_less")
            self.assertEqual(self.shown[-1], notebooks.WORDS["zh"]["unjudged"])
            program.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
            with self.assertRaisesRegex(RuntimeError, "1.2: exit code 3"):
                names["run"]("1.2")


if __name__ == "__main__":
    unittest.main()
