"""What the doctor says: in English or Chinese, in lines of 80 columns.

    texts.language = "zh"
    _("{} of {} GiB free").format("8.0", "16.0")  # 8.0/16.0 GiB空闲

The Chinese is in po/zh.po. What the machine says, such as a path, is filled in afterwards:
it stays as it is.
"""
import os
import re
import sys
import textwrap
import unicodedata

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import course_texts  # noqa: E402

CLOSING = "，。：；、）"
language = "en"  # of all that is said


def _(text):
    return course_texts.translator(language)(text)


def ngettext(one, many, count):
    return _(one if count == 1 else many)


def pgettext(context, text):
    """Of a text that means something else elsewhere, such as a single word."""
    return course_texts.translator(language)(context + "\4" + text).rpartition("\4")[2]


def columns(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def padded(text, width):
    return text + " " * (width - columns(text))


def pieces(word):
    """Parts between which a line may end: beside wide characters."""
    return re.findall(r"[\u2e80-\uffef][%s]*|[^\u2e80-\uffef]+[%s]*" % (CLOSING, CLOSING), word)


def wrap(text, width=80, first="", rest=""):
    """Lines of text. A word longer than a line, such as a path, stays in one piece."""
    text = re.sub(r"[\x00-\x1f\x7f]", " ", text)
    if columns(first + text) == len(first + text):
        return textwrap.wrap(text, width, initial_indent=first,
                             subsequent_indent=rest, break_long_words=False,
                             break_on_hyphens=False) or [""]
    lines, line, empty = [], first, True
    for word in text.split():
        space = " "
        for piece in pieces(word):
            if not empty and columns(line + space + piece) > width:
                lines.append(line)
                line, empty = rest, True
            line += piece if empty else space + piece
            space, empty = "", False
    return lines + [line]
