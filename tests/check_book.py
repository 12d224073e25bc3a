#!/usr/bin/env python3
"""Checks the pages that //:book wrote, in a headless Chromium.

Usage: tests/check_book.py [book] [--screenshots=DIR] [--chromium=PATH]

On each page it looks for messages on the console, for links and frames that lead
nowhere, for pictures without a text that stands for them, for contrast below 4.5 in
light and dark, and for a page wider than a phone or larger than 3 MB. It answers
questions and unfolds a timeline with real mouse and key events, and looks at the page
on paper. How long drawing took is printed, not judged.

Exits with 0 if all is well, 1 if not, and 77, "not checked", if there is no Chromium
(Debian: sudo apt-get install chromium). Needs only Python's library.
"""
import argparse
import base64
import html.parser
import os
import sys
import urllib.parse

from browser import add_options, browser_of

MAX_BYTES = 3_000_000
PHONE, DESK = (360, 740), (1200, 900)
# Sites that a page may link to, but must not load anything from.
SITES = ("https://d2l.ai/", "https://zh.d2l.ai/", "https://pytorch.org/",
         "https://github.com/")

# [colours, [text, contrast]] of texts with less than 4.5, or 3 if they are large. A
# drawing's text has its own edge, or what was painted below it, as its background, in the
# colours that the drawing's filter makes.
LOW_CONTRAST = """(() => {
  const parse = (colour) => {
    const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const luminance = ([r, g, b]) => {
    const linear = [r, g, b].map((c) => c / 255).map(
        (c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const over = (front, back) => front.slice(0, 3).map(
      (c, i) => c * front[3] + back[i] * (1 - front[3]));
  const background = (element) => {
    if (!element) return [255, 255, 255];
    const colour = parse(getComputedStyle(element).backgroundColor);
    return colour[3] === 1 ? colour.slice(0, 3)
                           : over(colour, background(element.parentElement));
  };
  const context = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const filtered = (colour, filter) => {
    context.filter = filter;
    context.fillStyle = `rgb(${colour})`;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const shapes = (svg) => svg.shapes ||= [...svg.querySelectorAll(
      "rect, circle, ellipse, polygon, path")].filter(
      (e) => !e.closest("defs") && getComputedStyle(e).fill !== "none").map((shape) => {
        const style = getComputedStyle(shape);
        const [r, g, b, a] = parse(style.fill);
        return {shape, colour: [r, g, b, a * style.fillOpacity * style.opacity],
                toShape: shape.getScreenCTM().inverse()};
      });
  const painted = (text, x, y) => shapes(text.ownerSVGElement).reduce(
      (back, {shape, colour, toShape}) =>
          shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING &&
          shape.isPointInFill(new DOMPoint(x, y).matrixTransform(toShape))
              ? over(colour, back) : back, [128, 128, 128]);  // nothing contrasts with it
  // [[front, back]] at both ends of the element and in its middle.
  const pairs = (element) => {
    const style = getComputedStyle(element);
    const svg = element.ownerSVGElement;
    if (!svg) {
      const back = background(element);
      return [[over(parse(style.color), back), back]];
    }
    const box = element.getBoundingClientRect();
    const hasEdge = style.stroke !== "none" && parseFloat(style.strokeWidth) >= 2 &&
        style.paintOrder.startsWith("stroke");
    return !box.width ? [] : [0.1, 0.5, 0.9].map((part) => {
      const back = hasEdge ? parse(style.stroke) : painted(
          element, box.left + part * box.width, box.top + box.height / 2);
      const front = over(parse(style.fill), back);
      return [front, back].map((one) => filtered(one, getComputedStyle(svg).filter));
    });
  };
  const found = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const element = walker.currentNode.parentElement;
    if (!text || element.closest("svg title, svg desc")) continue;
    const {fontSize, fontWeight} = getComputedStyle(element);
    const size = parseFloat(fontSize) * (fontWeight >= 700 ? 24 / 18.66 : 1);
    for (const [front, back] of pairs(element)) {
      const [low, high] = [luminance(front), luminance(back)].sort((a, b) => a - b);
      const contrast = (high + 0.05) / (low + 0.05);
      if (contrast >= (size >= 24 ? 3 : 4.5)) continue;
      found.set(`${front} on ${back}`, [text.slice(0, 40), contrast]);
    }
  }
  return [...found];
})()"""

# Elements that need a text alternative and have none.
UNNAMED = """[...document.querySelectorAll('img, svg, iframe, [role=img], [role=region]')]
  .filter((e) => !e.closest('svg svg')).filter((e) => {
    const ids = (e.getAttribute('aria-labelledby') || '').split(/\\s+/).filter(Boolean);
    const words = ids.map((id) => (document.getElementById(id) || {}).textContent || '');
    return !(e.getAttribute('alt') || e.title || e.getAttribute('aria-label') ||
             words.join('').trim());
  }).map((e) => e.outerHTML.slice(0, 120))"""

# Elements that make a page wider than the window.
TOO_WIDE = """document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll('main *, header *')].filter(
    (e) => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 5)
    .map((e) => e.outerHTML.slice(0, 100))"""


class Links(html.parser.HTMLParser):
    """The addresses, names and forbidden things in a page."""

    def __init__(self, text):
        super().__init__()
        self.urls, self.ids, self.scripts, self.faults = [], set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src"):
                self.urls.append((tag, value or ""))
            if name in ("id", "name"):
                if name == "id" and value in self.ids:
                    self.faults.append(f"the id {value} twice")
                self.ids.add(value)
            if name.startswith("on"):
                self.faults.append(f"{name}={value}")
        if tag == "script":
            self.scripts.append(dict(attrs).get("src"))


class Check:
    def __init__(self, browser, folder, screenshots):
        self.browser = browser
        self.folder = folder
        self.screenshots = screenshots
        self.failures = 0
        self.page = ""
        self.links = {}

    def expect(self, what, ok, detail=""):
        if not ok:
            self.failures += 1
            print(f"FAILED: {self.page}: {what} {detail}")

    def read_links(self, name):
        if name not in self.links:
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                self.links[name] = Links(file.read())
        return self.links[name]

    def size(self, width, height):
        self.browser.call("Emulation.setDeviceMetricsOverride", width=width,
                          height=height, deviceScaleFactor=1, mobile=False)

    def media(self, media="", scheme="light"):
        self.browser.call("Emulation.setEmulatedMedia", media=media, features=[
            {"name": "prefers-color-scheme", "value": scheme}])

    def open(self, name, settle=True):
        self.page = name
        self.browser.events.clear()
        self.browser.call("Page.navigate", url="about:blank")
        self.browser.wait_for("Page.loadEventFired")
        self.browser.events.clear()
        self.browser.call("Page.navigate", url="file://" + urllib.parse.quote(
            os.path.join(self.folder, name)))
        self.browser.wait_for("Page.loadEventFired")
        if settle:
            self.browser.settle()

    def picture(self, name):
        if not self.screenshots:
            return
        path = os.path.join(self.screenshots, f"{self.page[:-5]}-{name}.png")
        self.browser.screenshot(path)

    def check_events(self):
        for event in self.browser.events:
            method, params = event.get("method"), event.get("params", {})
            if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled",
                          "Log.entryAdded"):
                self.expect("no message on the console", False, str(params)[:400])
            elif method == "Network.requestWillBeSent":
                url = params["request"]["url"]
                self.expect("nothing but this folder is asked for", url.startswith(
                    ("file://" + urllib.parse.quote(self.folder), "data:", "about:")), url)
        self.browser.events.clear()

    def check_links(self, name):
        links = self.read_links(name)
        self.expect("no handlers in the text, and no id twice", not links.faults,
                    links.faults[:3])
        self.expect("the book's script alone", set(links.scripts) <= {"book.js"},
                    links.scripts)
        for tag, url in links.urls:
            if url.startswith(SITES) and tag == "a" or url == "data:,":
                continue
            parts = urllib.parse.urlsplit(url)
            self.expect("the link leads somewhere", not parts.scheme and not parts.netloc,
                        url)
            target = urllib.parse.unquote(parts.path) or name
            path = os.path.join(self.folder, target)
            inside = os.path.realpath(path).startswith(os.path.realpath(self.folder) + "/")
            self.expect("the link leads to a file of the book",
                        inside and os.path.isfile(path), url)
            if parts.fragment and target.endswith(".html") and os.path.isfile(path):
                self.expect("the link leads to a place", urllib.parse.unquote(
                    parts.fragment) in self.read_links(target).ids, url)

    def check_looks(self):
        for scheme in ("light", "dark"):
            self.media(scheme=scheme)
            self.browser.settle()
            low = self.browser.value(LOW_CONTRAST)
            self.expect(f"contrast, {scheme}", not low, low[:4])
            self.picture(scheme)
        self.media()
        unnamed = self.browser.value(UNNAMED)
        self.expect("text alternatives", not unnamed, unnamed[:3])
        self.expect("one first heading", self.browser.value(
            "document.querySelectorAll('h1').length") == 1)
        self.expect("a title and a language", self.browser.value(
            "Boolean(document.title.trim() && document.documentElement.lang)"))
        self.size(*PHONE)
        self.browser.settle()
        wide = self.browser.value(TOO_WIDE)
        self.expect("no wider than a phone", not wide, wide)
        self.picture("phone")
        self.size(*DESK)
        self.browser.settle()

    def where(self, element):
        """The middle of the expression's element, after scrolling to it."""
        return self.browser.value(
            f"((e) => {{ e.scrollIntoView({{block: 'center', behavior: 'instant'}}); "
            "const box = e.getBoundingClientRect(); "
            "return [box.left + box.width / 2, box.top + box.height / 2]; })"
            f"({element})")

    def check_questions(self):
        """Answers one by mouse, one by keyboard, the rest all together."""
        asking = self.browser.value(
            "[...document.querySelectorAll('article')].filter("
            "(a) => a.querySelector('.choices')).map((a) => a.id)")
        visible = ("((a) => getComputedStyle(a.querySelector('.answer')).display !== "
                   "'none')(document.getElementById('%s'))")
        for i, name in enumerate(asking):
            self.expect(f"{name}: the answer is hidden at first",
                        not self.browser.value(visible % name))
            button = f"document.getElementById('{name}').querySelector('.choices button')"
            if i % 2 == 0:
                self.browser.click(*self.where(button))
            else:
                # Reaches it by Tab from the element before it.
                self.where(button)
                self.browser.value(f"{button}.closest('.ask').tabIndex = -1, "
                                   f"{button}.closest('.ask').focus(), 0")
                self.browser.key("Tab")
                self.expect(f"{name}: Tab reaches the choices", self.browser.value(
                    f"document.activeElement === {button}"))
                self.browser.key("Enter")
            self.expect(f"{name}: an answer shows it", self.browser.value(visible % name))
            self.expect(f"{name}: the choice is marked", self.browser.value(
                f"{button}.getAttribute('aria-pressed')") == "true")
            self.expect(f"{name}: the prediction stands by the verdicts",
                        self.browser.value(
                            f"[{button}.textContent, {button}.dataset.mark].filter(Boolean)"
                            f".join(' · ') === document.getElementById('{name}')"
                            ".querySelector('.prediction b').innerText"))
        if asking:
            self.picture("answered")
            everything = "document.querySelector('button.all')"
            for shown in (False, True):
                self.browser.click(*self.where(everything))
                self.expect("all answers hide and show", all(
                    self.browser.value(visible % name) == shown for name in asking))
                self.expect("no prediction shows where none was made", self.browser.value(
                    "[...document.querySelectorAll('.prediction span')].every("
                    "(span) => !span.getClientRects().length)"))
            exercise = "document.querySelector('article .answer .exercise')"
            if self.browser.value(f"Boolean({exercise})"):
                self.browser.click(*self.where(everything))  # hides all
                self.browser.value(f"location.hash = {exercise}.id")
                self.browser.settle()
                self.expect("a link to an exercise shows it", self.browser.value(
                    f"{exercise}.getClientRects().length") > 0)
                if self.hidden_answers():  # the next checks look at all
                    self.browser.click(*self.where(everything))

    def hidden_answers(self):
        return self.browser.value(
            "[...document.querySelectorAll('.answer')].filter("
            "(a) => getComputedStyle(a).display === 'none').length")

    def timelines(self):
        """The frames that show a timeline, after they have been loaded."""
        tree = self.browser.call("Page.getFrameTree")["frameTree"]
        return [one["frame"] for one in tree.get("childFrames", [])
                if "/timelines/" in one["frame"]["url"]]

    def check_timeline(self):
        """Unfolds a timeline by a key, and uses it."""
        summary = "document.querySelector('.timeline summary')"
        if not self.browser.value(f"Boolean({summary})"):
            return
        self.expect("folded timelines are not loaded",
                    self.browser.value("frames.length") == 0)
        self.where(summary)
        self.browser.value(f"{summary}.focus(), 0")
        self.browser.key("Enter")
        self.expect("Enter unfolds the timeline", self.browser.value(
            f"{summary}.parentElement.open"))
        frame = "document.querySelector('.timeline iframe')"
        self.where(frame)
        for _ in range(200):  # of 50 ms
            if self.timelines():
                break
            self.browser.value("new Promise((done) => setTimeout(done, 50))")
        frames = self.timelines()
        self.expect("one timeline is loaded", len(frames) == 1, frames)
        if not frames:
            return
        world = self.browser.call("Page.createIsolatedWorld",
                                  frameId=frames[0]["id"])["executionContextId"]

        def inside(expression):
            return self.browser.call("Runtime.evaluate", expression=expression,
                                     contextId=world, returnByValue=True,
                                     awaitPromise=True)["result"].get("value")

        for _ in range(200):  # of 50 ms
            if inside("document.readyState") == "complete":
                break
            inside("new Promise((done) => setTimeout(done, 50))")
        language = self.browser.value("document.documentElement.lang.slice(0, 2)")
        self.expect("the timeline is in the page's language",
                    inside("document.documentElement.lang") == language)
        before = inside("document.querySelector('.drawn').textContent")
        self.browser.click(*self.where(frame))
        self.browser.key("+")
        self.expect("the timeline takes keys", before !=
                    inside("document.querySelector('.drawn').textContent"))
        self.where(frame)
        self.picture("timeline")

    def check_paper(self, name):
        self.open(name)
        self.media("print")
        self.browser.settle()
        self.expect("paper shows every answer", not self.hidden_answers())
        self.expect("paper has no buttons", self.browser.value(
            "[...document.querySelectorAll('button')].every("
            "(b) => !b.getClientRects().length)"))
        if self.screenshots:
            pdf = self.browser.call("Page.printToPDF", printBackground=True)["data"]
            with open(os.path.join(self.screenshots, name[:-5] + ".pdf"), "wb") as file:
                file.write(base64.b64decode(pdf))
        self.media()

    def check_without_script(self, name):
        self.browser.call("Emulation.setScriptExecutionDisabled", value=True)
        self.open(name, settle=False)  # settling needs a script
        self.expect("without JavaScript every answer shows", not self.hidden_answers())
        self.browser.call("Emulation.setScriptExecutionDisabled", value=False)

    def check_sizes(self):
        for folder, _, names in os.walk(self.folder):
            for name in names:
                size = os.path.getsize(os.path.join(folder, name))
                self.expect(f"{name}: at most 3 MB", size <= MAX_BYTES, size)

    def check_page(self, name):
        self.size(*DESK)
        self.media()
        self.open(name)
        took = self.browser.value(
            "((t) => t.loadEventEnd - t.startTime)"
            "(performance.getEntriesByType('navigation')[0])")
        size = os.path.getsize(os.path.join(self.folder, name))
        print(f"{name}: {size / 1000:,.0f} kB, drawn after {took:.0f} ms")
        self.check_links(name)
        self.check_questions()
        self.check_looks()
        self.check_timeline()
        self.check_events()
        if self.browser.value("Boolean(document.querySelector('.answer'))"):
            self.check_paper(name)
            self.check_without_script(name)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default="book")
    add_options(parser)
    arguments = parser.parse_args()
    folder = os.path.realpath(arguments.folder)
    if not os.path.isfile(os.path.join(folder, "style.css")):
        print(f"{arguments.folder} is no book. Make one: bazel run //:book")
        return 1
    pages = sorted(name for name in os.listdir(folder) if name.endswith(".html"))
    with browser_of(arguments) as browser:
        check = Check(browser, folder, arguments.screenshots)
        for name in pages:
            check.check_page(name)
        check.check_sizes()
    print(f"{len(pages)} pages, " + (f"{check.failures} failures" if check.failures
                                     else "all is well."))
    return 1 if check.failures or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
