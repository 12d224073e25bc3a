#!/usr/bin/env python3
"""answers.py SOLUTION.cc MISTAKES.cc [JUDGE.cc]: prints an exercise's answers as one file.

These are the mistakes, the solution, and the untouched exercise, which is made
of the solution. Compiled together they take half as long as one by one. Each is
in a namespace of its own, and keeps the name and lines of its file. The judge follows
as it is.
"""
import re
import sys

BEGIN = "\nnamespace d2l {\nnamespace {\n"
END = "\n}  // namespace\n}  // namespace d2l\n"


def untouched(solution):
    """The solution's text without the part between its two marks."""
    not_done = "KernelIsNotDone();" if "__global__" in solution else "throw NotDone();"
    return re.sub(r"^( *)// SOLUTION\n.*?^ *// END\n",
                  rf"\1// YOUR CODE\n\1{not_done}\n", solution, flags=re.M | re.S)


def together(files):
    """One text of several files, a list of (name, text)."""
    includes, bodies = [], []
    for index, (name, text) in enumerate(files):
        head, begin, body = text[:-len(END)].partition(BEGIN)
        above = [line for line in head.split("\n") if line and not line.startswith("//")]
        if (not begin or not text.endswith(END)
                or not all(line.startswith("#include ") for line in above)):
            raise ValueError(f"{name}: an answer is in an unnamed namespace of d2l, "
                             "with nothing but includes before it")
        includes += above
        line = head.count("\n") + BEGIN.count("\n") + 1
        bodies.append(f"namespace d2l {{\nnamespace {{\nnamespace file{index} {{\n"
                      f'#line {line} "{name}"\n{body}\n'
                      f"}}  // namespace file{index}{END}")
    return "\n".join(list(dict.fromkeys(includes)) + bodies)


def main(solution, mistakes, judge=None):
    texts = {}
    for name in (mistakes, solution):
        with open(name, encoding="utf-8") as file:
            texts[name] = file.read()
    texts[solution.replace("/solutions/", "/untouched/")] = untouched(texts[solution])
    made = together(list(texts.items()))
    if judge:
        with open(judge, encoding="utf-8") as file:
            made += f'#line 1 "{judge}"\n{file.read()}'
    sys.stdout.buffer.write(made.encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
