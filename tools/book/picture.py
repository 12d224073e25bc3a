"""Draws the pictures of the lessons' texts: a block ```picture of characters becomes an SVG.

    +----------+          +==========+
    |  queue   |--------->|  device  |
    +----------+  takes   +==========+

"+", "-" and "|" are boxes and lines, "<", ">", "^" and "v" at an end of a line its
arrowhead. A box of "=" in place of "-" is coloured, and one with corners "#" in another
colour; "." and ":" make a dashed frame. A line that crosses another one does so at "-" or
"|", not at "+". All else is text: a run of it ends at two spaces. A Chinese character takes
two columns, as on a terminal.
"""
import html
import unicodedata

WIDTH, HEIGHT, SIZE, EDGE = 8.4, 19, 14, 10  # of a column, of a line, of letters; around all
CORNERS, INK = "+#", "#333333"
FILLS = {"+-": "#ffffff", "+=": "#cfe6f7", "#=": "#fbe3bd", "+.": "none"}
FONTS = "DejaVu Sans, Verdana, Noto Sans CJK SC, sans-serif"
# From the middle of a character: rows down, columns to the right, and what a line goes on with.
WAYS = {(0, 1): "-=>+#|", (0, -1): "-=<+#|", (1, 0): "|v+#-=.", (-1, 0): "|^+#-=."}


def columns(line):
    """The characters by column; the second column of a wide one is ""."""
    return [cell for c in line for cell in
            ([c, ""] if unicodedata.east_asian_width(c) in "WF" else [c])]


class Picture:
    """The characters of a picture, and which of them are part of a shape."""

    def __init__(self, text):
        self.rows = [columns(line) for line in text.split("\n")]
        self.used = set()  # (row, column) of lines, boxes and arrowheads

    def at(self, row, column):
        """The character there, a blank outside of the picture."""
        inside = 0 <= row < len(self.rows) and 0 <= column < len(self.rows[row])
        return self.rows[row][column] if inside else " "

    def _boxes(self):
        """[(top, left, bottom, right, fill)], the outer ones first."""
        found = []
        for top, row in enumerate(self.rows):
            for left, corner in enumerate(row):
                edge = self.at(top, left + 1)
                if corner not in CORNERS or not corner or corner + edge not in FILLS:
                    continue
                right = left + 1
                while self.at(top, right) == edge:
                    right += 1
                sides = ":-<>" if edge == "." else "|"  # lines cross a frame
                bottom = top + 1
                while all(self.at(bottom, x) in sides for x in (left, right)):
                    bottom += 1
                if bottom > top + 1 and self.at(top, right) == corner and all(
                        self.at(bottom, x) == (corner if x in (left, right) else edge)
                        for x in range(left, right + 1)):
                    found.append((top, left, bottom, right, corner + edge))
        for top, left, bottom, right, _ in found:
            self.used |= {(y, x) for y in (top, bottom) for x in range(left, right + 1)}
            self.used |= {(y, x) for x in (left, right) for y in range(top, bottom + 1)
                          if self.at(y, x) in "|:"}
        return sorted(found)

    def _is_line(self, row, column):
        """Whether the character is of a line, and not of a word."""
        c, left, right = (self.at(row, column + i) for i in (0, -1, 1))
        above, below = self.at(row - 1, column), self.at(row + 1, column)
        if c == "-":
            return (left or "w") in "-<+|#" or (right or "w") in "->+|#"
        if c in "<>":
            return (left if c == ">" else right) in ("-", "+")
        if c in "v^":
            return (above if c == "v" else below) in ("|", "+", "-", "=", "^", "v") and not (
                left.isalnum() or right.isalnum())
        return c == "|" or c == "+" and (
            "-" in (left, right) or bool({above, below} & {"|", "v", "^"}))

    def _reach(self, boxes, row, column):
        """How far a stroke goes that ends beside this character: to the line there, or to the edge."""
        return 1 if (row, column) in boxes or self.at(row, column) == "|" else 0.5

    def _strokes(self):
        """SVG paths of lines and arrowheads."""
        lines, heads, boxes = [], [], set(self.used)
        for row, cells in enumerate(self.rows):
            for column, c in enumerate(cells):
                if not c or (row, column) in boxes or not self._is_line(row, column):
                    continue
                self.used.add((row, column))
                x, y = middle(row, column)
                ways = {"-": [(0, 1), (0, -1)], "|": [(1, 0), (-1, 0)], "+": WAYS,
                        ">": [(0, -1)], "<": [(0, 1)], "v": [(-1, 0)], "^": [(1, 0)]}[c]
                for down, along in ways:
                    other = self.at(row + down, column + along)
                    if c == "+" and (not other or other not in WAYS[down, along]):
                        continue
                    far = self._reach(boxes, row + down, column + along)
                    lines.append(f"M {x:g} {y:g} l {along * WIDTH * far:g} {down * HEIGHT * far:g}")
                if c in "<>^v":
                    down, along = {">": (0, 1), "<": (0, -1), "v": (1, 0), "^": (-1, 0)}[c]
                    far = self._reach(boxes, row + down, column + along)
                    tip = x + along * WIDTH * far, y + down * HEIGHT * far
                    lines.append(f"M {x:g} {y:g} L {tip[0] - 4 * along:g} {tip[1] - 4 * down:g}")
                    heads.append(f"M {tip[0]:g} {tip[1]:g} "
                                 f"l {-9 * along - 4 * down:g} {-9 * down - 4 * along:g} "
                                 f"l {8 * down:g} {8 * along:g} z")
        return " ".join(lines), " ".join(heads)

    def _texts(self, boxes):
        """[(x, y, anchor, text)]. A text that is alone between the sides of a box stands in the
        middle of it."""
        found, alone = [], {}
        for row, cells in enumerate(self.rows):
            line = [" " if (row, column) in self.used else c for column, c in enumerate(cells)]
            runs, begin = [], None  # [(first column, last column)]
            for column, c in enumerate(line + [" ", " "]):
                blank = c == " "
                if begin is None and not blank:
                    begin = column
                elif begin is not None and blank and (
                        (row, column) in self.used or [*line, " ", " "][column + 1] == " "):
                    runs.append((begin, column - 1))
                    begin = None
            for first, last in runs:
                x, y = middle(row, first)
                text = "".join(line[first:last + 1])
                around = [box for box in boxes if box[0] < row < box[2] and box[4] != "+."
                          and box[1] < first <= last < box[3]]
                # The innermost box comes last.
                if around and sum(around[-1][1] < one < around[-1][3] for one, _ in runs) == 1:
                    alone.setdefault(around[-1], []).append((row, text))
                else:
                    found.append((x - WIDTH / 2, y + SIZE / 3, "start", text))
        for (top, left, bottom, right, _), texts in alone.items():
            down = (top + bottom - texts[0][0] - texts[-1][0]) / 2
            for row, text in texts:
                x, y = middle(row + down, (left + right) / 2)
                found.append((x, y + SIZE / 3, "middle", text))
        return found

    def svg(self):
        """The whole picture."""
        boxes = self._boxes()
        lines, heads = self._strokes()
        width = 2 * EDGE + WIDTH * max(map(len, self.rows))
        height = 2 * EDGE + HEIGHT * len(self.rows)
        parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
                 f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
                 f'font-family="{FONTS}" font-size="{SIZE}">',
                 '<rect width="100%" height="100%" fill="white"/>']
        for top, left, bottom, right, fill in boxes:
            (x, y), (far, low) = middle(top, left), middle(bottom, right)
            dashed = ' stroke-dasharray="4 4"' if fill == "+." else ""
            parts.append(f'<rect x="{x:g}" y="{y:g}" width="{far - x:g}" height="{low - y:g}" '
                         f'rx="4" fill="{FILLS[fill]}" stroke="{INK}"{dashed}/>')
        parts += [f'<path d="{lines}" fill="none" stroke="{INK}" stroke-width="1.4"/>',
                  f'<path d="{heads}" fill="{INK}"/>']
        parts += [f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="#222222">'
                  f"{html.escape(text)}</text>" for x, y, anchor, text in self._texts(boxes)]
        return "\n".join(parts + ["</svg>"])


def middle(row, column):
    """Of a character."""
    return EDGE + (column + 0.5) * WIDTH, EDGE + (row + 0.5) * HEIGHT


def draw(text):
    """The SVG of a picture."""
    return Picture(text.strip("\n")).svg()
