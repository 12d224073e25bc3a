#!/usr/bin/env python3
"""po/zh.po, the gettext catalogue of what the course says in Chinese.

    chinese = catalogue.read("po/zh.po")        # {English: Chinese}
    catalogue.py po/zh.po > zh.cc               # the same for C++: //po:zh

Reads what the catalogue uses of the format: comments, msgctxt, msgid and msgstr. So neither
the build nor the doctor needs gettext; //chapters:texts_test holds the file against gettext's own tools.
"""
import ast
import sys


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


def cpp_literal(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def main():
    print('#include "common/base/console/language.h"\n\n'
          "[[maybe_unused]] static const bool added = d2l::AddTranslations({")
    for english, chinese, files in entries(sys.argv[1]):
        # A word of the tools may mean something else in C++, which says some by their value.
        if not files or not all(file.startswith("tools/") for file in files):
            print(f"    {{{cpp_literal(english)},\n     {cpp_literal(chinese)}}},")
    print("});")


if __name__ == "__main__":
    main()
