#!/usr/bin/env python3
"""po/zh.po, the gettext catalogue of what the course says in Chinese.

    chinese = catalogue.read("po/zh.po")        # {English: Chinese}
    catalogue.py po/zh.po > zh.cc               # the same for C++: //po:zh
    po/catalogue.py --add                       # appends entries, to be filled in, for new texts

Reads what the catalogue uses of the format: comments, msgctxt, msgid and msgstr. So neither
the build nor the doctor needs gettext; --add does, and //chapters:texts_test, which holds the
file against gettext's own tools.
"""
import ast
import glob
import os
import re
import subprocess
import sys
import tempfile

# The functions that say their argument in the run's language.
KEYWORDS = ["ABSL_FLAG:4", "Claim", "Lead", "Padded", "Phrase", "Say", "Translated", "Worded"]
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
LITERALS = r"%s(?:\s*%s)*" % (LITERAL, LITERAL)
# The labels of Alternatives, {"both", {device}, …}, and the name of Both's control.
LABELS = [r"\{\s*(%s),\s*(?:\{[^{}]*\}|Both\(\)|\w+),\s*\[" % LITERALS,
          r"\bBoth\([^;]*?,\s*(%s)\)" % LITERALS]


def entries(path):
    """[(msgid, msgstr, the files that say it)], without the header. A msgctxt stands before
    the msgid, with \\4 between them, as gettext has it."""
    found, key, files = [{}], None, []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            word, _, rest = line.strip().partition(" ")
            if word in ("msgctxt", "msgid", "msgstr"):
                if "msgstr" in found[-1]:
                    found.append({})
                if "files" not in found[-1]:
                    found[-1]["files"], files = files, []
                key, found[-1][word] = word, ast.literal_eval(rest)
            elif word.startswith('"') and key:
                found[-1][key] += ast.literal_eval(line.strip())
            elif word and not word.startswith("#"):
                raise ValueError(f"{path}:{number}: {line.strip()} is none of msgctxt, msgid, "
                                 "msgstr, a text in double quotes, or a comment")
            else:
                files += rest.split() if word == "#:" else []
                key = None
    return [("\4".join(entry[part] for part in ("msgctxt", "msgid") if part in entry),
             entry["msgstr"], entry["files"]) for entry in found if entry.get("msgid")]


def read(path):
    """{English: Chinese} of the file."""
    return {english: chinese for english, chinese, _ in entries(path) if chinese}


def text_of(literals):
    """The text of adjacent literals, as the compiler joins them."""
    text = "".join(part[1:-1] for part in re.findall(LITERAL, literals))
    return re.sub(r"\\(.)", r"\1", text.replace("\\n", "\n"))


def sources():
    """The files of the course's programs, below the working directory."""
    return sorted(path for folder in ("chapters", "common") for suffix in ("cc", "h")
                  for path in glob.glob(f"{folder}/**/*.{suffix}", recursive=True)
                  if not re.search(r"_test\.cc|/mistakes/|/sample_lesson\.|/benchmark_main\.",
                                   path))


def said(files):
    """{text: a file that says it}: what xgettext finds, and labels with a word in them."""
    with tempfile.TemporaryDirectory() as folder:
        found = os.path.join(folder, "said.pot")
        subprocess.run(["xgettext", "--language=C++", "--from-code=UTF-8", "-k", "-o", found] +
                       ["--keyword=" + keyword for keyword in KEYWORDS] + files, check=True,
                       stderr=subprocess.DEVNULL)
        texts = {english: where[0].rpartition(":")[0] for english, _, where in entries(found)}
    for path in files:
        if "/exercises/" in path:
            continue
        with open(path, encoding="utf-8") as file:
            code = re.sub(r"(?m)^\s*//.*$", "", file.read())
        for label in (text_of(one) for regex in LABELS for one in re.findall(regex, code)):
            if re.search("[a-z]{2}", label):
                texts.setdefault(label, path)
    return texts


def judged():
    """{sentence: the judge of an exercise that says it}. They are plain literals."""
    texts = {}
    for path in sorted(glob.glob("chapters/*/exercises/judges/*.cc")):
        with open(path, encoding="utf-8") as file:
            code = re.sub(r"^#include.*$|^D2L_.*$|//.*$", "", file.read(), flags=re.M)
        for text in map(text_of, re.findall(LITERALS, code)):
            words = re.sub(r"%[-\d.]*[a-z]", "", text)
            if " " in text.strip() and re.search("[A-Za-z]{3}", words):
                texts[text] = path
    return texts


def add(path):
    """Appends an empty entry to the file for each text that has none."""
    known = {english for english, _, _ in entries(path)}
    with open(path, "a", encoding="utf-8") as file:
        for english, where in {**said(sources()), **judged()}.items():
            if english not in known:
                file.write(f"\n#: {where}\nmsgid {po_literal(english)}\nmsgstr \"\"\n")
                print(f"{path}: translate {english!r}")


def po_literal(text):
    lines = text.splitlines(keepends=True)
    return "\n".join(['""'] * (len(lines) > 1) + [cpp_literal(line) for line in lines])


def cpp_literal(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def main():
    if sys.argv[1:] == ["--add"]:
        os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
        add("po/zh.po")
        return
    print('#include "common/base/console/language.h"\n\n'
          "[[maybe_unused]] static const bool added = d2l::AddTranslations({")
    for english, chinese, files in entries(sys.argv[1]):
        # A word of the tools may mean something else in C++, which says some by their value.
        if not files or not all(file.startswith("tools/") for file in files):
            print(f"    {{{cpp_literal(english)},\n     {cpp_literal(chinese)}}},")
    print("});")


if __name__ == "__main__":
    main()
