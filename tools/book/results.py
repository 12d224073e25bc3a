"""The JSON of lessons (common/lesson/report.h), read and compared.

What a file holds is not trusted: a value of another type is as good as none, and
every string is text, which the templates escape.
"""
import json
import re

VERDICTS = ("HOLDS", "FAILS", "INCONCLUSIVE")

CELL = {
    "id": "", "number": "", "also": [""], "title": "", "section": "",
    "exercises": "", "predict": "", "learn": "", "context": "", "python": "",
    "course_printed": "", "choices": [""], "output": "", "error": "",
    "seconds": 0.0, "load": {"cores": 0.0, "of": 0},  # of other programs, meanwhile
    "source": {"file": "", "line": 0, "text": ""},
    "measured": {"file": "", "line": 0, "text": ""},
    "figures": [{"name": "", "label": "", "unit": "", "median": 0.0, "low": 0.0,
                 "high": 0.0}],
    "claims": [{"text": "", "verdict": "", "meaning": "", "number": "",
                "evidence": "", "reason": ""}],
    "drawings": [{"name": "", "label": "", "file": "", "text": ""}],
}
LESSON = {
    "lesson": "", "number": 0, "title": "", "section": "", "lang": "", "size": "",
    "notes": [""], "devices": [{"name": "", "kind": ""}], "cells": [CELL],
    # Written by make_book.py, not by the lessons.
    "failure": "", "timelines": [{"id": "", "file": ""}],
    "pytorch": {"version": "", "cells": [{"id": "", "printed": "", "error": "",
                                          "note": "", "stopped": 0.0}]},
}
RUN = {"machine": "", "date": "", "lessons": [LESSON]}


def fit(value, shape):
    """The value in this shape; whatever does not fit is empty."""
    if isinstance(shape, list):
        items = value if isinstance(value, list) else []
        return [fit(item, shape[0]) for item in items]
    if isinstance(shape, dict):
        fields = value if isinstance(value, dict) else {}
        return {key: fit(fields.get(key), inner) for key, inner in shape.items()}
    if isinstance(shape, str):
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            return ""
        # What no page can hold: control characters and halves of characters.
        return re.sub("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", "", str(value))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return type(shape)(0)
    try:
        return type(shape)(value)
    except (OverflowError, ValueError):  # int(inf), int(nan)
        return type(shape)(0)


def fit_run(data):
    """A run from the JSON of one lesson, of the course, or of a book."""
    if isinstance(data, dict) and "lesson" in data:
        data = {"lessons": [data]}
    run = fit(data, RUN)
    for lesson in run["lessons"]:
        lesson["lang"] = lesson["lang"] if lesson["lang"] in ("en", "zh") else "en"
        for cell in lesson["cells"]:
            for claim in cell["claims"]:
                if claim["verdict"] not in VERDICTS:
                    claim["verdict"] = "INCONCLUSIVE"
    return run


def read_run(path):
    """Throws OSError, or ValueError that names the file."""
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    run = fit_run(data)
    if not run["lessons"]:
        raise ValueError(f"{path} holds no lesson. Name a file that --json or //:book "
                         "wrote: book/results.json.")
    return run


def lessons_in(run, lang):
    """By name, in this language where there is one."""
    found = {}
    for lesson in run["lessons"]:
        if lesson["lesson"] not in found or lesson["lang"] == lang:
            found[lesson["lesson"]] = lesson
    return dict(sorted(found.items(), key=lambda item: item[1]["number"]))


def by_key(run, lang, kind, text):
    """{(lesson, cell, text, nth of it): (cell, item)} of claims or figures."""
    found = {}
    for name, lesson in lessons_in(run, lang).items():
        for cell in lesson["cells"]:
            for item in cell[kind]:
                nth = 0
                while (name, cell["id"], item[text], nth) in found:
                    nth += 1
                found[name, cell["id"], item[text], nth] = (cell, item)
    return found


def changes(before, after, lang):
    """(claims whose verdict is another: [(cell, was, is)], figures whose intervals
    are apart: [(cell, was, is)], what cannot be compared: [lesson])."""
    sizes = [{name: (lesson["size"], lesson["devices"])
              for name, lesson in lessons_in(run, lang).items()}
             for run in (before, after)]
    unlike = [name for name, lesson in lessons_in(after, lang).items()
              if lesson["cells"] and sizes[0].get(name) != sizes[1][name]]
    claims, figures = [], []
    old = by_key(before, lang, "claims", "text")
    for key, (cell, claim) in by_key(after, lang, "claims", "text").items():
        if (key in old and key[0] not in unlike and
                old[key][1]["verdict"] != claim["verdict"]):
            claims.append((cell, old[key][1], claim))
    # First what is now the opposite.
    claims.sort(key=lambda one: "INCONCLUSIVE" in (one[1]["verdict"], one[2]["verdict"]))
    old = by_key(before, lang, "figures", "name")
    for key, (cell, figure) in by_key(after, lang, "figures", "name").items():
        if key not in old or key[0] in unlike:
            continue
        was = old[key][1]
        if figure["low"] > was["high"] or figure["high"] < was["low"]:
            figures.append((cell, was, figure))
    return claims, figures, unlike


def compared(runs, lang):
    """[(lesson, [(cell, [(text, a claim or None of each run)],
    [(label, a figure or None of each run)])])] of all runs together."""
    claims = [by_key(run, lang, "claims", "text") for run in runs]
    figures = [by_key(run, lang, "figures", "name") for run in runs]
    result, done = {}, set()
    for run in runs:
        for name, lesson in lessons_in(run, lang).items():
            for cell in lesson["cells"]:
                if (name, cell["id"]) in done:
                    continue
                done.add((name, cell["id"]))
                rows = []
                for found in (claims, figures):
                    keys = dict.fromkeys(key for one in found for key in one
                                         if key[:2] == (name, cell["id"]))
                    rows.append([(key[2], [one[key][1] if key in one else None
                                           for one in found]) for key in keys])
                result.setdefault(name, (lesson, []))[1].append((cell, *rows))
    return list(result.values())


def format_value(value, unit):
    """Three digits: "58.0 ms", "3.00 MiB", "1.89x"."""
    if unit == "B":
        scales = [(1 << 30, " GiB"), (1 << 20, " MiB"), (1 << 10, " KiB"), (1, " B")]
    elif unit == "s":
        scales = [(1, " s"), (1e-3, " ms"), (1e-6, " us"), (1e-9, " ns")]
    else:
        scales = [(1, unit if unit in ("x", "") else " " + unit)]
    scale, name = next((s for s in scales if abs(value) >= s[0]), scales[-1])
    value /= scale
    if value != value or abs(value) >= 1e15:
        return f"{value:g}{name}"
    if abs(value) >= 100 or value == 0 or (value == int(value) and unit not in ("s", "x")):
        return f"{value:,.0f}{name}"
    return f"{value:.2f}{name}" if abs(value) < 10 else f"{value:.1f}{name}"
