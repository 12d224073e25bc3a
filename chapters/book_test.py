#!/usr/bin/env python3
"""Compares the map of the book, book.json, with the citations of the book: by the
lessons' cells here, by the exercises in //tools:exercises_test.

If a place cites a section or an exercise, the map's item names this place; a place
that an exercise's item names cites the exercise. Every item has a place in the course
or says why it has none.
"""
import glob
import json
import re
import unittest

# The contents of the book's chapter at the commit that the map names. Formulas are
# counted as the map says.
COUNTS = {"sections": 50, "figures": 25, "formulas": 10, "exercises": 34}
KEYS = {"sections": r"(13(?:\.\d+)*)\.(\d+)",
        "figures": r"Fig\. (13\.\d)\.(\d+)",
        "formulas": r"(13[.\d]+), formula (\d+)",
        "exercises": r"(13\.\d), exercise (\d+)(?: \(MXNet\))?"}
CITATION = re.compile(r"d2l (13(?:\.\d+)+(?:(?:-|, )13(?:\.\d+)+)*)"
                      r"(?:(?:, exercise |(?:, |，)练习)(\d+(?:, \d+)*)( \(MXNet\))?)?")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def parsed(text):
    """Reads JSON as a dictionary. Refuses a key that comes twice."""
    def unique(pairs):
        keys = [key for key, _ in pairs]
        if len(set(keys)) < len(keys):
            raise ValueError("twice: %s" % sorted(k for k in keys if keys.count(k) > 1))
        return dict(pairs)
    return json.loads(text, object_pairs_hook=unique)


def cited(citation):
    """The items that a citation names; itself if it is malformed."""
    if re.fullmatch("notebook 00[0-4]", citation):
        return []
    match = CITATION.fullmatch(citation)
    if not match:
        return [citation]
    items = []
    for part in match[1].split(", "):
        first, last = (part.split("-") * 2)[:2]
        parent, _, begin = first.rpartition(".")
        same, _, end = last.rpartition(".")
        if same != parent or int(end) < int(begin):
            return [citation]
        items += ["%s.%d" % (parent, n) for n in range(int(begin), int(end) + 1)]
    page = match[1][:len("13.1")]
    return items + ["%s, exercise %s%s" % (page, number, match[3] or "")
                    for number in re.findall(r"\d+", match[2] or "")]


def malformed(kind, items, sections):
    """The errors in the items of a kind."""
    found, numbers = [], {}
    for key, item in items.items():
        if not item.get("in") and not item.get("why_not"):
            found.append("%s has neither a place nor why_not" % key)
        elif "title" not in item or set(item) - {"title", "in", "why_not"}:
            found.append("%s has %s" % (key, ", ".join(item)))
        form = re.fullmatch(KEYS[kind], key)
        if not form or form[1] not in set(sections) | {"13"}:
            found.append("%s is in no section" % key)
        else:
            numbers.setdefault(form[1], set()).add(int(form[2]))
    return found + ["%s of %s: %s" % (kind, section, sorted(cited))
                    for section, cited in numbers.items() if len(cited) != max(cited)]


def named(book, are_exercises):
    """{item: the exercises that it names}, or else the cells and parts of READMEs."""
    return {key: {place for place in item.get("in", [])
                  if ("/" not in place) == are_exercises}
            for kind in COUNTS for key, item in book[kind].items()}


def disagreements(named, citations, parts=frozenset()):
    """The differences between the map and {place: the items that it cites}. `parts` are
    places that need not cite anything."""
    found = ["%s cites %s, which %s" % (place, item, "does not name it"
                                        if item in named else "is not in book.json")
             for place, items in citations.items() for item in items
             if place not in named.get(item, [])]
    for item, places in named.items():
        for place in sorted(places - parts):
            if place not in citations:
                found.append("%s names %s, which does not exist" % (item, place))
            elif ", exercise " in item and item not in citations[place]:
                found.append("%s names %s, which does not cite it" % (item, place))
    return found


def cells():
    """{cell: its citation}, as the lessons' texts have it."""
    found = {cell["id"]: [] for chapter in json.loads(read("chapters/cells.json"))
             ["chapters"] for cell in chapter["cells"]}
    for path in glob.glob("chapters/*/lesson.md"):
        for section in re.split(r"^## ", read(path), flags=re.M)[1:]:
            facts = dict(re.findall(r"^- (Book|Exercises): (.+)", section, re.M))
            if facts:
                found[section.split(":")[0]] = cited(
                    ", exercise ".join(facts[fact] for fact in sorted(facts)))
    return found


def headings(path):
    """The headings of a text, as links to them."""
    text = re.sub(r"^```.*?^```", "", read(path), flags=re.M | re.S)
    return {"%s#%s" % (path, re.sub(r"[^\w -]", "", title).lower().replace(" ", "-"))
            for title in re.findall(r"^#+ (.+)", text, re.M)}


class ReadmeTest(unittest.TestCase):

    def test_the_first_screen_shows_an_exercise_and_the_rest_is_short(self):
        for path, wrong in ("README.md", "WRONG"), ("README.zh.md", "错误"):
            with self.subTest(path):
                lines = read(path).splitlines()
                self.assertIn(wrong, lines[:24])
                self.assertLessEqual(len(lines), 120)
                self.assertEqual([line for line in lines
                                  if line.startswith("|") and len(line) > 80], [])


class MapTest(unittest.TestCase):

    def test_all_of_the_book_is_there(self):
        found = parsed(read("chapters/book.json"))
        self.assertEqual({kind: len(found[kind]) for kind in COUNTS}, COUNTS)
        for kind in COUNTS:
            self.assertEqual(malformed(kind, found[kind], found["sections"]), [])

    def test_nearly_all_figures_of_the_book_are_drawn(self):
        figures = parsed(read("chapters/book.json"))["figures"]
        self.assertLessEqual(sum("why_not" in figure for figure in figures.values()), 6)

    def test_cells_and_the_map_agree(self):
        parts = set().union(*map(headings, glob.glob("chapters/*/*.md")))
        places = named(parsed(read("chapters/book.json")), are_exercises=False)
        self.assertEqual(disagreements(places, cells(), parts), [],
                         "type tools/course_lists.py --write")

    def test_texts_cite_what_is_there(self):
        items = named(parsed(read("chapters/book.json")), are_exercises=False)
        texts = glob.glob("README*.md") + glob.glob("chapters/**/*.md", recursive=True)
        self.assertEqual([(path, item) for path in texts
                          for match in CITATION.finditer(read(path))
                          for item in cited(match[0]) if item not in items], [])


class CheckingTest(unittest.TestCase):
    """Wrong citations, and small wrong maps."""

    def test_citations(self):
        for citation, items in {
                "notebook 000": [],
                "d2l 13.4": ["13.4"],
                "d2l 13.6.1, 13.6.3": ["13.6.1", "13.6.3"],
                "d2l 13.6.3, exercise 3 (MXNet)":
                    ["13.6.3", "13.6, exercise 3 (MXNet)"],
                "d2l 13.7.1-13.7.3, exercise 3":
                    ["13.7.1", "13.7.2", "13.7.3", "13.7, exercise 3"],
                "d2l 13.4，练习1, 2": ["13.4", "13.4, exercise 1", "13.4, exercise 2"],
        }.items():
            self.assertEqual(cited(citation), items)
        for citation in ("", "d2l 13", "notebook 005", "d2l 13.7.3-13.7.1",
                         "d2l 13.5.7-13.6.2", "d2l 13.4, exercise", "13.4"):
            self.assertEqual(cited(citation), [citation])

    def test_items(self):
        place = {"title": "t", "in": ["a/b"]}
        sections = {"13.1": place, "13.1.1": place}
        self.assertEqual(malformed("sections", sections, sections), [])
        self.assertEqual(malformed("exercises", {
            "13.1, exercise 1": place, "13.1, exercise 1 (MXNet)": place,
            "13.1, exercise 2 (MXNet)": place}, sections), [])
        for kind, key, item in (
                ("sections", "13.1", {"title": "t"}),
                ("sections", "13.1", {"title": "t", "in": []}),
                ("sections", "13.1", {"in": ["a/b"]}),
                ("sections", "13.1", {"title": "t", "in": ["a/b"], "whynot": "w"}),
                ("sections", "13.2.1", place),
                ("sections", "13.2", place),
                ("sections", "14.1", place),
                ("figures", "Fig. 13.2.1", place),
                ("figures", "Fig. 13.1.2", place),
                ("formulas", "13.1.1, formula 0", place),
                ("exercises", "13.1, exercise 2", place)):
            with self.subTest(key, item=item):
                self.assertEqual(len(malformed(kind, {key: item}, sections)), 1)

    def test_no_item_comes_twice(self):
        self.assertEqual(parsed('{"a": {"b": 1}, "b": 1}'), {"a": {"b": 1}, "b": 1})
        with self.assertRaises(ValueError):
            parsed('{"a": {"b": 1, "c": 1, "b": 1}}')

    def test_both_sides_agree(self):
        book = {"sections": {"13.1": {"in": ["a/b", "half"]}}, "figures": {},
                "formulas": {"13.1, formula 1": {"why_not": "No."}},
                "exercises": {"13.1, exercise 1": {"in": ["a/b", "r/R.md#x"]}}}
        self.assertEqual(named(book, are_exercises=True), {
            "13.1": {"half"}, "13.1, formula 1": set(), "13.1, exercise 1": set()})
        items = named(book, are_exercises=False)
        self.assertEqual(items, {"13.1": {"a/b"}, "13.1, formula 1": set(),
                                 "13.1, exercise 1": {"a/b", "r/R.md#x"}})
        parts, both = {"r/R.md#x"}, ["13.1", "13.1, exercise 1"]
        self.assertEqual(disagreements(items, {"a/b": both}, parts), [])
        # A place that a section names may cite something else.
        self.assertEqual(disagreements(items, {"a/b": both[1:], "c/d": []}, parts), [])
        for citations, places, wrong in (
                ({"a/b": both}, set(),
                 "13.1, exercise 1 names r/R.md#x, which does not exist"),
                ({"a/b": both[:1]}, parts,
                 "13.1, exercise 1 names a/b, which does not cite it"),
                ({"a/b": both, "c/d": ["13.1"]}, parts,
                 "c/d cites 13.1, which does not name it"),
                ({"a/b": both, "c/d": both[1:]}, parts,
                 "c/d cites 13.1, exercise 1, which does not name it"),
                ({"a/b": both + ["13.8"]}, parts, "a/b cites 13.8, which is not in")):
            with self.subTest(wrong):
                self.assertEqual([found[:len(wrong)] for found in
                                  disagreements(items, citations, places)], [wrong])
        self.assertEqual(disagreements(items, {}, parts),
                         ["13.1 names a/b, which does not exist",
                          "13.1, exercise 1 names a/b, which does not exist"])


if __name__ == "__main__":
    unittest.main()
