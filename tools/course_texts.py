"""What //:book, //:exercises, //:doctor and the build of a lesson read: the list of chapters,
the sections of their Markdown, the language of the run, and what they say in it.

    ## wait_for_less: Wait for less          a Section: its name and title,

    - Book: d2l 13.2.2                       its facts,

    The loop waits                           its parts: paragraphs of text and of code; what
    in every step.                           stands before the first label is ""

    **Hint 1:** Look at the line             and "Hint 1"

Needs only Python's library.
"""
import collections
import functools
import os
import re
import sys
import unicodedata

PO = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../po")
sys.path.append(PO)
import catalogue  # noqa: E402

# Two words at most: "- Not drawn: ".
FACT = r"- (\w+(?: \w+)?)(?:: |：)"
CLOSING = "，。：；、！？）”"

# parts: {label: Markdown}, of "**Hint 1:** text"; "" labels text before the first.
Section = collections.namedtuple("Section", "name title line facts parts")


def chapters(root):
    """The chapters' names, in the course's order."""
    with open(os.path.join(root, "chapters/chapters.bzl"), encoding="utf-8") as file:
        return re.findall(r'(?m)^ +"(\w+)":', file.read())


def chapter(root, name, lang):
    """The chapter's number, and its title in that language."""
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
    """A function from English to that language; texts that po/zh.po lacks stay English."""
    found = catalogue.read(os.path.join(PO, "zh.po")) if lang == "zh" else {}
    return lambda text: found.get(text, text)


def printable(text):
    """The text on one line, as C++'s PrintableText shows it: what a file is called must not
    command a terminal."""
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join("\\n" if c == "\n"
                   else "".join(f"\\x{byte:02x}" for byte in c.encode("utf-8"))
                   if unicodedata.category(c) == "Cc" else c for c in text)


def columns(text):
    """The columns on a terminal: a Chinese character takes two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def wrap(text, width=80, first="", rest=""):
    """Lines of text. They end between words and beside wide characters, but not before
    closing punctuation. A word longer than a line, such as a path, stays in one piece."""
    lines, line, empty = [], first, True
    for word in re.split(" +", re.sub(r"[\x00-\x1f\x7f]", " ", text).strip(" ")):
        space = " "
        for piece in re.findall("[\u2e80-\uffef][%s]*|[^\u2e80-\uffef]+[%s]*" % (
                CLOSING, CLOSING), word):
            if not empty and columns(line + space + piece) > width:
                lines.append(line)
                line, empty = rest, True
            line += piece if empty else space + piece
            space, empty = "", False
    return [line.rstrip() for line in lines + [line]]


def read_sections(*path):
    """The sections of a file, none if there is no file. A ValueError names file and line."""
    file = os.path.join(*path)
    try:
        with open(file, encoding="utf-8") as opened:
            return sections(opened.read())
    except OSError:
        return {}
    except ValueError as error:
        raise ValueError(f"{file}:{error}") from None


def exercises(chapter, lang):
    """The Sections of a chapter's exercises/exercises.md, with title and parts in that language
    if they are translated."""
    english, translated = (read_sections(chapter, "exercises", name)
                           for name in ("exercises.md", f"exercises.{lang}.md"))
    return [one._replace(title=(said := translated.get(one.name, one)).title, parts=said.parts)
            for one in english.values()]


def sections(text):
    """{name: Section} of "## NAME: TITLE", a list "- Fact: value", and text. A ValueError names
    the line, and the reason."""
    found, lines, code = {}, [], 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            code = 0 if code else number
        heading = not code and re.fullmatch(r"## ([\w/.-]+)[:：] ?(.*)", line)
        if heading:
            if heading[1] in found:
                raise ValueError(f"{number}: {heading[1]} is there twice")
            lines = found[heading[1]] = [heading[2], number]
        elif not code and re.match("#+ " if found else "##+ ", line):
            raise ValueError(f'{number}: "{line}" is not "## NAME: TITLE"')
        else:
            lines.append(line)
    if code:
        raise ValueError(f"{code}: the code that begins here has no end: add a line ```")
    return {name: _section(name, *lines) for name, lines in found.items()}


def head(text):
    """The Section above the others, "# TITLE"; None if there is none. The book's index shows the
    drawing of the cell that its fact Drawing names, and its part Afterwards."""
    found = re.match(r"# (.+)\n((?:(?!## ).*\n?)*)", text)
    return found and _section("", found[1].strip(), 1, *found[2].splitlines())


def _section(name, title, number, *lines):
    text = "\n".join(lines).strip() + "\n"
    facts = re.match(rf"(?:{FACT}.*\n(?: +.*\n)*)*", text)
    parts = re.split(r"(?m)^\*\*([^*:：]+)[:：]\*\*", text[facts.end():])
    return Section(
        name, title, number,
        {key: " ".join(value.split())
         for key, value in re.findall(rf"(?m)^{FACT}(.*(?:\n +.*)*)", facts[0])},
        {label: body.strip() for label, body in zip(["", *parts[1::2]], parts[::2])})


def paragraphs(text):
    """The paragraphs of a part, with wrapped lines joined: by spaces, or by nothing between two
    Chinese characters. A list's items and a block of code stay separate."""
    result, chinese = [], "[\u2e01-\U0010ffff]"
    for block in re.split(r"(?ms)^(```.*?^```.*?$)", text):
        if block.startswith("```"):
            result.append(re.sub("```.*$", "```", block))
            continue
        for paragraph in re.split(r"\n\s*\n|\n(?=- )", block):
            joined = re.sub(rf"(?<={chinese})\s*\n\s*(?={chinese})", "", paragraph.strip())
            result.append(re.sub(r"\s*\n\s*", " ", joined))
    return [p for p in result if p]
