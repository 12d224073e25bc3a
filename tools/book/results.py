"""The JSON of lessons (common/lesson/run/report.h), read and compared."""
import json

VERDICTS = ("HOLDS", "FAILS", "INCONCLUSIVE")

# Members that make_book.py adds to a lesson.
MADE_HERE = {"failure": "", "timelines": [], "pytorch": {"version": "", "cells": []}}


def read_run(path):
    """Reads a run: the JSON of one lesson, of the course, or of a book. Throws OSError, or
    ValueError that names the file."""
    try:
        with open(path, encoding="utf-8") as file:
            run = json.load(file)
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    run = run if isinstance(run, dict) else {}
    lessons = [run] if "lesson" in run else run.get("lessons")
    if not lessons:
        raise ValueError(f"{path} holds no lesson. Name a file that --json or //:book "
                         "wrote: book/results.json.")
    for lesson in lessons:
        for figure in (figure for cell in lesson["cells"] for figure in cell["figures"]):
            # JSON has no infinity: an infinite end is null.
            figure.update((key, float("nan")) for key in ("median", "low", "high")
                          if figure[key] is None)
    return {"machine": run.get("machine", ""), "date": run.get("date", ""),
            "lessons": [{**MADE_HERE, **lesson} for lesson in lessons]}


def lessons_in(run, lang):
    """By name, in this language if it exists."""
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
    """(claims with another verdict: [(cell, was, is)], figures with disjoint intervals: [(cell,
    was, is)], lessons that cannot be compared: [lesson])."""
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
    # Opposite verdicts come first.
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
    """[(lesson, [(cell, [(text, each run's claim or None)], [(label, each run's figure or
    None)])])] of all runs together."""
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
