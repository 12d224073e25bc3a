#!/usr/bin/env python3
"""Tests the book's generator on small results, made here."""
import copy
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../tests")]
import check_book  # noqa: E402
import make_book  # noqa: E402
import results  # noqa: E402

# The packages are Debian's, as make_book.py's interpreter is.
PYTHON = "/usr/bin/python3"
NEEDS_PACKAGES = unittest.skipUnless(
    subprocess.run([PYTHON, "-c", "import jinja2, markdown, pygments"],
                   capture_output=True, check=False).returncode == 0,
    "needs python3-jinja2, python3-markdown and python3-pygments")

SVG = ('<svg xmlns="http://www.w3.org/2000/svg" width="100" height="50">'
       '<title>old</title><defs><marker id="arrow"/></defs>'
       '<path marker-end="url(#arrow)" d="M 0 0"/><text>t</text>'
       '<rect transform="rotate(-90 1.5 2)"/></svg>')


def cell(**more):
    return dict({
        "id": "004/In2", "number": "2.1", "also": [], "title": "A clock",
        "section": "d2l 13.2.1", "exercises": "", "error": "", "seconds": 0.1, "load": None,
        "context": "Ten *times*, [there](../README.md), [d2l](https://d2l.ai/).", "python": "with Benchmark('numpy'):\n    pass",
        "course_printed": "numpy: 0.2660 sec", "predict": "how much?",
        "choices": ["all", "none"], "right": 1, "picture": "+---+\n| <a> |\n+---+", "learn": "wait.", "output": "printed here",
        "source": {"file": "chapters/async_computation/lesson.cc", "line": 3,
                   "text": "int x = 1;"},
        "measured": {"file": "", "line": 0, "text": ""},
        "figures": [{"name": "host library, completion (host)", "unit": "s",
                     "label": "host library, completion", "median": 0.0112, "low": 0.011, "high": 0.012}],
        "claims": [{"text": "It is {}.", "verdict": "HOLDS", "meaning": "It is 2x.",
                    "number": "2x", "evidence": "9 repeats", "reason": "none"}],
        "drawings": [{"name": "the drawing", "label": "the drawing", "text": "",
                      "file": "/elsewhere/a.svg"}]}, **more)


def lesson(*cells, **more):
    return dict({"lesson": "async_computation", "number": 2, "title": "Async",
                 "section": "13.2 https://d2l.ai/a.html", "lang": "en", "size": "small",
                 "notes": [], "devices": [{"name": "cpu:0", "kind": "virtual"}],
                 "cells": list(cells)}, **more)


def read_run(run):
    """The run as results.read_run reads it from a file."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        json.dump(run, file)
        file.flush()
        return results.read_run(file.name)


class Results(unittest.TestCase):
    def test_a_file_that_is_no_run_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.json")
            for text in ("{", "[]", "3", '{"lessons": []}'):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                with self.assertRaisesRegex(ValueError, re.escape(path)):
                    results.read_run(path)

    def test_a_run_is_of_one_lesson_or_of_many(self):
        one, many = read_run(lesson(cell())), read_run({"lessons": [lesson(cell())] * 2})
        self.assertEqual([one["lessons"]] * 2, [many["lessons"][:1], many["lessons"][1:]])
        self.assertEqual((one["machine"], one["lessons"][0]["timelines"]), ("", []))

    def test_an_interval_without_an_end_is_apart_from_none(self):
        figure = dict(cell()["figures"][0], high=None)
        runs = [read_run(lesson(cell(figures=[one]))) for one in (
            figure, dict(figure, low=7, median=8, high=9))]
        self.assertEqual(results.changes(*runs, "en")[1], [])
        self.assertEqual(results.format_value(
            runs[0]["lessons"][0]["cells"][0]["figures"][0]["high"], "s"), "nan ns")

    def test_changes(self):
        before = read_run(lesson(cell()))
        self.assertEqual(results.changes(before, before, "en"), ([], [], []))
        after = copy.deepcopy(before)
        figure = after["lessons"][0]["cells"][0]["figures"][0]
        figure.update(low=0.0119, high=0.02)  # they overlap
        self.assertEqual(results.changes(before, after, "en"), ([], [], []))
        figure.update(low=0.0121)
        after["lessons"][0]["cells"][0]["claims"][0]["verdict"] = "FAILS"
        claims, figures, unlike = results.changes(before, after, "en")
        self.assertEqual([(was["verdict"], now["verdict"]) for _, was, now in claims],
                         [("HOLDS", "FAILS")])
        self.assertEqual(len(figures), 1)
        self.assertEqual(unlike, [])
        claims = after["lessons"][0]["cells"][0]["claims"]
        claims.insert(0, dict(claims[0], text="other", verdict="INCONCLUSIVE"))
        before["lessons"][0]["cells"][0]["claims"].append(dict(claims[0], verdict="HOLDS"))
        self.assertEqual([now["verdict"] for _, _, now in
                          results.changes(before, after, "en")[0]], ["FAILS", "INCONCLUSIVE"])
        after["lessons"][0]["size"] = "course"
        self.assertEqual(results.changes(before, after, "en"),
                         ([], [], ["async_computation"]))

    def test_claims_of_the_same_text_are_told_apart(self):
        claims = [dict(cell()["claims"][0], verdict=v) for v in ("HOLDS", "FAILS")]
        run = read_run(lesson(cell(claims=claims)))
        found = results.by_key(run, "en", "claims", "text")
        self.assertEqual([one["verdict"] for _, one in found.values()],
                         ["HOLDS", "FAILS"])
        self.assertEqual(results.changes(run, run, "en")[0], [])

    def test_comparison_has_a_column_for_each_run(self):
        first = read_run(lesson(cell()))
        second = read_run(lesson(cell(id="other", number="2.2")))
        for run in (first, second):
            run["lessons"].append(lesson(cell(id="a"), lesson="z", number=3))
        (_, cells), (other, _) = results.compared([first, second], "en")
        self.assertEqual(other["lesson"], "z")
        self.assertEqual([[one is None for one in claims[0][1]]
                          for _, claims, _ in cells], [[False, True], [True, False]])

    def test_values(self):
        for value, unit, text in ((2.38, "s", "2.38 s"), (0.058, "s", "58.0 ms"),
                                  (0, "s", "0 ns"), (3 << 20, "B", "3 MiB"), (7, "", "7"),
                                  (1.894, "x", "1.89x"), (1234567, "", "1,234,567"),
                                  (float("inf"), "x", "infx"), (-0.5, "s", "-500 ms")):
            self.assertEqual(results.format_value(value, unit), text)


class Program(unittest.TestCase):
    def test_the_chapters_are_those_of_the_list(self):
        names = make_book.course_texts.chapters(os.path.join(HERE, "../.."))
        self.assertIn("async_computation", names)
        self.assertEqual(len(names), len(set(names)))

    def run_stub(self, text):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "x", "lesson")
            os.makedirs(os.path.dirname(program))
            with open(program, "w", encoding="utf-8") as file:
                file.write("#!/bin/bash\n" + text)
            os.chmod(program, 0o755)
            options = type("Options", (), {"programs": folder, "size": "small",
                                           "lesson_flags": []})
            return make_book.run_lesson("x", "en", options, folder)

    def test_a_lesson_that_wrote_nothing_says_why(self):
        one = self.run_stub("echo because >&2; kill -SEGV $$")
        self.assertEqual(one["cells"], [])
        self.assertRegex(one["failure"], "signal 11\\.\nbecause")
        self.assertEqual(self.run_stub("true")["failure"], "It wrote no results.")

    def test_a_chapter_has_a_number_and_a_title(self):
        root = os.path.join(HERE, "../..")
        self.assertEqual(make_book.course_texts.chapter(root, "async_computation", "zh"),
                         {"number": 2, "title": "异步计算"})
        self.assertEqual(make_book.course_texts.chapter(root, "none", "en"),
                         {"number": 0, "title": "none"})

    def test_a_lesson_that_failed_half_way_keeps_what_it_wrote(self):
        text = json.dumps(lesson(cell(error="it broke")))
        one = self.run_stub(f"echo '{text.replace(chr(39), chr(39) * 2)}' "
                            '> "${3#--json=}"; exit 1')
        self.assertEqual([each["error"] for each in one["cells"]], ["it broke"])
        self.assertIn("exit code 1", one["failure"])

    def test_an_interpreter_that_ends_says_so_for_a_cell(self):
        with tempfile.TemporaryDirectory() as folder:
            fake = os.path.join(folder, "python")
            with open(fake, "w", encoding="utf-8") as file:
                file.write('#!/bin/bash\necho "No module named torch" >&2; exit 1')
            os.chmod(fake, 0o755)
            one = lesson(cell())
            make_book.run_python(one, type("Options", (), {"python": fake, "limit": 1}))
            self.assertEqual([each["error"] for each in one["pytorch"]["cells"]],
                             ["python ended with exit code 1. No module named torch"])

    def test_the_folder_is_the_books_and_one_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            first = make_book.take_folder(os.path.join(folder, "book"))
            with self.assertRaisesRegex(ValueError, "another run writes to .*/book"):
                make_book.take_folder(os.path.join(folder, "book"))
            first.close()
            make_book.take_folder(os.path.join(folder, "book")).close()
            with self.assertRaisesRegex(ValueError, "no book's"):
                make_book.take_folder(folder)
            self.assertEqual(os.listdir(folder), ["book"])

    def test_an_interpreter_without_pytorch_is_refused(self):
        done = subprocess.run(
            [PYTHON, os.path.join(HERE, "make_book.py"), "--python=/bin/false"],
            capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot import torch", done.stderr)

    @NEEDS_PACKAGES
    def test_what_ended_before_ctrl_c_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            name = make_book.course_texts.chapters(os.path.join(HERE, "../.."))[0]
            program = os.path.join(folder, name, "lesson")
            os.makedirs(os.path.dirname(program))
            with open(program, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/bash\n[[ $2 = --lang=zh ]] && kill -INT $PPID && "
                           "exec sleep 60\n"
                           f"echo '{json.dumps(lesson(cell()))}' > \"${{3#--json=}}\"\n")
            os.chmod(program, 0o755)
            done = subprocess.run(
                [PYTHON, os.path.join(HERE, "make_book.py"), f"--programs={folder}",
                 f"--out={folder}/out", "--no_timelines"],
                capture_output=True, text=True, check=False, timeout=50)
            self.assertEqual(done.returncode, 130, done.stderr)
            self.assertIn("--results=", done.stdout)
            run = results.read_run(os.path.join(folder, "out/results.json"))
            self.assertEqual([one["lang"] for one in run["lessons"]], ["en"])

    def test_the_runner_is_like_a_notebook(self):
        # A module with the name of PyTorch replaces it.
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "torch.py"), "w", encoding="utf-8") as file:
                file.write("from unittest.mock import MagicMock\nimport sys\n"
                           "class Fake(MagicMock): pass\nm = Fake()\nm.__version__ = '9'\n"
                           "m.cuda.is_available.return_value = False\n"
                           "m.cuda.device_count.return_value = 0\n"
                           "m.get_num_threads.return_value = 1\nsys.modules['torch'] = m\n")
            cells = {"a": "n = 2\nprint('x')\nn * 21", "b": "!ls", "c": "n.nothing",
                     "d": "while True: pass", "e": "print('cuda:1', n)",
                     "f": "n\nassert n == 3",
                     "g": "import os\nos.write(2, b'much\\n' * 50_000)\nos._exit(3)", "h": "1"}
            one = lesson(*(cell(id=name, python=text) for name, text in cells.items()))
            os.environ["PYTHONPATH"] = folder
            try:
                make_book.run_python(one, type(
                    "Options", (), {"python": sys.executable, "limit": 0.5}))
            finally:
                del os.environ["PYTHONPATH"]
        answers = one["pytorch"]["cells"]
        error = f"{os.path.basename(sys.executable)} ended with exit code 3. much"
        self.assertEqual(one["pytorch"]["version"], "PyTorch 9, CPU, 1 threads")
        self.assertEqual([(one["id"], one["printed"], one["error"], one["note"])
                          for one in answers],
                         [("a", "x\n42\n", "", ""), ("b", "", "", "shell"),
                          ("c", "", "AttributeError: 'int' object has no attribute "
                           "'nothing'", ""), ("d", "", "", ""), ("e", "cpu 2\n", "", "cpu"),
                          ("f", "", "AssertionError: assert n == 3", ""),
                          ("g", "", error, ""), ("h", "1\n", "", "")])
        self.assertEqual([one["stopped"] for one in answers], [0, 0, 0, 0.5, 0, 0, 0, 0])


@NEEDS_PACKAGES
class Pages(unittest.TestCase):
    def make(self, run, *flags, drawings=()):
        """The pages by name, as make_book.py writes them from results."""
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "drawings", "en"))
            for name, text in drawings:
                with open(os.path.join(folder, "drawings", "en", name), "w",
                          encoding="utf-8") as file:
                    file.write(text)
            file = os.path.join(folder, "results.json")
            with open(file, "w", encoding="utf-8") as out:
                json.dump(run, out)
            out = os.path.join(folder, "out")
            done = subprocess.run(
                [PYTHON, os.path.join(HERE, "make_book.py"), f"--results={file}",
                 f"--out={out}", *(flag.replace("FILE", file) for flag in flags)],
                capture_output=True, text=True, check=False)
            self.assertEqual(done.stderr, "")
            pages = {}
            for name in os.listdir(out):
                with open(os.path.join(out, name), encoding="utf-8") as one:
                    pages[name] = one.read()
            return pages

    def test_a_cell_has_all_its_parts(self):
        pages = self.make(lesson(cell()), drawings=[("a.svg", SVG)])
        page = pages["async_computation.html"]
        for text in ("Ten <em>times</em>, <a>there</a>, <a href=\"https://d2l.ai/\">d2l</a>", "how much?", ">all</button>", "printed here",
                     "266 ms", "11.2 ms", "It is 2x.", "9 repeats", "wait.",
                     "https://d2l.ai/a.html", "--cell=004/In2", 'role="img"',
                     "<title id=", "the drawing</title>",
                     "async_computation-lesson.html#line-3",
                     # The picture, and which choice is right.
                     "A picture of what the text above says in words.", ">&lt;a&gt;</text>",
                     'data-mark="correct" class="right">all', 'data-mark="not correct">none'):
            self.assertIn(text, page)
        # PyTorch did not run: nothing stands for it.
        self.assertNotIn("PyTorch here", page)
        self.assertIn("成立", pages["async_computation.zh.html"])
        self.assertIn("https://zh.d2l.ai/a.html", pages["async_computation.zh.html"])
        self.assertIn("front end", pages["glossary.html"])
        self.assertIn("<code>__syncwarp(mask)</code>", pages["cuda_words.html"])
        self.assertIn("线程束", pages["cuda_words.zh.html"])

    def test_a_graph_that_is_no_drawing_is_shown_as_text(self):
        graph = {"name": "z", "label": "z", "text": "\nz\n\n1=a<b>(2)\n", "file": "/else/z.dot"}
        pages = self.make(lesson(cell(drawings=[graph], output="first\n\nz\n\n1=a<b>(2)\nlast")),
                          drawings=[("z.dot", "digraph {}")])
        page = pages["async_computation.html"]
        self.assertIn("<pre>z\n\n1=a&lt;b&gt;(2)</pre>", page)
        self.assertEqual(page.count("1=a&lt;b&gt;(2)"), 1)
        self.assertNotIn("digraph", page)

    def test_drawings_have_ids_of_their_own_and_a_text(self):
        page = self.make(lesson(cell()), drawings=[("a.svg", SVG)])["async_computation.html"]
        svg = re.findall("<svg.*?</svg>", page, re.DOTALL)[-1]
        self.assertNotIn(">old<", svg)
        self.assertIn('style="--width: 100px"', svg)
        name = re.search(r'marker id="([\w-]+)"', svg)[1]
        self.assertNotEqual(name, "arrow")
        self.assertIn(f"url(#{name})", svg)
        self.assertIn('transform="rotate(-90 1.5 2)"', svg)

    def test_texts_are_texts(self):
        evil = ('"><script>alert(1)</script><img src=x onerror=alert(1)>'
                "[x](javascript:alert(1)) {{ 7 * 191 }} '")

        def poison(value, key=""):
            if isinstance(value, dict):
                return {k: poison(v, k) for k, v in value.items()}
            if isinstance(value, list):
                return [poison(v, key) for v in value]
            return evil if isinstance(value, str) and key not in ("lang", "file") else value

        run = poison(read_run(lesson(cell())))
        run["lessons"][0]["pytorch"]["cells"] = [{
            "id": evil, "printed": evil, "error": evil, "note": evil, "stopped": 0}]
        for flags in ((), ("--against=FILE",), ("--compare=FILE,FILE",)):
            pages = self.make(run, *flags)
            for name, text in pages.items():
                self.assertRegex(name, r"^[\w.-]+$")
                if not name.endswith(".html"):
                    continue
                links = check_book.Links(text)
                self.assertEqual(links.faults, [])
                self.assertEqual(set(links.scripts), {"book.js"})
                for _, url in links.urls:
                    self.assertNotIn("javascript:", url)
                self.assertNotIn("1337", text)

    def test_what_failed_is_said(self):
        page = self.make(lesson(cell(error="boom"), failure="exit code 1"))
        self.assertIn("boom", page["async_computation.html"])
        self.assertIn("did not run to its end", page["async_computation.html"])
        self.assertIn("did not run to its end", page["index.html"])
        self.assertIn("exit code 1", self.make(lesson(failure="exit code 1"))[
            "async_computation.html"])

    def test_links_lead_to_pages_that_there_are(self):
        run = {"lessons": [lesson(cell()), lesson(lang="zh", failure="exit code 1")]}
        pages = self.make(run)
        source = pages["async_computation-lesson.html"]
        self.assertNotIn("async_computation-lesson.zh.html", pages)
        self.assertNotIn("async_computation-lesson.zh.html", source)
        self.assertIn("async_computation-lesson.zh.html", self.make(lesson(cell()))[
            "async_computation-lesson.html"])

    def test_the_index_names_exercises_and_the_load(self):
        pages = self.make(lesson(cell(load={"cores": 1.44, "of": 2})))
        self.assertIn("in 1 of 1 cells other programs used up to 1.4 of its 2 cores",
                      pages["index.html"])
        self.assertNotIn("busy", self.make(lesson(cell(load=None)))["index.html"])
        self.assertIn("async_computation.html#exercise-wait_for_less", pages["index.html"])
        self.assertIn('id="exercise-wait_for_less"', pages["async_computation.html"])
        self.assertIn("//:exercises -- --lang=zh wait_for_less",
                      pages["async_computation.zh.html"])
        self.assertIn("-- --lang=zh --cell=004/In2", pages["async_computation.zh.html"])
        self.assertIn("虚拟：cpu:0", pages["async_computation.zh.html"])

    def test_the_index_shows_what_a_chapter_measured_and_what_one_can_do_then(self):
        pages = self.make(lesson(cell(id="004/In4")), drawings=[("a.svg", SVG)])
        self.assertIn("You can time work on a device", pages["index.html"])
        self.assertIn("能给设备上的工作计时", pages["index.zh.html"])
        self.assertIn("the drawing</title>", pages["index.html"])
        # The drawing belongs to another cell than the one that lesson.md names.
        self.assertNotIn("<svg", self.make(lesson(cell()), drawings=[("a.svg", SVG)])[
            "index.html"])

    def test_how_a_cell_is_measured_is_folded(self):
        measured = {"file": "chapters/async_computation/lesson.cc", "line": 5,
                    "text": "Measure(x);"}
        page = self.make(lesson(cell(measured=measured)))["async_computation.html"]
        folded = re.search(r"<details class=.code.>.*?</details>", page, re.DOTALL)[0]
        self.assertIn("How it is measured", folded)
        self.assertIn("Measure", folded)
        self.assertIn("async_computation-lesson.html#line-5", folded)
        self.assertNotIn("How it is measured", self.make(lesson(cell()))[
            "async_computation.html"])

    def test_python_column(self):
        one = lesson(cell(), pytorch={"version": "PyTorch 9", "cells": [
            {"id": "004/In2", "printed": "numpy: 0.5000 sec\nSelf CPU time total: 25.3ms\n",
             "error": "E: e", "note": "mxnet cpu", "stopped": 60}]})
        page = self.make(one)["async_computation.html"]
        for text in ("500 ms", "Self CPU time total</th>", "25.3 ms", "PyTorch 9", "E: e",
                     "There is no GPU", "Written for MXNet", "Stopped after 60 s"):
            self.assertIn(text, page)
        self.assertNotIn("--python=", page)

    def test_comparison_and_changes(self):
        run = lesson(cell())
        self.assertIn("All verdicts are what they were",
                      self.make(run, "--against=FILE")["index.html"])
        page = self.make(run, "--compare=FILE,FILE")["compare.html"]
        self.assertIn("It is ….", page)
        claims = page[page.index("<table"):]
        self.assertEqual(claims.count('class="badge holds"'), 2)
        self.assertNotIn('class="differs"', page)


if __name__ == "__main__":
    unittest.main()
