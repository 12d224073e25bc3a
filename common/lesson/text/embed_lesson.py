#!/usr/bin/env python3
"""embed_lesson.py NUMBER NAME DEVICES FILE...: prints C++ that holds a lesson's texts and sources.

NUMBER, NAME and DEVICES are members of Lesson (lesson.h). A FILE that ends in .md has texts: LESSON.md, then LESSON.zh.md. lesson.h describes them, and
tools/course_texts.py reads them. What is wrong in one ends the build, with file and line. The
text of every other FILE is registered under its name: source.h.
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../../../tools"))
import course_texts  # noqa: E402

# The members of CellText, in its order; see lesson.h.
MEMBERS = ["id", "title", "also", "section", "exercises", "context", "picture", "python", "course_printed",
           "predict", "choices", "right", "learn"]
PARTS = {"": "context", "Predict": "predict", "预测": "predict",
         "You learn": "learn", "你会学到": "learn"}
# The list at the head of a section; "内容" is the translation's.
FACTS = ["Group", "组", "Also", "Book", "Exercises", "Does", "内容", "Defines", "Timed", "Claims",
         "Not drawn", "Rows"]
CODE = {"python": "python", "text": "course_printed", "picture": "picture"}
# Of a picture, so that a terminal shows it beside the cell's text.
MAX_LINES, MAX_COLUMNS = 12, 80


def cell(section):
    """The content of a section: {member: value}."""
    said = {"id": section.name}
    if section.title:
        said["title"] = section.title
    for fact in section.facts:
        if fact not in FACTS:
            raise ValueError(f'has a fact "{fact}"; there are {", ".join(FACTS)}')
    for fact, member in (("Book", "section"), ("Exercises", "exercises")):
        if fact in section.facts:
            said[member] = section.facts[fact]
    if "Also" in section.facts:
        said["also"] = section.facts["Also"].split(", ")
    for label, body in section.parts.items():
        if label not in PARTS:
            raise ValueError(f'has a part "{label}"; there are Predict and You learn')
        text = []
        for paragraph in course_texts.paragraphs(body):
            if paragraph.startswith("```"):
                language, _, code = paragraph[3:].partition("\n")
                if language not in CODE:
                    raise ValueError(f'has code in "{language}"; there are {", ".join(CODE)}')
                said[CODE[language]] = code.removesuffix("```").removesuffix("\n")
                lines = said.get("picture", "").split("\n")
                if len(lines) > MAX_LINES or max(map(course_texts.columns, lines)) > MAX_COLUMNS:
                    raise ValueError(f"has a picture of more than {MAX_LINES} lines or "
                                     f"{MAX_COLUMNS} columns")
            elif not paragraph.startswith("- "):
                text.append(paragraph)
            elif PARTS[label] == "predict":
                said.setdefault("choices", []).append(paragraph[2:])
            else:
                raise ValueError("has a list; only Predict has one")
        if text:
            said[PARTS[label]] = "\n\n".join(text)
    for i, choice in enumerate(said.get("choices", [])):
        if choice.startswith("[x] "):
            said["choices"][i], said["right"] = choice[4:], i + 1
    return said


def lesson(file, text, english=None):
    """(title, place in the book, [cell]) of the file's text. `english` is that of the English
    text, for a translation, which leaves out what it does not translate."""
    head = course_texts.head(text)
    if not head:
        raise ValueError(f'{file}:1: there is no line "# TITLE"')
    try:
        sections = course_texts.sections(text)
    except ValueError as error:
        raise ValueError(f"{file}:{error}") from None
    cells = english[2] if english else []
    at = 0
    for section in sections.values():
        try:
            said = cell(section)
            if not english:
                if "title" not in said:
                    raise ValueError("has no title")
                cells = cells + [said]
                continue
            ids = [one["id"] for one in cells]
            if section.name not in ids[at:]:
                raise ValueError("is not in the English text, or stands behind a later one")
            at = ids.index(section.name)
            if "choices" in said and len(said["choices"]) != len(cells[at].get("choices", [])):
                raise ValueError("has not as many choices as in English")
            cells = cells[:at] + [{**cells[at], **said}] + cells[at + 1:]
        except ValueError as error:
            raise ValueError(f"{file}:{section.line}: {section.name} {error}") from None
    return head.title, head.parts[""], cells


def cpp(value):
    """A text, a number or a list, in C++."""
    if isinstance(value, list):
        return "{" + ", ".join(map(cpp, value)) + "}"
    return course_texts.catalogue.cpp_literal(value) if isinstance(value, str) else str(value)


def main(number, name, devices, files):
    empty = {"also": [], "choices": [], "right": 0}
    english, texts = None, []
    print('#include "common/lesson/text/lesson.h"\n#include "common/lesson/text/source.h"\n\n'
          "[[maybe_unused]] static const bool registered[] = {")
    for file in files:
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
        if not file.endswith(".md"):
            print(f"    d2l::RegisterSource({cpp(file)}, {cpp(text)}),")
            continue
        title, place, cells = lesson(file, text, english)
        english = english or (title, place, cells)
        language = re.search(r"(?:\.(\w+))?\.md$", file)[1] or "en"
        said = ["{%s}" % ", ".join(cpp(one.get(m, empty.get(m, ""))) for m in MEMBERS)
                for one in cells]
        texts.append("{%s, {%s, %s, {\n%s}}}" % (cpp(language), cpp(title), cpp(place),
                                               ",\n".join(said)))
    print("    d2l::RegisterLesson({%s, %s, %s, %s, {\n%s}}),\n};" % (
        number, cpp(name), devices, cpp(files[0]), ",\n".join(texts)))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:4], sys.argv[4:])
    except ValueError as error:
        sys.exit(str(error))
