#!/usr/bin/env python3
"""The lists of cells and exercises, which are written once: in each lesson.md and exercises.md.

    tools/course_lists.py --write     the tables in the READMEs, and places in chapters/book.json
    tools/course_lists.py --cells     prints cells.json, which the build reads: //chapters

//chapters:lists_test says whether --write is due. A table stands between two lines of its README,
"<!-- cells -->" or "<!-- exercises -->", and "<!-- end -->". In book.json, "in" of an item gets
the cells and exercises that cite it, and loses those that are gone; places that a person named
stay.
"""
import json
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(ROOT, "tools"), os.path.join(ROOT, "chapters")]
import course_texts  # noqa: E402

# The chapter that is there to be copied.
PATTERN = "tiny"
COMMAND = "type tools/course_lists.py --write"
WORDS = {"en": (" (", ", ", ")"), "zh": ("（", "、", "）")}
CELLS = {"en": "| cell | what it does | command |\n|---|---|---|",
         "zh": "| 单元 | 做什么 |\n|---|---|"}
EXERCISES = {"en": "| exercise | the book's section | what it teaches |\n|---|---|---|",
             "zh": "| 练习 | 标题 | 书中章节 | 教什么 |\n|---|---|---|---|"}


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def sections(root, chapter, lang):
    name = "lesson.md" if lang == "en" else f"lesson.{lang}.md"
    return course_texts.read_sections(root, "chapters", chapter, name)


def fact(section, name, file):
    """The section's fact. A ValueError names what is missing."""
    if name not in section.facts:
        raise ValueError(f'{file}:{section.line}: {section.name} has no "- {name}: "')
    return section.facts[name]


def listed(section):
    """A cell's entry in cells.json."""
    facts = section.facts
    return {"id": section.name,
            "also": facts["Also"].split(", ") if "Also" in facts else [],
            "timed": "Timed" in facts,
            "host": facts.get("Timed") == "host",
            "claims": int(facts.get("Claims", 0)),
            "not_drawn": facts.get("Not drawn", "")}


def cells(root):
    """cells.json: the chapters, with their cells."""
    chapters = [{"name": name,
                 "title": course_texts.head(read(root, f"chapters/{name}/lesson.md")).title,
                 "cells": [listed(one) for one in sections(root, name, "en").values()]}
                for name in [*course_texts.chapters(root), PATTERN]]
    return {"chapters": chapters[:-1], "pattern": chapters[-1]}


def cell_table(root, chapter, lang):
    number = course_texts.chapter(root, chapter, "en")["number"]
    file = f"chapters/{chapter}/lesson.md" if lang == "en" else f"chapters/{chapter}/lesson.{lang}.md"
    begin, comma, end = WORDS[lang]
    translated, rows = sections(root, chapter, lang), [CELLS[lang]]
    for place, (name, english) in enumerate(sections(root, chapter, "en").items(), 1):
        also = comma.join(f"`{one}`" for one in listed(english)["also"])
        if name not in translated:
            raise ValueError(f'{file}: there is no "## {name}: TITLE"')
        does = fact(translated[name], {"en": "Does", "zh": "内容"}[lang], file)
        where = f"{number}.{place}" + {"en": ": ", "zh": "："}[lang] if number else ""
        row = f"| `{name}`{begin + also + end if also else ''} | {where}{does} |"
        if lang == "en":
            row += f" `bazel run //chapters/{chapter}:lesson -- --cell={name}` |"
        rows.append(row)
    return "\n".join(rows)


def in_chinese(book):
    """A citation: "d2l 13.1, exercise 2" is "d2l 13.1，练习2"."""
    return book.replace("notebook ", "笔记本").replace(", exercise ", "，练习")


def exercises(root):
    """[(chapter, Section)], without the questions."""
    return [(name, one) for name in course_texts.chapters(root)
            for one in course_texts.read_sections(
                root, "chapters", name, "exercises/exercises.md").values()
            if "Question" not in one.parts]


def exercise_table(root, lang):
    rows = [EXERCISES[lang]]
    # The translated sections, by file, which are read once.
    translated = {}
    for chapter, one in exercises(root):
        folder = f"{chapter}/exercises"
        english = f"chapters/{folder}/exercises.md"
        book = fact(one, "Book", english)
        kernel = f"{root}/chapters/{folder}/solutions/{one.name}.cu"
        suffix = ".cu" if os.path.exists(kernel) else ".cc"
        link = f"[{one.name}]({folder}/{one.name}{suffix})"
        if lang == "en":
            rows.append(f"| {link} | {book} | {fact(one, 'Teaches', english)} |")
            continue
        file = f"chapters/{folder}/exercises.{lang}.md"
        if file not in translated:
            translated[file] = course_texts.read_sections(root, file)
        if one.name not in translated[file]:
            raise ValueError(f'{file}: there is no "## {one.name}: TITLE"')
        said = translated[file][one.name]
        rows.append(f"| {link} | {said.title} | {in_chinese(book)} | {fact(said, '教什么', file)} |")
    return "\n".join(rows)


def with_table(text, kind, table, file):
    """The text with the table between its marks."""
    found = re.search(rf"(?s)<!-- {kind} -->\n.*?<!-- end -->", text)
    if not found:
        raise ValueError(f'{file} has no lines "<!-- {kind} -->" and "<!-- end -->"')
    return (text[:found.start()] + f"<!-- {kind} -->\n\n{table}\n\n<!-- end -->" +
            text[found.end():])


def citations(root):
    """{place: the items of the book that it cites}: of cells, exercises and questions, in the
    course's order, and in two groups, cells first."""
    import book_test  # of //chapters, which knows the forms of citations
    found = [{}, {}]
    for name in course_texts.chapters(root):
        for one in sections(root, name, "en").values():
            found[0][one.name] = book_test.cited(", exercise ".join(
                one.facts[key] for key in ("Book", "Exercises") if key in one.facts)) \
                if "Book" in one.facts else []
        for one in course_texts.read_sections(root, "chapters", name,
                                              "exercises/exercises.md").values():
            found[1][one.name] = book_test.cited(one.facts.get("Book", ""))
    return found


def with_places(text, root):
    """book.json, with the places that cite its items."""
    groups = citations(root)
    known = {place for group in groups for place in group}

    def line(match):
        item, rest = match[1], json.loads(match[2])
        kept = [place for place in rest.get("in", [])
                if "#" in place or place in known and (
                    ", exercise " not in item or
                    any(item in group.get(place, []) for group in groups))]
        for group in groups:
            new = [place for place, items in group.items()
                   if item in items and place not in kept]
            last = max((i for i, place in enumerate(kept) if place in group), default=-1)
            at = last + 1 if last >= 0 or group is groups[0] else len(kept)
            kept[at:at] = new
        ordered = {key: kept if key == "in" else value
                   for key, value in {"title": "", "in": [], **rest}.items()
                   if key != "in" or kept}
        return f' "{item}": {json.dumps(ordered, ensure_ascii=False)}'

    return re.sub(r'(?m)^ "([^"]+)": (\{.*\})', line, text)


def generated(root):
    """{file: its text as it should be}."""
    texts = {}
    for name in [*course_texts.chapters(root), PATTERN]:
        for lang in CELLS:
            file = f"chapters/{name}/README{'' if lang == 'en' else '.' + lang}.md"
            if os.path.exists(os.path.join(root, file)):
                texts[file] = with_table(read(root, file), "cells",
                                         cell_table(root, name, lang), file)
    for lang in EXERCISES:
        file = f"chapters/README{'' if lang == 'en' else '.' + lang}.md"
        texts[file] = with_table(read(root, file), "exercises", exercise_table(root, lang), file)
    texts["chapters/book.json"] = with_places(read(root, "chapters/book.json"), root)
    return texts


def outdated(root):
    return {file: text for file, text in generated(root).items() if text != read(root, file)}


def main(arguments):
    if arguments == ["--cells"]:
        print(json.dumps(cells(os.getcwd()), indent=1))
    elif arguments == ["--write"]:
        for file, text in outdated(ROOT).items():
            with open(os.path.join(ROOT, file), "w", encoding="utf-8") as opened:
                opened.write(text)
            print("written:", file)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ValueError as error:
        sys.exit(str(error))
