"""What //:book, //:exercises and //:doctor read: the list of chapters, the sections of their
Markdown (common/lesson/sections.h has its form), the language of the run, and what they say
in it.

Needs only Python's library.
"""
import collections
import functools
import os
import re
import sys

PO = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../po")
sys.path.append(PO)
import catalogue  # noqa: E402

# parts: {label: Markdown}, of "**Hint 1:** text"; what stands before the first is "".
Section = collections.namedtuple("Section", "name title facts parts")


def chapters(root):
    """Their names, in the course's order."""
    with open(os.path.join(root, "chapters/chapters.bzl"), encoding="utf-8") as file:
        return re.findall(r'(?m)^ +"(\w+)":', file.read())


def chapter(root, name, lang):
    """Its number, and its title in that language."""
    names = chapters(root)
    file = os.path.join(root, "chapters", name,
                        "lesson.md" if lang == "en" else f"lesson.{lang}.md")
    try:
        with open(file, encoding="utf-8") as text:
            return {"number": names.index(name) + 1, "title": text.readline()[2:].strip()}
    except (OSError, ValueError):
        return {"number": 0, "title": name}


def system_language():
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if os.environ.get(name):
            return "zh" if os.environ[name].startswith("zh") else "en"
    return "en"


@functools.lru_cache(maxsize=None)
def translator(lang):
    """A function from English to that language; what is not in po/zh.po stays English."""
    found = catalogue.read(os.path.join(PO, "zh.po")) if lang == "zh" else {}
    return lambda text: found.get(text, text)


def sections(text):
    """{name: Section} of "## NAME: TITLE", a list "- Fact: value", and text."""
    found, lines, in_code = {}, None, False
    for line in text.splitlines():
        in_code ^= line.startswith("```")
        heading = not in_code and re.fullmatch(r"## ([\w-]+)[:：] ?(.*)", line)
        if heading:
            lines = found[heading[1]] = [heading[2]]
        elif lines and (in_code or not line.startswith("#")):
            lines.append(line)
        else:  # before the first section, or behind a heading of another kind
            lines = None
    return {name: _section(name, *lines) for name, lines in found.items()}


def _section(name, title, *lines):
    text = "\n".join(lines).strip() + "\n"
    facts = re.match(r"(?:- \w+: .*\n(?: +.*\n)*)*", text)
    parts = re.split(r"(?m)^\*\*([^*:：]+)[:：]\*\*", text[facts.end():])
    return Section(
        name, title,
        {key: " ".join(value.split())
         for key, value in re.findall(r"(?m)^- (\w+): (.*(?:\n +.*)*)", facts[0])},
        {label: body.strip() for label, body in zip(["", *parts[1::2]], parts[::2])})
