#!/usr/bin/env python3
"""The lessons' texts in both languages, held against each other and the code.

Every cell has a section in lesson.md and lesson.zh.md, a mark in the code and
a line in cells.json, in one order. Every sentence that the code says (Say,
Worded, Lead, Translated and the claims; common/lesson/language.h) has a row in
a table, with the same conversions; every row is of something in the code.
"""
import glob
import json
import os
import re
import unittest

LITERAL = r'"(?:[^"\\\n]|\\.)*"'
LITERALS = re.compile(r"%s(?:\s*%s)*" % (LITERAL, LITERAL))
SAYS = re.compile(r"\b(Say|Worded|Lead|Claim|Phrase)\(\s*(?=(.))", re.S)
CONVERSION = re.compile(r"%(?:(\d+)\$)?[-+ #0]*(?:\d+|\*)?(?:\.\d+)?([a-zA-Z%])")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def squeeze(text):
    return " ".join(text.split())


def text_of(literals):
    """What adjacent literals are, for the compiler."""
    text = "".join(part[1:-1] for part in re.findall(LITERAL, literals))
    text = re.sub(r"\\n", "\n", text)
    return re.sub(r"\\(.)", r"\1", text)


def uncommented(code):
    return re.sub(r"^\s*//.*$|^#include.*$", "", code, flags=re.M)


def literals(code):
    """As they stand, and without what joins them to others."""
    found = {re.sub(r"\s+", " ", line) for match in LITERALS.findall(uncommented(code))
             for line in [text_of(match)] + text_of(match).split("\n")}
    return found | {literal.strip(ends) for literal in found for ends in (" ", " ,:")}


def sentences(code):
    """What the code says, and where it says what is no literal."""
    said, unclear = set(), []
    code = uncommented(code)
    for match in SAYS.finditer(code):
        literal = LITERALS.match(code, match.end())
        if literal:
            said.add(squeeze(text_of(literal.group())))
        elif match.group(1) == "Say" or (
                match.group(1) == "Claim" and
                not code.startswith("Worded(", match.end())):
            unclear.append(code[match.start():match.end() + 40])
    return said, unclear


def rows(markdown):
    found = []
    for line in markdown.splitlines():
        cells = [cell.strip().replace("\\|", "|")
                 for cell in re.split(r"(?<!\\)\|", line)]
        if len(cells) == 4 and cells[1] != "English" and cells[1].strip("-"):
            found.append((squeeze(cells[1]), cells[2]))
    return found


def conversions(text):
    """The kinds of the arguments, in their order; None if positions are mixed
    with none."""
    found = [m for m in CONVERSION.findall(text) if m[1] != "%"]
    positions = [int(position) for position, _ in found if position]
    if positions and len(positions) != len(found):
        return None
    if positions:
        found.sort(key=lambda m: int(m[0]))
    return [kind for _, kind in found] + ["{}"] * text.count("{}")


def is_put_together(key, parts, pieces=3):
    """Whether the code can make it of its literals with their spaces, as "Item" +
    " behind it", and of numbers; or of them and of what is filled in."""
    def is_one(text):
        return text.isdigit() or text in ("s", ": ") or len(text) > 2 and text in parts
    if "%s" in key and pieces == 3 and all(
            text.strip(" .:") in parts for text in key.split("%s") if text.strip(" .:")):
        return True
    return is_one(key) or pieces > 1 and any(
        is_one(key[:i]) and is_put_together(key[i:], parts, pieces - 1)
        for i in range(1, len(key)))


CHAPTERS = sorted(os.path.dirname(path) for path in glob.glob("chapters/*/lesson.md"))
COMMON = "common/lesson"
# What else speaks by common/lesson/sentences.zh.md.
SPEAKERS = ["common/" + name
            for name in ("base", "data", "device", "drawing", "parallel", "profiler",
                         "training")]


def code_of(folder):
    if folder == COMMON:
        return "\n".join(map(code_in, [COMMON] + SPEAKERS))
    return code_in(folder)


def code_in(folder):
    return "\n".join(read(path) for path in sorted(
        glob.glob(folder + "/*.cc") + glob.glob(folder + "/*.h") +
        glob.glob(folder + "/*/*.cc"))
        if not path.endswith("_test.cc") and "/sample_lesson" not in path)


def table_of(folder):
    if folder == COMMON:
        return rows(read(COMMON + "/sentences.zh.md"))
    return [row for path in sorted(glob.glob(folder + "/*.zh.md"))
            if not path.endswith("/README.zh.md") for row in rows(read(path))]


class TextsTest(unittest.TestCase):

    def test_every_chapter_is_here(self):
        listed = [c["name"] for c in json.loads(read("chapters/cells.json"))["chapters"]]
        self.assertEqual(sorted(listed), [os.path.basename(c) for c in CHAPTERS])

    def test_the_cells_are_the_same_everywhere(self):
        listed = {c["name"]: [cell["id"] for cell in c["cells"]]
                  for c in json.loads(read("chapters/cells.json"))["chapters"]}
        for chapter in CHAPTERS:
            ids = listed[os.path.basename(chapter)]
            code = code_of(chapter)
            marks = {mark.strip() for line in re.findall(r"^// %% (.+)$", code, re.M)
                     for mark in line.split(",")}
            with self.subTest(chapter):
                self.assertEqual(marks, set(ids), "marks in the code")
                self.assertEqual(re.findall(r'\{"([^"]+/[^"]+)", \w+\}', code), ids,
                                 "RegisterLesson")
                for name in ("lesson.md", "lesson.zh.md"):
                    found = re.findall(r"^## (\S+): .", read(chapter + "/" + name), re.M)
                    self.assertEqual(found, ids, name)

    def test_sections_have_the_same_parts(self):
        def parts(markdown):
            return [(section.split(":")[0], "**：" in section or ":**" in section or
                     "：**" in section, len(re.findall(r"^- (?!Also|Book|Exercises)",
                                                      section, re.M)))
                    for section in re.split(r"^## ", markdown, flags=re.M)[1:]]
        for chapter in CHAPTERS:
            with self.subTest(chapter):
                self.assertEqual(parts(read(chapter + "/lesson.md")),
                                 parts(read(chapter + "/lesson.zh.md")))

    def test_every_sentence_has_a_row(self):
        common = {english for english, _ in table_of(COMMON)}
        for folder in CHAPTERS + [COMMON]:
            known = common | {english for english, _ in table_of(folder)}
            said, unclear = sentences(code_of(folder))
            with self.subTest(folder):
                self.assertEqual(sorted(said - known), [])
                if folder != COMMON:
                    self.assertEqual(unclear, [], "the first argument is a literal")

    def test_every_row_is_in_the_code(self):
        common = literals(code_of(COMMON))
        for folder in CHAPTERS + [COMMON]:
            parts = common | literals(code_of(folder))
            with self.subTest(folder):
                self.assertEqual([english for english, _ in table_of(folder)
                                  if english not in parts and
                                  not is_put_together(english, parts)], [])

    def test_rows_have_the_same_conversions(self):
        for folder in CHAPTERS + [COMMON]:
            for english, chinese in table_of(folder):
                with self.subTest(folder + ": " + english):
                    self.assertEqual(conversions(chinese), conversions(english))

    def test_words_within_a_message_are_marked_where_it_is_none_of_say(self):
        # Say would print the braces (TranslatedMessage of common/base/console/language.h).
        for folder in CHAPTERS + [COMMON]:
            said = sentences(code_of(folder))[0]
            for english, chinese in table_of(folder):
                self.assertFalse("{%" in chinese and english in said, english)

    def test_a_sentence_has_one_translation(self):
        seen = {}
        for folder in CHAPTERS + [COMMON]:
            for english, chinese in table_of(folder):
                self.assertEqual(seen.setdefault(english, chinese), chinese,
                                 "%s: %s" % (folder, english))


class ParsingTest(unittest.TestCase):

    def test_sentences(self):
        said, unclear = sentences('Say("a %s\\n"\n  "b", x); cell.Claim(Worded("c")); '
                                  'cell.Claim(name + "d"); Lead("e:");\n  // Say("f")\n'
                                  'Say(x)')
        self.assertEqual(said, {"a %s b", "c", "e:"})
        self.assertEqual([u[:5] for u in unclear], ["Claim", "Say(x"])

    def test_conversions(self):
        self.assertEqual(conversions("%s %.0f %% {}"), ["s", "f", "{}"])
        self.assertEqual(conversions("{} %2$.0f %1$-8s"), ["s", "f", "{}"])
        self.assertIsNone(conversions("%s %2$s"))

    def test_rows(self):
        self.assertEqual(rows("| English | 中文 |\n|---|---|\n| a \\| b | 一 |\n"),
                         [("a | b", "一")])

    def test_put_together(self):
        parts = literals('"an" "other, "  + f("one", ": done", " ", ",", "of", " on ")')
        self.assertTrue(is_put_together("another, one: done", parts))
        self.assertTrue(is_put_together("another, 12", parts))
        self.assertTrue(is_put_together("%s done", parts))
        for row in ("another, e", "one of", "one,", "one one", "one on one on", "%s gone",
                    "of one done another"):
            self.assertFalse(is_put_together(row, parts), row)


if __name__ == "__main__":
    unittest.main()
