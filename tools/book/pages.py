"""The pages of the book, from runs (results.py), templates and the lessons' texts."""
import functools
import os
import re
import xml.etree.ElementTree as ElementTree

import jinja2
import markdown
import markdown.treeprocessors
import pygments
import pygments.formatters
import pygments.lexers

import course_texts
import picture
import results

HERE = os.path.dirname(os.path.realpath(__file__))
UNITS = {"sec": 1, "s": 1, "ms": 1e-3, "us": 1e-6}
LANGUAGES = {"en": "English", "zh": "中文"}
STYLES = {"light": "xcode", "dark": "github-dark"}
SVG = "http://www.w3.org/2000/svg"


def slug(text):
    return re.sub(r"[^\w-]+", "-", text)


def page_name(name, lang):
    return f"{slug(name)}.html" if lang == "en" else f"{slug(name)}.{lang}.html"


class _Links(markdown.treeprocessors.Treeprocessor):
    def run(self, root):
        for link in root.iter("a"):
            # Files of the checkout are not in the book, so they get no link.
            if not link.get("href").startswith(("https://", "#")):
                del link.attrib["href"]


def _markdown():
    converter = markdown.Markdown(extensions=["tables", "fenced_code", "codehilite",
                                              "sane_lists"],
                                  extension_configs={"codehilite": {"guess_lang": False}})
    # Shows "<" as it is: the texts have no HTML.
    converter.preprocessors.deregister("html_block")
    converter.inlinePatterns.deregister("html")
    converter.treeprocessors.register(_Links(converter), "links", 0)
    return converter


@functools.lru_cache(maxsize=None)
def prose(text):
    return jinja2.utils.markupsafe.Markup(_markdown().convert(text))


@functools.lru_cache(maxsize=None)
def code(text, language, **options):
    return jinja2.utils.markupsafe.Markup(pygments.highlight(
        text, pygments.lexers.get_lexer_by_name(language),
        pygments.formatters.HtmlFormatter(**options)))


def style_sheet():
    """style.css, and the colours of code."""
    with open(os.path.join(HERE, "style.css"), encoding="utf-8") as file:
        style = file.read()
    light, dark = (
        pygments.formatters.HtmlFormatter(style=STYLES[kind]).get_style_defs(".highlight")
        for kind in ("light", "dark"))
    # Keeps the panel's own background; does not mark errors, which fragments have.
    light, dark = (re.sub(r"(?m)^(pre|td|span\.linenos|\.highlight( \.(hll|err))?) \{.*\n?",
                          "", sheet) for sheet in (light, dark))
    return f"{style}\n{light}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def drawing(text, prefix, title, description):
    """The SVG for use within a page: with its own ids, and text alternatives."""
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(text)
    for element in root.iter():
        for name, value in element.items():
            element.set(name, f"{prefix}-{value}" if name == "id" else
                        value.replace("url(#", f"url(#{prefix}-"))
    for name in ("title", "desc"):
        for old in root.findall(f"{{{SVG}}}{name}"):
            root.remove(old)
    for i, (name, words) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(f"{{{SVG}}}{name}", {"id": f"{prefix}-{name}"})
        element.text = words
        root.insert(i, element)
    root.set("role", "img")
    root.set("aria-labelledby", f"{prefix}-title")
    root.set("aria-describedby", f"{prefix}-desc")
    root.set("style", f"--width: {root.attrib.pop('width')}px")
    del root.attrib["height"]
    # HTML does not use namespaces.
    return jinja2.utils.markupsafe.Markup(
        re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", ElementTree.tostring(root, encoding="unicode")))


def read(*path):
    """The file's text, "" if there is none."""
    try:
        with open(os.path.join(*path), encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""


def timed_lines(printed):
    """{label: seconds} of lines such as "Run on GPU1 time: 1.2626 sec", and a profiler's "Self
    CPU time total: 2.533s"."""
    return {label.strip(): float(value) * UNITS[unit] for label, value, unit in re.findall(
        r"(?m)^(.*?)(?:(?<!each)\s+time)?:\s*(\d+(?:\.\d+)?) ?(sec|s|ms|us)\s*$", printed)}


def three_columns(cell, section):
    """[(label, the course's seconds, PyTorch's, our figure)], None where there is none. The
    section of lesson.md says which figure is whose: "- Rows: label: name; label: name"."""
    course = timed_lines(cell["course_printed"])
    here = timed_lines(cell["pytorch"]["printed"]) if cell["pytorch"] else {}
    rows = section.facts.get("Rows", "") if section else ""
    names = dict(row.split(": ", 1) for row in rows.split("; ") if row)
    return [(label, course.get(label), here.get(label),
             next((figure for figure in cell["figures"]
                   if names.get(label) and figure["name"].startswith(names[label])), None))
            for label in dict.fromkeys([*course, *here])]


class Book:
    """Writes the pages of one run to a folder."""

    def __init__(self, workspace, out):
        self.workspace = workspace
        self.out = out
        self.sources = {}  # {(page, language): the source that it shows}

    def write(self, name, text):
        path = os.path.join(self.out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def render(self, template, name, lang, languages=None, **fields):
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(os.path.join(HERE, "templates")), autoescape=True,
            trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
        word = course_texts.translator(lang)
        environment.filters.update(
            prose=prose, slug=slug, word=word,
            value=lambda value, unit: results.format_value(value, word(unit)))
        environment.globals.update(
            _=word, lang=lang, code=code,
            lang_flag="" if lang == "en" else f"--lang={lang}",
            page=lambda other: page_name(other, lang),
            translations=[(other, LANGUAGES[other], page_name(name, other))
                          for other in languages or self.languages if other != lang])
        self.write(page_name(name, lang), environment.get_template(template).render(**fields))

    def write_all(self, run, languages, drawings, before=None):
        """`run` is from results.py, `drawings` is the folder of the SVGs, by language, `before`
        is an earlier run, or None."""
        self.languages = languages
        self.drawings = drawings
        self.write("style.css", style_sheet())
        self.write("book.js", read(HERE, "book.js"))
        for lang in languages:
            lessons = [self.chapter(lesson, lang)
                       for lesson in results.lessons_in(run, lang).values()]
            changed = results.changes(before, run, lang) if before else None
            self.render("index.html", "index", lang, run=run, lessons=lessons,
                        before=before, changed=changed,
                        compared=os.path.exists(
                            os.path.join(self.out, page_name("compare", lang))))
            cells = [(lesson, cell) for lesson in lessons for cell in lesson["cells"]]
            places = [{"url": f"{page_name(lesson['lesson'], lang)}#{cell['slug']}",
                       "name": f"{cell['number']} {cell['title']}"} for lesson, cell in cells]
            for i, (_, cell) in enumerate(cells):
                cell["previous"] = places[i - 1] if i else None
                cell["next"] = places[i + 1] if i + 1 < len(places) else None
            for lesson in lessons:
                self.render("chapter.html", lesson["lesson"], lang, lesson=lesson)
            self.render("text.html", "glossary", lang, title="Glossary",
                        text=read(self.workspace, "chapters", "glossary.md"))
            self.render("text.html", "cuda_words", lang, title="CUDA's words",
                        text=read(self.workspace, "chapters",
                                  "cuda_words.md" if lang == "en" else f"cuda_words.{lang}.md"))
        for (name, lang), fields in self.sources.items():
            self.render("source.html", name, lang, **fields, languages=[
                other for other in languages if (name, other) in self.sources])

    def write_comparison(self, runs, names, languages):
        self.languages = languages
        self.write("style.css", style_sheet())
        self.write("book.js", read(HERE, "book.js"))
        for lang in languages:
            self.render("compare.html", "compare", lang,
                        runs=[(name, dict(run, lessons=list(
                            results.lessons_in(run, lang).values())))
                              for name, run in zip(names, runs)],
                        table=results.compared(runs, lang),
                        index=os.path.exists(os.path.join(self.out, page_name("index", lang))))

    def chapter(self, lesson, lang):
        """The lesson, with the other data that its page needs."""
        lesson, _ = dict(lesson), course_texts.translator(lang)
        url = re.search(r"https://[\w./-]+", lesson["section"])
        lesson["book"] = url[0] if url else ""
        if lang == "zh":
            lesson["book"] = lesson["book"].replace("https://d2l.ai/", "https://zh.d2l.ai/")
        lesson["section"] = lesson["section"].replace(url[0] if url else "", "").strip(" ,\n，")
        folder = os.path.join(self.workspace, "chapters", lesson["lesson"])
        to_do = self.exercises(folder, lang)
        timelines = {one["id"]: f"timelines/{one['file']}" for one in lesson["timelines"]}
        printed = {one["id"]: one for one in lesson["pytorch"]["cells"]}
        sections = course_texts.sections(read(folder, "lesson.md"))
        translated = course_texts.sections(read(folder, f"lesson.{lang}.md"))
        cells = []
        for cell in lesson["cells"]:
            # An earlier run has no pictures, and does not say which choice is right.
            cell = dict({"picture": "", "right": 0, **cell}, slug=slug(cell["id"]), pytorch=printed.get(cell["id"]))
            timeline = timelines.get(cell["id"], "")  # missing if only --results is
            cell["timeline"] = timeline if os.path.isfile(
                os.path.join(self.out, timeline)) else ""
            cell["source_page"] = self.source_page(lesson, cell["source"], lang)
            cell["measured_page"] = self.source_page(lesson, cell["measured"], lang)
            cell["to_do"] = [one for one in to_do if one["cell"] == cell["id"]]
            files = [one["file"] for one in cell["drawings"] if one["file"]]
            cell["output"] = "\n".join(
                line for line in cell["output"].splitlines()
                if not any(file in line for file in files))
            cell["svgs"] = self.svgs(lesson, cell, lang)
            cell["picture_svg"] = cell["picture"] and drawing(
                picture.draw(cell["picture"]), f"{lesson['lesson']}-{cell['slug']}-picture",
                cell["title"], _("A picture of what the text above says in words."))
            section = sections.get(cell["id"])
            said = translated.get(cell["id"], section)
            cell["group"] = said and (said.facts.get("Group") or said.facts.get("组"))
            cell["output"] = re.sub(r"\n{3,}", "\n\n", cell["output"]).strip("\n")
            cell["rows"] = three_columns(cell, section)
            cells.append(cell)
        lesson["cells"] = cells
        english = course_texts.head(read(folder, "lesson.md"))
        said = course_texts.head(read(folder, f"lesson.{lang}.md"))
        lesson["afterwards"] = next(
            (one.parts[label] for one in (said, english) if one
             for label in ("Afterwards", "学完之后") if label in one.parts), "")
        shown = english.facts.get("Drawing") if english else ""
        lesson["drawing"] = next(({"name": cell["svgs"][0][0], "svg": cell["svgs"][0][1],
                                   "cell": cell} for cell in cells
                                  if cell["id"] == shown and cell["svgs"]), None)
        ids = [cell["id"] for cell in cells]
        lesson["to_do"] = [one for one in to_do if one["cell"] not in ids]
        lesson["judged"] = [one for one in to_do if one["judged"]]
        return lesson

    def exercises(self, folder, lang):
        """The chapter's exercises, each with the first cell that it names."""
        return [{**one._asdict(), "cell": one.facts.get("Cells", "").split(",")[0].strip(),
                 "judged": any(read(folder, "exercises", one.name + suffix)
                               for suffix in (".cc", ".cu"))}
                for one in course_texts.exercises(folder, lang)]

    def svgs(self, lesson, cell, lang):
        found, _ = [], course_texts.translator(lang)
        for i, one in enumerate(cell["drawings"]):
            text = read(self.drawings, lesson["lang"], os.path.basename(one["file"]))
            if not text:
                continue
            # The drawing replaces the printed one.
            cell["output"] = cell["output"].replace(one["text"].strip("\n"), "")
            if one["file"].endswith(".dot"):  # Graphviz did not make an SVG of it
                found.append((one["label"], jinja2.utils.markupsafe.Markup(
                    "<pre>{}</pre>").format(one["text"].strip("\n"))))
            else:
                found.append((one["label"], drawing(
                    text, slug(f"{lesson['lesson']}-{cell['id']}-{i}"), one["label"],
                    _("A drawing of what this cell measured. The verdicts, and all figures, "
                      "say it in words and numbers."))))
        return found

    def source_page(self, lesson, source, lang):
        """The page with the lesson's whole source, which write_all writes; "" if the file
        is none of the lessons'."""
        name = source["file"][len("chapters/"):-len(".cc")].replace("/", "-")
        if (name, lang) not in self.sources:
            text = read(self.workspace, source["file"])
            if not text:
                return ""
            self.sources[name, lang] = {"file": source["file"], "text": text,
                                        "lesson": lesson}
        return f"{page_name(name, lang)}#line-{source['line']}"
