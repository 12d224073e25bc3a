#!/usr/bin/env python3
"""Tests that tools/course_lists.py --write was run, and how it makes the lists."""
import os
import sys
import unittest

sys.path[:0] = ["tools"]
import course_lists  # noqa: E402

LESSON = """# A chapter

## a/b: A cell

- Also: c/d, e/f
- Book: d2l 13.1.1
- Does: something
- Timed: host
- Claims: 2
- Not drawn: a table

Text.
"""


class ListsTest(unittest.TestCase):

    def test_they_are_up_to_date(self):
        self.assertEqual(sorted(course_lists.outdated(os.getcwd())), [], course_lists.COMMAND)

    def test_a_cell_is_what_its_head_says(self):
        one = course_lists.course_texts.sections(LESSON)["a/b"]
        self.assertEqual(course_lists.listed(one), {
            "id": "a/b", "also": ["c/d", "e/f"], "timed": True, "host": True, "claims": 2,
            "not_drawn": "a table"})
        with self.assertRaisesRegex(ValueError, '^x.md:3: a/b has no "- Teaches: "'):
            course_lists.fact(one, "Teaches", "x.md")

    def test_a_table_stands_between_its_marks(self):
        self.assertEqual(course_lists.with_table("a\n<!-- cells -->\nold\n<!-- end -->\nb\n",
                                                 "cells", "| new |", "f"),
                         "a\n<!-- cells -->\n\n| new |\n\n<!-- end -->\nb\n")
        with self.assertRaisesRegex(ValueError, "^f has no lines"):
            course_lists.with_table("a\n", "cells", "| new |", "f")

    def test_the_book_names_who_cites_it(self):
        root = os.getcwd()
        cells, exercises = course_lists.citations(root)
        place = next(place for place, items in cells.items() if "13.2.1" in items)
        line = ' "13.2.1": {"title": "t", "in": ["gone/cell", "a.md#part", "000/In9"]}'
        found = course_lists.with_places(line, root)
        self.assertIn(f'"{place}"', found)
        self.assertIn('"a.md#part", "000/In9"', found)
        self.assertNotIn("gone/cell", found)
        for name, items in exercises.items():
            self.assertEqual(f'"{name}"' in found, "13.2.1" in items, name)
        only = ' "13.9, exercise 1": {"title": "t", "in": ["000/In9"], "why_not": "w"}'
        self.assertEqual(course_lists.with_places(only, root),
                         ' "13.9, exercise 1": {"title": "t", "why_not": "w"}')


if __name__ == "__main__":
    unittest.main()
