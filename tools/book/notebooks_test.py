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

    def test_each_language_shows_the_python_of_the_course(self):
        for name in notebooks.course_texts.chapters(ROOT):
            counts = [sum(text.count("```python") for text in sources(
                notebooks.notebook(ROOT, name, lang), "markdown"))
                      for lang in notebooks.LANGUAGES]
            self.assertGreater(counts[0], 0)
            self.assertEqual(counts[0], counts[1])

    def test_a_folder_with_notebooks_stays_as_it_is(self):
        program = [sys.executable, os.path.join(FOLDER, "notebooks.py")]
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([*program, f"--out={folder}"], check=True, stdout=subprocess.DEVNULL)
            again = subprocess.run([*program, f"--out={folder}"], check=False,
                                   capture_output=True, text=True)
            self.assertEqual(again.returncode, 1)
            self.assertIn("--out=DIR", again.stderr)

    def test_an_unchanged_exercise_overwrites_no_answer(self):
        magic, display = types.ModuleType("magic"), types.ModuleType("display")
        magic.register_cell_magic = lambda function: function
        display.SVG = display.display = None
        modules = {"IPython": types.ModuleType("IPython"), "IPython.core": types.ModuleType("core"),
                   "IPython.core.magic": magic, "IPython.display": display}
        setup = notebooks.SETUP.format(name="a", lang="en", lost="", kept="kept")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "answer.cc")
            pathlib.Path(folder, "MODULE.bazel").touch()
            file.write_text("my answer\n", encoding="utf-8")
            done = types.SimpleNamespace(stdout="// to do\n", returncode=0)
            names = {}
            with mock.patch.dict(sys.modules, modules), mock.patch(
                    "pathlib.Path.cwd", return_value=pathlib.Path(folder)), mock.patch(
                        "subprocess.run", return_value=done), mock.patch("builtins.print"):
                exec(setup, names)  # pylint: disable=exec-used
                names["answer"]("answer.cc", "// to do\n")
                self.assertEqual(file.read_text(encoding="utf-8"), "my answer\n")
                names["answer"]("answer.cc", "better\n")
                self.assertEqual(file.read_text(encoding="utf-8"), "better\n")


if __name__ == "__main__":
    unittest.main()
