#!/usr/bin/env python3
"""Compares the lessons' texts in both languages with each other and with the code.

Every cell has a section in lesson.md and lesson.zh.md, in one order, a mark in the
code and its D2L_CELL. Every text that the code says (Say, Worded
and the other functions of common/base/console/language.h), or the tools say, has a
translation in po/zh.po, with the same conversions; every entry there is of a text in
the code.
"""
import ast
import glob
import json
import os
import re
import subprocess
import sys
import unittest

sys.path[:0] = ["po", "tools"]
import catalogue  # noqa: E402
import exercises  # noqa: E402

LITERALS = re.compile(catalogue.LITERALS)
CLAIMS = re.compile(r"\bClaim\(\s*(?:Worded\(\s*)?(%s)" % catalogue.LITERALS)
SAYS = re.compile(r"\b(Say|Claim)\(\s*(?=(.))", re.S)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def uncommented(code):
    return re.sub(r"^\s*//.*$|^#include.*$", "", code, flags=re.M)


def literals(code):
    """The literals of the code, whole and line by line."""
    return {line for match in LITERALS.findall(uncommented(code))
            for line in [catalogue.text_of(match)] + catalogue.text_of(match).split("\n")}


def unclear(code):
    """The places where the code says something that is no literal."""
    return [code[match.start():match.end() + 40] for match in SAYS.finditer(code)
            if not LITERALS.match(code, match.end()) and
            not code.startswith("Worded(", match.end())]


def messages(path, **keywords):
    """The texts of a Python program: the literals in the first arguments of these functions.
    keywords: how many, as in messages(path, _=1, ngettext=2). Also a template's texts in _."""
    text = read(path)
    if not path.endswith(".py"):
        return set(re.findall(r"""\b_\(['"](.+?)['"]\)""", text))
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return {part.value for call in calls
            for argument in call.args[:keywords.get(
                getattr(call.func, "id", getattr(call.func, "attr", "")), 0)]
            for part in ast.walk(argument)
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value}


CHAPTERS = sorted(os.path.dirname(path) for path in glob.glob("chapters/*/lesson.md"))
CHINESE = catalogue.read("po/zh.po")
SOURCES = catalogue.sources()
PYTHON = sorted(glob.glob("tools/**/*.py", recursive=True) +
                glob.glob("tools/**/*.html", recursive=True))


def code_of(folder):
    return "\n".join(read(path) for path in SOURCES if path.startswith(folder + "/"))


# Words of the glossary that a chapter's text defines in the cell that uses them first, or in one
# before it, and the forms in which they stand there.
TERMS = {"front end": "front ends?", "back end": "back ends?", "queue": "queues?",
         "stream": "streams?", "event": "events?", "barrier": "barriers?",
         "pinned memory": "pinned", "graph": "graphs?", "trace": "traces?|traced|tracing",
         "kernel": "kernels?", "bucket": "buckets?", "allreduce": "allreduce",
         "roofline": "roofline|roof", "replica": "replicas?", "shard": "shards?|sharded",
         "bubble": "bubbles?", "micro-batch": "micro-batch(es)?", "warp": "warps?",
         "sector": "sectors?", "coalescing": "coalescing|coalesced"}


def undefined(sections):
    """What a chapter uses before it defines it, or says that it defines and does not name."""
    found, defined = [], set()
    for section in sections.values():
        text = " ".join(body for label, body in section.parts.items())
        text = re.sub("(?ms)^```.*?^```$", "", text)
        defines = [word for word in section.facts.get("Defines", "").split(", ") if word]
        defined.update(defines)
        used = [word for word, form in TERMS.items() if re.search(rf"(?i)\b({form})\b", text)]
        found += [f"{section.name} uses {word}" for word in used if word not in defined]
        found += [f"{section.name} defines {word}" for word in defines if word not in used]
    return found


def listed():
    """{chapter: its cells}, with the chapter that is there to be copied."""
    cells = json.loads(read("chapters/cells.json"))
    return {c["name"]: [cell["id"] for cell in c["cells"]]
            for c in cells["chapters"] + [cells["pattern"]]}


LISTED = listed()


class TextsTest(unittest.TestCase):

    def test_every_chapter_is_here(self):
        self.assertEqual(sorted(LISTED), [os.path.basename(c) for c in CHAPTERS])

    def test_the_cells_are_the_same_everywhere(self):
        for chapter in CHAPTERS:
            ids = LISTED[os.path.basename(chapter)]
            code = code_of(chapter)
            marks = {mark.strip() for line in re.findall(r"^// %% (.+)$", code, re.M)
                     for mark in line.split(",")} - {"measured"}
            with self.subTest(chapter):
                self.assertEqual(marks, set(ids), "marks in the code; cells of lesson.md")
                self.assertEqual(sorted(re.findall(r'^D2L_CELL\("([^"]+)", \w+\);', code, re.M)),
                                 sorted(ids), "D2L_CELL in the code; cells of lesson.md")
                for name in ("lesson.md", "lesson.zh.md"):
                    found = re.findall(r"^## (\S+): .", read(chapter + "/" + name), re.M)
                    self.assertEqual(found, ids, name)

    def test_sections_have_the_same_parts(self):
        def parts(markdown):
            return [(section.split(":")[0], "**：" in section or ":**" in section or
                     "：**" in section, len(re.findall(
                         r"^- (?!Group|组|Also|Book|Exercises|Does|内容|Defines|Timed|Claims|Not drawn|Rows)",
                         section, re.M)))
                    for section in re.split(r"^## ", markdown, flags=re.M)[1:]]
        for chapter in CHAPTERS:
            with self.subTest(chapter):
                self.assertEqual(parts(read(chapter + "/lesson.md")),
                                 parts(read(chapter + "/lesson.zh.md")))

    def test_terms_are_defined_where_a_chapter_first_uses_them(self):
        glossary = read("chapters/glossary.md")
        for word in TERMS:
            self.assertIn(f"\n| {word} |", glossary)
        for chapter in CHAPTERS:
            with self.subTest(chapter):
                sections = exercises.course_texts.sections(read(chapter + "/lesson.md"))
                self.assertEqual(undefined(sections), [], 'define it, and name it in "- Defines: "')

    def test_claims_read_right_under_each_verdict(self):
        claims = [catalogue.text_of(said) for chapter in CHAPTERS
                  for said in CLAIMS.findall(uncommented(code_of(chapter)))]
        self.assertGreater(len(claims), 100)
        for claim in claims:
            for verdict in ("HOLDS", "FAILS", "INCONCLUSIVE"):
                print(verdict, "  ", claim.replace("{}", "1.00x"), sep="")
            # What is claimed does not depend on the figure, which stands behind it.
            self.assertRegex(claim, r"^[^{}]+(: \{\})?\.$")
            self.assertRegex(CHINESE[claim], r"^[^{}]+(：\{\}[个条次]?)?。$")

    def test_every_text_has_a_translation(self):
        texts = {**catalogue.said(SOURCES), **catalogue.judged()}
        self.assertEqual(sorted(set(texts) - set(CHINESE)), [],
                         "type po/catalogue.py --add, and fill in msgstr in po/zh.po")

    def test_what_the_tools_say_has_a_translation(self):
        doctor = [path for path in PYTHON if path.startswith("tools/doctor/")]
        tools = {
            "book": [messages(path, _=1) for path in PYTHON if path.startswith("tools/book/")],
            "doctor": [messages(path, _=1, ngettext=2) for path in doctor] + [
                {"doctor\4" + word for word in messages(path, fact=2)} for path in doctor],
            "exercises": [messages("tools/exercises.py", say=1, sentence=1),
                          exercises.VERDICTS, exercises.course_texts.chapters(".")]}
        for tool, said_there in tools.items():
            with self.subTest(tool):
                self.assertGreater(len(set().union(*said_there)), 30)
                self.assertEqual(set().union(*said_there) - set(CHINESE), set())

    def test_texts_are_literals(self):
        for folder in CHAPTERS:
            with self.subTest(folder):
                self.assertEqual(unclear(uncommented(code_of(folder))), [])

    def test_every_translation_is_of_a_text(self):
        there = set(catalogue.said(SOURCES)).union(
            *(literals(read(path)) for path in SOURCES + PYTHON + glob.glob("chapters/*/**/*.cu", recursive=True)),
            *(messages(path, _=1, say=1) for path in PYTHON),
            exercises.course_texts.chapters("."))
        keys = {key.rpartition("\4")[2] for key in CHINESE}  # without its context
        self.assertEqual(sorted(keys - there), [], "remove it from po/zh.po")

    def test_no_blank_stands_between_chinese_and_latin_letters(self):
        blank = re.compile("[\u4e00-\u9fff] [A-Za-z0-9`%]|[A-Za-z0-9`)] [\u4e00-\u9fff]")
        self.assertEqual([text for text in CHINESE.values() if blank.search(text)], [])

    def test_translations_have_the_same_conversions(self):
        subprocess.run(["msgfmt", "--check-format", "-o", os.devnull, "po/zh.po"], check=True)
        for english, chinese in CHINESE.items():
            with self.subTest(english):
                self.assertEqual(len(re.findall(r"\{\d?\}", chinese)), english.count("{}"))


class ParsingTest(unittest.TestCase):

    def test_undefined(self):
        self.assertEqual(undefined(exercises.course_texts.sections(
            "# A\n\n## 1/a: A\n\n- Defines: event, queue\n\nA queue is a list.\n\n"
            "```python\nstream\n```\n\n## 1/b: B\n\nTwo queues.\n\n**You learn:** streams.\n")),
            ["1/a defines event", "1/b uses stream"])

    def test_unclear(self):
        self.assertEqual([u[:7] for u in unclear('Say("a"); cell.Claim(Worded("c")); '
                                                 'cell.Claim(name + "d"); Say(x)')],
                         ["Claim(n", "Say(x)"])

    def test_literals(self):
        self.assertEqual(literals('f("a\\n"\n  "b", "\\"c"); // "d"\n  // "e"'),
                         {"a\nb", "a", "b", '"c', "d"})


if __name__ == "__main__":
    unittest.main()
