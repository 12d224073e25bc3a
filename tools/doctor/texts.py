"""What the doctor says: in English or Chinese, in lines of 80 columns.

    texts.language = "zh"
    _("{} of {} GiB free").format("8.0", "16.0")  # 8.0/16.0 GiB空闲

The Chinese is in po/zh.po. What the machine says, such as a path, is filled in afterwards:
it stays as it is.
"""
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import course_texts  # noqa: E402
from course_texts import columns, wrap  # noqa: E402, F401

language = "en"  # of all that is said


def _(text):
    return course_texts.translator(language)(text)


def ngettext(one, many, count):
    return _(one if count == 1 else many)


def pgettext(context, text):
    """Of a text that means something else elsewhere, such as a single word."""
    return course_texts.translator(language)(context + "\4" + text).rpartition("\4")[2]


def padded(text, width):
    return text + " " * (width - columns(text))
