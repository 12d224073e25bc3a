#!/usr/bin/env python3
"""Tests of embed_lesson.py, and so of how Markdown is read: tools/course_texts.py."""

import contextlib
import io
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import embed_lesson  # noqa: E402

ENGLISH = """# A: Asynchronous computation

- Drawing: 004/In4

D2L 13.2
https://d2l.ai

**Afterwards:** You can
tell the time.

## 004/In2: A clock: it lies

- Also: 001/c3, 002/c4
- Book: d2l 13.2.1,
  and 2
- Exercises: 1, 3
- Not drawn: a clock

Ten times: a
random * _matrix_.\r

Next one.

```picture
a --> b
```

```python
# warm-up
## two

  - x
```

```text
```

**Predict:** how
much?

- all
- [x] a
  part
- none

**You learn:** a clock lies.

## 004/In4: The true cost
"""

CHINESE = """# 异步计算
## 004/In2: 会骗人的时钟

异步
计算，
用CPU
也行

**预测：** 多少？

- 全部
- 一部分
- 没有

**你会学到：** 时钟会骗人。
"""


def read(text, english=None):
    return embed_lesson.lesson("l.md", text, english)


class LessonTest(unittest.TestCase):

    def test_the_head_says_more_for_the_books_index(self):
        head = embed_lesson.course_texts.head(ENGLISH)
        self.assertEqual(head.title, "A: Asynchronous computation")
        self.assertEqual(head.facts, {"Drawing": "004/In4"})
        self.assertEqual(head.parts["Afterwards"], "You can\ntell the time.")
        self.assertEqual(embed_lesson.course_texts.head(CHINESE).parts, {"": ""})
        self.assertIsNone(embed_lesson.course_texts.head("## 004/In2: A clock\n"))

    def test_a_section_says_all(self):
        title, head, cells = read(ENGLISH)
        self.assertEqual(title, "A: Asynchronous computation")
        self.assertEqual(head, "D2L 13.2\nhttps://d2l.ai")
        self.assertEqual(cells, [
            {"id": "004/In2", "title": "A clock: it lies", "also": ["001/c3", "002/c4"],
             "section": "d2l 13.2.1, and 2", "exercises": "1, 3",
             "context": "Ten times: a random * _matrix_.\n\nNext one.", "picture": "a --> b",
             "python": "# warm-up\n## two\n\n  - x", "course_printed": "",
             "predict": "how much?", "choices": ["all", "a part", "none"], "right": 2,
             "learn": "a clock lies."},
            {"id": "004/In4", "title": "The true cost"}])

    def test_a_translation_leaves_what_it_does_not_say(self):
        english = read(ENGLISH)
        title, head, cells = read(CHINESE, english)
        self.assertEqual((title, head), ("异步计算", ""))
        self.assertEqual(cells, [
            {**english[2][0], "title": "会骗人的时钟", "context": "异步计算，用CPU 也行",
             "predict": "多少？", "choices": ["全部", "一部分", "没有"],
             "learn": "时钟会骗人。"},
            english[2][1]])

    def test_errors_name_the_line(self):
        english = read(ENGLISH)
        for text, translates, message in [
                ("", False, '1: there is no line "# TITLE"'),
                ("# t\n## a: b\n```python\nx\n", False,
                 "3: the code that begins here has no end: add a line ```"),
                ("# t\n## a b\n", False, '2: "## a b" is not "## NAME: TITLE"'),
                ("# t\n## a: b\n\n### c\n", False, '4: "### c" is not "## NAME: TITLE"'),
                ("# t\n## a: b\n# c\n", False, '3: "# c" is not "## NAME: TITLE"'),
                ("# t\n### a\n", False, '2: "### a" is not "## NAME: TITLE"'),
                ("# t\n## a: b\n## a: c\n", False, "3: a is there twice"),
                ("# t\n\n## a: b\n```cpp\nx;\n```\n", False,
                 '3: a has code in "cpp"; there are python, text, picture'),
                *[("# t\n## a: b\n```picture\n%s\n```\n" % picture, False,
                   "2: a has a picture of more than 12 lines or 80 columns")
                  for picture in ("-\n" * 12 + "-", "中" * 40 + "-")],
                ("# t\n## a: b\n**Lern:** c\n", False,
                 '2: a has a part "Lern"; there are Predict and You learn'),
                ("# t\n## a: b\ntext\n\n- c\n", False, "2: a has a list; only Predict has one"),
                ("# t\n## a: b\n- Bok: c\n", False,
                 '2: a has a fact "Bok"; there are Group, 组, Also, Book, Exercises, Does, 内容, Defines, Timed, '
                 "Claims, Not drawn, Rows"),
                ("# t\n## 9/x: y\n", True,
                 "2: 9/x is not in the English text, or stands behind a later one"),
                ("# t\n## 004/In4: a\n## 004/In2: b\n", True,
                 "3: 004/In2 is not in the English text, or stands behind a later one"),
                ("# t\n## 004/In2: a\n**预测：** b\n\n- c\n", True,
                 "2: 004/In2 has not as many choices as in English")]:
            with self.subTest(message):
                with self.assertRaises(ValueError) as caught:
                    read(text, english if translates else None)
                self.assertEqual(str(caught.exception), "l.md:" + message)


class MainTest(unittest.TestCase):

    def test_it_writes_cpp(self):
        with tempfile.TemporaryDirectory() as folder:
            files = [os.path.join(folder, name)
                     for name in ("lesson.cc", "lesson.md", "lesson.zh.md")]
            for file, text in zip(files, ('f("\\n");\n', ENGLISH, CHINESE)):
                with open(file, "w", encoding="utf-8", newline="") as opened:
                    opened.write(text)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                embed_lesson.main("2", "async", "1", files)
        self.assertIn('RegisterSource("%s", "f(\\"\\\\n\\");\\n"),' % files[0],
                      printed.getvalue())
        self.assertIn('RegisterLesson({2, "async", 1, "%s", {' % files[0], printed.getvalue())
        self.assertIn('{"en", {"A: Asynchronous computation", ', printed.getvalue())
        self.assertIn('{"004/In4", "The true cost", {}, "", "", "", "", "", "", "", {}, 0, ""}',
                      printed.getvalue())
        self.assertIn('{"zh", {"异步计算", ', printed.getvalue())
        self.assertIn('{"全部", "一部分", "没有"}, 2, "时钟会骗人。"}', printed.getvalue())


if __name__ == "__main__":
    unittest.main()
