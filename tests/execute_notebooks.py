#!/usr/bin/python3
"""Executes a chapter's notebooks in both languages, small, and checks the format of all.

  tests/execute_notebooks.py NOTEBOOKS CHAPTER

`bazel run //:notebooks -- --out=NOTEBOOKS` has written them. Needs Debian's python3-nbclient and
python3-ipykernel. Fails where a cell does, or where a lesson's cell shows nothing.
"""
import pathlib
import sys

import nbclient
import nbformat


def main():
    folder, chapter = pathlib.Path(sys.argv[1]), sys.argv[2]
    files = sorted(folder.glob("*.ipynb"))
    for file in files:
        nbformat.validate(nbformat.read(file, as_version=4))
    root = pathlib.Path(__file__).resolve().parents[1]
    for file in (file for file in files if file.name.split(".")[0] == chapter):
        book = nbformat.read(file, as_version=4)
        flags = next(cell for cell in book.cells if cell.source.startswith("flags = []"))
        flags.source = 'flags = ["--size=small"]'
        nbclient.NotebookClient(book, timeout=600, kernel_name="python3",
                                resources={"metadata": {"path": root}}).execute()
        nbformat.write(book, file)
        for cell in book.cells:
            if cell.source.startswith(("run(", "judge(")) and not cell.outputs:
                sys.exit(f"{file}: {cell.source} shows nothing")
        print(f"{file.name}: {sum(cell.cell_type == 'code' for cell in book.cells)} cells ran")


if __name__ == "__main__":
    main()
