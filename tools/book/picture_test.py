#!/usr/bin/env python3
"""Tests what a picture of characters becomes."""
import os
import re
import sys
import unittest
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import course_texts  # noqa: E402
import picture  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def drawn(text):
    """(boxes: [fill], texts: [(text, anchor)], the lines' path, the arrowheads' path)."""
    root = ElementTree.fromstring(picture.draw(text))
    lines, heads = (path.get("d") for path in root.iter(SVG + "path"))
    return ([box.get("fill") for box in root.iter(SVG + "rect")][1:],
            [(one.text, one.get("text-anchor")) for one in root.iter(SVG + "text")], lines, heads)


class PictureTest(unittest.TestCase):

    def test_boxes_have_colours_and_texts_in_their_middle(self):
        boxes, texts, lines, heads = drawn("""
+---+  +===+  #===#
| a |  | b |  | c |
+---+  +===+  #===#
 d  e-f""")
        self.assertEqual(boxes, [picture.FILLS[kind] for kind in ("+-", "+=", "#=")])
        self.assertEqual(sorted(texts), [("a", "middle"), ("b", "middle"), ("c", "middle"),
                                         ("d", "start"), ("e-f", "start")])
        self.assertEqual((lines, heads), ("", ""))

    def test_boxes_share_sides_and_frames_are_crossed(self):
        boxes, texts, lines, heads = drawn("""
+...........+
:  +-+-+    :
:  | |x|<----->
:  +-+-+    :
+...........+""")
        self.assertEqual(boxes, ["none", "#ffffff", "#ffffff"])
        self.assertEqual(texts, [("x", "middle")])
        self.assertNotEqual(lines, "")
        self.assertEqual(heads.count("z"), 2)

    def test_arrows_are_lines_and_words_are_not(self):
        boxes, texts, lines, heads = drawn("""
|  a + b, N - 1, v   a-b
v
   <--+   2(n - 1)/n, device
      |""")
        self.assertEqual(boxes, [])
        self.assertEqual([text for text, _ in texts],
                         ["a + b, N - 1, v", "a-b", "2(n - 1)/n, device"])
        self.assertEqual(heads.count("z"), 2)
        self.assertGreater(lines.count("M"), 6)

    def test_a_chinese_character_takes_two_columns(self):
        english, chinese = (ElementTree.fromstring(picture.draw(text))
                            for text in ("| ab |-->\nxy  z", "| 中 |-->\n中  z"))
        self.assertEqual(english.get("width"), chinese.get("width"))
        self.assertEqual(*([path.get("d") for path in one.iter(SVG + "path")]
                           for one in (english, chinese)))
        self.assertEqual(*([text.get("x") for text in one.iter(SVG + "text")]
                           for one in (english, chinese)))

    def test_texts_are_escaped(self):
        self.assertEqual(drawn("<b>&amp;")[1], [("<b>&amp;", "start")])

    def test_all_pictures_of_the_course_are_drawn_whole(self):
        root = os.path.join(HERE, "../..")
        for chapter in course_texts.chapters(root):
            for name in ("lesson.md", "lesson.zh.md"):
                sections = course_texts.read_sections(root, "chapters", chapter, name)
                for section in sections.values():
                    for text in re.findall("(?ms)^```picture\n(.*?)\n```$",
                                           section.parts.get("", "")):
                        with self.subTest(f"{chapter}/{name}", cell=section.name):
                            # A box that is not closed, or a line that is torn, is a text.
                            for line, _ in drawn(text)[1]:
                                self.assertNotRegex(line, r"[+#][-=]|[-=][+#]|--|==|\||^:$")


if __name__ == "__main__":
    unittest.main()
